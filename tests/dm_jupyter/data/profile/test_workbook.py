from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file, render, workbook
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


def written(path: Path, rows: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_plain_sheet_gets_the_simplest_call(tmp_path, monkeypatch):
    path = written(tmp_path / "x.xlsx", [["a", "b"], [1, "x"], [2, "y"]])
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.tables[0].load_code == 'df = pd.read_excel("x.xlsx", engine="openpyxl")'


def test_all_sheets_are_listed(tmp_path, monkeypatch):
    path = tmp_path / "x.xlsx"
    book = openpyxl.Workbook()
    book.active.title = "Read me"
    book.active.append(["Data are in the other sheets"])
    for name in ("Sales", "Expenses", "lookup"):
        sheet = book.create_sheet(name)
        sheet.append(["Region", "Amount"])
        sheet.append(["N", 1.5])
    book["lookup"].sheet_state = "hidden"
    book.create_sheet("Chart")
    book.save(path)
    profile = assert_load_code_agrees(path, monkeypatch)
    tables = {table.name: table for table in profile.tables}
    assert list(tables) == ["Read me", "Sales", "Expenses", "lookup", "Chart"]
    assert tables["lookup"].is_hidden
    assert tables["Chart"].row_count == 0
    text = render(profile)
    assert "Sheet 'lookup', hidden: 1 row x 2 columns" in text
    assert "Sheet 'Chart': empty" in text
    assert "reads only the first" in text
    assert 'sheet_name="Expenses"' in text


def test_titles_two_header_rows_and_notes(tmp_path, monkeypatch):
    rows: list[list[Any]] = [
        ["Table 4b. Voting"],
        ["(In thousands)"],
        ["State", "Total", "Registered", None, "Voted", None],
        [None, None, "Number", "Percent", "Number", "Percent"],
        ["US", 100, 60, 60.0, 50, 50.0],
        ["Ohio", 10, 6, 60.0, 5, 50.0],
        [None],
        ["1 This figure is an estimate."],
        ["Source: a survey"],
    ]
    profile = assert_load_code_agrees(written(tmp_path / "x.xlsx", rows), monkeypatch)
    table = profile.tables[0]
    assert [column.name for column in table.columns] == [
        "State",
        "Total",
        "Registered | Number",
        "Registered | Percent",
        "Voted | Number",
        "Voted | Percent",
    ]
    assert table.row_count == 2
    assert "notes" in said(profile)
    assert "Table 4b" in said(profile)


def test_numbers_with_text_between_are_named(tmp_path):
    path = written(tmp_path / "x.xlsx", [["k", "v"], ["a", 1], ["b", 2], ["c", "about 3"]])
    assert "'v' (numbers, and text such as 'about 3')" in said(profile_file(path))


def test_stray_far_cell_is_left_out(tmp_path, monkeypatch):
    path = tmp_path / "far.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    book.active["XFD1048576"] = 1
    book.save(path)
    profile = profile_file(path)
    table = profile.tables[0]
    assert 'pd.read_excel("far.xlsx", usecols="A:B", nrows=1' in str(table.load_code)
    frame = loaded(tmp_path, table, monkeypatch)
    assert frame.to_dict("list") == {"a": [1], "b": [2]}
    assert "stray cell" in said(profile)


def test_zip_bomb_is_refused_by_its_declared_size(tmp_path):
    path = written(tmp_path / "bomb.xlsx", [["a"], [1]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet2.xml", b"<row>" * (80 << 18))
    with pytest.raises(DataFileError, match="unpack to"):
        profile_file(path)


def test_large_sheet_is_sampled_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "_WHOLE_CELLS", 1000)
    monkeypatch.setattr(workbook, "_SAMPLE_CELLS", 1000)
    rows = [["Title"], [f"c{i}" for i in range(9)], *([[row] * 9 for row in range(600)])]
    path = written(tmp_path / "big.xlsx", rows)
    book = openpyxl.load_workbook(path)
    # A format below the table is no row of data.
    book.active.cell(700, 1).number_format = "0.00"
    book.save(path)
    table = assert_load_code_agrees(path, monkeypatch).tables[0]
    assert (table.row_count, table.sampled_rows) == (600, 111)
    assert "600 rows x 9 columns (statistics from 111 rows)" in render(profile_file(path))


@pytest.mark.parametrize("cut", [4, 60, 2000])
def test_truncated_workbook_is_refused(tmp_path, cut):
    whole = written(tmp_path / "x.xlsx", [["a"], [1]]).read_bytes()
    path = tmp_path / "cut.xlsx"
    path.write_bytes(whole[:cut])
    with pytest.raises(DataFileError, match="damaged or incomplete"):
        profile_file(path)


def test_ods_is_read(tmp_path, monkeypatch):
    pytest.importorskip("odf")
    import pandas as pd

    path = tmp_path / "x.ods"
    pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_excel(path, index=False, engine="odf")
    profile = assert_load_code_agrees(path, monkeypatch)
    assert (profile.kind, profile.tables[0].row_count) == ("ods", 2)


def test_ods_with_repeated_cells_is_refused(tmp_path):
    path = tmp_path / "x.ods"
    cell = '<table:table-cell office:value="1" table:number-columns-repeated="16384"/>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", f"<office:document-content>{row}</office:document-content>")
    pytest.importorskip("odf")
    with pytest.raises(DataFileError, match="unfolds to 17,179,869,184 cells"):
        profile_file(path)
