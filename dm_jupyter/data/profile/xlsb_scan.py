"""How many cells a binary workbook's sheets span: its reader lays each out in full.

One cell in the last row and column of an otherwise small sheet makes a block of 17 thousand million
cells, which ends the process that reads it. Here only the numbers of rows and columns are looked
at, as a stream.

Covered: sheets whose cells lie far apart, archives that unpack to more than a workbook needs. Not
covered: records that are longer than they say, which the reader itself refuses.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dm_jupyter.core.errors import DataFileError

__all__ = ["check_xlsb"]

_MAX_CELLS = 5_000_000
_ROW = 0
_CELLS = frozenset(range(1, 12))
"""Records of cells, whose content begins with the column."""
_CHUNK_BYTES = 1 << 20


def check_xlsb(path: Path, name: str) -> None:
    """Refuses a workbook with a sheet that spans more cells than can be held.

    Raises:
        DataFileError: with the way out.
        zipfile.BadZipFile: the archive is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        sheets = [one for one in archive.namelist() if one.startswith("xl/worksheets/")]
        for member in sheets:
            if not member.endswith(".bin"):
                continue
            with archive.open(member) as stream:
                cells = _spanned(stream)
            if cells > _MAX_CELLS:
                raise DataFileError(
                    f"{name}: the cells of a sheet ({member}) span {cells:,} cells, too many for "
                    "an .xlsb reader. Delete what stands far away from the table, or save the "
                    "sheet as csv or xlsx."
                )


def _spanned(stream: IO[bytes]) -> int:
    """Returns the cells between the first and the last row and column of a sheet."""
    rows: tuple[int, int] | None = None
    columns: tuple[int, int] | None = None
    row = 0
    for kind, number in _records(stream):
        if kind == _ROW:
            row = number
            continue
        rows = (min(rows[0], row), max(rows[1], row)) if rows else (row, row)
        columns = (
            (min(columns[0], number), max(columns[1], number)) if columns else (number, number)
        )
    if rows is None or columns is None:
        return 0
    return (rows[1] - rows[0] + 1) * (columns[1] - columns[0] + 1)


def _records(stream: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yields the records of rows and cells.

    Yields:
        The kind, and the row's or column's number.
    """
    data = bytearray()
    at = 0
    while True:
        block = stream.read(_CHUNK_BYTES)
        data += block
        # A record is read when its head and its length are certain to be there.
        safe = len(data) - (16 if block else 0)
        while at < safe:
            kind, after = _group(data, at, 2)
            length, after = _group(data, after, 4)
            if (kind == _ROW or kind in _CELLS) and after + 4 <= len(data):
                yield kind, int.from_bytes(data[after : after + 4], "little")
            at = after + length
        if not block:
            return
        # What is used goes; a long record may reach beyond what was read.
        used = min(at, len(data))
        del data[:used]
        at -= used


def _group(data: bytearray, at: int, most: int) -> tuple[int, int]:
    """Returns a number kept in groups of seven bits, and where it ends."""
    number = 0
    for place in range(most):
        byte = data[at] if at < len(data) else 0
        at += 1
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return number, at
