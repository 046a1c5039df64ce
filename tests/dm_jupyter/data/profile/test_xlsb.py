"""Binary workbooks; no library writes them, so their records are put together here."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said

pytest.importorskip("python_calamine", reason="skipped: no python-calamine")
BOOK, BOOK_END, SHEETS, SHEETS_END, SHEET_NAME = 131, 132, 143, 144, 156
SHEET, SHEET_END, EXTENT, DATA, DATA_END = 129, 130, 148, 145, 146
ROW, NUMBER, TEXT = 0, 5, 6
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
HIDDEN = 1


def record(kind: int, content: bytes = b"") -> bytes:
    """Returns a record: its number and its length in groups of seven bits, then its content."""
    return _groups(kind) + _groups(len(content)) + content


def _groups(number: int) -> bytes:
    low = number & 0x7F
    return bytes([low | 0x80]) + _groups(number >> 7) if number > 0x7F else bytes([low])


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode("utf-16-le")


def sheet(rows: list[list[object]]) -> bytes:
    made = record(SHEET)
    width = max(map(len, rows), default=1)
    made += record(EXTENT, struct.pack("<4I", 0, max(0, len(rows) - 1), 0, width - 1))
    made += record(DATA)
    for number, row in enumerate(rows):
        made += record(ROW, struct.pack("<II", number, 0) + bytes(9))
        for column, value in enumerate(row):
            head = struct.pack("<II", column, 0)
            if isinstance(value, str):
                made += record(TEXT, head + text(value))
            elif isinstance(value, (int, float)):
                made += record(NUMBER, head + struct.pack("<d", value))
    return made + record(DATA_END) + record(SHEET_END)


def workbook(path: Path, sheets: dict[str, list[list[object]]], hidden: str = "") -> Path:
    book, relations = record(BOOK) + record(SHEETS), ""
    with zipfile.ZipFile(path, "w") as archive:
        for number, (name, rows) in enumerate(sheets.items(), start=1):
            state = HIDDEN if name == hidden else 0
            about = struct.pack("<II", state, number) + text(f"r{number}") + text(name)
            book += record(SHEET_NAME, about)
            target = f"worksheets/sheet{number}.bin"
            relations += f'<Relationship Id="r{number}" Type="{RELATION}/worksheet" '
            relations += f'Target="{target}"/>'
            archive.writestr(f"xl/{target}", sheet(rows))
        archive.writestr("xl/workbook.bin", book + record(SHEETS_END) + record(BOOK_END))
        relations = f'<Relationships xmlns="{PACKAGE}">{relations}</Relationships>'
        archive.writestr("xl/_rels/workbook.bin.rels", relations)
    return path


ROWS: list[list[object]] = [["city", "n"], ["Köln", 1234.5], ["Bonn", -2]]


@pytest.mark.parametrize("name", ["x.xlsb", "x.xlsx"])
def test_a_binary_workbook(tmp_path, monkeypatch, name):
    path = workbook(tmp_path / name, {"one": ROWS, "two": ROWS, "empty": []}, hidden="two")
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "xlsb"
    assert [table.row_count for table in profile.tables] == [2, 2, 0]
    assert [table.name for table in profile.tables if table.is_hidden] == ["two"]
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame.to_numpy().tolist() == [["Köln", 1234.5], ["Bonn", -2]]
    assert 'engine="calamine"' in str(profile.tables[0].load_code)
    assert ("the content is xlsb" in said(profile)) == (name == "x.xlsx")


def test_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / "x.xlsb"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.bin", b"\x83\x01")
    with pytest.raises(DataFileError, match=r"x\.xlsb: the workbook can't be read"):
        profile_file(path)


def test_a_cell_at_the_far_end_is_not_unfolded(tmp_path):
    path = tmp_path / "x.xlsb"
    workbook(path, {"one": ROWS})
    far = sheet(ROWS).replace(record(DATA_END), b"")
    far = far.removesuffix(record(SHEET_END))
    cell = record(ROW, struct.pack("<II", 1_048_575, 0) + bytes(9))
    cell += record(NUMBER, struct.pack("<IId", 16_383, 0, 1.0))
    content = far + cell + record(DATA_END) + record(SHEET_END)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.bin"] = content
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    with pytest.raises(DataFileError, match="cells"):
        profile_file(path)
