"""What is told of cells whose value is not what a person sees, column by column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.columns import column_name
from dm_jupyter.data.profile.model import ColumnProfile
from dm_jupyter.data.profile.sheet_layout import SheetPart, column_letters
from dm_jupyter.data.profile.xlsx_cells import OddCells

__all__ = ["Oddities", "oddities_of", "unsure_dates", "with_oddities"]

_SERIALS = (20_000, 60_000)
"""Days since 1899-12-30 that are dates from 1954 to 2064."""
_DATE_NAME = re.compile(
    r"(^|[\W_])(date|datum|day|tag|fecha|data|datetime|timestamp|beginn|ende|start|end)([\W_]|$)",
    re.IGNORECASE,
)
_WAY_OUT = "open the file in a spreadsheet program and save it, or compute them in pandas"


@dataclass
class Oddities:
    """What one table holds of them."""

    notes: dict[str, str] = field(default_factory=dict)
    """By name of the column."""
    uncalculated: dict[str, int] = field(default_factory=dict)
    """Cells of a column that hold a formula without a result."""
    warnings: list[str] = field(default_factory=list)


def oddities_of(odd: OddCells | None, part: SheetPart, names: Sequence[Any]) -> Oddities:
    """Returns what to tell of a table's odd cells.

    Args:
        odd: of its sheet; None where the format does not tell.
        part: the table.
        names: of its columns as pandas reads them, before anything is done to them.
    """
    found = Oddities()
    if odd is None:
        return found
    for place, label in enumerate(names):
        name, column = _name(label), part.block.left + place + 1
        if errors := odd.errors.get(column):
            shown = ", ".join(errors)
            found.notes[name] = f"{errors.total():,} error cell(s) ({shown}) read as missing"
        rows = [row for row in odd.formulas.get(column, []) if _is_inside(row, part)]
        if rows:
            found.uncalculated[name] = len(rows)
            found.notes[name] = f"{len(rows):,} formula(s) never calculated: no value in the file"
        elif odd.zeros.get(column, 0) > 1:
            found.notes[name] = "every formula has the result 0: perhaps never calculated"
    if found.uncalculated:
        column, example = next(iter(odd.examples.items()))
        shown = f" (such as ={example[:40]} in {column_letters(column - 1)})" if example else ""
        told = ", ".join(map(repr, list(found.uncalculated)[:8]))
        found.warnings.append(f"formulas never calculated in {told}{shown}: {_WAY_OUT}")
    if odd.hidden_rows:
        found.warnings.append(f"{odd.hidden_rows:,} hidden row(s) of the sheet are loaded, too")
    return found


def _is_inside(row: int, part: SheetPart) -> bool:
    return row > part.above and (part.block.bottom is None or row <= part.block.bottom)


def _name(label: Any) -> str:
    return column_name(label).strip()


def with_oddities(
    columns: Sequence[ColumnProfile], found: Oddities, dates: Mapping[int, str]
) -> tuple[ColumnProfile, ...]:
    """Returns the columns with notes; a formula without a result is not counted as missing.

    Args:
        columns: as the frame has them.
        found: the odd cells of the table.
        dates: notes on numbers that may be dates, by position.
    """
    result = []
    for position, column in enumerate(columns):
        note = found.notes.get(column.name.strip()) or dates.get(position)
        missing, empty = column.missing, found.uncalculated.get(column.name.strip(), 0)
        if missing is not None and empty:
            missing = max(0, missing - empty)
        words = "; ".join(filter(None, (column.note, note))) or None
        result.append(replace(column, missing=missing, note=words))
    return tuple(result)


def unsure_dates(frame: pd.DataFrame) -> dict[int, str]:
    """Returns notes on columns of dates that hold texts too, and of numbers that may be dates.

    Nothing proves the second: a number of days looks like any other.
    """
    notes: dict[int, str] = {}
    for position, label in enumerate(frame.columns[:1000]):
        values = frame.iloc[:, position].dropna()
        if types.is_object_dtype(values.dtype) and (odd := _beside_dates(values)) is not None:
            notes[position] = f"dates, and other values such as {odd!r}: left as they are"
            continue
        if not types.is_numeric_dtype(values.dtype) or len(values) < 2:
            continue
        if not _DATE_NAME.search(column_name(label)) or types.is_bool_dtype(values.dtype):
            continue
        first = float(values.iloc[0])
        if values.between(*_SERIALS).all() and Counter(values % 1 == 0)[True] == len(values):
            day = pd.Timestamp("1899-12-30") + pd.Timedelta(days=first)
            notes[position] = f"may be dates as serial numbers: {first:.0f} would be {day.date()}"
    return notes


def _beside_dates(values: pd.Series[Any]) -> Any:
    """Returns the first value that is no date in a column with dates; None where there is none."""
    others = [value for value in values if not isinstance(value, date)]
    return others[0] if others and len(others) < len(values) else None
