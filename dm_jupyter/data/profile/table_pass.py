"""One pass over a table that is not all in memory: its facts, and rows spread over it.

A reader provides the table as frames: one, or one after another if it is large.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.columns import (
    TableFacts,
    profile_columns,
    rows_of,
    sample_rows,
    spread_positions,
)
from dm_jupyter.data.profile.model import ColumnProfile, Scalar, TableProfile
from dm_jupyter.data.profile.number_stream import NumberStream
from dm_jupyter.data.profile.source import Effort
from dm_jupyter.data.profile.suspicion import Suspicions, suspicions_of

__all__ = [
    "Deadline",
    "LookedAt",
    "TablePass",
    "in_pieces",
    "label_note",
    "large_table",
    "noted",
    "table_of",
    "unseen_warning",
]

_SAMPLED_PIECES = 6
_WHOLE_CELLS = 2_000_000
_LABEL_CHARS = 70


@dataclass(frozen=True)
class Deadline:
    """Time at which a pass must end, and a callback for its progress."""

    stop_at: float = math.inf
    """As `time.monotonic` counts; one piece is read in any case."""
    tell: Callable[[float], None] | None = None
    """Callback for progress, as in `Effort`."""

    @classmethod
    def of(cls, effort: Effort) -> Deadline:
        """Return the deadline of a pass that begins now."""
        return cls(time.monotonic() + effort.seconds, effort.tell)

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() > self.stop_at


class TablePass:
    """Findings of a pass, in the memory of one piece."""

    def __init__(self) -> None:
        """Start without rows."""
        self.facts = TableFacts()
        self.is_whole = True
        """Whether it reached the end of the table."""
        self._samples: list[pd.DataFrame] = []

    def through(
        self,
        pieces: Iterable[pd.DataFrame],
        deadline: Deadline,
        *,
        row_count: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Add piece after piece until the last one, or until time runs out.

        Args:
            pieces: pieces in the table's order.
            deadline: deadline of the pass.
            row_count: rows of the table, at least roughly, for the reported share; `None` if not
                known.

        Yields:
            Each piece after it was added.
        """
        for piece in pieces:
            if self.facts.rows and deadline.is_over:
                self.is_whole = False
                return
            self.facts.add(piece)
            self._keep(piece)
            if deadline.tell and row_count:
                deadline.tell(min(1.0, self.facts.rows / row_count))
            yield piece

    def add_rows(self, rows: pd.DataFrame) -> None:
        """Add rows from further on, only as samples."""
        self._keep(rows)

    def retake(self, pieces: Iterable[pd.DataFrame], deadline: Deadline) -> bool:
        """Replace the facts of columns by those of a second pass; return whether it completed.

        Args:
            pieces: pieces of some of the columns, as they will be loaded.
            deadline: deadline of all passes together.
        """
        facts = TableFacts()
        try:
            for piece in pieces:
                if facts.rows and deadline.is_over:
                    return False
                facts.add(piece)
        except (ValueError, TypeError, AttributeError, KeyError):
            return False
        if facts.rows != self.facts.rows:
            return False
        places = {each.name: at for at, each in enumerate(self.facts.columns)}
        for each in facts.columns:
            self.facts.columns[places[each.name]] = each
        return True

    def change_samples(self, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        """Apply further steps of the load code to the sampled rows, where possible.

        It is not possible for a column that was read as numbers at first and became text later.
        """
        for at, frame in enumerate(self._samples):
            with suppress(ValueError, TypeError, AttributeError):
                self._samples[at] = change(frame)

    def suspicions(self) -> Suspicions:
        """Return the suspicions about the texts."""
        return suspicions_of(self.facts.distinct_texts(), self.facts.label_counts())

    def sample_rows(self) -> tuple[tuple[Scalar, ...], ...]:
        """Return the first two rows of all, some from between, and the last."""
        kept = [(frame, at) for frame in self._samples for at in range(len(frame))]
        chosen = (kept[at] for at in spread_positions(len(kept)))
        rows = (self.facts.aligned(frame.iloc[at : at + 1]) for frame, at in chosen)
        return tuple(row for one in rows for row in rows_of(one))

    def table(
        self,
        name: str,
        code: str,
        row_count: int | None,
        *,
        notes: Mapping[int, str] | None = None,
        warnings: Sequence[str] = (),
        suspicions: Suspicions | None = None,
    ) -> TableProfile:
        """Return the profile.

        Args:
            name: name of the table.
            code: the code that creates `df`.
            row_count: number of rows, if known, for a pass that did not see all of them.
            notes: notes on columns, by position; they take precedence over those on texts.
            warnings: warnings that come first.
            suspicions: the suspicions, if the caller already has them.
        """
        suspicions = suspicions or self.suspicions()
        unseen = () if self.is_whole else (unseen_warning(self.facts.rows, row_count),)
        return TableProfile(
            name,
            self.facts.rows if self.is_whole else row_count,
            noted(self.facts.profiles(), suspicions.notes, notes),
            self.sample_rows(),
            code,
            sampled_rows=None if self.is_whole else self.facts.rows,
            warnings=(*warnings, *unseen, *suspicions.warnings),
        )

    def _keep(self, piece: pd.DataFrame) -> None:
        """Keep a few rows of each piece, and of ever fewer pieces as their number grows."""
        if not len(piece) and self._samples:
            return
        rows = piece.iloc[spread_positions(len(piece))].copy()
        rows.index = pd.RangeIndex(len(rows))
        self._samples.append(rows)
        if len(self._samples) > 4 * _SAMPLED_PIECES:
            self._samples[1:-1] = self._samples[2:-1:2]


def unseen_warning(seen: int, row_count: int | None) -> str:
    """Return the warning about a table of which only the first rows were seen."""
    share = f" of {row_count:,} ({100 * seen / row_count:.0f} %)" if row_count else ""
    return (
        f"the file is too large to be read whole in time: types, ranges and counts are those of "
        f"the first {seen:,} rows{share}; nothing is known of the rest"
    )


def noted(
    columns: Sequence[ColumnProfile],
    notes: Mapping[int, str],
    first: Mapping[int, str] | None = None,
) -> tuple[ColumnProfile, ...]:
    """Return the columns with notes on their texts; parsed dates need no such note.

    Args:
        columns: columns in order.
        notes: notes on the texts, by position.
        first: notes that are shown instead, if there are any.
    """
    return tuple(
        replace(
            column,
            note=(first or {}).get(position)
            or (None if "datetime" in column.dtype else notes.get(position)),
        )
        for position, column in enumerate(columns)
    )


@dataclass(frozen=True)
class LookedAt:
    """What was read of a table."""

    frame: pd.DataFrame
    """All rows, or the first piece of a large table."""
    seen: TablePass | None = None
    """The pass over a large table."""


def in_pieces(pieces: Iterable[pd.DataFrame], deadline: Deadline) -> LookedAt:
    """Return a table that comes in pieces: all of it if small, else the findings of a pass.

    Args:
        pieces: pieces in the file's order.
        deadline: deadline of the pass.
    """
    waiting = iter(pieces)
    kept: list[pd.DataFrame] = []
    cells = 0
    for piece in waiting:
        kept.append(piece)
        cells += piece.size
        if cells > _WHOLE_CELLS:
            break
    if cells <= _WHOLE_CELLS:
        return LookedAt(pd.concat(kept, ignore_index=True) if kept else pd.DataFrame())
    seen = TablePass()
    for _ in seen.through(_let_go(kept, waiting), deadline):
        pass
    return LookedAt(piece, seen)


def _let_go(kept: list[pd.DataFrame], waiting: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield all pieces without keeping any in memory."""
    while kept:
        yield kept.pop(0)
    yield from waiting


def table_of(
    name: str, looked_at: LookedAt, code: str, labels: Mapping[str, str] | None = None
) -> TableProfile:
    """Return the profile of a table.

    Args:
        name: name of the table.
        looked_at: the frame that the code creates, or the pass over it.
        code: the code that creates `df`.
        labels: the file's label of a column, by its name; shown beside it.
    """
    if looked_at.seen is not None:
        table = looked_at.seen.table(name, code, None)
    else:
        table = _of_frame(name, looked_at.frame, code)
    columns = []
    for column in table.columns:
        told = (column.note, (labels or {}).get(column.name))
        columns.append(replace(column, note="; ".join(filter(None, told)) or None))
    return replace(table, columns=tuple(columns))


def _of_frame(name: str, frame: pd.DataFrame, code: str) -> TableProfile:
    suspicions = suspicions_of(frame)
    columns = (
        replace(column, note=suspicions.notes.get(position))
        for position, column in enumerate(profile_columns(frame))
    )
    rows, warnings = sample_rows(frame), tuple(suspicions.warnings)
    return TableProfile(name, len(frame), tuple(columns), rows, code, warnings=warnings)


def large_table(
    name: str,
    pieces: Callable[[list[Any] | None], Iterator[pd.DataFrame]],
    code: str,
    deadline: Deadline,
    *,
    row_count: int | None,
) -> TableProfile:
    """Return the profile of a table read in pieces; number formats are learned from all of it.

    Columns of numbers in their own format are read a second time, for the facts of the numbers. If
    time is too short for that, they stay text and a warning says so.

    Args:
        name: name of the table.
        pieces: function that reads the table from its start, all columns or those named.
        code: the code that creates `df`.
        deadline: deadline of all passes together.
        row_count: rows of the table; `None` if not known.

    Raises:
        Exception: whatever the reader raises.
    """
    seen, numbers = TablePass(), NumberStream()
    for piece in seen.through(pieces(None), deadline, row_count=row_count):
        numbers.add(piece)
    plan = numbers.plan()
    if not seen.is_whole:
        plan = plan.without_steps("not every value was seen")
    elif plan.converted:
        labels = [one.label for one in plan.converted]
        if not seen.retake((plan.finish(piece[labels]) for piece in pieces(labels)), deadline):
            plan = plan.without_steps("there was no time to check every value")
    code = "\n".join([code, *(step.source for step in plan.steps)])
    return seen.table(name, code, row_count, notes=plan.notes, warnings=plan.warnings)


def label_note(label: object) -> str | None:
    """Return a variable's label as a note; `None` if there is none.

    The author of the file chose its text, so it is quoted, cut and without line breaks.
    """
    text = " ".join(label.split()) if isinstance(label, str) else ""
    shown = text if len(text) <= _LABEL_CHARS else f"{text[:_LABEL_CHARS]}…"
    return f"label {shown!r}" if text else None
