"""Dirty tables written as csv files, workbooks or databases: the same bytes everywhere."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date

from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.dirt import Cell, DirtyTable, Form
from training.suites.generated.tables.domains import Column
from training.suites.generated.tables.tables import Value
from training.suites.generated.tables.workbook import workbook

__all__ = ["DataFile", "data_file"]

_COUNTERS = (slice(24, 28), slice(92, 96))
"""Positions of a database's change counters."""
_WRITER = slice(96, 100)
"""Position of the SQLite release that wrote a database."""
_RELEASE = (3040000).to_bytes(4, "big")
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class DataFile:
    """A written table, with the data to find its rows."""

    dirty: DirtyTable
    name: str
    content: bytes
    sheets: tuple[str, ...] = ()
    """Sheets of a workbook that contain the rows."""
    separator: str = ","
    """Separator of a csv file."""
    skipped: int = 0
    """Number of rows of a sheet above its header."""

    @property
    def lookup_name(self) -> str:
        """Sheet or database table with the lookup rows; empty if the file has none."""
        if self.dirty.format == "csv":
            return ""
        name = self.dirty.table.domain.lookup.table
        return name.capitalize() if self.dirty.format == "xlsx" else name

    def lookup_header(self, column: str) -> str:
        """Return the header of a column of the lookup table."""
        domain = self.dirty.table.domain
        if column == domain.lookup.key:
            return self.dirty.forms[column].header
        return domain.column(column).name


def data_file(dirty: DirtyTable, chance: Chance) -> DataFile:
    """Return the table as a file."""
    match dirty.format:
        case "csv":
            return _csv(dirty, chance)
        case "xlsx":
            return _workbook(dirty, chance)
    return _database(dirty)


def _headers(dirty: DirtyTable) -> list[Cell]:
    return [dirty.forms[column.name].header for column in dirty.table.columns]


def _lookup_cells(dirty: DirtyTable) -> list[list[Cell]]:
    values: Sequence[Sequence[Value]] = list(dirty.table.lookup.values())
    return [list(row) for row in zip(*values, strict=True)]


def _csv(dirty: DirtyTable, chance: Chance) -> DataFile:
    has_commas = any(form.is_comma for form in dirty.forms.values())
    separator = ";" if has_commas or chance.happens(0.15) else ","
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(_headers(dirty))
    writer.writerows(dirty.rows)
    name = f"{dirty.table.name}.csv"
    return DataFile(dirty, name, text.getvalue().encode(), separator=separator)


def _workbook(dirty: DirtyTable, chance: Chance) -> DataFile:
    domain = dirty.table.domain
    made = DataFile(dirty, f"{dirty.table.name}.xlsx", b"", (domain.table.capitalize(),))
    above: list[list[Cell]] = []
    if chance.happens(0.35):
        above = [[f"{domain.topic[0].upper()}{domain.topic[1:]}"], ["Export for internal use"], []]
    blocks = {domain.table.capitalize(): list(dirty.rows)}
    if chance.happens(0.3):
        blocks = _by_year(dirty)
    sheets = {name: [*above, _headers(dirty), *rows] for name, rows in blocks.items()}
    keys: list[Cell] = [made.lookup_header(name) for name in dirty.table.lookup]
    content = workbook(
        {
            "About": [[f"Data: {domain.topic}"], [f"One row for each {domain.row}"]],
            **sheets,
            made.lookup_name: [keys, *_lookup_cells(dirty)],
        }
    )
    return DataFile(dirty, made.name, content, tuple(sheets), skipped=len(above))


def _by_year(dirty: DirtyTable) -> dict[str, list[tuple[Cell, ...]]]:
    """Return the rows by the year of their date; a repeat has the date of its original."""
    table = dirty.table
    names = [column.name for column in table.columns]
    day = next(column.name for column in table.columns if column.kind == "date")
    key = next(column.name for column in table.columns if column.kind == "id")
    years = {
        found: value.year
        for found, value in zip(table.values[key], table.values[day], strict=True)
        if isinstance(value, date)
    }
    place = names.index(key)
    blocks: dict[str, list[tuple[Cell, ...]]] = {
        str(year): [] for year in sorted({*years.values()})
    }
    for row in dirty.rows:
        blocks[str(years[str(row[place])])].append(row)
    return blocks


def _database(dirty: DirtyTable) -> DataFile:
    domain = dirty.table.domain
    lookup = domain.lookup
    made = DataFile(dirty, f"{dirty.table.name}.sqlite", b"")
    key = dirty.forms[lookup.key].header
    beside = [f'"{key}" TEXT PRIMARY KEY']
    beside += [f'"{column.name}" {_type(column, Form(""))}' for column in lookup.columns]
    columns = [
        f'"{dirty.forms[one.name].header}" {_type(one, dirty.forms[one.name])}'
        f"{' PRIMARY KEY' if one.kind == 'id' else ''}"
        for one in dirty.table.columns
    ]
    foreign = f'FOREIGN KEY ("{key}") REFERENCES "{lookup.table}" ("{key}")'
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        for setting in (f"page_size = {_PAGE_BYTES}", "auto_vacuum = 0", "encoding = 'UTF-8'"):
            database.execute(f"PRAGMA {setting}")
        database.execute(f'CREATE TABLE "{lookup.table}" ({", ".join(beside)})')
        database.execute(f'CREATE TABLE "{domain.table}" ({", ".join([*columns, foreign])})')
        for name, rows in ((lookup.table, _lookup_cells(dirty)), (domain.table, dirty.rows)):
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)  # noqa: S608
        content = bytearray(database.serialize())
    for counter in _COUNTERS:
        content[counter] = (1).to_bytes(4, "big")
    content[_WRITER] = _RELEASE
    return DataFile(dirty, made.name, bytes(content))


def _type(column: Column, form: Form) -> str:
    if column.kind == "flag":
        return "INTEGER" if form.flags[0] == "1" else "TEXT"
    if column.kind != "number" or form.is_text:
        return "TEXT"
    return "INTEGER" if column.decimals == 0 else "REAL"
