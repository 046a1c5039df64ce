"""Numbers written as text: the code makes the right ones, or the profile says why not."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.data.profile import FileProfile
from dm_jupyter.data.profile.number_plan import number_plan
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


def read(folder: Path, content: str, monkeypatch: Any) -> tuple[pd.DataFrame, FileProfile]:
    path = folder / "x.csv"
    path.write_text(content)
    profile = assert_load_code_agrees(path, monkeypatch)
    return loaded(folder, profile.tables[0], monkeypatch), profile


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1.234,50", "999,00"], [1234.5, 999.0]),
        (["1,25 %", "12,50 %"], [1.25, 12.5]),
        (["12,50 €", "1.234,50 €"], [12.5, 1234.5]),
        (["(1,200)", "2,345,678"], [-1200, 2345678]),
        (["−5", "3"], [-5, 3]),
        (["1\u202f234\u202f567,89", "5,0"], [1234567.89, 5.0]),
        (["1'234.50", "5.25"], [1234.5, 5.25]),
        (["12,34,567.00", "5"], [1234567, 5]),
        (["CHF 1’000.–", "CHF 7.50"], [1000, 7.5]),
        (["5-", "1.5"], [-5, 1.5]),
        (["1 250:-", "99:-"], [1250, 99]),
        (["Rs. 1,23,500/-", "Rs. 80/-"], [123500, 80]),
        (["(12.5) USD", "3.25 USD"], [-12.5, 3.25]),
        (["(4)%", "12%"], [-4, 12]),
        (["EUR 3.000", "EUR 1.234,5"], [3000, 1234.5]),
        (["1,5×10^-3", "2,25e4"], [0.0015, 22500]),
        (["R$ 1.234,56", "-R$ 3,00"], [1234.56, -3]),
        (["20 km/h", "1,5 km/h"], [20, 1.5]),
        (["٣٫٥", "١٢"], [3.5, 12]),
        (["$1.5", "n/a"], [1.5, None]),
        (["5 kg", "600 g"], [5, 0.6]),
        (["−1.500 m", "2,5 km"], [-1500, 2500]),
    ],
)
def test_a_format_is_read_beside_dates_and_text(tmp_path, monkeypatch, texts, numbers):
    rows = "".join(f"{text};2{day}.02.2024;a{day}\n" for day, text in enumerate(texts))
    frame, _ = read(tmp_path, f"v;d;t\n{rows}", monkeypatch)
    expected = [float("nan") if number is None else number for number in numbers]
    assert frame["v"].tolist() == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert frame["d"].dt.day.tolist() == [20, 21]
    assert frame["t"].tolist() == ["a0", "a1"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["1,234", "5,678"], "'1,234' can be 1.234 or 1234"),
        (["1.234", "5.678"], "'1.234' can be 1.234 or 1234"),
        (["EUR 3.000", "EUR 4.000"], "'EUR 3.000' can be 3.000 or 3000"),
        (["$5", "€6"], "mixes currencies"),
        (["5 kg", "6 m"], "mixes units"),
        (["5 KB", "6 MB"], "mixes units"),
        (["5 length", "6 m"], "mixes units"),
        (["5 kg", "6 g", "7"], "mixes units"),
        (["5 kg", "6 g", "$7"], "mixes units"),
        (["5 kg", "6 g", "0"], "no code was found that reads each of them"),
        (["5%", "6"], "mixes percentages and plain numbers"),
        (["2 Mio", "3 Mio"], "mixes words for a factor"),
        (["1.234,5", "1,234.5"], "mixes number formats"),
        (["5"] * 9 + ["12 (est.)"], "1 of 10 values are no numbers; pd.to_numeric(column,"),
        (["$1,005.50"] * 9 + ["see note"], 'column.str.replace("[$,]", "", regex=True), errors='),
        (["5", "not measured", "not measured"], "text such as 'not measured'"),
        (["0,5", "<0,05", "7,5", "<0,05"], "text such as '<0,05'"),
        (["△1.5", "2.5"], "mixes arrows"),
        (["¥▲1,500", "¥200"], "mixes arrows"),
    ],
)
def test_what_cannot_be_decided_is_named_and_left(tmp_path, monkeypatch, texts, words):
    frame, profile = read(tmp_path, "v;t\n" + "".join(f"{t};x\n" for t in texts), monkeypatch)
    assert words in said(profile)
    assert frame["v"].tolist() == texts


def test_units_of_one_quantity_become_the_most_frequent_one(tmp_path, monkeypatch):
    texts = ["90 min", "1.5 h", "45 min", "-", "2 h", "30 min"]
    frame, profile = read(tmp_path, "v;t\n" + "".join(f"{t};x\n" for t in texts), monkeypatch)
    assert frame["v"].tolist() == pytest.approx([90, 90, 45, float("nan"), 120, 30], nan_ok=True)
    code = str(profile.tables[0].load_code)
    assert "# '1.5 h' becomes 90, '90 min' becomes 90; '-' NaN" in code
    assert '.map({"h": 60, "min": 1})' in code
    assert "in min; h converted" in str(profile.tables[0].columns[0].note)


def test_units_of_several_columns_are_converted_alike(tmp_path, monkeypatch):
    rows = "".join(f"{n} m;{n} m;x\n{n} km;{n}.5 km;x\n{n} km;{n} km;x\n" for n in (1, 2))
    frame, _ = read(tmp_path, f"a;b;t\n{rows}", monkeypatch)
    assert frame["a"].tolist() == pytest.approx([0.001, 1, 1, 0.002, 2, 2])
    assert frame["b"].tolist() == pytest.approx([0.001, 1.5, 1, 0.002, 2.5, 2])


def test_units_in_a_sheet(tmp_path, monkeypatch):
    book = openpyxl.Workbook()
    for row in (["v", "t"], ["5 ml", "a"], ["2 l", "b"], ["7.5 ml", "c"], [None, "d"]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    profile = assert_load_code_agrees(tmp_path / "x.xlsx", monkeypatch)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["v"].tolist() == pytest.approx([5, 2000, 7.5, float("nan")], nan_ok=True)


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["12345"] * 3000 + ["01067"], "leading zeros"),
        (["12345678901234567", "1"], "more than 15 digits"),
        (["1E5", "200"], "codes such as 1E5"),
        (["+49301234567", "+49307654321"], "telephone numbers"),
    ],
)
def test_identifiers_stay_text_in_the_load_line(tmp_path, monkeypatch, texts, reason):
    frame, profile = read(tmp_path, "id,v\n" + "".join(f"{t},1\n" for t in texts), monkeypatch)
    assert frame["id"].tolist() == texts
    assert 'dtype={"id": str}' in str(profile.tables[0].load_code)
    assert reason in str(profile.tables[0].columns[0].note)


def test_other_columns_settle_two_readings_and_the_note_says_so(tmp_path, monkeypatch):
    frame, profile = read(tmp_path, "a;b\n1.234;1,5\n5.678;2,5\n", monkeypatch)
    assert frame["a"].tolist() == [1234, 5678]
    assert "of other columns tells" in str(profile.tables[0].columns[0].note)


def test_a_comma_that_only_numbers_from_1000_on_have_parts_thousands(tmp_path, monkeypatch):
    rows = 'a,"4,382","1,234"\nb,"12,957","5,678"\nc,425,"6,001"\n'
    frame, profile = read(tmp_path, f"g,v,w\n{rows}", monkeypatch)
    assert frame["v"].tolist() == [4382, 12957, 425]
    assert frame["w"].tolist() == [1234, 5678, 6001]
    assert "such as '425'" in str(profile.tables[0].columns[1].note)


@pytest.mark.parametrize("other", ["1425", "0,987", "4,38"])
def test_such_a_comma_stays_open_where_a_value_speaks_against_it(tmp_path, monkeypatch, other):
    rows = f'a,"4,382"\nb,"12,957"\nc,"{other}"\n'
    frame, _ = read(tmp_path, f"g,v\n{rows}", monkeypatch)
    assert frame["v"].tolist() != [4382, 12957, float(other.replace(",", ""))]


def test_words_for_missing_are_named_in_the_call_itself(tmp_path, monkeypatch):
    frame, profile = read(tmp_path, "a,b\n12,x\n-,-\n89,y\n-,z\n", monkeypatch)
    assert frame["a"].tolist() == pytest.approx([12, float("nan"), 89, float("nan")], nan_ok=True)
    assert frame["b"].tolist() == ["x", "-", "y", "z"]
    assert profile.tables[0].load_code.count("\n") == 0
    assert "2 read as missing: '-'" in str(profile.tables[0].columns[0].note)


def test_both_readings_come_with_the_code_that_reads_them(tmp_path, monkeypatch):
    _, profile = read(tmp_path, 'g,v\na,"1,234"\nb,"5,678"\n', monkeypatch)
    assert 'pd.to_numeric(column.str.replace(",", "")) reads 1234' in said(profile)
    assert 'pd.to_numeric(column.str.replace(",", ".")) reads 1.234' in said(profile)


def test_a_text_among_numbers_beside_a_currency_touches_only_itself(tmp_path, monkeypatch):
    rows = "".join(f"{n},${n}\n" for n in range(9)) + "see note,$9\n"
    frame, profile = read(tmp_path, "a,b\n" + rows, monkeypatch)
    assert frame["b"].tolist() == list(range(10))
    assert frame["a"].tolist() == [*map(str, range(9)), "see note"]
    assert "text such as 'see note'" in said(profile)


def test_a_bare_point_between_commas_is_decimal_and_the_other_reading_is_named(
    tmp_path, monkeypatch
):
    frame, profile = read(tmp_path, "a,b\n1.234,1\n5.678,2\n", monkeypatch)
    assert frame["a"].tolist() == [1.234, 5.678]
    assert "it would be 1234" in said(profile)


def test_texts_beside_numbers_of_a_sheet_are_converted_and_codes_kept(tmp_path, monkeypatch):
    path = tmp_path / "x.xlsx"
    book = openpyxl.Workbook()
    for row in [["v", "zip"], [1.5, "01067"], ["1.234,50 €", "10115"], [None, "99999"]]:
        book.active.append(row)
    book.save(path)
    profile = assert_load_code_agrees(path, monkeypatch)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["v"].tolist() == pytest.approx([1.5, 1234.5, float("nan")], nan_ok=True)
    assert frame["zip"].tolist() == ["01067", "10115", "99999"]


@pytest.mark.parametrize("is_nested", [False, True])
def test_json_texts_keep_zeros_and_formats_are_read(tmp_path, monkeypatch, is_nested):
    records = [{"zip": "01067", "v": "1.234,5"}, {"zip": "10115", "v": "7,0"}]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"made": 1, "data": {"rows": records}} if is_nested else records))
    profile = assert_load_code_agrees(path, monkeypatch)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["zip"].tolist() == ["01067", "10115"]
    assert frame["v"].tolist() == [1234.5, 7.0]


@given(text=st.text(max_size=20))
def test_any_text_is_judged_without_an_error(text):
    frame = pd.DataFrame({"c": [text, unicodedata.normalize("NFKC", text), "1,5"]})
    assert len(number_plan(frame).finish(frame)) == 3
