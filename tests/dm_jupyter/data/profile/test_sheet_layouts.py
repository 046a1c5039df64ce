"""Several tables on a sheet, deep headers, units, errors, formulas that nobody calculated."""

from __future__ import annotations

import datetime as dt
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from dm_jupyter.data.profile import FileProfile, render
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


class Sheet:
    """Writes rows and merges to a workbook, profiles it and loads each of its tables."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch

    def tables(self, rows: list[list[Any]], *merges: str) -> tuple[list[pd.DataFrame], FileProfile]:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        for merge in merges:
            book.active.merge_cells(merge)
        path = self._folder / "x.xlsx"
        book.save(path)
        profile = assert_load_code_agrees(path, self._monkeypatch)
        return [loaded(self._folder, t, self._monkeypatch) for t in profile.tables], profile

    def __call__(self, rows: list[list[Any]], *merges: str) -> tuple[pd.DataFrame, FileProfile]:
        frames, profile = self.tables(rows, *merges)
        assert len(frames) == 1
        return frames[0], profile


@pytest.fixture
def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sheet:
    return Sheet(tmp_path, monkeypatch)


def test_tables_below_each_other_are_loaded_each(sheet: Sheet) -> None:
    rows = [
        ["Income"], ["Item", "Q1", "Q2"], ["A", 1, 2], ["B", 3, 4], [],
        ["Costs"], ["Item", "Q1", "Q2"], ["C", 5, 6], ["D", 7, 8], [],
        ["id", "day", "total"], [1, dt.date(2024, 1, 1), 5.5],
        [2, dt.date(2024, 1, 2), 6.5], [], ["Note: provisional"],
    ]  # fmt: skip
    frames, profile = sheet.tables(rows)
    assert [frame.iloc[:, 0].tolist() for frame in frames] == [["A", "B"], ["C", "D"], [1, 2]]
    assert frames[1]["Q2"].tolist() == [6, 8]
    assert [table.name for table in profile.tables] == [
        "Sheet!A2:C4", "Sheet!A7:C9", "Sheet!A11:C13",
    ]  # fmt: skip
    assert "'Sheet' holds 3 tables" in said(profile)
    assert "Note: provisional" in said(profile)
    assert "Sheet 'Sheet!A7:C9'" in render(profile)


def test_tables_side_by_side_keep_their_names(sheet: Sheet) -> None:
    rows = [
        ["Sales", None, None, "Staff"],
        ["Name", "Value", None, "Name", "Value"],
        ["N", 1, None, "Ann", 30],
        ["S", 2, None, "Bob", 40],
        ["W", 3],
    ]
    frames, profile = sheet.tables(rows)
    assert [list(frame.columns) for frame in frames] == [["Name", "Value"]] * 2
    assert [frame["Value"].tolist() for frame in frames] == [[1, 2, 3], [30, 40]]
    assert [table.name for table in profile.tables] == ["Sheet!A2:B5", "Sheet!D2:E4"]


def test_a_blank_column_inside_a_table_parts_nothing(sheet: Sheet) -> None:
    rows = [
        ["Region", "Men", None, None, "Women", None],
        [None, "2022", "2023", None, "2022", "2023"],
        ["x", 1, 2, None, 3, 4],
        ["y", 5, 6, None, 7, 8],
    ]
    frame, _ = sheet(rows, "B1:C1", "E1:F1")
    names = ["Region", "Men | 2022", "Men | 2023", "Women | 2022", "Women | 2023"]
    assert list(frame.columns) == names
    assert frame["Women | 2022"].tolist() == [3, 7]


def test_labels_and_values_above_a_table_are_no_table(sheet: Sheet) -> None:
    rows = [["Company", "ACME"], ["Year", 2024], ["Unit", "EUR"], [],
            ["Month", "Sales", "Cost"], ["Jan", 1, 2], ["Feb", 3, 4]]  # fmt: skip
    frame, profile = sheet(rows)
    assert list(frame.columns) == ["Month", "Sales", "Cost"]
    assert "Company; ACME" in said(profile)


def test_a_header_of_three_rows_has_no_empty_parts(sheet: Sheet) -> None:
    rows = [
        ["Report"],
        [],
        ["Region", "2023", None, None, None, "Notes"],
        [None, "Men", None, "Women", None, None],
        [None, "n", "share", "n", "share", None],
        ["x", 1, 2, 3, 4, "p"],
        ["y", 5, 6, 7, 8, "q"],
    ]
    names = ["Region", "2023 | Men | n", "2023 | Men | share", "2023 | Women | n",
             "2023 | Women | share", "Notes"]  # fmt: skip
    frame, _ = sheet(rows, "A3:A5", "F3:F5", "B3:E3", "B4:C4", "D4:E4")
    assert list(frame.columns) == names
    assert frame["2023 | Women | share"].tolist() == [4, 8]


def test_a_merged_cell_says_how_far_a_group_reaches(sheet: Sheet) -> None:
    rows = [
        [None, "Sales", None, None],
        ["Region", "2019", "2020", "Notes"],
        ["x", 1, 2, "ok"],
        ["y", 3, 4, "bad"],
    ]
    frame, _ = sheet(rows, "B1:C1")
    assert list(frame.columns) == ["Region", "Sales | 2019", "Sales | 2020", "Notes"]


def test_a_row_of_units_is_told_and_left_out(sheet: Sheet) -> None:
    rows = [
        ["Site", "Air", None, "Water"],
        [None, "Temp", "Hum", "Temp"],
        [None, "°C", "%", "°C"],
        ["a", 1.5, 50, 8],
        ["b", 2.5, 60, 9],
    ]
    frame, profile = sheet(rows, "B1:C1")
    assert list(frame.columns) == ["Site", "Air | Temp", "Air | Hum", "Water | Temp"]
    assert frame["Air | Hum"].tolist() == [50, 60]
    assert "Air | Temp: °C" in said(profile)


def test_rows_without_a_header_keep_the_first(sheet: Sheet) -> None:
    frame, profile = sheet([["a", 1, 2.5], ["b", 2, 3.5], ["c", 3, 4.5]])
    assert frame["column_1"].tolist() == ["a", "b", "c"]
    assert "no header" in said(profile)


def test_a_header_that_comes_again_is_left_out(sheet: Sheet) -> None:
    rows = [["n", "name"], [1, "Ann"], [2, "Bo"], ["n", "name"], [3, "Cy"]]
    frame, profile = sheet(rows)
    assert frame["n"].tolist() == [1, 2, 3]
    assert "again in row 4" in said(profile)


def test_blank_rows_leave_whole_numbers_whole(sheet: Sheet) -> None:
    frame, _ = sheet([["a", "b"], [], [1, "x"], [2, "y"], [], [3, "z"]])
    assert (str(frame["a"].dtype), frame["a"].tolist()) == ("int64", [1, 2, 3])


def test_a_last_row_without_figures_is_data(sheet: Sheet) -> None:
    frame, _ = sheet([["k", "a", "b"], ["Chile", 1, 2], ["Peru", 3, 4], ["Iceland"]])
    assert frame["k"].tolist() == ["Chile", "Peru", "Iceland"]


def test_a_legend_below_a_table_is_left_out(sheet: Sheet) -> None:
    rows = [["code", "n", "m"], ["a", 1, 2], ["b", 3, 4], [], ["Legend"], ["a", "apples"]]
    frame, profile = sheet(rows)
    assert frame["n"].tolist() == [1, 3]
    assert "'Legend'" in said(profile)


def test_the_index_that_pandas_wrote_is_an_index(sheet: Sheet) -> None:
    frame, _ = sheet([[None, "a"], [0, "x"], [1, "y"], [2, "z"]])
    assert list(frame.columns) == ["a"]


def test_errors_are_missing_and_counted_by_column(sheet: Sheet) -> None:
    rows = [["k", "v"], ["a", 1], ["b", "#DIV/0!"], ["c", "#N/A"], ["d", 4]]
    frame, profile = sheet(rows)
    assert frame["v"].sum() == 5
    note = profile.tables[0].columns[1].note
    assert note == "2 error cell(s) (#DIV/0!, #N/A) read as missing"


def test_formulas_that_nobody_calculated_are_not_missing(sheet: Sheet) -> None:
    rows = [["k", "net", "gross"], ["a", 1, "=B2*2"], ["b", 2, "=B3*2"], ["c", 3, None]]
    _, profile = sheet(rows)
    gross = profile.tables[0].columns[2]
    assert (gross.name, gross.missing) == ("gross", 1)
    assert gross.note == "2 formula(s) never calculated: no value in the file"
    assert "such as =B2*2 in C" in said(profile)


def test_a_column_of_such_formulas_stays_beside_empty_columns(sheet: Sheet) -> None:
    rows = [["k", None, "gross"], ["a", None, "=1+1"], ["b", None, "=2+2"]]
    frame, _ = sheet(rows)
    assert list(frame.columns) == ["k", "gross"]


def test_formulas_with_a_result_are_values(sheet: Sheet, tmp_path: Path, monkeypatch: Any) -> None:
    sheet([["k", "v"], ["a", "=1+1"], ["b", '=""']])
    path = tmp_path / "y.xlsx"
    with zipfile.ZipFile(tmp_path / "x.xlsx") as old, zipfile.ZipFile(path, "w") as new:
        for member in old.namelist():
            content = old.read(member).replace(b"<f>1+1</f><v />", b"<f>1+1</f><v>2</v>")
            content = content.replace(b"<f>1+1</f><v></v>", b"<f>1+1</f><v>2</v>")
            content = content.replace(b'r="B3"', b'r="B3" t="str"')
            new.writestr(member, content)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.tables[0].columns[1].note is None
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["v"].iloc[0] == 2


def test_hidden_rows_are_told(tmp_path: Path, monkeypatch: Any) -> None:
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2], [3, 4]):
        book.active.append(row)
    book.active.row_dimensions[2].hidden = True
    book.save(tmp_path / "x.xlsx")
    assert "1 hidden row(s)" in said(assert_load_code_agrees(tmp_path / "x.xlsx", monkeypatch))


def test_numbers_that_may_be_dates_are_told_and_left(sheet: Sheet) -> None:
    frame, profile = sheet([["date", "v"], [45292, 1], [45293, 2]])
    assert frame["date"].tolist() == [45292, 45293]
    assert "45292 would be 2024-01-01" in str(profile.tables[0].columns[0].note)


def test_two_tables_of_texts_in_one_are_named(sheet: Sheet) -> None:
    rows = [["name", "city"], ["Ann", "Rome"], ["Bob", "Oslo"], []]
    _, profile = sheet([*rows, ["item", "color"], ["Cup", "red"], ["Hat", "red"]])
    assert "row 5 of the file may be the header" in said(profile)


def test_na_among_codes_of_a_sheet_is_named(sheet: Sheet) -> None:
    frame, profile = sheet([["country", "pop"], ["DE", 83], ["NA", 2.5], ["FR", 67]])
    assert frame["country"].isna().sum() == 1
    assert "'NA' stands among codes in 'country'" in said(profile)
