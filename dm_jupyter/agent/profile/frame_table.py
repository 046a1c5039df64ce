"""One frame, read by whatever reader, as the table of a profile."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from dm_jupyter.agent.profile.columns import profile_columns, sample_rows
from dm_jupyter.agent.profile.model import TableProfile
from dm_jupyter.agent.profile.suspicion import suspicions_of

__all__ = ["LookedAt", "in_pieces", "label_note", "table_of"]

_WHOLE_CELLS = 20_000_000
_PIECE_ROWS = 1_000
_BUDGET_S = 8.0
_LABEL_CHARS = 70


@dataclass(frozen=True)
class LookedAt:
    """What was read of a table."""

    frame: pd.DataFrame
    """All rows, or the first of each piece."""
    row_count: int | None
    """Rows of the table; None when reading ended before its end."""

    @property
    def is_whole(self) -> bool:
        """Whether the frame holds every row."""
        return self.row_count == len(self.frame)


def in_pieces(pieces: Iterable[pd.DataFrame]) -> LookedAt:
    """Returns a table that comes in pieces: whole where it is small, else rows spread over it.

    Args:
        pieces: in the file's order; reading them ends after eight seconds.
    """
    kept: list[pd.DataFrame] = []
    rows, cells = 0, 0
    row_count: int | None = None
    ends = time.monotonic() + _BUDGET_S
    for piece in pieces:
        rows += len(piece)
        cells += piece.size
        kept.append(piece)
        if cells > _WHOLE_CELLS:
            kept = [one.head(_PIECE_ROWS) for one in kept]
        if time.monotonic() > ends:
            break
    else:
        row_count = rows
    return LookedAt(pd.concat(kept, ignore_index=True) if kept else pd.DataFrame(), row_count)


def table_of(
    name: str, looked_at: LookedAt, code: str, labels: Mapping[str, str] | None = None
) -> TableProfile:
    """Returns the profile of a table.

    Args:
        name: of the table.
        looked_at: the frame as the code makes it, or rows of it.
        code: that makes `df`.
        labels: what the file says of a column, by its name; shown beside it.
    """
    frame = looked_at.frame
    suspicions = suspicions_of(frame)
    columns = []
    for position, column in enumerate(profile_columns(frame)):
        told = (suspicions.notes.get(position), (labels or {}).get(column.name))
        columns.append(replace(column, note="; ".join(filter(None, told)) or None))
    return TableProfile(
        name,
        looked_at.row_count,
        tuple(columns),
        sample_rows(frame),
        code,
        sampled_rows=None if looked_at.is_whole else len(frame),
        warnings=tuple(suspicions.warnings),
    )


def label_note(label: object) -> str | None:
    """Returns a variable's label as a note; None where there is none.

    Whoever wrote the file chose its text: it is quoted, cut and has no line breaks.
    """
    text = " ".join(label.split()) if isinstance(label, str) else ""
    shown = text if len(text) <= _LABEL_CHARS else f"{text[:_LABEL_CHARS]}…"
    return f"label {shown!r}" if text else None
