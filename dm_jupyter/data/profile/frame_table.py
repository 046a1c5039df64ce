"""A table that some reader gives as frames: one, or one after another where it is large."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.columns import profile_columns, sample_rows
from dm_jupyter.data.profile.model import TableProfile
from dm_jupyter.data.profile.number_stream import NumberStream
from dm_jupyter.data.profile.suspicion import suspicions_of
from dm_jupyter.data.profile.table_pass import Deadline, TablePass

__all__ = ["LookedAt", "in_pieces", "label_note", "large_table", "table_of"]

_WHOLE_CELLS = 2_000_000
_LABEL_CHARS = 70


@dataclass(frozen=True)
class LookedAt:
    """What was read of a table."""

    frame: pd.DataFrame
    """All rows; of a large table its first piece."""
    seen: TablePass | None = None
    """The pass over a large table."""


def in_pieces(pieces: Iterable[pd.DataFrame], deadline: Deadline) -> LookedAt:
    """Returns a table that comes in pieces: whole where it is small, else what a pass over it saw.

    Args:
        pieces: in the file's order.
        deadline: of the pass.
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
    """Yields all pieces without holding on to any."""
    while kept:
        yield kept.pop(0)
    yield from waiting


def table_of(
    name: str, looked_at: LookedAt, code: str, labels: Mapping[str, str] | None = None
) -> TableProfile:
    """Returns the profile of a table.

    Args:
        name: of the table.
        looked_at: the frame as the code makes it, or the pass over it.
        code: that makes `df`.
        labels: what the file says of a column, by its name; shown beside it.
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
    """Returns the profile of a table read in pieces; number formats are learnt from all of it.

    Columns that are numbers in a format of their own are read a second time, for the facts of the
    numbers; without the time for that they stay text, and a warning says so.

    Args:
        name: of the table.
        pieces: reads it again from its start, all columns or those named.
        code: that makes `df`.
        deadline: of all passes together.
        row_count: rows of the table; None for one not known.

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
    """Returns a variable's label as a note; None where there is none.

    Whoever wrote the file chose its text: it is quoted, cut and has no line breaks.
    """
    text = " ".join(label.split()) if isinstance(label, str) else ""
    shown = text if len(text) <= _LABEL_CHARS else f"{text[:_LABEL_CHARS]}…"
    return f"label {shown!r}" if text else None
