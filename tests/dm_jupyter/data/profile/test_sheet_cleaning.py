"""Sheets laid out for the eye: their load code makes tables of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from dm_jupyter.data.profile import FileProfile
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


class Sheet:
    """Writes rows and merges to a workbook, profiles it and runs its load code."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch

    def __call__(self, rows: list[list[Any]], *merges: str) -> tuple[pd.DataFrame, FileProfile]:
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        for merge in merges:
            book.active.merge_cells(merge)
        path = self._folder / "x.xlsx"
        book.save(path)
        profile = assert_load_code_agrees(path, self._monkeypatch)
        return loaded(self._folder, profile.tables[0], self._monkeypatch), profile


@pytest.fixture
def sheet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sheet:
    return Sheet(tmp_path, monkeypatch)


def test_merged_labels_are_filled_down(sheet: Sheet) -> None:
    rows = [
        ["Forest", "Fire", "Year", "Cover"],
        ["Pine", "Burn", 2012, 3.5],
        [None, None, 2013, 4.5],
        [None, "Control", 2012, 1.5],
        [None, None, 2013, 2.5],
    ]
    frame, profile = sheet(rows, "A2:A5", "B2:B3", "B4:B5")
    assert frame["Forest"].tolist() == ["Pine"] * 4
    assert frame["Fire"].tolist() == ["Burn", "Burn", "Control", "Control"]
    assert "filled down: 'Forest', 'Fire'" in said(profile)


def test_columns_under_one_merged_header_are_numbered(sheet: Sheet) -> None:
    rows = [
        ["Exports, in tons", None, None, None],
        ["Product and country", None, None, 2013],
        ["Fresh", 33, "Chile", 1.5],
        ["Fresh", 12, "Canada", 2.5],
    ]
    frame, _ = sheet(rows, "A1:D1", "A2:C2")
    names = ["Product and country", "Product and country.1", "Product and country.2", "2013"]
    assert frame.columns.tolist() == names


def test_a_merged_header_with_a_part_for_each_column_names_them(sheet: Sheet) -> None:
    rows = [
        ["Product, country code and name 1/", None, None, 2013],
        ["Fresh", 33, "Chile", 1.5],
        ["Fresh", 12, "Canada", 2.5],
    ]
    frame, _ = sheet(rows, "A1:C1")
    assert frame.columns.tolist() == ["Product", "country code", "name", "2013"]


def test_a_name_that_is_taken_is_not_given_again(sheet: Sheet) -> None:
    rows = [["Name and year", None, "year", None], ["Ann", 2013, 1, "x"], ["Bo", 2014, 2, "y"]]
    frame, _ = sheet(rows, "A1:B1")
    assert frame.columns.tolist() == ["Name", "Unnamed: 1", "year", "label"]


@pytest.mark.parametrize("merged", [("A1:B1",), ()])
def test_labels_without_a_header_are_called_so(sheet: Sheet, merged: tuple[str, ...]) -> None:
    rows = [[None, None, 2013, 2014], ["Fresh", "Chile", 1.5, 2.5], ["Fresh", "Peru", 3.5, 4.5]]
    frame, _ = sheet(rows, *merged)
    assert frame.columns.tolist() == ["label", "label.1", "2013", "2014"]


def test_numbers_without_a_header_stay_nameless(sheet: Sheet) -> None:
    frame, _ = sheet([[None, "name", "town"], [0, "Ann", "Bern"], [1, "Bo", "Rome"]])
    assert frame.columns.tolist() == ["Unnamed: 0", "name", "town"]


def test_a_blank_that_is_not_merged_stays_missing(sheet: Sheet) -> None:
    rows = [
        ["Area", "Code", "Value"],
        ["North", "a", 1],
        [None, "b", 2],
        ["South", None, 3],
        ["West", "d", 4],
    ]
    frame, _ = sheet(rows, "A2:A3")
    assert frame["Area"].tolist() == ["North", "North", "South", "West"]
    assert frame["Code"].isna().sum() == 1


def test_a_merged_block_without_a_value_is_left(sheet: Sheet) -> None:
    rows = [
        ["Area", "Code", "Value"],
        ["North", "a", 1],
        ["South", None, 2],
        ["West", None, 3],
    ]
    frame, _ = sheet(rows, "B3:B4")
    assert frame["Code"].isna().sum() == 2


def test_labels_that_stand_once_are_filled_down_unmerged(sheet: Sheet) -> None:
    rows = [
        ["Group", "Class", "Persons"],
        ["Age", "young", 1],
        [None, "old", 2],
        ["Region", "north", 3],
        [None, "south", 4],
    ]
    frame, _ = sheet(rows)
    assert frame["Group"].tolist() == ["Age", "Age", "Region", "Region"]


def test_a_column_with_gaps_of_its_own_is_not_filled(sheet: Sheet) -> None:
    rows = [["Name", "Nickname", "Age"], ["Ann", None, 1], [None, None, 2], [None, "Bo", 3],
            ["Dan", "D", 4]]  # fmt: skip
    frame, _ = sheet(rows)
    assert frame["Name"].isna().sum() == 2
    assert frame["Nickname"].isna().sum() == 2


@pytest.mark.parametrize(
    ("gap", "merges"), [([[None]], ()), ([], ("A2:C2", "A5:C5"))], ids=["blank row", "merged"]
)
def test_headings_become_a_column(sheet: Sheet, gap: list[list[Any]], merges: Any) -> None:
    rows = [
        ["Kind", "Workers", "Pay"],
        ["Women"],
        ["all", 10, 1.5],
        ["married", 4, 2.5],
        *gap,
        ["Men"],
        ["all", 20, 3.5],
        ["single", 5, 4.5],
    ]
    frame, profile = sheet(rows, *merges)
    assert frame["section"].tolist() == ["Women", "Women", "Men", "Men"]
    assert frame["Kind"].tolist() == ["all", "married", "all", "single"]
    assert frame["Workers"].sum() == 39
    assert "column 'section'" in said(profile)


def test_headings_over_the_same_labels_are_told_by_them(sheet: Sheet) -> None:
    years = [[year, 1, 2] for year in (2001, 2002, 2003)]
    frame, _ = sheet([["Year", "A", "B"], ["All"], *years, ["Women"], *years])
    assert frame["section"].tolist() == ["All"] * 3 + ["Women"] * 3
    assert frame["Year"].tolist() == [2001, 2002, 2003] * 2
    assert str(frame["Year"].dtype) == "int64"


def test_a_row_without_figures_is_no_heading(sheet: Sheet) -> None:
    rows = [["Country", "A", "B"], ["Chile", 1, 2], ["Iceland"], ["Norway", 3, 4], ["Peru", 5, 6]]
    frame, _ = sheet(rows)
    assert list(frame.columns) == ["Country", "A", "B"]
    assert len(frame) == 4


def test_indented_rows_lie_below_their_heading(sheet: Sheet) -> None:
    rows = [["Species", "A", "B"], ["Bird", 9, 9], ["Mammal"], ["  Mouse", 1, 2], ["  Rat", 3, 4]]
    frame, _ = sheet(rows)
    assert frame["section"].tolist()[1:] == ["Mammal", "Mammal"]
    assert frame["Species"].tolist() == ["Bird", "Mouse", "Rat"]


def test_a_column_called_section_is_not_overwritten(sheet: Sheet) -> None:
    rows = [["section", "A", "B"], ["One"], ["x", 1, 2], [None], ["Two"], ["y", 3, 4]]
    frame, _ = sheet(rows)
    assert list(frame.columns) == ["section", "A", "B"]
    assert frame["section"].tolist() == ["One", "x", "Two", "y"]


@pytest.mark.parametrize("mark", ["[no data]", " -", "..", ":", "(z)", "*"])
def test_marks_for_no_figure_are_read_as_missing(sheet: Sheet, mark: str) -> None:
    frame, profile = sheet([["Year", "Gas"], [2005, 10], [2006, mark], [2007, 12]])
    assert frame["Gas"].sum() == 22
    assert frame["Gas"].isna().sum() == 1
    assert f"read as missing: {mark!r}" in said(profile)


def test_blanks_around_text_go(sheet: Sheet) -> None:
    frame, _ = sheet([["Item ", "Cost"], ["Education ", 1], ["  ", 2], ["Total\n ", 3]])
    assert list(frame.columns) == ["Item", "Cost"]
    assert frame["Item"].tolist()[::2] == ["Education", "Total"]
    assert frame["Item"].isna().tolist() == [False, True, False]


def test_years_in_a_header_are_text(sheet: Sheet) -> None:
    frame, profile = sheet([["Item", 2014, 2015], ["a", 1, 2]])
    assert frame["2014"].tolist() == [1]
    assert [column.name for column in profile.tables[0].columns] == ["Item", "2014", "2015"]


def test_row_labels_are_named_below_one_title(sheet: Sheet) -> None:
    rows = [
        ["Hourly earnings"],
        ["Time period", None, None, "2023", "2024"],
        ["Area", "Measure"],
        ["Canada", "Earnings", None, 1.5, 2.5],
        ["Israel", "Earnings", None, 3.5, 4.5],
    ]
    frame, _ = sheet(rows, "A2:C2")
    assert list(frame.columns) == [
        "Time period | Area",
        "Time period | Measure",
        "2023",
        "2024",
    ]
    assert frame["2024"].tolist() == [2.5, 4.5]


def test_years_below_groups_are_part_of_the_header(sheet: Sheet) -> None:
    rows = [
        ["Category", "Men", None, "Women", None],
        [None, 2022, 2023, 2022, 2023],
        ["all", 10, 11, 12, 13],
        ["some", 1, 2, 3, 4],
    ]
    frame, _ = sheet(rows, "B1:C1", "D1:E1")
    assert frame["Women | 2023"].tolist() == [13, 4]


def test_a_blank_row_may_part_a_header(sheet: Sheet) -> None:
    rows = [
        ["Data owner:", "Office"],
        [None, "North", None, "South", None],
        [None],
        ["Sector", "2005", "2009", "2005", "2009"],
        ["Sports", 615, 680, 1740, 1965],
        ["Other", 10, 20, 70, 80],
    ]
    frame, _ = sheet(rows, "B2:C2", "D2:E2")
    assert frame["South | 2005"].tolist() == [1740, 70]


def test_columns_of_one_name_are_told_apart(sheet: Sheet) -> None:
    rows = [
        ["Item", "Cost", None, "Cost", None],
        [None, "low", "high", "low", "high"],
        ["a", 1, 2, 3, 4],
        ["b", 5, 6, 7, 8],
    ]
    frame, _ = sheet(rows)
    assert frame["Cost | low.1"].tolist() == [3, 7]


def test_a_figure_below_a_lone_title_is_data(sheet: Sheet) -> None:
    rows = [[None, None, "Persons"], [None, "All", 14601], ["Age", "young", 1649], [None, "old", 2]]
    frame, _ = sheet(rows)
    assert frame["Persons"].tolist() == [14601, 1649, 2]


def test_rows_of_a_laid_out_sheet_are_named_by_their_labels(sheet: Sheet) -> None:
    rows = [["Gas, by floor area"], ["Year", "small", "large"], [2008, 1, 2], [2009, 3, 4]]
    frame, profile = sheet(rows)
    assert frame.loc[2009, "large"] == 4
    assert frame["small"].idxmax() == 2009
    assert frame.sort_values("Year", ascending=False)["Year"].tolist() == [2009, 2008]
    assert "rows are named by 'Year'" in said(profile)


@pytest.mark.parametrize(
    "rows",
    [
        [["Name", "A", "B"], ["x", 1, 2], ["y", 3, 4]],
        [["Title"], ["Name", "A", "B"], ["x", 1, 2], ["x", 3, 4]],
        [["Title"], ["Id", "A", "B"], [1, 1, 2], [2, 3, 4]],
        [["Title"], ["Name", "A", "B", "C"], ["x", "p", "q", 4], ["y", "r", "s", 5]],
    ],
    ids=["plain sheet", "labels come twice", "numbers", "mostly text"],
)
def test_other_rows_are_numbered(sheet: Sheet, rows: list[list[Any]]) -> None:
    frame, _ = sheet(rows)
    assert frame.index.tolist() == list(range(len(frame)))
