"""Number formats of a table that is read in pieces, learned from all of its texts."""

from __future__ import annotations

from numbers import Real
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.number_inference import NumberInference
from dm_jupyter.data.profile.number_plan import (
    MOST_COLUMNS,
    NumberColumn,
    NumberPlan,
    number_plan,
)
from dm_jupyter.data.profile.suspicion import is_text

__all__ = ["NumberStream"]

_DATE_TEXTS = 2000
_ENOUGH = 1000
_HOPELESS = 0.3
"""Share of numbers among the first thousand texts below which a column is prose or names."""


class _Watched:
    """Findings from the texts of one column so far."""

    def __init__(self, label: Any) -> None:
        self.label = label
        self.inference = NumberInference()
        self.texts: dict[str, None] = {}
        """The first few distinct texts."""
        self.is_open = True

    def add(self, values: pd.Series[Any]) -> None:
        counts, rest = _counted(values)
        for text in counts:
            if len(self.texts) >= _DATE_TEXTS:
                break
            self.texts.setdefault(text)
        seen = self.inference
        numbers = sum(count for value, count in rest if _is_number(value))
        seen.add(counts, native=numbers)
        others = sum(count for _, count in rest) - numbers
        seen.other_count += others
        seen.total += others
        # One text that is not a number keeps a column from being converted, whatever follows.
        few = seen.numbers < _HOPELESS * seen.total
        self.is_open = not (seen.other_count and few and seen.total >= _ENOUGH)


class NumberStream:
    """Number formats of a table's text columns, learned from all of its pieces in order."""

    def __init__(self) -> None:
        """Start without columns."""
        self._watched: dict[int, _Watched] = {}
        self._labels: pd.Index[Any] = pd.Index([])

    def add(self, frame: pd.DataFrame) -> None:
        """Add the next piece, with every text as in the file."""
        if len(frame.columns) > len(self._labels):
            self._labels = frame.columns
        for position, dtype in enumerate(frame.dtypes.iloc[:MOST_COLUMNS]):
            watched = self._watched.get(position)
            if watched is None:
                if not is_text(pd.Series([], dtype=dtype)):
                    continue
                watched = self._watched[position] = _Watched(frame.columns[position])
            if watched.is_open:
                watched.add(frame.iloc[:, position])

    def plan(
        self, *, separator: str = "", reads_plain: bool = False, known: NumberPlan | None = None
    ) -> NumberPlan:
        """Return the plan that converts the columns, as `number_plan` does for an entire table.

        The code of each conversion is checked on a text of every form seen.

        Args:
            separator: as for `number_plan`.
            reads_plain: as for `number_plan`.
            known: plan from the start of the file, for columns that the reader itself converts.
        """
        columns = [
            NumberColumn.judged(watched.label, at, watched.inference, list(watched.texts))
            for at, watched in sorted(self._watched.items())
        ]
        columns += [one for one in (known.columns if known else ()) if self._is_native(one)]
        return number_plan(
            self._forms(),
            separator=separator,
            reads_plain=reads_plain,
            columns=sorted(columns, key=lambda one: one.position),
        )

    def _is_native(self, column: NumberColumn) -> bool:
        return column.position not in self._watched

    def _forms(self) -> pd.DataFrame:
        """Return a frame with a text of every form in each column, padded with missing values."""
        texts = {at: [*watched.inference.forms.values()] for at, watched in self._watched.items()}
        length = max(map(len, texts.values()), default=0)
        columns = {
            at: pd.Series(
                texts.get(at, []) + [None] * (length - len(texts.get(at, []))), dtype=object
            )
            for at in range(len(self._labels))
        }
        frame = pd.DataFrame(columns)
        frame.columns = self._labels
        return frame


def _counted(values: pd.Series[Any]) -> tuple[dict[str, int], list[tuple[Any, int]]]:
    """Return the texts with their counts, and the other values with theirs."""
    try:
        counts = values.value_counts(sort=False)
    except TypeError:  # lists and dictionaries have no hash
        return {}, [(None, int(values.count()))]
    pairs = list(zip(counts.index.tolist(), counts.tolist(), strict=True))
    texts = {value: count for value, count in pairs if isinstance(value, str)}
    return texts, [pair for pair in pairs if not isinstance(pair[0], str)]


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
