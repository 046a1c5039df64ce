"""Which two columns identify a row together, as country and year do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pandas as pd

from dm_jupyter.data.profile.model import ColumnProfile

__all__ = ["paired_key"]

_MOST_ROWS = 200_000
_LEAST_ROWS = 12
_MOST_PAIRS = 20
_DENSITY = 0.5
"""Least share of all combinations that must be there. Of columns that have nothing to do with each
other few combinations are, and those may be unique by accident."""


def paired_key(frame: pd.DataFrame, columns: Sequence[ColumnProfile]) -> tuple[str, ...]:
    """Returns the names of two columns that no two rows share; empty where that is not sure.

    Only columns without missing values and fractions count, and only where no single column
    identifies a row already.

    Args:
        frame: all rows of the table.
        columns: its profiles, in the same order.
    """
    rows = len(frame)
    if not _LEAST_ROWS <= rows <= _MOST_ROWS:
        return ()
    if any(column.unique == rows for column in columns if "float" not in column.dtype):
        return ()
    for one, other in _pairs(columns, rows):
        if not frame.iloc[:, [one, other]].duplicated().any():
            return columns[one].name, columns[other].name
    return ()


def _pairs(columns: Sequence[ColumnProfile], rows: int) -> Iterator[tuple[int, int]]:
    """Yields places of two columns whose combinations are as many as the rows or little more."""
    counts = [
        (place, column.unique)
        for place, column in enumerate(columns)
        if column.unique and column.unique > 1 and column.missing == 0
        if "float" not in column.dtype
    ]
    fitting = (
        (one, other)
        for (one, count), (other, more) in combinations(counts, 2)
        if _DENSITY * count * more <= rows <= count * more
    )
    for _, pair in zip(range(_MOST_PAIRS), fitting, strict=False):
        yield pair
