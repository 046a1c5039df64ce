"""Thin wrappers around the operations of pandas, installed only while a cell runs.

Covered: results, errors, tracebacks and warnings are those of pandas itself. An operation that a
cell has replaced stays replaced. Not covered: an operation that a cell has stored in a container or
a closure keeps its wrapper, which then only forwards calls.

Imported only when pandas is loaded.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pandas as pd
from pandas.core.indexing import _LocIndexer
from pandas.core.strings.accessor import StringMethods

from kernel_sandbox.ledger import conditions, notes, origins
from kernel_sandbox.ledger.book import Book, CallNote, TableCall

__all__ = ["Wrapping"]

_REDUCTIONS = (
    *("sum", "mean", "median", "min", "max", "std", "var", "prod", "count"),
    *("nunique", "quantile"),
)
_CONSUMERS = ("describe", "value_counts", "mode", "agg", "aggregate", "resample", "corr")
_WRITERS = ("to_csv", "to_excel", "to_parquet", "to_json")
_READERS = ("read_csv", "read_table", "read_excel", "read_parquet", "read_json")
_FILLERS = ("fillna", "ffill", "bfill", "interpolate")
_SIGNS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_TEXT_CONDITIONS = ("contains", "startswith", "endswith", "match", "fullmatch")
_DERIVING = ("shift", "diff", "rank", "pct_change", "cumsum")
_LENGTHS = ("len", "count", "find", "rfind")
_JOINTS = ("and", "or", "xor")
_COERCIONS = ("to_numeric", "to_datetime", "to_timedelta")
_WALKED = 12
"""Most frames of pandas between a cell and a function that pandas calls for it, as in `apply`."""
_FILE = "<ledger of dm_jupyter, which warnings pass by as importlib._bootstrap>"
"""File name of the wrappers in the stack. When Python searches the line that a warning is about, it
skips frames of a file with `importlib` and `_bootstrap` in its name (`_is_internal_frame`)."""


def _conditions() -> Iterator[tuple[Any, str, CallNote]]:
    """Yield the operations that create masks; see `_operations`."""
    series = pd.Series
    for name, sign in _SIGNS.items():
        yield series, f"__{name}__", conditions.compared(sign)
        yield series, name, conditions.compared(sign)
    yield series, "isin", conditions.compared("in")
    yield series, "between", conditions.compared("between")
    for name, words in (("isna", "missing"), ("notna", "not missing")):
        yield series, name, conditions.compared(words, "{column} {sign}")
        yield series, name.replace("na", "null"), conditions.compared(words, "{column} {sign}")
    for name in _TEXT_CONDITIONS:
        yield StringMethods, name, conditions.compared(name)
    for name in _DERIVING:
        yield series, name, origins.derived
    for name in _LENGTHS:
        yield StringMethods, name, origins.derived
    for word in _JOINTS:
        yield series, f"__{word}__", conditions.combined(word)
        yield series, f"__i{word}__", conditions.combined(word)
    yield series, "__invert__", conditions.inverted


def _methods(owner: Any) -> Iterator[tuple[Any, str, CallNote]]:
    """Yield the operations that a table and a column both have; see `_operations`."""
    yield owner, "__getitem__", notes.selected
    yield owner, "reindex", notes.reindexed
    yield owner, "groupby", notes.grouped
    for names, note in (
        (("dropna", "drop_duplicates", "drop"), notes.dropped),
        (_REDUCTIONS, notes.reduced),
        (_CONSUMERS, notes.nothing),
        (_WRITERS, notes.written),
        (_FILLERS, notes.filled),
    ):
        yield from ((owner, name, note) for name in names if hasattr(owner, name))


def _operations() -> Iterator[tuple[Any, str, CallNote]]:
    """Yield the owner of each operation, its name there, and its note."""
    yield from _conditions()
    yield from _methods(pd.DataFrame)
    yield from _methods(pd.Series)
    yield _LocIndexer, "__getitem__", notes.located
    yield pd.DataFrame, "query", notes.queried
    yield pd.DataFrame, "pivot_table", notes.nothing
    yield pd.DataFrame, "merge", notes.merged
    yield pd.DataFrame, "join", notes.merged
    yield pd.Series, "map", notes.coerced
    yield pd.Series, "get", notes.looked_up
    for name, note in _FUNCTIONS.items():
        # Also in the module that defines it, because pickle looks for it there.
        for module in (pd, sys.modules[getattr(pd, name).__module__]):
            if getattr(module, name, None) is getattr(pd, name):
                yield module, name, note


_FUNCTIONS: dict[str, CallNote] = {
    **dict.fromkeys(_COERCIONS, notes.coerced),
    **dict.fromkeys(("merge", "merge_asof"), notes.merged),
    **dict.fromkeys(("read_sql", "read_sql_query"), notes.fetched),
    **dict.fromkeys(_READERS, notes.loaded),
    "concat": notes.concatenated,
}


_EARLIER: dict[str, Callable[[Book, Any], Any]] = {
    **dict.fromkeys(_FILLERS, lambda _, table: notes.gaps_of(table)),
    **{f"__{i}{word}__": conditions.condition_of for word in _JOINTS for i in ("", "i")},
}
"""What to look up in a table before an operation that may change it."""


class Wrapping:
    """Wrappers of one kernel, created once, installed and removed with each cell."""

    def __init__(self, book: Book) -> None:
        """Create the wrappers without installing them.

        Args:
            book: the book that receives what is recorded.
        """
        self._layers: list[tuple[Any, str, Any, Any, bool]] = []
        """Owner, name, operation, its wrapper, and whether the owner itself defines it."""
        made: dict[int, Any] = {}
        for owner, name, note in _operations():
            original = getattr(owner, name)
            layer = made.setdefault(id(original), None) if not isinstance(owner, type) else None
            if layer is None:
                layer = _layer(book, original, name, note)
                made[id(original)] = layer
            self._layers.append((owner, name, original, layer, name in vars(owner)))
        self._originals = {id(layer): original for _, _, original, layer, _ in self._layers}

    def put_on(self) -> None:
        """Install the wrappers."""
        for owner, name, original, layer, _ in self._layers:
            if getattr(owner, name, None) is original:
                setattr(owner, name, layer)

    def take_off(self, namespace: dict[str, Any]) -> None:
        """Restore the operations, even those that a cell has imported by name.

        Args:
            namespace: the global names of the cell's code.
        """
        for owner, name, original, layer, is_own in self._layers:
            if vars(owner).get(name) is not layer:
                continue
            if is_own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)
        for key, value in list(namespace.items()):
            original = self._originals.get(id(value))
            if original is not None:
                namespace[key] = original


def _layer(book: Book, original: Any, name: str, note: CallNote) -> Any:
    """Return an operation that does what the original does and then records it."""
    if name == "__getitem__":
        function = _getitem_layer(book, original, note)
    else:
        is_walking, is_query = name in _COERCIONS, name == "query"

        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                line = 0 if book.is_quiet else _cell_line(book, sys._getframe(1), is_walking)
                if is_query:  # it resolves names in the frame of its caller
                    kwargs["level"] = kwargs.get("level", 0) + (2 if line else 1)
                if not line:
                    return original(*args, **kwargs)
                return _noted(
                    book, original, note, TableCall(name, line, _rows(args), args, kwargs)
                )
            except BaseException as error:
                error.__traceback__ = _without_layers(error.__traceback__)
                raise

    code = function.__code__
    function.__code__ = code.replace(co_filename=_FILE, co_name=getattr(original, "__name__", name))
    return functools.wraps(original)(function)


def _getitem_layer(book: Book, original: Any, note: CallNote) -> Any:
    """Return a wrapper as `_layer` does, but fast for a key that is a name or a number."""

    def function(self: Any, key: Any) -> Any:
        try:
            if type(key) is str or type(key) is int:
                result = original(self, key)
                if not book.is_quiet and isinstance(result, pd.Series):
                    _note_column(book, self, result)
                return result
            line = 0 if book.is_quiet else _cell_line(book, sys._getframe(1))
            if not line:
                return original(self, key)
            return _noted(
                book, original, note, TableCall("[]", line, _rows((self,)), (self, key), {})
            )
        except BaseException as error:
            error.__traceback__ = _without_layers(error.__traceback__)
            raise

    return function


def _note_column(book: Book, table: Any, column: Any) -> None:
    with suppress(Exception):  # nothing of ours may reach the cell
        if isinstance(table, pd.DataFrame):
            book.remember_column(column, table)
        if book.has_voids and (why := book.void_of(table)).text:
            book.remember_void(column, why)


def _cell_line(book: Book, frame: Any, is_walking: bool = False) -> int:
    """Return the line of the cell that calls; 0 for a call from elsewhere or another thread."""
    if is_walking:
        for _ in range(_WALKED):
            if frame is None or not frame.f_globals.get("__name__", "").startswith("pandas."):
                break
            frame = frame.f_back
    is_own = frame is not None and frame.f_globals is book.namespace
    if not is_own or threading.get_ident() != book.thread or book.has_looked_enough:
        return 0
    return int(frame.f_lineno)


def _noted(book: Book, original: Any, note: CallNote, call: TableCall) -> Any:
    """Return what the original returns; a note that fails is skipped."""
    book.is_quiet = True
    try:
        if (look := _EARLIER.get(call.name)) is not None:
            with suppress(Exception):  # nothing of ours may reach the cell
                call.earlier = look(book, call.table)
        call.result = original(*call.args, **call.kwargs)
        with suppress(Exception):  # nothing of ours may reach the cell
            note(book, call)
        return call.result
    finally:
        book.is_quiet = False


_noted.__code__ = _noted.__code__.replace(co_filename=_FILE)


def _rows(args: tuple[Any, ...]) -> int:
    table = args[0] if args else None
    table = getattr(table, "obj", table) if isinstance(table, _LocIndexer) else table
    return len(table) if isinstance(table, pd.DataFrame | pd.Series) else 0


def _without_layers(trace: Any) -> Any:
    """Return the traceback without the wrapper's frames at its beginning."""
    while trace is not None and trace.tb_frame.f_code.co_filename == _FILE:
        trace = trace.tb_next
    return trace
