"""Sheets that continue one another are one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from dm_jupyter.data.profile import FileProfile, profile_file, render
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded

HEADER = ["Receipt", "Kind", "Guests"]


def written(path: Path, sheets: Mapping[str, Sequence[Sequence[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


def rows(first: int, count: int = 6, kinds: Sequence[str] = ("bar", "table")) -> list[list[Any]]:
    body = [[f"R{first + n}", kinds[n % len(kinds)], n + 1] for n in range(count)]
    return [HEADER, *body]


def names(profile: FileProfile) -> list[str]:
    return [table.name for table in profile.tables]


@pytest.mark.parametrize(
    "series",
    [
        ["2019", "2020"],
        ["Jan", "Feb", "März"],
        ["Sales Q1 2024", "Sales Q2 2024"],
        ["2024-01", "2024-02"],
        ["KW 1", "KW 12"],
        ["sales_2023", "sales_2024"],
    ],
)
def test_periods_are_one_table(tmp_path, monkeypatch, series):
    sheets = {name: rows(100 * at) for at, name in enumerate(series)}
    path = written(tmp_path / "cafe.xlsx", {**sheets, "Notes": [["a", "b"], [1, 2]]})
    profile = assert_load_code_agrees(path, monkeypatch)
    assert names(profile) == [", ".join(series), "Notes"]
    assert profile.tables[0].sheets == tuple(series)
    assert profile.tables[0].row_count == 6 * len(series)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["sheet"].nunique() == len(series)
    assert f"{len(series) + 1} sheets" in render(profile)
    assert profile.notes == (
        f"the sheets {', '.join(series)!r} continue one another: the load code joins them, and "
        "'sheet' has the name of each row's sheet",
    )


@pytest.mark.parametrize(
    "sheets",
    [
        {"Income": rows(0), "Expenses": rows(9)},
        {"North": rows(0), "South": rows(9)},
        {"Plan 2024": rows(0), "Actual 2024": rows(9)},
        {"Table 1": rows(0), "Table 2": rows(9)},
        {"2023": rows(0), "2024": [["Receipt", "Kind", "Price"], ["R1", "bar", 2]]},
        {"2023": rows(0), "2024": [HEADER, ["R1", "bar", "many"], ["R2", "bar", "few"]]},
        {"2023": rows(0), "2024": [HEADER]},
        {"2023": [["a"], [1], [2]], "2024": [["a"], [3], [4]]},
        {"2022": rows(0), "2023": rows(9), "2024": [["Receipt", "b"], ["R1", 2], ["R2", 3]]},
    ],
    ids=["words", "places", "kinds", "numbers", "columns", "types", "empty", "one column", "third"],
)
def test_others_stay_apart(tmp_path, monkeypatch, sheets):
    profile = assert_load_code_agrees(written(tmp_path / "x.xlsx", sheets), monkeypatch)
    assert names(profile) == list(sheets)
    assert not any(table.sheets for table in profile.tables)
    assert profile.notes == ()


def test_a_hostile_name_stays_data(tmp_path, monkeypatch):
    series = ['a"); df = 1; ("2023', 'a"); df = 1; ("2024']
    sheets = {name: rows(100 * at) for at, name in enumerate(series)}
    profile = assert_load_code_agrees(written(tmp_path / "x.xlsx", sheets), monkeypatch)
    assert profile.tables[0].row_count == 12


def test_german_amounts_in_all_sheets(tmp_path, monkeypatch):
    sheets = {
        year: [["Tag", "Betrag"], *([f"T{n}", f"1.{n}34,50 €"] for n in range(1, 5))]
        for year in ("2023", "2024")
    }
    table = assert_load_code_agrees(written(tmp_path / "x.xlsx", sheets), monkeypatch).tables[0]
    assert loaded(tmp_path, table, monkeypatch)["Betrag"].tolist() == [
        1134.5, 1234.5, 1334.5, 1434.5, 1134.5, 1234.5, 1334.5, 1434.5,
    ]  # fmt: skip


def test_facts_are_those_of_all_rows(tmp_path, monkeypatch):
    sheets = {"2023": rows(0, 20), "2024": rows(100, 20, ("bar", "window"))}
    sheets["2023"][3][2] = -999
    sheets["2024"][5][2] = -999  # one in each sheet is sure only together
    sheets["2024"].append(sheets["2024"][1])
    table = assert_load_code_agrees(written(tmp_path / "x.xlsx", sheets), monkeypatch).tables[0]
    kind, guests = table.columns[1:3]
    assert dict(kind.frequent) == {"bar": 21, "table": 10, "window": 10}
    assert (guests.missing, guests.minimum) == (2, 1)
    assert "read as missing: -999 in 'Guests' (2)" in table.warnings
    assert any("rows repeat earlier ones" in warning for warning in table.warnings)


def test_steps_come_after_the_joining(tmp_path, monkeypatch):
    sheets = {
        name: [["Day", "Price"], *([datetime(2024, at, day), f"{day},50 EUR"] for day in (1, 2, 3))]
        for at, name in enumerate(["Jan", "Feb"], 1)
    }
    path = written(tmp_path / "x.xlsx", sheets)
    table = assert_load_code_agrees(path, monkeypatch).tables[0]
    assert str(table.load_code).count("to_numeric") == 1
    assert loaded(tmp_path, table, monkeypatch)["Price"].sum() == pytest.approx(
        2 * (1.5 + 2.5 + 3.5)
    )


def test_sheets_with_different_layouts_are_read_each_in_its_way(tmp_path, monkeypatch):
    sheets = {"2023": rows(0), "2024": [["Our cafe"], [], *rows(9)], "2025": rows(20)}
    table = assert_load_code_agrees(written(tmp_path / "x.xlsx", sheets), monkeypatch).tables[0]
    assert table.sheets == ("2023", "2024", "2025")
    assert str(table.load_code).count("for sheet in") == 3
    assert "in '2024': text above the table is skipped: 'Our cafe'" in table.warnings
    assert "df.loc" not in f"{table.load_code}{table.warnings}"  # rows lose their names


def test_notes_below_a_sheet_are_left_out_and_told(tmp_path, monkeypatch):
    sheets = {"2023": rows(0), "2024": [*rows(9), [], ["Source: our till. Checked in January."]]}
    table = assert_load_code_agrees(written(tmp_path / "x.xlsx", sheets), monkeypatch).tables[0]
    assert table.row_count == 12
    assert [warning[:11] for warning in table.warnings] == ["in '2024': "]


def test_too_many_layouts_stay_apart(tmp_path, monkeypatch):
    sheets = {
        str(2020 + at): [*([f"Title {n}"] for n in range(at)), [], *rows(9 * at)] for at in range(5)
    }
    profile = assert_load_code_agrees(written(tmp_path / "x.xlsx", sheets), monkeypatch)
    assert names(profile) == list(sheets)


def test_a_column_called_sheet_keeps_its_name(tmp_path, monkeypatch):
    table = [["Sheet", "b"], [1, 2], [3, 4]]
    path = written(tmp_path / "x.xlsx", {"2023": table, "2024": table})
    profile = assert_load_code_agrees(path, monkeypatch)
    assert [column.name for column in profile.tables[0].columns] == ["Sheet", "b", "sheet_name"]


def test_many_sheets_are_named_by_the_first_and_the_last(tmp_path, monkeypatch):
    path = written(tmp_path / "x.xlsx", {str(2000 + n): rows(10 * n) for n in range(5)})
    profile = assert_load_code_agrees(path, monkeypatch)
    assert names(profile) == ["2000 … 2004"]


def test_large_sheets_are_known_from_their_first_rows(tmp_path, monkeypatch):
    frame = pd.DataFrame({"a": range(30_000), "b": ["x", "y"] * 15_000})
    path = tmp_path / "x.xlsx"
    with pd.ExcelWriter(path) as book:
        for name in ("2023", "2024"):
            frame.to_excel(book, sheet_name=name, index=False)
    table = profile_file(path).tables[0]
    assert table.sheets == ("2023", "2024")
    assert table.row_count == 60_000
    assert table.sampled_rows is not None
    assert table.sampled_rows < 60_000
    assert len(loaded(tmp_path, table, monkeypatch)) == 60_000
