"""Frame in, column profiles out: at once, or piece by piece for a table that is not held whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from dm_jupyter.agent.profile.column_facts import FEW_VALUES, ColumnFacts
from dm_jupyter.agent.profile.distinct import HashRoom
from dm_jupyter.agent.profile.model import ColumnProfile, Scalar
from dm_jupyter.agent.profile.scalars import column_name, scalar

__all__ = [
    "FEW_VALUES",
    "OnTexts",
    "TableFacts",
    "column_name",
    "profile_columns",
    "sample_rows",
    "scalar",
    "spread_positions",
]

_SMALL_CELLS = 300
_DETAILED = 1_000
"""Columns that are looked into: more than a prompt has room for, few enough to take no time."""
_COUNTED_VALUES = 1_000_000
"""Distinct values that are counted one by one, over all columns."""

OnTexts = Callable[[int, pd.Index], None]
"""Called for each piece of a column of text with its position and the piece's distinct values."""


class TableFacts:
    """Gathers the facts of a table from its pieces, in order, in constant memory.

    Of the columns after the first thousand, names and types are all that is looked at.
    """

    def __init__(self, on_texts: OnTexts | None = None) -> None:
        """Starts without rows.

        Args:
            on_texts: is shown every distinct value of each piece of a column of text.
        """
        self.rows = 0
        self.columns: list[ColumnFacts] = []
        self._others: dict[str, Any] = {}
        self._on_texts = on_texts

    def add(self, frame: pd.DataFrame) -> None:
        """Takes the next rows; all pieces have the same columns."""
        detailed = frame.iloc[:, :_DETAILED]
        if not self.columns:
            self._begin(detailed)
        self.rows += len(frame)
        for position, (facts, (_, values)) in enumerate(
            zip(self.columns, detailed.items(), strict=True)
        ):
            uniques = facts.add(values)
            if self._on_texts and uniques is not None and "text" in facts.kinds:
                self._on_texts(position, uniques)
        self._note_others(frame)

    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Returns one profile a column, in order; duplicate names are kept apart by position."""
        others = self._others.get("dtypes", [])
        names = self._others.get("names", [])
        return (
            *(facts.profile() for facts in self.columns),
            *(ColumnProfile(name, str(dtype)) for name, dtype in zip(names, others, strict=True)),
        )

    def distinct_texts(self) -> pd.DataFrame:
        """Returns a frame with distinct texts of each column of text, missing at their ends.

        Columns without text are empty; the frame stands in for the table where only the kind of
        its texts matters. Of many texts 2,000 are there, spread over the table.
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
        """Returns how often each value comes, for columns with not too many, by position."""
        counted = ((position, facts.counts()) for position, facts in enumerate(self.columns))
        return {position: counts for position, counts in counted if counts is not None}

    def _begin(self, detailed: pd.DataFrame) -> None:
        room = HashRoom()
        counted = min(10_000, max(200, _COUNTED_VALUES // max(1, detailed.shape[1])))
        self.columns = [
            ColumnFacts(column_name(label), room, counted) for label in detailed.columns
        ]

    def _note_others(self, frame: pd.DataFrame) -> None:
        dtypes = frame.dtypes.iloc[_DETAILED:]
        if not len(dtypes):
            return
        known = self._others.get("dtypes")
        self._others["names"] = [column_name(label) for label in dtypes.index]
        self._others["dtypes"] = [
            dtype if known is None or known[at] == dtype else _joined(known[at], dtype)
            for at, dtype in enumerate(dtypes)
        ]


def profile_columns(frame: pd.DataFrame) -> tuple[ColumnProfile, ...]:
    """Returns one profile a column, in order; duplicate names are kept apart by position.

    Of the columns after the first thousand, names and types are all that is looked at.
    """
    facts = TableFacts()
    facts.add(frame)
    return facts.profiles()


def sample_rows(frame: pd.DataFrame) -> tuple[tuple[Scalar, ...], ...]:
    """Returns all rows of a small table, else some: see `spread_positions`.

    Of a row, at most the first thousand values.
    """
    shown = frame.iloc[:, :_DETAILED]
    if frame.size > _SMALL_CELLS:
        shown = shown.iloc[spread_positions(len(frame))]
    return rows_of(shown)


def rows_of(frame: pd.DataFrame) -> tuple[tuple[Scalar, ...], ...]:
    """Returns the rows of a frame; of a row, at most the first thousand values."""
    rows: Iterable[Sequence[Any]] = frame.iloc[:, :_DETAILED].itertuples(index=False, name=None)
    return tuple(tuple(scalar(value) for value in row) for row in rows)


def spread_positions(count: int) -> list[int]:
    """Returns which rows of a table show it: the first two, three from between, and the last."""
    wanted = {0, 1, count // 4, count // 2, 3 * count // 4, count - 1}
    return sorted(position for position in wanted if 0 <= position < count)


def _joined(first: Any, second: Any) -> Any:
    return pd.concat([pd.Series([], dtype=first), pd.Series([], dtype=second)]).dtype
