"""Cells of a workbook whose value is not what a person sees: errors, formulas without a result.

A program that writes formulas without calculating them leaves their results out; to every reader
such a cell is empty. Only the XML tells it from one. The pass over a sheet is a stream, and ends
after a bound of bytes.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dm_jupyter.data.profile.workbook_scan import column_number, sheet_members

__all__ = ["OddCells", "odd_cells"]

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
class OddCells:
    """What one sheet holds of them, by column counted from 1."""

    errors: dict[int, Counter[str]] = field(default_factory=dict)
    """Errors such as `#DIV/0!` with their counts."""
    formulas: dict[int, list[int]] = field(default_factory=dict)
    """Rows, counted from 1, of formulas without a result."""
    examples: dict[int, str] = field(default_factory=dict)
    """The first such formula of a column."""
    hidden_rows: int = 0
    zeros: dict[int, int] = field(default_factory=dict)
    """Formulas with the result 0, where no other has one and the file is to be calculated when it
    is opened: some programs write 0 for a result that they do not know."""
    other_results: int = 0
    """Formulas with another result."""


def odd_cells(path: Path) -> dict[str, OddCells]:
    """Returns the odd cells of each worksheet, by name.

    Raises:
        zipfile.BadZipFile: the archive is damaged.
        KeyError: a part is missing.
        xml.etree.ElementTree.ParseError: a part is no XML.
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
    """Yields the XML in blocks that end with a cell.

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
