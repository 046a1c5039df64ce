"""Column profiles of a frame: at once, or piece by piece for a table that is not in memory.

If no column identifies a row, two may do so together, as country and year do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.column_facts import FEW_VALUES, ColumnFacts, column_name, scalar
from dm_jupyter.data.profile.distinct import HashRoom
from dm_jupyter.data.profile.model import ColumnProfile, Scalar

__all__ = [
    "FEW_VALUES",
    "TableFacts",
    "column_name",
    "paired_key",
    "profile_columns",
    "repeats_warning",
    "sample_rows",
    "scalar",
    "spread_positions",
]

_SMALL_CELLS = 300
_DETAILED = 3_000
"""Columns that are inspected: more than a prompt has room for, few enough to take no time."""
_COUNTED_VALUES = 1_000_000
"""Distinct values that are counted one by one, over all columns."""
_MOST_ROWS = 200_000
_LEAST_ROWS = 12
_MOST_PAIRS = 20
_DENSITY = 0.5
"""Least share of all combinations that must occur.
Of unrelated columns few combinations do, and those may be unique by accident."""
_MOST_REPEATED, _LEAST_COLUMNS = 0.3, 3
"""Most repeats, as a share of the rows, and fewest columns: else they may be separate events."""


class TableFacts:
    """Facts of a table, gathered from its pieces in order, in constant memory.

    For columns after the first 3,000, only names and types are read.
    """

    def __init__(self) -> None:
        """Start without rows."""
        self.rows = 0
        self.columns: list[ColumnFacts] = []
        self.labels: pd.Index[Any] = pd.Index([])
        """Labels of all columns, in the order in which they came."""
        self._room = HashRoom()
        self._others: dict[str, Any] = {}

    def add(self, frame: pd.DataFrame) -> None:
        """Add the next rows; a piece may lack columns, and add others."""
        if not self.rows and not len(self.labels):
            self.labels = frame.columns
        elif not frame.columns.equals(self.labels):
            self.labels = self.labels.append(frame.columns.difference(self.labels, sort=False))
        frame = self.aligned(frame)
        detailed = frame.iloc[:, :_DETAILED]
        self._begin(detailed)
        self.rows += len(frame)
        for facts, (_, values) in zip(self.columns, detailed.items(), strict=True):
            facts.add(values)
        self._note_others(frame)

    def aligned(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows with all columns seen so far, in their order."""
        is_known = frame.columns.equals(self.labels)
        return frame if is_known else frame.reindex(columns=self.labels)

    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Return one profile per column, in order; duplicate names are kept apart by position."""
        others = self._others.get("dtypes", [])
        names = self._others.get("names", [])
        return (
            *(facts.profile() for facts in self.columns),
            *(ColumnProfile(name, str(dtype)) for name, dtype in zip(names, others, strict=True)),
        )

    def distinct_texts(self) -> pd.DataFrame:
        """Return a frame with distinct texts of each column of text, padded with missing values.

        Columns without text are empty. The frame replaces the table where only the kind of its
        texts matters. Of many texts it contains 2,000, spread over the table.
        """
        texts = [facts.texts() for facts in self.columns]
        length = max(map(len, texts), default=0)
        columns = {
            position: pd.Series(known + [None] * (length - len(known)), dtype=object)
            if known
            else pd.Series([float("nan")] * length, dtype="float64")
            for position, known in enumerate(texts)
        }
        frame = pd.DataFrame(columns)
        frame.columns = pd.Index([facts.name for facts in self.columns], dtype=object)
        return frame

    def label_counts(self) -> Mapping[int, Mapping[Any, int]]:
        """Return the count of each value, for columns with not too many, by position."""
        counted = ((position, facts.counts()) for position, facts in enumerate(self.columns))
        return {position: counts for position, counts in counted if counts is not None}

    def _begin(self, detailed: pd.DataFrame) -> None:
        """Add facts for the columns that first appear in this piece."""
        counted = min(10_000, max(200, _COUNTED_VALUES // max(1, detailed.shape[1])))
        for label in detailed.columns[len(self.columns) :]:
            facts = ColumnFacts(column_name(label), self._room, counted)
            facts.add_absent(self.rows)
            self.columns.append(facts)

    def _note_others(self, frame: pd.DataFrame) -> None:
        dtypes = frame.dtypes.iloc[_DETAILED:]
        if not len(dtypes):
            return
        known = self._others.get("dtypes")
        self._others["names"] = [column_name(label) for label in dtypes.index]
        self._others["dtypes"] = [
            dtype if known is None or at >= len(known) else _joined(known[at], dtype)
            for at, dtype in enumerate(dtypes)
        ]


def profile_columns(frame: pd.DataFrame) -> tuple[ColumnProfile, ...]:
    """Return one profile per column, in order; duplicate names are kept apart by position.

    For columns after the first 3,000, only names and types are read.
    """
    facts = TableFacts()
    facts.add(frame)
    return facts.profiles()


def sample_rows(frame: pd.DataFrame) -> tuple[tuple[Scalar, ...], ...]:
    """Return all rows of a small table, else those at `spread_positions`.

    Each row has at most its first 3,000 values.
    """
    shown = frame.iloc[:, :_DETAILED]
    if frame.size > _SMALL_CELLS:
        shown = shown.iloc[spread_positions(len(frame))]
    return rows_of(shown)


def rows_of(frame: pd.DataFrame) -> tuple[tuple[Scalar, ...], ...]:
    """Return the rows of a frame, each with at most its first 3,000 values."""
    rows: Iterable[Sequence[Any]] = frame.iloc[:, :_DETAILED].itertuples(index=False, name=None)
    return tuple(tuple(scalar(value) for value in row) for row in rows)


def spread_positions(count: int) -> list[int]:
    """Return the positions of sample rows: the first two, three from between, and the last."""
    wanted = {0, 1, count // 4, count // 2, 3 * count // 4, count - 1}
    return sorted(position for position in wanted if 0 <= position < count)


def _joined(first: Any, second: Any) -> Any:
    if first == second:
        return first
    return pd.concat([pd.Series([], dtype=first), pd.Series([], dtype=second)]).dtype


def paired_key(frame: pd.DataFrame, columns: Sequence[ColumnProfile]) -> tuple[str, ...]:
    """Return the names of two columns that no two rows share; empty if that is not sure.

    Only columns without missing values and fractions count, and only if no single column already
    identifies a row.

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


def repeats_warning(frame: pd.DataFrame, columns: Sequence[ColumnProfile]) -> list[str]:
    """Return the warning about rows that repeat an earlier one; empty if they may be by chance.

    Sales of one product at one price may be alike in all columns. They are repeats only if a column
    identifies every other row, such as the number of a receipt.

    Args:
        frame: all rows of the table.
        columns: its profiles, in the same order.
    """
    rows = len(frame)
    if not _LEAST_ROWS <= rows <= _MOST_ROWS or len(columns) < _LEAST_COLUMNS:
        return []
    keys = [
        column
        for column in columns
        if column.missing == 0 and not column.is_unique_estimated and "float" not in column.dtype
        if column.unique is not None and 1 - _MOST_REPEATED <= column.unique / rows < 1
    ]
    if not keys:
        return []
    try:
        repeated = int(frame.duplicated().sum())
    except TypeError:  # lists
        return []
    key = next((column.name for column in keys if column.unique == rows - repeated), None)
    if key is None:
        return []
    return [
        f"rows repeat earlier ones in every column, also in {key!r} ({repeated:,}): "
        "df = df.drop_duplicates() leaves each once"
    ]


def _pairs(columns: Sequence[ColumnProfile], rows: int) -> Iterator[tuple[int, int]]:
    """Yield positions of two columns with as many combinations as rows, or slightly more."""
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
