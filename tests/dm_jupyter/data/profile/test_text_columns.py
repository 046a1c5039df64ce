"""Dates of several formats and labels of several spellings are made alike, where that is sure."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from dm_jupyter.data.profile import FileProfile, profile_file, render
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


def read(folder: Path, texts: list[str], monkeypatch: Any) -> tuple[list[Any], FileProfile]:
    path = folder / "x.csv"
    pd.DataFrame({"kind": texts, "n": range(len(texts))}).to_csv(path, index=False)
    profile = assert_load_code_agrees(path, monkeypatch)
    return loaded(folder, profile.tables[0], monkeypatch)["kind"].tolist(), profile


@pytest.mark.parametrize(
    ("texts", "rule", "code"),
    [
        (["travel", " travel", "travel ", "motor"], ["travel"] * 3 + ["motor"], ".str.strip()"),
        (["travel", "Travel", "TRAVEL"], ["travel"] * 3, ".str.strip().str.lower()"),
        (["New York", "new york"], ["New York"] * 2, ".str.strip().str.title()"),
        (["DHL", "dhl ", "UPS"], ["DHL", "DHL", "UPS"], ".str.strip().str.upper()"),
        (["McGill", "mcgill"], ["McGill"] * 2, '.replace({"mcgill": "McGill"})'),
        (["bar", "b  ar", "b ar"], ["bar", "b ar", "b ar"], '.replace({"b  ar": "b ar"})'),
    ],
)
def test_each_label_gets_its_most_frequent_spelling(tmp_path, monkeypatch, texts, rule, code):
    usual = list(dict.fromkeys(rule))
    values, profile = read(tmp_path, texts + usual * 4, monkeypatch)
    assert values == rule + usual * 4
    assert f'df["kind"] = df["kind"]{code}' in str(profile.tables[0].load_code)
    assert "alike in case and blanks" in said(profile)
    assert profile.tables[0].columns[0].unique == len(usual)


@pytest.mark.parametrize(
    "texts",
    [
        ["m", "M", "m", "m"],
        ["travel", "Travel"],
        ["Smith", "smith", *(f"name {n}" for n in range(70))],
        ["travel", "motor"],
        ["travel ", "travel ", "travel"],
    ],
    ids=["units", "no rule", "names", "alike already", "blanks are the rule"],
)
def test_what_is_not_sure_is_left(tmp_path, monkeypatch, texts):
    values, profile = read(tmp_path, texts, monkeypatch)
    assert values == texts
    assert "spellings" not in said(profile)


def test_gaps_stay_and_other_columns_too(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("kind,other\n bar,A\nbar,a\n,b\nbar,c\nbar,d\n")
    table = assert_load_code_agrees(path, monkeypatch).tables[0]
    frame = loaded(tmp_path, table, monkeypatch)
    assert frame["kind"].isna().tolist() == [False, False, True, False, False]
    assert frame["other"].tolist() == ["A", "a", "b", "c", "d"]


def test_sheets_and_parquet_files(tmp_path, monkeypatch):
    texts = ["travel", "Travel", "travel", "travel"]
    book = openpyxl.Workbook()
    for row in (["kind", "n"], *([text, n] for n, text in enumerate(texts))):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    pd.DataFrame({"kind": texts, "n": range(4)}).to_parquet(tmp_path / "x.parquet")
    for name in ("x.xlsx", "x.parquet"):
        table = assert_load_code_agrees(tmp_path / name, monkeypatch).tables[0]
        assert loaded(tmp_path, table, monkeypatch)["kind"].tolist() == ["travel"] * 4


def test_a_database_is_only_told_of(tmp_path):
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("create table claims (kind text, n integer)")
        texts = ["storm", " storm", "Storm", "storm", "storm", "fire"]
        connection.executemany("insert into claims values (?, 1)", [(text,) for text in texts])
    text = render(profile_file(tmp_path / "x.sqlite"))
    told = "warning: kind spells labels in several ways, such as 'storm' and ' storm': compare"
    assert f"{told} lower(trim(kind))" in text


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["2024-01-11", "18.03.2023", "2023-06-02", "01.02.2024"], [11, 18, 2, 1]),
        (["2022-05-03", "20 April 2022", "3 May 2021", "2022-02-25"], [3, 20, 3, 25]),
        (["03/04/2024", "13/04/2024", "2024-04-03", "-"], [3, 13, 3, None]),
        (["04/03/2024", "04/13/2024", "March 5, 2024", "2024/04/03"], [3, 13, 5, 3]),
    ],
)
def test_dates_of_several_formats_are_read(tmp_path, monkeypatch, texts, days):
    (tmp_path / "x.csv").write_text("day;n\n" + "".join(f"{text};1\n" for text in texts))
    profile = assert_load_code_agrees(tmp_path / "x.csv", monkeypatch)
    read_days = loaded(tmp_path, profile.tables[0], monkeypatch)["day"]
    assert [None if pd.isna(day) else day.day for day in read_days] == days
    assert profile.tables[0].columns[0].dtype.startswith("datetime64")
    assert "dates in 'day' have" in said(profile)
    assert "mixes date formats" not in said(profile)


@pytest.mark.parametrize(
    "texts",
    [
        ["03/04/2024", "04/05/2024", "2024-04-03", "2024-04-05"],
        ["13/04/2024", "04/13/2024", "2024-04-03", "2024-04-05"],
        ["2024-01-11", "18.03.2023", "45000", "2024-01-12"],
    ],
    ids=["day or month first", "both", "a number"],
)
def test_dates_that_are_not_sure_stay_text(tmp_path, monkeypatch, texts):
    (tmp_path / "x.csv").write_text("day;n\n" + "".join(f"{text};a\n" for text in texts))
    profile = assert_load_code_agrees(tmp_path / "x.csv", monkeypatch)
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["day"].tolist() == texts
    assert "mixes date formats" in said(profile)
