"""Real sizes of a workbook's sheets, before anything builds them in memory.

A workbook of a few kilobytes can declare billions of cells, or unpack to gigabytes. The checks read
the zip's directory and the tags or records of rows and cells, as a stream.

Covered: xlsx, xlsb and ods; sheets whose cells are far apart; repeats; archives that unpack to more
than a workbook needs. Not covered: xlsb records that are longer than they declare, which the reader
itself rejects.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO
from xml.etree import ElementTree as ET

from dm_jupyter.core.errors import DataFileError

__all__ = [
    "Merge",
    "SheetExtent",
    "check_ods",
    "check_unpacked_size",
    "check_xlsb",
    "column_number",
    "scan_workbook",
    "sheet_members",
]

MAX_UNPACKED_BYTES = 300 << 20
_BOMB_BYTES = 64 << 20
_BOMB_RATIO = 150
_CHUNK_BYTES = 1 << 20
_MAX_AREA = 5_000_000
_SPARSE = 20
_ROW_GAP = 1000
_COLUMN_GAP = 50
_ROW = re.compile(rb'<(?:\w+:)?row\b[^>]*?\br="(\d{1,8})"')
_CELL = re.compile(rb'<(?:\w+:)?c r="([A-Z]{1,3})(\d{1,8})"')
_FAR_CELL = re.compile(rb'<(?:\w+:)?c r="([A-Z]{3})\d')
_VALUE_TAGS = (b"<v>", b"<v ", b"<is>", b":v>", b":is>")
_CELL_TAG = re.compile(rb"<(?:\w+:)?c[ >/]")
_MERGE = re.compile(
    rb'<(?:\w+:)?mergeCell\b[^>]*?\bref="([A-Z]{1,3})(\d{1,8}):([A-Z]{1,3})(\d{1,8})"'
)
_MAX_MERGES = 5_000
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_MAX_CELLS = 5_000_000
_XLSB_ROW = 0
_XLSB_CELLS = frozenset(range(1, 12))
"""Records of cells, whose content begins with the column."""
_MAX_ODS_BYTES = 50 << 20
_ODS_ROW = re.compile(rb"<table:table-row\b([^>]*)>(.*?)</table:table-row>", re.S)
_ODS_CELL = re.compile(rb"<table:(?:covered-)?table-cell\b([^>]*?)(/?)>")
_ROWS_REPEATED = re.compile(rb'number-rows-repeated="(\d{1,9})"')
_COLUMNS_REPEATED = re.compile(rb'number-columns-repeated="(\d{1,9})"')


@dataclass(frozen=True)
class Merge:
    """A block of cells that shows the value of its first; rows and columns count from 1."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def is_down(self) -> bool:
        """Whether it spans rows."""
        return self.bottom > self.top

    @property
    def is_across(self) -> bool:
        """Whether it spans columns."""
        return self.right > self.left

    def lowered(self, rows: int) -> Merge:
        """Return the same block, counted from `rows` further down."""
        return Merge(self.top - rows, self.left, self.bottom - rows, self.right)


@dataclass(frozen=True)
class SheetExtent:
    """Extent of a sheet, from its XML."""

    name: str
    is_hidden: bool
    rows: int
    """Number of the last row with a value, counted from 1."""
    cells: int
    """Cell tags, empty formatted ones included."""
    dense_rows: int | None = None
    """Rows of the first block, if a far stray cell makes the sheet absurdly large."""
    last_column: str | None = None
    """Letters of that block's last column."""
    merges: tuple[Merge, ...] = ()
    """The first few thousand of its merged cells."""


def check_unpacked_size(path: Path, name: str) -> None:
    """Reject an archive whose declared unpacked size is more than a workbook can need.

    Covered: size and ratio by the zip's directory, which Python's reader enforces when it unpacks.

    Raises:
        DataFileError: it is too large; the message gives both sizes.
        zipfile.BadZipFile: the archive is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        declared = sum(member.file_size for member in archive.infolist())
    packed = max(1, path.stat().st_size)
    is_bomb = declared > _BOMB_BYTES and declared / packed > _BOMB_RATIO
    if declared > MAX_UNPACKED_BYTES or is_bomb:
        raise DataFileError(
            f"{name}: {packed / 1e6:,.1f} MB that unpack to {declared / 1e6:,.0f} MB; the limit is "
            f"{MAX_UNPACKED_BYTES >> 20} MiB, or {_BOMB_RATIO} times the file's size. If you trust "
            "the file, open it in a spreadsheet program and save the sheet you need as csv."
        )


def scan_workbook(path: Path) -> tuple[SheetExtent, ...]:
    """Return the worksheets' extents in order; chart sheets are left out.

    Raises:
        zipfile.BadZipFile: the archive is damaged.
        KeyError: a part is missing.
        xml.etree.ElementTree.ParseError: a part is not XML.
    """
    with zipfile.ZipFile(path) as archive:
        hidden = _hidden_sheets(archive)
        return tuple(
            _extent(archive, member, name, name in hidden)
            for name, member in sheet_members(archive)
        )


def sheet_members(archive: zipfile.ZipFile) -> list[tuple[str, str]]:
    """Return name and archive member of each worksheet, in order; chart sheets are left out.

    Raises:
        KeyError: a part is missing.
        xml.etree.ElementTree.ParseError: a part is not XML.
    """
    targets = _targets(archive)
    found = []
    for sheet in _sheet_tags(archive):
        member = targets.get(sheet.get(_RELATION, ""), "")
        if "worksheets/" in member:
            found.append((sheet.get("name", ""), member))
    return found


def _sheet_tags(archive: zipfile.ZipFile) -> list[ET.Element]:
    book = ET.fromstring(archive.read("xl/workbook.xml"))  # noqa: S314 - expat bounds entities
    return list(book.iterfind("{*}sheets/{*}sheet"))


def _hidden_sheets(archive: zipfile.ZipFile) -> set[str]:
    tags = _sheet_tags(archive)
    return {tag.get("name", "") for tag in tags if tag.get("state", "visible") != "visible"}


def _targets(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return archive members by relation id."""
    relations = ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    found: dict[str, str] = {}
    for relation in relations.iterfind("{*}Relationship"):
        target = relation.get("Target", "")
        member = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        found[relation.get("Id", "")] = member
    return found


def _extent(archive: zipfile.ZipFile, member: str, name: str, is_hidden: bool) -> SheetExtent:
    last_row, cells, columns, dense_rows, last_filled = 0, 0, 0, 0, 0
    is_dense = True
    merges: list[Merge] = []
    for block in _blocks(archive, member):
        cells += sum(1 for _ in _CELL_TAG.finditer(block))
        last_value = max(block.rfind(tag) for tag in _VALUE_TAGS)
        # The value may belong to a row whose tag was in the block before.
        last_filled = max(last_filled, last_row) if last_value >= 0 else last_filled
        for match in _ROW.finditer(block):
            number = int(match[1])
            is_dense = is_dense and number - last_row <= _ROW_GAP
            last_row = max(last_row, number)
            dense_rows = last_row if is_dense else dense_rows
            last_filled = max(last_filled, number) if match.start() < last_value else last_filled
        far = (column_number(match[1]) for match in _FAR_CELL.finditer(block))
        columns = max(columns, max(far, default=26))
        merges += map(_merge, islice(_MERGE.finditer(block), _MAX_MERGES - len(merges)))
    area = last_row * columns
    if area <= _MAX_AREA or cells > area / _SPARSE:
        return SheetExtent(name, is_hidden, last_filled, cells, merges=tuple(merges))
    last_column = _last_column(archive, member, dense_rows)
    return SheetExtent(name, is_hidden, last_filled, cells, dense_rows, last_column, tuple(merges))


def _merge(found: re.Match[bytes]) -> Merge:
    left, top, right, bottom = found.groups()
    return Merge(int(top), column_number(left), int(bottom), column_number(right))


def _blocks(archive: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    """Yield the XML in blocks that are cut before a tag, so that no tag is split.

    Yields:
        Bytes.
    """
    rest = b""
    with archive.open(member) as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            block = rest + chunk
            cut = block.rfind(b"<")
            # A text longer than a chunk contains no tag: nothing of it needs to be kept.
            cut = cut if cut > 0 else len(block)
            yield block[:cut]
            rest = block[cut:]
    yield rest


def _last_column(archive: zipfile.ZipFile, member: str, rows: int) -> str:
    """Return the letters of the last column before the first wide gap, in the first rows."""
    numbers = {1: "A"}
    for block in _blocks(archive, member):
        for match in _CELL.finditer(block):
            if int(match[2]) > rows:
                break
            numbers[column_number(match[1])] = match[1].decode()
    last = 1
    for number in sorted(numbers):
        if number - last > _COLUMN_GAP:
            break
        last = number
    return numbers[last]


def column_number(letters: bytes) -> int:
    """Return the number of a column, counted from 1, from its letters in a spreadsheet."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def check_xlsb(path: Path, name: str) -> None:
    """Reject a workbook with a sheet that spans more cells than fit in memory.

    Raises:
        DataFileError: it is too large; the message says what to do.
        zipfile.BadZipFile: the archive is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        sheets = [one for one in archive.namelist() if one.startswith("xl/worksheets/")]
        for member in sheets:
            if not member.endswith(".bin"):
                continue
            with archive.open(member) as stream:
                cells = _xlsb_cells(stream)
            if cells > _MAX_CELLS:
                raise DataFileError(
                    f"{name}: the cells of a sheet ({member}) span {cells:,} cells, too many for "
                    "an .xlsb reader. Delete what stands far away from the table, or save the "
                    "sheet as csv or xlsx."
                )


def _xlsb_cells(stream: IO[bytes]) -> int:
    """Return the cells between the first and the last row and column of a sheet."""
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None
    row = 0
    for kind, number in _xlsb_records(stream):
        if kind == _XLSB_ROW:
            row = number
            continue
        rows = (min(rows[0], row), max(rows[1], row)) if rows else (row, row)
        columns = (
            (min(columns[0], number), max(columns[1], number)) if columns else (number, number)
        )
    if rows is None or columns is None:
        return 0
    return (rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1)


def _xlsb_records(stream: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the records of rows and cells.

    Yields:
        The kind, and the row's or column's number.
    """
    data = bytearray()
    at = 0
    while True:
        block = stream.read(_CHUNK_BYTES)
        data += block
        # A record is read once its head and its length are certain to be in the data.
        safe = len(data) - (16 if block else 0)
        while at < safe:
            kind, after = _xlsb_number(data, at, 2)
            length, after = _xlsb_number(data, after, 4)
            if (kind == _XLSB_ROW or kind in _XLSB_CELLS) and after + 4 <= len(data):
                yield kind, int.from_bytes(data[after : after + 4], "little")
            at = after + length
        if not block:
            return
        # Drop what was used; a long record may reach beyond what was read.
        used = min(at, len(data))
        del data[:used]
        at -= used


def _xlsb_number(data: bytearray, at: int, most: int) -> tuple[int, int]:
    """Return a number stored in groups of seven bits, and where it ends."""
    number = 0
    for place in range(most):
        byte = data[at] if at < len(data) else 0
        at += 1
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return number, at


def check_ods(path: Path, name: str) -> None:
    """Reject a spreadsheet that would unfold to more cells than fit in memory.

    Raises:
        DataFileError: it is too large; the message says what to do.
        zipfile.BadZipFile: the archive is damaged.
        KeyError: the archive contains no content.
    """
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("content.xml").file_size
        cells = 0 if size > _MAX_ODS_BYTES else _ods_cells(archive.read("content.xml"))
    if size > _MAX_ODS_BYTES or cells > _MAX_CELLS:
        what = f"{cells:,} cells" if cells else f"{size / 1e6:,.0f} MB of XML"
        raise DataFileError(
            f"{name}: the spreadsheet unfolds to {what}, too many for an .ods reader. Save the "
            "sheet you need as csv or xlsx."
        )


def _ods_cells(content: bytes) -> int:
    """Return the number of cells in all rows with a value, repeats counted."""
    total = 0
    for row in _ODS_ROW.finditer(content):
        if b"office:value" not in row[2] and b"<text:p" not in row[2]:
            continue
        width, open_width = 0, 0
        for cell in _ODS_CELL.finditer(row[2]):
            repeat = _COLUMNS_REPEATED.search(cell[1])
            open_width += int(repeat[1]) if repeat else 1
            # Empty cells at a row's end are dropped by the reader.
            width = width if cell[2] and b"office:value" not in cell[1] else open_width
        repeat = _ROWS_REPEATED.search(row[1])
        total += width * (int(repeat[1]) if repeat else 1)
    return total
