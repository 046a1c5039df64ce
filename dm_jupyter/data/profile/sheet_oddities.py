"""Cells of a workbook whose value is not what a person sees, and notes on them by column.

They are errors and formulas without a result. A program that writes formulas without calculating
them leaves their results out, so every reader sees an empty cell. Only the XML shows the
difference. The pass over a sheet is a stream, and ends after a bound of bytes.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.columns import column_name
from dm_jupyter.data.profile.model import ColumnProfile
from dm_jupyter.data.profile.sheet_layout import SheetPart, column_letters
from dm_jupyter.data.profile.workbook_scan import column_number, sheet_members

__all__ = ["OddCells", "Oddities", "odd_cells", "oddities_of", "unsure_dates", "with_oddities"]

_SERIALS = (20_000, 60_000)
"""Days since 1899-12-30 that are dates from 1954 to 2064."""
_DATE_NAME = re.compile(
    r"(^|[\W_])(date|datum|day|tag|fecha|data|datetime|timestamp|beginn|ende|start|end)([\W_]|$)",
    re.IGNORECASE,
)
_WAY_OUT = "open the file in a spreadsheet program and save it, or compute them in pandas"
_CHUNK_BYTES = 1 << 20
_MOST_BYTES = 64 << 20
_LONGEST_CELL = 1 << 16
_CELL = re.compile(
    rb'<(?:\w+:)?c\b(?P<tag>[^>]*?\br="(?P<column>[A-Z]{1,3})(?P<row>\d{1,8})"[^>]*)(?<!/)>'
    rb"(?P<body>.*?)</(?:\w+:)?c>",
    re.DOTALL,
)
_TYPE = re.compile(rb'\bt="(\w+)"')
_FORMULA = re.compile(rb"<(?:\w+:)?f\b[^>]*?(?:/>|>(?P<text>[^<]{0,200}))")
_VALUE = re.compile(rb"<(?:\w+:)?v\b[^>]*>([^<]+)<")
_HIDDEN = re.compile(rb'<(?:\w+:)?row\b[^>]*\bhidden="(?:1|true)"')
_CALCULATED_LATER = re.compile(rb'\bfullCalcOnLoad="(?:1|true)"')


@dataclass
class Oddities:
    """Odd cells of one table."""

    notes: dict[str, str] = field(default_factory=dict)
    """Notes by name of the column."""
    uncalculated: dict[str, int] = field(default_factory=dict)
    """Number of formulas without a result, by name of the column."""
    warnings: list[str] = field(default_factory=list)


def oddities_of(odd: OddCells | None, part: SheetPart, names: Sequence[Any]) -> Oddities:
    """Return the notes and warnings about a table's odd cells.

    Args:
        odd: odd cells of its sheet; `None` if the format does not show them.
        part: the table.
        names: names of its columns as pandas reads them, before any step.
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
    """Return the columns with notes; a formula without a result is not counted as missing.

    Args:
        columns: columns as in the frame.
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
    """Return notes on columns of dates that contain texts too, and of numbers that may be dates.

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
    """Return the first value that is not a date in a column with dates; `None` if there is none."""
    others = [value for value in values if not isinstance(value, date)]
    return others[0] if others and len(others) < len(values) else None


@dataclass
class OddCells:
    """Odd cells of one sheet, by column counted from 1."""

    errors: dict[int, Counter[str]] = field(default_factory=dict)
    """Errors such as `#DIV/0!` with their counts."""
    formulas: dict[int, list[int]] = field(default_factory=dict)
    """Rows, counted from 1, of formulas without a result."""
    examples: dict[int, str] = field(default_factory=dict)
    """The first such formula of a column."""
    hidden_rows: int = 0
    zeros: dict[int, int] = field(default_factory=dict)
    """Formulas with the result 0, if no other has one and the file is to be calculated on opening.
    Some programs write 0 for a result that they do not know."""
    other_results: int = 0
    """Formulas with another result."""


def odd_cells(path: Path) -> dict[str, OddCells]:
    """Return the odd cells of each worksheet, by name.

    Raises:
        zipfile.BadZipFile: the archive is damaged.
        KeyError: a part is missing.
        xml.etree.ElementTree.ParseError: a part is not XML.
    """
    found: dict[str, OddCells] = {}
    room = _MOST_BYTES
    with zipfile.ZipFile(path) as archive:
        is_later = _CALCULATED_LATER.search(archive.read("xl/workbook.xml")) is not None
        for name, member in sheet_members(archive):
            size = archive.getinfo(member).file_size
            if size > room:
                continue
            room -= size
            found[name] = cells = OddCells()
            for block in _cell_blocks(archive, member):
                cells.hidden_rows += len(_HIDDEN.findall(block))
                _note(cells, block)
            if not is_later or cells.other_results:
                cells.zeros.clear()
    return found


def _cell_blocks(archive: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    """Yield the XML in blocks that end with a cell.

    Yields:
        Bytes.
    """
    rest = b""
    with archive.open(member) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            block = rest + chunk
            cut = block.rfind(b"</c>") + 4
            cut = cut if cut > 4 else max(0, len(block) - _LONGEST_CELL)
            yield block[:cut]
            rest = block[cut:]
    yield rest


def _note(cells: OddCells, block: bytes) -> None:
    if b't="e"' not in block and b"f>" not in block and b"<f" not in block:
        return
    for match in _CELL.finditer(block):
        body, tag = match["body"], match["tag"]
        formula = _FORMULA.search(body)
        kind = _TYPE.search(tag)
        is_error = kind is not None and kind[1] == b"e"
        if formula is None and not is_error:
            continue
        column, value = column_number(match["column"]), _VALUE.search(body)
        if is_error:
            text = value[1].decode("utf-8", "replace") if value else "#N/A"
            cells.errors.setdefault(column, Counter())[text] += 1
        elif formula is not None and value is None:
            if kind is not None and kind[1] == b"str":
                continue  # its result is an empty text
            cells.formulas.setdefault(column, []).append(int(match["row"]))
            cells.examples.setdefault(column, (formula["text"] or b"").decode("utf-8", "replace"))
        elif value is not None and value[1].strip() == b"0":
            cells.zeros[column] = cells.zeros.get(column, 0) + 1
        else:
            cells.other_results += 1
