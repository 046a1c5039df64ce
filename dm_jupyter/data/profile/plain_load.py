"""The table as the library loads it by itself, where our own code could not do better."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from dm_jupyter.data.profile.columns import column_name, profile_columns, sample_rows
from dm_jupyter.data.profile.faults import attempted
from dm_jupyter.data.profile.model import ColumnProfile, TableProfile

__all__ = ["PLAIN", "plain_table"]

PLAIN = "the layout could not be worked out: the {} is loaded as it is, check names and types"
"""What a profile says of a table that is loaded plainly; to be filled with "sheet" or "table"."""


def plain_table(frame: pd.DataFrame, code: str, *, name: str, what: str) -> TableProfile:
    """Returns the profile of a frame that nothing was done to.

    It never raises: what can't be described is left out, and names and types remain.

    Args:
        frame: as the library read it.
        code: that reads it.
        name: of the sheet or table.
        what: the word for it, such as "sheet".
    """
    told = (PLAIN.format(what),)
    table = TableProfile(name, len(frame), _bare(frame), load_code=code, warnings=told)
    with attempted():
        table = replace(table, columns=profile_columns(frame))
    rows = table.sample_rows
    with attempted():
        rows = sample_rows(frame)
    return replace(table, sample_rows=rows)


def _bare(frame: pd.DataFrame) -> tuple[ColumnProfile, ...]:
    """Returns names and types alone."""
    named = zip(frame.columns, frame.dtypes, strict=True)
    return tuple(ColumnProfile(column_name(label), str(dtype)) for label, dtype in named)
