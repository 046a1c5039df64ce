"""Reading of a data file cell by cell in plain Python: the second, independent reader.

It does not use pandas: csv files are read with `csv`, workbooks from their XML, databases with
`sqlite3`. The values go into SQLite tables: numbers as REAL, dates and labels as TEXT, missing
values as NULL.
"""

from __future__ import annotations

import csv
import io
import re
import sqlite3
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from xml.etree import ElementTree as ET

from training.suites.generated.tables.dirt import Form
from training.suites.generated.tables.domains import Column
from training.suites.generated.tables.files import DataFile

__all__ = ["database_of"]

_SPREADSHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DAY_ZERO = date(1899, 12, 30)
_NUMBER = re.compile(r"(-?[\d.,]+)(?: (\S+))?")
_DATE_FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%d %B %Y")

Cells = list[list[Any]]


def database_of(file: DataFile) -> sqlite3.Connection:
    """Return an in-memory database with the tables `main` and `lookup` of a file.

    `main` contains repeated rows once. The caller closes the connection.
    """
    dirty = file.dirty
    rows, lookup = _read(file)
    seen: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        seen.setdefault(tuple(row), row)
    columns = dirty.table.columns
    forms = [dirty.forms[column.name] for column in columns]
    main = [
        [_value(cell, one, form) for cell, one, form in zip(row, columns, forms, strict=True)]
        for row in seen.values()
    ]
    database = sqlite3.connect(":memory:", isolation_level=None)
    _fill(database, "main", [column.name for column in columns], main)
    _fill(database, "lookup", list(dirty.table.lookup), lookup)
    return database


def _fill(
    database: sqlite3.Connection, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    quoted = ", ".join(f'"{column}"' for column in columns)
    database.execute(f'CREATE TEMP TABLE "{name}" ({quoted})')
    marks = ", ".join("?" * len(columns))
    database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)


def _read(file: DataFile) -> tuple[Cells, Cells]:
    match file.dirty.format:
        case "csv":
            text = io.StringIO(file.content.decode("utf-8"), newline="")
            return list(csv.reader(text, delimiter=file.separator))[1:], []
        case "xlsx":
            sheets = dict(_sheets(file.content))
            skipped = file.skipped + 1
            rows = [row for name in file.sheets for row in sheets[name][skipped:]]
            width = len(file.dirty.table.columns)
            return [_padded(row, width) for row in rows], [
                [_typed(cell) for cell in row] for row in sheets[file.lookup_name][1:]
            ]
    domain = file.dirty.table.domain
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(file.content)
        names = (domain.table, domain.lookup.table)
        tables = [list(map(list, database.execute(f'SELECT * FROM "{one}"'))) for one in names]
    lookup = [[float(one) if isinstance(one, int) else one for one in row] for row in tables[1]]
    return tables[0], lookup


def _sheets(content: bytes) -> Iterator[tuple[str, Cells]]:
    """Yield the cells of each sheet: text unchanged, everything else as the text of its number."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        # This process wrote the file a moment ago, so its XML is trusted.
        index = ET.fromstring(archive.read("xl/workbook.xml"))  # noqa: S314
        parts = ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
        targets = {part.attrib["Id"]: part.attrib["Target"] for part in parts}
        for sheet in index.iter(f"{_SPREADSHEET}sheet"):
            target = targets[sheet.attrib[f"{_RELATION}id"]]
            root = ET.fromstring(archive.read(f"xl/{target}"))  # noqa: S314
            rows = [_row(row) for row in root.iter(f"{_SPREADSHEET}row")]
            yield sheet.attrib["name"], rows


def _row(row: ET.Element) -> list[Any]:
    cells: list[Any] = []
    for cell in row:
        place = 0
        for letter in re.sub(r"\d", "", cell.attrib["r"]):
            place = place * 26 + ord(letter) - 64
        cells += [None] * (place - 1 - len(cells))
        text = "".join(cell.itertext())
        is_date = cell.attrib.get("s") == "1"
        cells.append(_DAY_ZERO + timedelta(days=int(text)) if is_date else text)
    return cells


def _padded(row: list[Any], width: int) -> list[Any]:
    return row + [None] * (width - len(row))


def _typed(cell: Any) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell


def _value(cell: Any, column: Column, form: Form) -> Any:
    """Return the value of a cell: a float, an ISO date, a label, or `None`."""
    if cell is None or cell in form.marks:
        return None
    match column.kind:
        case "number":
            return _number(str(cell), form)
        case "date":
            return _day(cell)
        case "flag":
            return "yes" if str(cell) == form.flags[0] else "no"
        case "label":
            spelled = {value.casefold(): value for value in column.values}
            return spelled[str(cell).strip().casefold()]
    return cell


def _number(text: str, form: Form) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    digits = found[1]
    if form.is_comma:
        digits = digits.translate({ord("."): None, ord(","): "."})
    try:
        number = Decimal(digits.replace(",", ""))
    except InvalidOperation:
        return None
    if number == form.sentinel:
        return None
    return float(number * form.other_factor if found[2] and found[2] != form.sign else number)


def _day(cell: Any) -> str:
    if isinstance(cell, date):
        return cell.isoformat()
    for form in _DATE_FORMS:
        try:
            return datetime.strptime(cell, form).date().isoformat()
        except ValueError:
            continue
    raise ValueError(f"{cell!r} is written in no form of a date")
