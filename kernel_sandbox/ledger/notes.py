"""Notes: what is recorded about each wrapped operation of pandas once it has returned.

Imported only when pandas is loaded. If a note raises, nothing is recorded. It runs while the book
is quiet, so that the operations of pandas that it calls itself are not recorded.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from kernel_sandbox.ledger.book import CONDITION_CHARS, Book, Condition, TableCall
from kernel_sandbox.ledger.conditions import condition_of, count_true, is_mask
from kernel_sandbox.ledger.coverage import code_text, coverage_of, coverage_of_query, label
from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.ledger.origins import is_computed, named
from kernel_sandbox.ledger.queries import coverage_in_file, file_of, is_void

__all__ = ["gaps_of", "note_shown"]

QUERY = "query"
"""Attribute of a table from a query: the database and the query, as a `sql` cell sets it."""
_TABLES = (pd.DataFrame, pd.Series)
_TEXT_ROWS = 100_000
"""Most rows of a column of Python objects that is searched for missing values, which is slow."""
_MOST_ROWS = 5_000_000
_SHOWN_CELLS = 400
_EXAMPLES = 3
_MOST_COLUMNS = 100
_KEYS = ("on", "left_on", "right_on", "by", "left_by", "right_by")
"""Parameters for the keys of a merge."""
_PLACES = ("path_or_buf", "excel_writer", "path")
"""Parameters for the file in the operations that save a table."""


def selected(book: Book, call: TableCall) -> None:
    """Record `table[mask]`; a column of an empty table gets the table's reason in `wrapping`."""
    key = call.args[1]
    if is_mask(key):
        _note_kept(book, call, condition_of(book, key) or Condition(""))


def located(book: Book, call: TableCall) -> None:
    """Record `.loc[mask]` and `.loc[slice]`."""
    indexer, key = call.args[:2]
    rows = key[0] if isinstance(key, tuple) and key and indexer.ndim == len(key) else key
    if is_mask(rows):
        _note_kept(book, call, condition_of(book, rows) or Condition(""))
    elif isinstance(rows, slice) and rows != slice(None) and isinstance(call.result, _TABLES):
        ends = [code_text(end) for end in (rows.start, rows.stop) if end is not None]
        text = f"{label(indexer.obj.index)} within {' to '.join(ends)}"
        coverage: tuple[Coverage, ...] = ()
        if not len(call.result) and call.before:
            index = indexer.obj.index
            with book.explaining() as may:
                coverage = (coverage_of(index.to_series(), rows.start, text),) if may else ()
        _note_kept(book, call, Condition(text, coverage))


def queried(book: Book, call: TableCall) -> None:
    """Record `.query(text)`."""
    expression = call.argument(1, "expr", "")
    text = " ".join(str(expression).split())[:CONDITION_CHARS]
    is_void = call.result is not None and not len(call.result) and call.before
    coverage: tuple[Coverage, ...] = ()
    if is_void:
        with book.explaining() as may:
            coverage = coverage_of_query(call.table, expression) if may else ()
    _note_kept(book, call, Condition(text, coverage))


def _note_kept(book: Book, call: TableCall, condition: Condition) -> None:
    result = call.table if call.result is None else call.result
    after = len(result)
    is_void = after == 0 and call.before > 0
    if is_void:
        why = replace(condition, text=condition.text or "a mask")
        book.remember_void(result, why)
    elif after == 0 and (why := book.void_of(call.table)).text:
        book.remember_void(result, why)
    coverage = condition.coverage if is_void else ()
    book.note(
        Fact("kept", call.name, call.before, after, condition=condition.text,
             coverage=coverage, line=call.line, is_computed=condition.is_computed)
    )  # fmt: skip


def dropped(book: Book, call: TableCall) -> None:
    """Record `dropna`, `drop_duplicates` and `drop`, if they removed rows."""
    result = call.table if call.result is None else call.result
    after = len(result)
    if after != call.before:
        columns = call.kwargs.get("subset")
        text = code_text(columns) if columns is not None else ""
        if after == 0:
            book.remember_void(result, Condition(call.name))
        fact = Fact("dropped", call.name, call.before, after, condition=text, line=call.line)
        book.note(fact)


def grouped(book: Book, call: TableCall) -> None:
    """Record rows that are in no group because their key is missing, and groups of no rows."""
    table, by = call.table, call.argument(1, "by")
    if call.before == 0:
        nothing(book, call)
        return
    if not call.kwargs.get("dropna", True) or not isinstance(table, pd.DataFrame):
        return
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, list) or not all(isinstance(x, str) for x in names):
        return
    missing: Any = None
    for name in names:
        if name in table.columns and (gone := _missing(table[name])) is not None:
            missing = gone if missing is None else missing | gone
    lost = 0 if missing is None else int(missing.sum())
    if lost:
        text = ", ".join(names)[:CONDITION_CHARS]
        left = call.before - lost
        book.note(Fact("dropped", "groupby", call.before, left, condition=text, line=call.line))


def _missing(column: Any) -> Any:
    """Return a mask of the missing values, or `None` if the search would take too long."""
    is_slow = column.dtype == object and len(column) > _TEXT_ROWS
    return None if is_slow or len(column) > _MOST_ROWS else column.isna()


def merged(book: Book, call: TableCall) -> None:
    """Record `merge`, `join` and `merge_asof`: rows of both sides and of the result."""
    sides = call.argument(0, "left"), call.argument(1, "right", call.kwargs.get("other"))
    if not all(isinstance(side, _TABLES) for side in sides):
        return
    left, right = (side.to_frame() if isinstance(side, pd.Series) else side for side in sides)
    is_join, is_asof = call.name == "join", call.name == "merge_asof"
    place = 2 if is_join or is_asof else 3
    on = call.argument(place, "on", call.kwargs.get("left_on"))
    if on is None and call.name == "merge" and not call.kwargs.get("left_index"):
        on = [name for name in left.columns if name in right.columns]
    how = "left" if is_join or is_asof else "inner"
    if not is_asof:
        how = str(call.argument(3 if is_join else 2, "how", how))
    keys = "index" if on is None else ", ".join(map(str, on if isinstance(on, list) else [on]))
    text = keys[:CONDITION_CHARS] + ("" if is_asof else f" ({how})")
    if how == "cross":  # it has no keys
        text = ""
    if not len(call.result):
        book.remember_void(call.result, Condition(text or call.name))
    missed = _unmatched(call, left, right, how)
    book.note(
        Fact("merged", call.name, len(left), len(call.result), other=len(right),
             missed=missed, condition=text, line=call.line)
    )  # fmt: skip


def _unmatched(call: TableCall, left: Any, right: Any, how: str) -> int | None:
    """Count the rows of a merge without a partner, by columns that only one side has."""
    lacked = {"left": [right], "right": [left], "outer": [left, right]}.get(how, [])
    given = [*call.args[2:], *map(call.kwargs.get, _KEYS)]
    keys = [x for one in given for x in (one if isinstance(one, list | tuple) else [one])]
    shared = {*left.columns.intersection(right.columns), *filter(pd.api.types.is_hashable, keys)}
    counts = [_gaps_by(side, call.result, shared) for side in lacked]
    return None if not counts or None in counts else sum(filter(None, counts))


def _gaps_by(side: Any, result: Any, shared: set[Any]) -> int | None:
    """Count the rows of a merge that lack one side; `None` if no column shows it.

    Args:
        side: one of the merged tables.
        result: of the merge.
        shared: the names of the keys, which both sides fill, and those that the merge renames.
    """
    for name in side.columns[:_MOST_COLUMNS]:
        if name in shared or name not in result.columns:
            continue
        own = _missing(side[name])
        found = None if own is None or own.any() else _missing(result[name])
        if found is not None:
            return count_true(found)
    return None


def concatenated(book: Book, call: TableCall) -> None:
    """Record `concat` along the columns if the rows of the parts do not match."""
    parts = call.args[0]
    sizes = [len(one) for one in parts] if isinstance(parts, list | tuple) else []
    if sizes and call.argument(1, "axis", 0) in (1, "columns") and len(call.result) > max(sizes):
        text = ", ".join(map(str, sizes[:8]))
        fact = Fact("merged", "concat", max(sizes), len(call.result), condition=text)
        book.note(fact)


def coerced(book: Book, call: TableCall) -> None:
    """Record values that `to_numeric` and similar functions, or `map`, have turned into NaN."""
    given, result = call.args[0], call.result
    if call.name.startswith("to_") and call.argument(1, "errors", "raise") != "coerce":
        return
    if call.name == "map" and not isinstance(call.argument(1, "arg"), Mapping | pd.Series):
        return
    values = result if isinstance(result, _TABLES) else pd.Series(result)
    if len(values) > _MOST_ROWS or not isinstance(given, pd.Series | pd.Index | list | np.ndarray):
        return
    gone = values.isna()
    if not gone.any():
        return
    source = pd.Series(given)
    was_there = source.notna()
    lost = gone.to_numpy() & was_there.to_numpy()
    count = int(lost.sum())
    if not count:
        return
    examples = pd.unique(source[lost].head(1_000))[:_EXAMPLES]
    there = int(was_there.sum())
    book.note(
        Fact("lost", call.name, there, there - count, condition=label(source),
             result=", ".join(map(code_text, examples)), line=call.line)
    )  # fmt: skip


def reindexed(book: Book, call: TableCall) -> None:
    """Record labels that `reindex` found no row for."""
    table, result = call.table, call.result
    if len(result) > _TEXT_ROWS or result.index is table.index or not len(result):
        return
    unknown = ~result.index.isin(table.index)
    if unknown.any():
        count = int(unknown.sum())
        examples = ", ".join(map(code_text, result.index[unknown][:_EXAMPLES]))
        book.note(
            Fact("lost", "reindex", len(result), len(result) - count,
                 condition=label(result.index), result=examples, line=call.line)
        )  # fmt: skip


def looked_up(book: Book, call: TableCall) -> None:
    """Record `.get(label)` of a column, such as a table of groups, that has no such label."""
    table, wanted = call.table, call.argument(1, "key")
    if not len(table) or not pd.api.types.is_hashable(wanted) or wanted in table.index:
        return
    index = table.index
    levels = [index.get_level_values(place) for place in range(index.nlevels)]
    asked = wanted if isinstance(wanted, tuple) else (wanted,)
    parts = [
        (level.to_series(), value, f"{label(level)} == {code_text(value)}")
        for level, value in zip(levels, asked, strict=False)
    ]
    coverage: tuple[Coverage, ...] = ()
    with book.explaining() as may:
        if may:
            coverage = tuple(
                Coverage(text, rows) if (rows := int((level == value).sum())) and len(parts) > 1
                else coverage_of(level, value, text)
                for level, value, text in parts
            )  # fmt: skip
    text = " and ".join(text for _, _, text in parts)[:CONDITION_CHARS]
    book.note(Fact("kept", "get", len(table), 0, condition=text, coverage=coverage, line=call.line))


def reduced(book: Book, call: TableCall) -> None:
    """Record a figure of no rows, of missing values alone, or of a condition that all rows meet."""
    table, result = call.table, call.result
    if call.before == 0:
        nothing(book, call)
    elif isinstance(table, pd.Series):
        _note_figure(book, call, table, result)
    elif call.argument(2 if call.name == "quantile" else 1, "axis", 0) in (1, "columns"):
        return  # a figure of each row
    elif isinstance(result, pd.Series) and result.dtype.kind in "iuf":
        suspects = result.index[(result.isna() | (result == 0)).to_numpy()][:_EXAMPLES]
        for name in suspects:
            if name in table.columns and not table[name].notna().any():
                value = code_text(result[name])
                fact = Fact("nothing", call.name, call.before, 0, result=value, line=call.line,
                            condition=label(table[name]))  # fmt: skip
                book.note(fact)


def _note_figure(book: Book, call: TableCall, table: Any, result: Any) -> None:
    if not pd.api.types.is_scalar(result):
        return
    condition = condition_of(book, table)
    is_whole = condition is not None and call.name == "sum" and result == call.before
    if condition is not None and (not condition.rows or is_whole):
        if condition.is_of_missing:
            return
        after = call.before if is_whole else 0
        fact = Fact("kept", call.name, call.before, after, condition=condition.text,
                    coverage=condition.coverage, line=call.line,
                    is_computed=condition.is_computed)  # fmt: skip
        book.note(fact)
    elif (pd.isna(result) or result == 0) and not table.notna().any():
        fact = Fact("nothing", call.name, call.before, 0, condition=named(book, table),
                    result=code_text(result), line=call.line,
                    is_computed=is_computed(book, table))  # fmt: skip
        book.note(fact)


def nothing(book: Book, call: TableCall) -> None:
    """Record an operation on a table without rows."""
    if call.before:
        return
    is_value = pd.api.types.is_scalar(call.result)
    why = book.void_of(call.table)
    result = code_text(call.result) if is_value else ""
    book.note(
        Fact("nothing", call.name, 0, 0, condition=why.text, result=result, line=call.line,
             is_computed=why.is_computed)
    )  # fmt: skip


def written(book: Book, call: TableCall) -> None:
    """Record a saved table: its file, whether it has no rows, and why a query gave no more."""
    source = call.table.attrs.get(QUERY)
    if isinstance(source, list | tuple) and len(source) == 2 and is_void(call.table):
        _note_query(book, call, *map(str, source))
    if call.before == 0:
        why = book.void_of(call.table)
        book.note(
            Fact("shown", call.name, 0, 0, condition=why.text, line=call.line,
                 is_computed=why.is_computed)
        )  # fmt: skip
    place = next((x for x in (call.argument(1, name) for name in _PLACES) if x is not None), None)
    if name := _file_name(place):
        book.note(Fact("saved", call.name, None, call.before, condition=name, line=call.line))


def loaded(book: Book, call: TableCall) -> None:
    """Record the number of rows read from a file."""
    place = call.args[0] if call.args else next(iter(call.kwargs.values()), None)
    name = _file_name(place)
    if name and isinstance(call.result, pd.DataFrame):
        rows = len(call.result)
        book.note(Fact("read", call.name, None, rows, condition=name, line=call.line))


def _file_name(place: Any) -> str:
    """Return the file that a table is read from or saved to; empty if it is not a plain file."""
    if isinstance(place, PurePath | pd.ExcelFile | pd.ExcelWriter):
        place = os.fspath(place)
    if not isinstance(place, str):
        return ""
    return "" if "\n" in place or "://" in place else place[:CONDITION_CHARS]


def gaps_of(table: Any) -> dict[str, int]:
    """Return the number of missing values in each column that can be searched quickly."""
    is_column = isinstance(table, pd.Series)
    columns = [table] if is_column else [table[name] for name in table.columns[:_MOST_COLUMNS]]
    gaps = {label(x): _missing(x) for x in columns if isinstance(x, pd.Series)}
    return {name: int(missing.sum()) for name, missing in gaps.items() if missing is not None}


def filled(book: Book, call: TableCall) -> None:
    """Record missing values that `fillna` and similar methods have filled, for each column."""
    if is_computed(book, call.table):
        return
    result = call.table if call.result is None else call.result
    for name, left in gaps_of(result).items():
        before = (call.earlier or {}).get(name, 0)
        if left < before:
            book.note(Fact("filled", call.name, before, left, condition=name, line=call.line))


def fetched(book: Book, call: TableCall) -> None:
    """Record how many rows a query of a database gave, and why it gave no more."""
    if not isinstance(call.result, pd.DataFrame):
        return
    query = call.argument(0, "sql")
    text = " ".join(str(query).split())[:CONDITION_CHARS]
    connection, after = call.argument(1, "con"), len(call.result)
    if not after:
        book.remember_void(call.result, Condition(text))
    is_plain = isinstance(query, str) and call.argument(4, "params") is None
    if is_plain and isinstance(connection, sqlite3.Connection) and is_void(call.result):
        file = file_of(connection)
        if file and _note_query(book, call, file, query):
            return
    book.note(Fact("kept", call.name, None, after, condition=text, line=call.line))


def _note_query(book: Book, call: TableCall, database: str, query: str) -> bool:
    """Record a query that selects no row; return whether it is one."""
    coverage = coverage_in_file(database, query)
    if coverage is None:
        return False
    text = " ".join(query.split())[:CONDITION_CHARS]
    book.note(Fact("kept", "read_sql", None, 0, condition=text, coverage=coverage, line=call.line))
    return True


def note_shown(book: Book, shown: Any) -> None:
    """Record a table that is displayed and has no rows, or no values.

    Args:
        book: the book of the kernel.
        shown: the displayed object.
    """
    if not isinstance(shown, _TABLES):
        return
    if not len(shown):
        why = book.void_of(shown)
        book.note(Fact("shown", "display", 0, 0, condition=why.text, is_computed=why.is_computed))
    elif shown.size <= _SHOWN_CELLS and bool(shown.isna().to_numpy().all()):
        columns = ", ".join(map(str, getattr(shown, "columns", [named(book, shown)])))
        book.note(
            Fact("shown", "display", len(shown), 0, condition=columns[:CONDITION_CHARS],
                 is_computed=is_computed(book, shown))
        )  # fmt: skip
