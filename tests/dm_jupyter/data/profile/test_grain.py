"""Columns that identify a row, and rows that repeat another one."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from dm_jupyter.data.profile import profile_file, render
from tests.dm_jupyter.data.profile.reading import said


def _written(path, rows, names=("country", "year", "value")):
    frame = pd.DataFrame(rows, columns=list(names))
    frame.to_csv(path, index=False)
    return profile_file(path)


PANEL = [
    (country, year, number % 4)
    for number, (country, year) in enumerate(
        itertools.product(["Chad", "Mali", "Peru"], range(2001, 2011))
    )
]


def test_a_panel_has_a_row_for_each_country_and_year(tmp_path):
    profile = _written(tmp_path / "x.csv", PANEL)
    assert profile.tables[0].key == ("country", "year")
    assert "One row for each 'country' and 'year' (no two are alike)" in render(profile)


@pytest.mark.parametrize(
    "rows",
    [
        [*PANEL, PANEL[3]],
        [*PANEL[:-1], (None, 2010, 1)],
        PANEL[:7],
        [(f"c{n % 10}", 2000 + n * 7 % 11, n % 2) for n in range(25)],
    ],
    ids=["a row comes twice", "one has a gap", "too few", "few of all combinations"],
)
def test_nothing_is_said_where_it_is_not_sure(tmp_path, rows):
    profile = _written(tmp_path / "x.csv", rows)
    assert profile.tables[0].key == ()
    assert "One row" not in render(profile)


def test_one_column_is_enough_where_it_identifies_a_row(tmp_path):
    rows = [(number, *row) for number, row in enumerate(PANEL)]
    profile = _written(tmp_path / "x.csv", rows, ("id", "country", "year", "value"))
    assert profile.tables[0].key == ()
    assert "One row for each 'id' (no two are alike)" in render(profile)


def test_a_parquet_file_has_one_too(tmp_path):
    frame = pd.DataFrame(PANEL, columns=["country", "year", "value"])
    frame.to_parquet(tmp_path / "x.parquet")
    assert profile_file(tmp_path / "x.parquet").tables[0].key == ("country", "year")


SALES = [(f"R{n}", ["tea", "milk"][n % 2], n % 3, n % 5) for n in range(30)]
SALES_NAMES = ("receipt", "drink", "guests", "price")


def test_rows_that_repeat_another_one_are_told(tmp_path):
    profile = _written(tmp_path / "x.csv", [*SALES, SALES[3], SALES[7]], SALES_NAMES)
    told = (
        "rows repeat earlier ones in every column, also in 'receipt' (2): "
        "df = df.drop_duplicates() leaves each once"
    )
    assert profile.warnings == (told,)
    assert f"- {told}" in render(profile)
    pd.read_csv(tmp_path / "x.csv").to_parquet(tmp_path / "x.parquet")
    assert told in said(profile_file(tmp_path / "x.parquet"))


@pytest.mark.parametrize(
    "rows",
    [
        SALES,
        [*SALES, ("R3", "tea", 9, 9)],
        [(None, *row[1:]) for row in [*SALES, SALES[3]]],
        [("x", *row[1:]) for row in SALES * 3],
        SALES * 2,
        [*SALES[:9], SALES[3]],
    ],
    ids=["all differ", "same receipt", "no receipts", "no key", "each twice", "too few"],
)
def test_rows_that_may_be_alike_by_chance_are_not(tmp_path, rows):
    profile = _written(tmp_path / "x.csv", rows, SALES_NAMES)
    assert not any("repeat" in warning for warning in profile.warnings)


def test_two_columns_may_be_alike_by_chance(tmp_path):
    rows = [(f"R{n}", n % 3) for n in (*range(30), 3)]
    assert _written(tmp_path / "x.csv", rows, ("town", "size")).warnings == ()


def test_lists_are_not_compared(tmp_path):
    frame = pd.DataFrame({"a": [*range(30), 3], "b": 1, "c": [[1, 2]] * 31})
    frame.to_parquet(tmp_path / "x.parquet")
    assert "repeat" not in said(profile_file(tmp_path / "x.parquet"))
