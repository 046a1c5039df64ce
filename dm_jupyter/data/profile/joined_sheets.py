"""Sheets that continue one another, such as one for each month, as one table.

They have the same columns, and their names differ only in a year, a quarter, a month or a week.
Other sheets with the same columns, such as "Income" and "Expenses", must not be added up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from textwrap import indent

import pandas as pd

from dm_jupyter.data.profile.dates import MONTH_NUMBERS
from dm_jupyter.data.profile.faults import attempted
from dm_jupyter.data.profile.literals import literal
from dm_jupyter.data.profile.model import ColumnProfile, TableProfile
from dm_jupyter.data.profile.read_call import ReadCall

__all__ = ["LoadedSheet", "with_series"]

_PERIOD = re.compile(
    r"(?<![^\W_])(?:(?:19|20)\d\d|q[1-4]|[1-4]q|h[12]|(?:week|woche|kw|cw|wk|w)[\W_]?\d{1,2})"
    r"(?![^\W_])",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_MARK = "\0"
"""Stands for a period in the name of a sheet."""
_NAMED_SHEETS = 3
_MOST_WAYS = 3
"""Most different ways to read the sheets: with more, the code would be long."""


@dataclass(frozen=True)
class LoadedSheet:
    """A table of a sheet, and what it takes to join it with others."""

    profile: TableProfile
    """What is known of it by itself."""
    call: ReadCall | None = None
    """Reads it, with its layout but before numbers and dates are made of its texts.

    `None` for a table that is not joined: it is one of several in its sheet, or has odd cells."""
    frame: pd.DataFrame | None = None
    """What the call returns, or its first rows."""
    warnings: tuple[str, ...] = ()
    """Those that are not about the values in the frame."""


class _Variable:
    """A name in the code of a call."""

    def __init__(self, name: str) -> None:
        """Name it."""
        self.name = name

    def __repr__(self) -> str:
        return self.name


def with_series(
    sheets: Sequence[LoadedSheet],
    file: str,
    described: Callable[[pd.DataFrame, str, bool], TableProfile],
) -> list[TableProfile]:
    """Return the tables of a workbook, with sheets that continue one another as one.

    The joined table comes in the place of the first. It is not joined if its values are not read
    like those of each sheet.

    Args:
        sheets: all tables, in the order of the workbook.
        file: how code refers to the workbook.
        described: returns the profile of a frame, given the code that creates it and whether it has
            all rows.
    """
    firsts: dict[int, TableProfile] = {}
    inside: set[int] = set()
    for parts in _series(sheets):
        profiles = [sheets[place].profile for place in parts]
        with attempted():
            joined = _joined([sheets[place] for place in parts], file, described)
            if _are_alike([joined.columns[:-1], *(profile.columns for profile in profiles)]):
                firsts[parts[0]] = joined
                inside.update(parts[1:])
    return [
        firsts.get(place, sheet.profile)
        for place, sheet in enumerate(sheets)
        if place not in inside
    ]


def _series(sheets: Sequence[LoadedSheet]) -> list[list[int]]:
    """Return the places of sheets that continue one another, two or more in each list.

    If one can't be joined with the others, none is: a year that is left out is easily overlooked.
    """
    found: dict[str, list[int]] = {}
    for place, sheet in enumerate(sheets):
        stem, table = _stem(sheet.profile.name), sheet.profile
        if _MARK in stem and table.row_count and not table.is_hidden:
            found.setdefault(stem, []).append(place)
    return [
        places
        for places in found.values()
        if len(places) > 1 and _can_be_joined([sheets[place] for place in places])
    ]


def _can_be_joined(parts: Sequence[LoadedSheet]) -> bool:
    tables = [part.profile.columns for part in parts]
    names = {frozenset(column.name for column in columns) for columns in tables}
    is_loaded = all(part.call is not None for part in parts)
    has_names = len(names) == 1 and all(len(columns) == len(*names) > 1 for columns in tables)
    return is_loaded and has_names and _are_alike(tables)


def _joined(
    parts: Sequence[LoadedSheet],
    file: str,
    described: Callable[[pd.DataFrame, str, bool], TableProfile],
) -> TableProfile:
    """Return the profile of several sheets.

    Raises:
        ValueError: the code would be too long.
    """
    profiles = [part.profile for part in parts]
    names = [profile.name for profile in profiles]
    is_whole = all(profile.sampled_rows is None for profile in profiles)
    label = _sheet_column(profiles[0])
    frames = [
        part.frame.assign(**{label: part.profile.name}) for part in parts if part.frame is not None
    ]
    frame = pd.concat(frames, ignore_index=True)
    table = described(frame, _code(parts, label, file), is_whole)
    of_sheets = [
        f"in {part.profile.name!r}: {warning}" for part in parts for warning in part.warnings
    ]
    return replace(
        table,
        name=", ".join(names) if len(names) <= _NAMED_SHEETS else f"{names[0]} … {names[-1]}",
        row_count=sum(profile.row_count or 0 for profile in profiles),
        sampled_rows=None if is_whole else len(frame),
        warnings=(*table.warnings, *of_sheets),
        sheets=tuple(names),
    )


def _code(parts: Sequence[LoadedSheet], label: str, file: str) -> str:
    """Return the code that reads the sheets into `df`, before numbers are made of texts.

    Raises:
        ValueError: the sheets are read in too many different ways.
    """
    calls = [
        (part.call.with_arguments(sheet_name=_Variable("sheet")).source(file), part.profile.name)
        for part in parts
        if part.call is not None
    ]
    ways = [(code, list(group)) for code, group in groupby(calls, key=lambda one: one[0])]
    if len(ways) > _MOST_WAYS:
        raise ValueError("the sheets are read in too many different ways")
    lines = ["df_parts = []"]
    for code, group in ways:
        lines += [
            f"for sheet in {literal([name for _, name in group])}:",
            indent(code, "    "),
            f"    df_parts.append(df.assign({label}=sheet))",
        ]
    return "\n".join([*lines, "df = pd.concat(df_parts, ignore_index=True)"])


def _sheet_column(table: TableProfile) -> str:
    taken = {column.name.casefold() for column in table.columns}
    return next(name for name in ("sheet", "sheet_name", "of_sheet") if name not in taken)


def _stem(name: str) -> str:
    """Return a sheet's name with a mark for each period; months are numbers beside another one."""

    def marked(word: re.Match[str]) -> str:
        is_month = word[0].casefold() in MONTH_NUMBERS
        is_number = count > 0 and len(word[0]) <= 2 and word[0].isdigit()
        return _MARK if is_month or is_number else word[0]

    text, count = _PERIOD.subn(_MARK, name)
    return _WORD.sub(marked, text).casefold()


def _are_alike(tables: Sequence[Sequence[ColumnProfile]]) -> bool:
    """Whether each column of the first table has values of one kind in all of them."""
    kinds: dict[str, set[str]] = {column.name: set() for column in tables[0]}
    for columns in tables:
        for column in columns:
            if column.unique != 0:
                kinds[column.name].add(_kind(column))
    return all(len(found) < 2 for found in kinds.values())


def _kind(column: ColumnProfile) -> str:
    """Return the type of a column without its size; whole numbers and fractions are alike."""
    kind = re.sub(r"^U?(?:int|float)", "number", column.dtype, flags=re.IGNORECASE)
    return kind.rstrip("0123456789")
