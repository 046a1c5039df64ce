"""How many cells an OpenDocument sheet stands for: repeats make small files large."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from dm_jupyter.core.errors import DataFileError

__all__ = ["check_ods"]

_MAX_XML_BYTES = 50 << 20
_MAX_CELLS = 5_000_000
_ROW = re.compile(rb"<table:table-row\b([^>]*)>(.*?)</table:table-row>", re.S)
_CELL = re.compile(rb"<table:(?:covered-)?table-cell\b([^>]*?)(/?)>")
_ROWS_REPEATED = re.compile(rb'number-rows-repeated="(\d{1,9})"')
_COLUMNS_REPEATED = re.compile(rb'number-columns-repeated="(\d{1,9})"')


def check_ods(path: Path, name: str) -> None:
    """Refuses a spreadsheet that would unfold to more cells than can be held.

    Raises:
        DataFileError: with the way out.
        zipfile.BadZipFile: the archive is damaged.
        KeyError: the archive holds no content.
    """
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("content.xml").file_size
        cells = 0 if size > _MAX_XML_BYTES else _cells(archive.read("content.xml"))
    if size > _MAX_XML_BYTES or cells > _MAX_CELLS:
        what = f"{cells:,} cells" if cells else f"{size / 1e6:,.0f} MB of XML"
        raise DataFileError(
            f"{name}: the spreadsheet unfolds to {what}, too many for an .ods reader. Save the "
            "sheet you need as csv or xlsx."
        )


def _cells(content: bytes) -> int:
    """Returns the cells of all rows that hold a value, repeats counted."""
    total = 0
    for row in _ROW.finditer(content):
        if b"office:value" not in row[2] and b"<text:p" not in row[2]:
            continue
        width, open_width = 0, 0
        for cell in _CELL.finditer(row[2]):
            repeat = _COLUMNS_REPEATED.search(cell[1])
            open_width += int(repeat[1]) if repeat else 1
            # Empty cells at a row's end are dropped by the reader.
            width = width if cell[2] and b"office:value" not in cell[1] else open_width
        repeat = _ROWS_REPEATED.search(row[1])
        total += width * (int(repeat[1]) if repeat else 1)
    return total
