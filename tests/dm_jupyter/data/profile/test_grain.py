"""Two columns that identify a row together."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from dm_jupyter.data.profile import profile_file, render


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
