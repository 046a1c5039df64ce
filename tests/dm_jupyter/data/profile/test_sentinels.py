"""Numbers that stand for a missing value: read as missing where that is sure, else named."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dm_jupyter.data.profile.sentinels import with_sentinels
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


def outcome(**columns: list[float]) -> tuple[dict[str, list[Any]], str]:
    frame = pd.DataFrame(columns)
    found = with_sentinels(frame)
    values = found.finish(frame).astype(object)
    cleaned = values.where(values.notna(), None)
    return cleaned.to_dict("list"), "\n".join(found.warnings)


@pytest.mark.parametrize("sign", [-999, -9999, -99, 999, 9999, 999.9, -999.9])
def test_a_known_sign_far_from_the_rest_is_missing(sign: float) -> None:
    values, told = outcome(temp=[12.5, sign, 13.5, sign, 11.0])
    assert values["temp"] == [12.5, None, 13.5, None, 11.0]
    assert told == f"read as missing: {sign:g} in 'temp' (2)"


@pytest.mark.parametrize("name", ["Number of guests", "visits", "guestCount", "Besucheranzahl"])
def test_a_count_is_never_negative(name: str) -> None:
    values, told = outcome(**{name: [2, -9999, 4, -9999, 3]})
    assert values[name] == [2, None, 4, None, 3]
    assert told == f"read as missing: -9999 in {name!r} (2)"


@pytest.mark.parametrize("name", ["citric acid", "humid", "NO2", "Hotel", "pianoforte"])
def test_a_measure_that_ends_as_a_code_does_is_a_measure(name: str) -> None:
    values, _ = outcome(**{name: [2, -999, 4, -999, 3]})
    assert values[name] == [2, None, 4, None, 3]


def test_a_sign_that_several_columns_share_is_sure() -> None:
    values, _ = outcome(a=[1.5, -999, 2.5], b=[-999, 3.5, 4.5])
    assert values == {"a": [1.5, None, 2.5], "b": [None, 3.5, 4.5]}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("temp", [12.5, -999, 13.5, 11.0]),  # once alone
        ("zip", [99999, 10115, 99999, 10117, 10119]),
        ("price", [5, 999, 7, 999, 6]),
        ("balance", [-999, 500, -999, 1200]),
        ("total_count", [-999, 500, -999, 1200]),
        ("visits", [-999, -5, -999, 12]),
        ("StoreID", [1, 99, 2, 99, 3]),
        ("UnitPrice", [5, 999, 7, 999, 6]),
        ("itemPriceEUR", [5, 999, 7, 999, 6]),
        ("userid", [1, 99, 2, 99, 3]),
        ("Kundennummer", [1, 9999, 2, 9999, 3]),
        ("Kundennr", [1, 9999, 2, 9999, 3]),
        ("Postleitzahl", [10115, 99999, 10117, 99999, 10119]),
        ("Stückpreis", [5, 999, 7, 999, 6]),
        ("bankaccount", [5, -999, 7, -999, 6]),
    ],
)
def test_what_is_not_sure_is_named_and_left(name: str, values: list[float]) -> None:
    cleaned, told = outcome(**{name: values})
    assert cleaned[name] == values
    assert "may stand for missing, left as numbers" in told
    assert f"in {name!r}" in told


@pytest.mark.parametrize(
    "values", [[34, 99, 56, 99, 23], [998, 999, 1000, 999], [-999, -998, -1000, -999], [99, 99]]
)
def test_numbers_among_their_like_are_numbers(values: list[float]) -> None:
    cleaned, told = outcome(age=values)
    assert (cleaned["age"], told) == (values, "")


def test_text_and_truth_values_are_left() -> None:
    frame = pd.DataFrame({"t": ["-999", "x", "-999"], "b": [True, False, True]})
    assert not with_sentinels(frame).steps


def test_the_load_code_of_a_csv_makes_them_missing(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x.csv"
    path.write_text("day;temp\n1;12,5\n2;-999,0\n3;13,5\n4;-999,0\n")
    profile = assert_load_code_agrees(path, monkeypatch)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["temp"].mean() == 13
    assert "-999 in 'temp' (2)" in said(profile)
    assert profile.tables[0].columns[1].minimum == 12.5


def test_a_word_among_the_numbers_of_several_columns_is_missing(
    tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "x.csv"
    path.write_text("h,a,b\n1,1.5,MM\n2,MM,3.5\n3,2.5,4.5\n")
    profile = assert_load_code_agrees(path, monkeypatch)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert (frame["a"].sum(), math.isnan(frame["b"].iloc[0])) == (4, True)
    assert "'MM' among the numbers of 2 columns is read as missing" in said(profile)
