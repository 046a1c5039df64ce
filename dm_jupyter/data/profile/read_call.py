"""One pandas call as a value: the profile runs exactly what the notebook gets.

If our own code could not do better, it is the call by which the library itself loads the file.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.columns import column_name, profile_columns, sample_rows
from dm_jupyter.data.profile.faults import attempted
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import literal, text_literal
from dm_jupyter.data.profile.model import ColumnProfile, TableProfile

__all__ = ["ReadCall", "numbers_rows", "plain_table"]

_INDEX_ROWS = 3
"""Fewest rows in which a run from 0 is an index and not two numbers."""
_PLAIN = "the layout could not be worked out: the {} is loaded as it is, check names and types"
"""Warning about a table that is loaded plainly; to be filled with "sheet" or "table"."""


@dataclass(frozen=True)
class ReadCall:
    """A `pandas.read_*` call without its path."""

    function: str
    """Name of the function, such as `read_csv`."""
    arguments: tuple[tuple[str, Any], ...] = ()
    """Only those that differ from pandas' defaults."""
    steps: tuple[FrameStep, ...] = ()
    """Steps applied to the frame afterwards, in order."""

    def source(self, name: str) -> str:
        """Return the code that creates `df` from the file called `name`."""
        line = f"df = pd.{self.function}({', '.join([text_literal(name), *self.words()])})"
        return "\n".join([line, *(step.source for step in self.steps)])

    def words(self) -> list[str]:
        """Return the arguments as source code."""
        return [f"{key}={literal(value)}" for key, value in self.arguments]

    def run(self, path: Path | pd.ExcelFile | StringIO, **extra: Any) -> pd.DataFrame:
        """Return the frame; `extra` arguments (such as `nrows`) stay out of the code.

        Raises:
            Exception: whatever pandas raises; callers wrap it in `reading`.
        """
        frame: pd.DataFrame = getattr(pd, self.function)(path, **{**dict(self.arguments), **extra})
        return self.finish(frame)

    def chunks(self, path: Path, **extra: Any) -> Generator[pd.DataFrame, None, None]:
        """Yield the frame in pieces; `extra` must contain `chunksize`.

        Yields:
            Frames of that many rows.
        """
        with getattr(pd, self.function)(path, **{**dict(self.arguments), **extra}) as reader:
            yield from reader

    def finish(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame after all steps."""
        for step in self.steps:
            frame = step.run(frame)
        return frame

    def with_arguments(self, **changes: Any) -> ReadCall:
        """Return the same call with some arguments set, or dropped if the value is `None`."""
        merged = {**dict(self.arguments), **changes}
        # header=None and compression=None mean something to pandas.
        dropped = {key for key, value in changes.items() if value is None}
        kept = tuple((key, value) for key, value in merged.items() if key not in dropped)
        return replace(self, arguments=kept)


def numbers_rows(frame: pd.DataFrame) -> bool:
    """Return whether the first column is an index that pandas wrote: nameless, and 0, 1, 2 …."""
    if frame.shape[1] < 2 or len(frame) < _INDEX_ROWS or frame.columns[0] != "Unnamed: 0":
        return False
    first = frame.iloc[:, 0]
    is_whole = bool(pd.api.types.is_integer_dtype(first.dtype))
    return is_whole and first.tolist() == list(range(len(frame)))


def plain_table(frame: pd.DataFrame, code: str, *, name: str, what: str) -> TableProfile:
    """Return the profile of a frame without any steps.

    It never raises: what can't be described is left out, and names and types remain.

    Args:
        frame: as the library read it.
        code: the code that reads it.
        name: name of the sheet or table.
        what: the word for it, such as "sheet".
    """
    told = (_PLAIN.format(what),)
    table = TableProfile(name, len(frame), _bare(frame), load_code=code, warnings=told)
    with attempted():
        table = replace(table, columns=profile_columns(frame))
    rows = table.sample_rows
    with attempted():
        rows = sample_rows(frame)
    return replace(table, sample_rows=rows)


def _bare(frame: pd.DataFrame) -> tuple[ColumnProfile, ...]:
    """Return only names and types."""
    named = zip(frame.columns, frame.dtypes, strict=True)
    return tuple(ColumnProfile(column_name(label), str(dtype)) for label, dtype in named)
