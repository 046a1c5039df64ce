"""What the data contain if nothing was found: the nearest values, or the range of a column.

Imported only when pandas is loaded. Called for conditions that no row meets, a few times per cell.
"""

from __future__ import annotations

import ast
import datetime as dt
import difflib
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from kernel_sandbox.ledger.facts import Coverage

__all__ = ["code_text", "coverage_of", "coverage_of_query", "label"]

_VALUE_CHARS, _NAME_CHARS, _SHOWN_VALUES = 60, 60, 3
_SAMPLED, _MOST_ROWS = 200_000, 5_000_000
_COMPARED = 500
"""Most values that a misspelt one is compared with."""
_QUERY_CHARS = 2_000
_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.In: ("in", lambda column, values: column.isin(list(values))),
}


def label(values: Any) -> str:
    """Return the name of a column in a fact."""
    name = getattr(values, "name", None)
    if name is None:
        return "index" if isinstance(values, pd.Index) else "value"
    return name[:_NAME_CHARS] if isinstance(name, str) else code_text(name)


def code_text(value: Any) -> str:
    """Return a value as short code text; only values of known types are converted to text."""
    if isinstance(value, str):
        return repr(str(value[:_VALUE_CHARS]))
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | complex):
        return repr(value)[:_VALUE_CHARS]
    if isinstance(value, dt.date | dt.timedelta | pd.Period):
        return str(value).removesuffix(" 00:00:00")[:_VALUE_CHARS]
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        shown = [code_text(one) for one, _ in zip(value, range(_SHOWN_VALUES), strict=False)]
        more = f", … {len(value)} values" if len(value) > _SHOWN_VALUES else ""
        return f"[{', '.join(shown)}{more}]"
    return label(value) if isinstance(value, pd.Series | pd.Index) else type(value).__name__


def coverage_of(values: Any, wanted: Any, part: str, rows: int = 0) -> Coverage:
    """Return what a column contains, relative to a value that was searched in it.

    Args:
        values: the column, a Series.
        wanted: the value, or several.
        part: the condition in words.
        rows: the number of rows that match it.
    """
    bare = Coverage(part, rows, label(values))
    if not 0 < len(values) <= _MOST_ROWS:
        return bare
    asked = list(wanted)[:_SHOWN_VALUES] if isinstance(wanted, list | tuple | set) else [wanted]
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        values = values.astype(dtype.categories.dtype)
        dtype = values.dtype
    has_order = pd.api.types.is_numeric_dtype(dtype) or getattr(dtype, "kind", "") in "mM"
    if has_order and not pd.api.types.is_bool_dtype(dtype):
        return _ranged(values, asked, bare)
    return _near(values, asked, bare)


def _ranged(values: Any, asked: list[Any], bare: Coverage) -> Coverage:
    low, high = values.min(), values.max()
    if pd.isna(low):
        return bare
    is_date = getattr(values.dtype, "kind", "") in "mM"
    is_other = any(isinstance(one, str) for one in asked) and not is_date
    return Coverage(
        bare.part,
        bare.rows,
        bare.column,
        low=code_text(low),
        high=code_text(high),
        dtype=str(values.dtype) if is_other else "",
    )


def _near(values: Any, asked: list[Any], bare: Coverage) -> Coverage:
    """Return the values like those asked for, or the most frequent ones if there are none."""
    step = -(-len(values) // _SAMPLED)
    counts = values.iloc[::step].value_counts()
    known = list(counts.index)
    found: list[Any] = []
    for one in asked:
        if isinstance(one, str):
            found += _like(one, [value for value in known if isinstance(value, str)])
    shown = list(dict.fromkeys(found))[:_SHOWN_VALUES]
    frequent = [] if shown else known[:_SHOWN_VALUES]

    def counted(some: list[Any]) -> tuple[tuple[str, int], ...]:
        exact = (int(counts[one] if step == 1 else (values == one).sum()) for one in some)
        return tuple(zip(map(code_text, some), exact, strict=True))

    is_other = not shown and not any(isinstance(one, str) for one in asked) and known
    holds_text = bool(is_other) and all(isinstance(one, str) for one in frequent)
    return Coverage(
        bare.part,
        bare.rows,
        bare.column,
        dtype="text" if holds_text else "",
        near=counted(shown),
        frequent=counted(frequent),
    )


def _like(wanted: str, known: list[str]) -> list[str]:
    """Return the known texts most similar to the wanted one, the most similar first.

    A text that begins with it comes early: '2012-08' finds '2012/08/01' before '2012/12/08'.
    """
    plain = _plain(wanted)
    if not plain:
        return []
    alike = [one for one in known if _plain(one) == plain]
    if alike:
        return alike
    plains = [(one, _plain(one)) for one in known]
    holding = [one for one, text in plains if plain in text or (len(text) > 3 and text in plain)]
    by_plain = {_plain(one): one for one in reversed(known[:_COMPARED])}
    close = difflib.get_close_matches(plain[:_VALUE_CHARS], by_plain, _SHOWN_VALUES, 0.6)
    begun = [one for one, text in plains if len(plain) > 3 and text.startswith(plain)]
    return [*begun, *(by_plain[one] for one in close), *holding]


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text[: 2 * _VALUE_CHARS].casefold()))


def coverage_of_query(frame: Any, expression: str) -> tuple[Coverage, ...]:
    """Return what the columns of a `query` contain, for the comparisons that can be parsed.

    Args:
        frame: the queried table.
        expression: the text of the query.
    """
    names: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        names[f"_quoted_{len(names)}"] = found[1]
        return next(reversed(names))

    text = re.sub(r"`([^`]*)`", named, expression[:_QUERY_CHARS]).replace("@", "_local_")
    tree = ast.parse(text.strip(), mode="eval")
    found = []
    for part in _conjuncts(tree.body):
        match part:
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[right]):
                column = names.get(name, name)
                if column in frame.columns and type(op) in _COMPARISONS:
                    found.append(_compared(frame[column], op, right))
    return tuple(one for one in found if one is not None)


def _compared(values: Any, op: ast.cmpop, right: ast.expr) -> Coverage | None:
    try:
        wanted = ast.literal_eval(right)
    except ValueError:  # a local name, or another column
        return None
    sign, compare = _COMPARISONS[type(op)]
    rows = int(compare(values, wanted).sum())
    return coverage_of(values, wanted, f"{label(values)} {sign} {code_text(wanted)}", rows)


def _conjuncts(tree: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts that must all be true."""
    match tree:
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                yield from _conjuncts(part)
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield tree
