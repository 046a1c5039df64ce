"""Origins: whether a Series that is named like a column of the data still has its values.

pandas keeps the name of a column in `rank`, `diff`, arithmetic and many more. A fact may name the
column only if it is about its values.

Covered: numbers and durations, compared with the tables of the cell and with those in its names;
results of `shift`, `diff` and the like, and of a text's length. Not covered: tables that are
computed as a whole, a column that is changed in place, and texts and dates made of a column, such
as `.str.lower()` and `.dt.year`, which keep its name.

Like `notes`, imported only when pandas is loaded, and run while the book is quiet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from kernel_sandbox.ledger.book import Book, TableCall
from kernel_sandbox.ledger.coverage import label

__all__ = ["COMPUTED", "derived", "is_computed", "named"]

COMPUTED = "a computed value"
_NUMBERS = "iufcm"
_MOST_ROWS = 5_000_000
_MOST_PLACED, _MOST_SEARCHED = 1_000_000, 200_000
"""Most rows of a column in which others are searched for: by their labels, and by their values."""
_GLANCE = 100
"""Rows that are compared before all of them are."""
_MOST_TABLES = 50


def derived(book: Book, call: TableCall) -> None:
    """Remember a result that has the name of a column and other values."""
    book.remember_column(call.result, is_derived=True)


def named(book: Book, values: Any) -> str:
    """Return the name of a column in a fact, or what to call values that are not the column's.

    Args:
        book: the book of the kernel.
        values: a Series, or any object with a name.
    """
    return COMPUTED if is_computed(book, values) else label(values)


def is_computed(book: Book, values: Any) -> bool:
    """Return whether a Series has the name of a column, or none, and was computed.

    Args:
        book: the book of the kernel.
        values: any object.
    """
    if not isinstance(values, pd.Series):
        return False
    known = book.column(values)
    if known is not None:
        return known.is_derived
    if values.dtype.kind not in _NUMBERS:
        return False
    sources = list(_sources(book, values.name))
    if any(one is values for one in sources):
        return False
    if values.name is None:
        return True
    found = bool(sources) and not any(_is_same(book, values, one) for one in sources)
    book.remember_column(values, is_derived=found)
    return found


def _is_same(book: Book, values: Any, source: Any) -> bool:
    with book.comparing() as may:
        return may and _has_values(values, source)


def _sources(book: Book, name: Any) -> Iterator[Any]:
    """Yield the columns of this name in the tables of the cell; without one, such Series."""
    things = list(book.namespace.values()) if isinstance(book.namespace, dict) else []
    tables = [*book.tables(), *(one for one in things if isinstance(one, pd.DataFrame))]
    found = [table[name] for table in tables[:_MOST_TABLES] if name in table.columns]
    if not found:
        found = [one for one in things if isinstance(one, pd.Series) and one.name == name]
    yield from (one for one in found if isinstance(one, pd.Series))


def _has_values(values: Any, source: Any) -> bool:
    """Return whether values are those of a column: all or some, with other gaps, as integers."""
    if max(len(values), len(source)) > _MOST_ROWS:
        return False
    kind = source.dtype.kind
    if values.dtype.kind == "m" and kind == "M":  # a difference of dates
        return False
    same_rows = _at(source, values.index)
    if kind not in _NUMBERS + "b":  # numbers in a text, the year of a date
        return same_rows is not None
    if same_rows is None:
        return len(source) <= _MOST_SEARCHED and bool(values.dropna().isin(source).all())
    return not values.isna().all() and all(
        _is_equal(values.iloc[:most], same_rows.iloc[:most]) for most in (_GLANCE, None)
    )


def _is_equal(values: Any, source: Any) -> bool:
    """Return whether values are those of the same rows of a column, where both have any."""
    mine, theirs = (pd.Series(one.array, copy=False) for one in (values, source))
    same = (mine == theirs) | theirs.isna() | mine.isna()
    if values.dtype.kind in "iu" and source.dtype.kind == "f":
        same |= mine == np.trunc(theirs)
    return bool(same.all())


def _at(source: Any, index: Any) -> Any:
    """Return the rows of a column with these labels; `None` if it lacks some, or repeats any."""
    if source.index.names != index.names:
        return None
    if source.index.equals(index):
        return source
    if len(source) > _MOST_PLACED or not source.index.is_unique:
        return None
    places = source.index.get_indexer(index)
    return None if (places < 0).any() else source.iloc[places]
