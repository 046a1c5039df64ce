"""Steps applied to a frame after it is read, each as source code and as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.literals import literal, text_literal

__all__ = [
    "DROP_EMPTY_COLUMNS",
    "DROP_EMPTY_ROWS",
    "JOIN_HEADER_LEVELS",
    "LEVEL_MARK",
    "NAMES_AS_TEXT",
    "STRIP_TEXT",
    "UNIQUE_NAMES",
    "FrameStep",
    "blank_numbers",
    "drop_columns",
    "fill_down",
    "name_rows",
    "rename_columns",
    "split_sections",
]


@dataclass(frozen=True)
class FrameStep:
    """One step; the notebook gets exactly the code that the profile ran."""

    source: str
    """The code that changes `df`."""
    run: Callable[[pd.DataFrame], pd.DataFrame]
    """Function that returns the changed frame; the given one may change with it."""
    names_rows: str = ""
    """The column whose values name the rows, which is lost when frames are joined; mostly none."""


def _renamed(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    return frame.set_axis(list(names), axis="columns")


def _stripped(value: object) -> object:
    return value.strip() or None if isinstance(value, str) else value


LEVEL_MARK = " | "
"""Separator between the levels of a name."""
JOIN_HEADER_LEVELS = FrameStep(
    """\
df.columns = [
    " | ".join(p.strip() for p in map(str, parts) if p.strip() and not p.startswith("Unnamed:"))
    or f"column_{i}"
    for i, parts in enumerate(df.columns, start=1)
]""",
    lambda frame: _renamed(
        frame,
        [
            LEVEL_MARK.join(
                p.strip() for p in map(str, parts) if p.strip() and not p.startswith("Unnamed:")
            )
            or f"column_{i}"
            for i, parts in enumerate(frame.columns, start=1)
        ],
    ),
)
"""Step that joins a header of several rows into one name per column."""

UNIQUE_NAMES = FrameStep(
    """\
again = df.columns.to_series().groupby(df.columns).cumcount()
df.columns = [f"{name}.{count}" if count else name for name, count in zip(df.columns, again)]""",
    lambda frame: _renamed(
        frame,
        [
            f"{name}.{count}" if count else name
            for name, count in zip(
                frame.columns,
                frame.columns.to_series().groupby(frame.columns).cumcount(),
                strict=True,
            )
        ],
    ),
)
"""Step that numbers repeated names, as pandas does for a header of one row."""

NAMES_AS_TEXT = FrameStep(
    "df.columns = [str(name).strip() for name in df.columns]",
    lambda frame: _renamed(frame, [str(name).strip() for name in frame.columns]),
)
"""Step that turns years and dates in a header into text and strips blanks around names."""

DROP_EMPTY_COLUMNS = FrameStep(
    'df = df.dropna(axis="columns", how="all")',
    lambda frame: frame.dropna(axis="columns", how="all"),
)
DROP_EMPTY_ROWS = FrameStep(
    'df = df.dropna(how="all").reset_index(drop=True)',
    lambda frame: frame.dropna(how="all").reset_index(drop=True),
)
STRIP_TEXT = FrameStep(
    "df = df.map(lambda value: value.strip() or None if isinstance(value, str) else value)",
    lambda frame: frame.map(_stripped),
)
"""Step that strips texts: nobody looks for `"Education "`, and a cell of blanks is empty."""


def rename_columns(names: Mapping[str, str]) -> FrameStep:
    """Return the step that renames columns.

    Args:
        names: new names, by the current ones.
    """

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.rename(columns=dict(names))

    return FrameStep(f"df = df.rename(columns={literal(dict(names))})", run)


def drop_columns(names: Sequence[str]) -> FrameStep:
    """Return the step that drops columns.

    Args:
        names: names of the columns.
    """

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.drop(columns=list(names))

    return FrameStep(f"df = df.drop(columns={literal(list(names))})", run)


def split_sections(name: str) -> FrameStep:
    """Return the step that moves headings between the rows to a column beside their rows.

    Args:
        name: name of that column, which comes first; empty rows are dropped, too.
    """

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        heads = frame.iloc[:, 1:].isna().all(axis="columns")
        frame.insert(0, name, frame.iloc[:, 0].where(heads).ffill())
        return frame[~heads].reset_index(drop=True).infer_objects()

    code = f"""\
heads = df.iloc[:, 1:].isna().all(axis="columns")
df.insert(0, {text_literal(name)}, df.iloc[:, 0].where(heads).ffill())
df = df[~heads].reset_index(drop=True).infer_objects()"""
    return FrameStep(code, run)


def name_rows(column: str) -> FrameStep:
    """Return the step that indexes each row by its value in a column, which stays a column.

    The index has no name of its own: pandas would call the column ambiguous.

    Args:
        column: name of the column; its values are unique.
    """

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.set_axis(frame[column].to_numpy(), axis="index")

    return FrameStep(f"df.index = df[{text_literal(column)}].to_numpy()", run, column)


def fill_down(names: Sequence[str]) -> FrameStep:
    """Return the step that fills down labels written once for several rows.

    Args:
        names: names of the columns.
    """

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        keys: list[Any] = list(names)
        frame = frame.copy()
        frame[keys] = frame[keys].ffill()
        return frame

    keys = literal(list(names))
    return FrameStep(f"df[{keys}] = df[{keys}].ffill()", run)


def blank_numbers(names: Sequence[str | int], values: Sequence[float]) -> FrameStep:
    """Return the step that makes numbers that mean "no value" missing.

    Args:
        names: names of the columns.
        values: the numbers.
    """
    numbers = [int(value) if value == int(value) else value for value in values]

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        keys: list[Any] = list(names)
        frame = frame.copy()
        frame[keys] = frame[keys].mask(frame[keys].isin(numbers))
        return frame

    keys = literal(list(names))
    return FrameStep(f"df[{keys}] = df[{keys}].mask(df[{keys}].isin({numbers}))", run)
