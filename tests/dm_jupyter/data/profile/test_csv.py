from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file, render
from dm_jupyter.data.profile.csv_file import WHOLE_BYTES
from dm_jupyter.data.profile.csv_stream import StreamedPass, streamed_table
from dm_jupyter.data.profile.read_call import ReadCall
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.table_pass import Deadline
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said


def written(tmp_path: Path, content: str | bytes, name: str = "x.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def load_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.tables[0].load_code is not None
    return profile.tables[0].load_code


def test_clean_file_gets_the_simplest_call(tmp_path, monkeypatch):
    path = written(tmp_path, "id,name,amount\n1,a,2.5\n2,b,\n")
    assert load_line(path, monkeypatch) == 'df = pd.read_csv("x.csv")'
    table = profile_file(path).tables[0]
    assert table.row_count == 2
    amount = table.columns[2]
    assert (amount.dtype, amount.missing, amount.minimum) == ("float64", 1, 2.5)
    assert table.columns[1].examples == ("a", "b")


def test_name_is_what_the_code_uses(tmp_path):
    path = written(tmp_path, "a\n1\n")
    table = profile_file(path, name="data/y.csv").tables[0]
    assert table.load_code == 'df = pd.read_csv("data/y.csv")'


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a;b\n1;2\n", 'sep=";"'),
        ("a\tb\tc\n1\t2,5\t3\n4\t5,5\t6\n", r'sep="\t", decimal=","'),
        ("a|b\nx|2\ny|3\n", 'sep="|"'),
        ("n;v\nx;1.234,5\ny;99\n", 'sep=";", decimal=",", thousands="."'),
        ('n,v\nx,"1,234"\ny,"2,345,678"\n', 'thousands=","'),
        ("# made 2024\n# by me\n\nk,v\na,1\nb,2\n", "skiprows=3"),
        ("Report of the year\n\nk,v,w\na,1,2\nb,2,3\n", "skiprows=2"),
    ],
)
def test_layout_is_told_to_pandas(tmp_path, monkeypatch, content, line):
    assert line in load_line(written(tmp_path, content), monkeypatch)


def test_dates_with_points_rule_out_a_thousands_mark(tmp_path, monkeypatch):
    path = written(tmp_path, "d;v\n13.02.2024;1.234,5\n14.02.2024;5,0\n")
    line = load_line(path, monkeypatch)
    assert "thousands" not in line
    assert 'parse_dates=["d"], dayfirst=True' in line


@pytest.mark.parametrize(
    ("text", "codec", "argument"),
    [
        ("ville;été\nBrébeuf;1\n", "latin-1", "latin-1"),
        ("prix;œuvre\n12 €;x\n", "cp1252", "cp1252"),
        ("имя;город\nИван;Москва\nПетр;Казань\n", "cp1251", "cp1251"),
        ("名前;値\n東京都;1\n大阪府;2\n京都市;3\n", "cp932", "cp932"),
        ("Name\tStadt\nMüller\tKöln\n", "utf-16", "utf-16"),
        ("Name\tStadt\nMueller\tZuerich\n", "utf-16-le", "utf-16-le"),
    ],
)
def test_encoding_is_found_and_letters_are_kept(tmp_path, monkeypatch, text, codec, argument):
    path = written(tmp_path, text.encode(codec))
    assert f'encoding="{argument}"' in load_line(path, monkeypatch)
    assert (
        profile_file(path).tables[0].columns[0].name
        == text.splitlines()[0].split("\t" if "\t" in text else ";")[0]
    )


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path, monkeypatch):
    path = written(tmp_path, '"LOCATION","x"\n"AUS",1\n'.encode("utf-8-sig"))
    assert load_line(path, monkeypatch) == 'df = pd.read_csv("x.csv")'
    assert profile_file(path).tables[0].columns[0].name == "LOCATION"


def test_mixed_encodings_name_the_line(tmp_path, monkeypatch):
    path = written(tmp_path, "city\nMünchen\n".encode() + "Zürich\n".encode("latin-1"))
    assert 'encoding_errors="replace"' in load_line(path, monkeypatch)
    assert "line 3 is not UTF-8" in said(profile_file(path))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_newline_is_understood(tmp_path, monkeypatch, newline):
    path = written(tmp_path, newline.join(["a,b", "1,2", "3,4", ""]))
    assert load_line(path, monkeypatch) == 'df = pd.read_csv("x.csv")'
    assert profile_file(path).tables[0].row_count == 2


def test_rows_are_counted_not_lines(tmp_path, monkeypatch):
    content = 'id,c,s\n1,"line one\nline two",5\n2,"he said ""no"", twice",4\n3,"a,b",3\n'
    assert assert_load_code_agrees(written(tmp_path, content), monkeypatch).tables[0].row_count == 3


def test_ragged_rows_are_reported_by_line(tmp_path, monkeypatch):
    path = written(tmp_path, 'a,b,c\n1,"x\ny",3\n4,5\n6,7,8,9\n10,11,12\n')
    assert 'on_bad_lines="warn"' in load_line(path, monkeypatch)
    text = said(profile_file(path))
    assert "line 5 has 4 fields instead of 3" in text
    assert "line 4 has 2 fields instead of 3" in text


def test_too_long_first_row_is_not_taken_for_an_index(tmp_path, monkeypatch):
    path = written(tmp_path, "a,b\n1,2,3\n4,5\n6,7\n8,9\n")
    profile = assert_load_code_agrees(path, monkeypatch)
    assert "line 2 has 3 fields" in said(profile)
    assert profile.tables[0].columns[0].maximum == 8


def test_separator_at_each_line_end_makes_no_index(tmp_path, monkeypatch):
    path = written(tmp_path, "a,b\n1,2,\n3,4,\n")
    assert "index_col=False" in load_line(path, monkeypatch)
    assert profile_file(path).tables[0].columns[0].minimum == 1


def test_row_names_are_an_index(tmp_path, monkeypatch):
    path = written(tmp_path, "a,b\nr1,1,2\nr2,3,4\n")
    assert "makes it the index" in said(assert_load_code_agrees(path, monkeypatch))


def test_footer_is_left_out_and_total_warned_of(tmp_path, monkeypatch):
    content = "region,value\nNorth,10\nSouth,20\nTotal,30\n\nNote: provisional\n\nSource: x\n"
    profile = assert_load_code_agrees(written(tmp_path, content), monkeypatch)
    table = profile.tables[0]
    assert table.row_count == 3
    assert table.columns[1].dtype == "int64"
    assert "Note: provisional" in said(profile)
    assert "'region' is 'Total'" in said(profile)


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("a,b\na,b\n1,2\n3,4\n", "skiprows=[1]", "again in line 2: left out"),
        ("a,b\n1,2\na,b\n3,4\na,b\n", "skiprows=[2, 4]", "again in line 3, 2 times in all"),
        ("# notes\na,2010\na,2010\n1,2\n3,4\n", "skiprows=[0, 2]", "again in line 3"),
    ],
)
def test_a_header_that_comes_again_is_left_out(tmp_path, monkeypatch, content, line, words):
    path = tmp_path / "x.csv"
    path.write_text(content)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert line in profile.tables[0].load_code
    assert words in said(profile)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame.iloc[:, 0].tolist() == [1, 3]


@pytest.mark.parametrize(
    "content",
    [
        "1,2\n1,2\n3,4\n",  # no header: two rows alike
        'a,b\n"two\nlines",1\na,b\n',  # where it stands can't be told to pandas
    ],
)
def test_a_row_that_may_be_data_stays(tmp_path, monkeypatch, content):
    path = tmp_path / "x.csv"
    path.write_text(content)
    assert "skiprows" not in assert_load_code_agrees(path, monkeypatch).tables[0].load_code


def test_last_row_cut_short_is_no_footer(tmp_path, monkeypatch):
    path = written(tmp_path, "a,b\nx,1\ny,2\nz\n")
    assert load_line(path, monkeypatch) == 'df = pd.read_csv("x.csv")'
    assert profile_file(path).tables[0].row_count == 3


def test_duplicate_and_missing_names_are_told(tmp_path, monkeypatch):
    path = written(tmp_path, "date,sales,sales,,sales\n2024-01-01,1,2,3,4\n")
    profile = assert_load_code_agrees(path, monkeypatch)
    names = [column.name for column in profile.tables[0].columns]
    assert names == ["date", "sales", "sales.1", "Unnamed: 3", "sales.2"]
    assert "several columns are called 'sales'" in said(profile)
    assert "without a name" in said(profile)


def test_file_without_header_gets_names(tmp_path, monkeypatch):
    path = written(tmp_path, "1.5,2\n2.5,3\n")
    assert 'header=None, names=["column_1", "column_2"]' in load_line(path, monkeypatch)
    assert profile_file(path).tables[0].row_count == 2


def test_years_as_header_are_a_header(tmp_path, monkeypatch):
    path = written(tmp_path, "2019,2020,2021\n1,2,3\n")
    assert load_line(path, monkeypatch) == 'df = pd.read_csv("x.csv")'


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["03/04/2024", "13/04/2024", "04/13/2024", "2024-04-03"], "mixes date formats"),
        (["03/04/2024", "05/06/2024"], "day first or month first can't be told"),
        ([f"1/{n}/2024" for n in range(1, 13)], "day first or month first can't be told"),
        ([f"{n:02}/01/2024" for n in range(1, 13)], "day first or month first can't be told"),
        ([f"{n:02}.01.2024" for n in range(1, 13)], "day first or month first can't be told"),
        ([f"23-05-{n:02}" for n in range(1, 29)], "the year may come first"),
        ([f"{22 + n // 12}-{n % 12 + 1:02}-{n % 28 + 1:02}" for n in range(36)], "the year may"),
        ([f"{n // 12 + 5:02}/{n % 12 + 1:02}/{n % 28 + 1:02}" for n in range(36)], "the year may"),
    ],
)
def test_unclear_dates_are_warned_of(tmp_path, values, words):
    rows = "".join(f"{i},{value}\n" for i, value in enumerate(values))
    profile = profile_file(written(tmp_path, f"id,date\n{rows}"))
    assert words in said(profile)
    assert "parse_dates" not in str(profile.tables[0].load_code)


def test_day_first_dates_are_parsed(tmp_path, monkeypatch):
    path = written(tmp_path, "d,v\n03/04/2024,1\n13/04/2024,2\n")
    profile = assert_load_code_agrees(path, monkeypatch)
    column = profile.tables[0].columns[0]
    assert column.dtype.startswith("datetime64")
    assert (column.minimum, column.maximum) == ("2024-04-03", "2024-04-13")


@pytest.mark.parametrize(
    ("values", "last"),
    [
        ([f"01/{n % 12 + 1:02}/{2022 + n // 12}" for n in range(24)], "2023-12-01"),
        ([f"01.{n + 1:02}.2024" for n in range(12)], "2024-12-01"),
        ([f"{n % 28 + 1:02}/{n % 12 + 1:02}/{23 + n // 30}" for n in range(60)], "2024-12-20"),
        (["31/12/22", "31/12/23", "31/12/24"], "2024-12-31"),
        ([f"01.{n % 12 + 1:02}.{22 + n // 12}" for n in range(36)], "2024-12-01"),
    ],
    ids=["months of two years", "months with points", "two digits", "year ends", "short years"],
)
def test_what_the_parts_show_needs_no_warning(tmp_path, monkeypatch, values, last):
    rows = "".join(f"{i},{value}\n" for i, value in enumerate(values))
    profile = assert_load_code_agrees(written(tmp_path, f"id,date\n{rows}"), monkeypatch)
    assert profile.tables[0].columns[1].maximum == last
    assert "can't be told" not in said(profile)


def test_the_order_of_sorted_dates_is_that_of_all_rows(tmp_path, monkeypatch):
    days = pd.date_range("2024-01-01", periods=365)
    rows = "".join(f"{day:%m/%d/%Y},{i}\n" for day in days for i in range(100))
    column = profile_file(written(tmp_path, f"day,n\n{rows}")).tables[0].columns[0]
    assert "month-first" in str(column.note)
    rows = "".join(f"{day:%d.%m.%Y},{i}\n" for day in days[5:9] for i in range(9000))
    path = written(tmp_path, f"day,n\n{rows}28.02.2024,1\n")
    column = assert_load_code_agrees(path, monkeypatch).tables[0].columns[0]
    assert (column.minimum, column.maximum) == ("2024-01-06", "2024-02-28")


def test_numbers_that_are_dates_in_the_first_rows_alone_are_numbers(tmp_path):
    numbers = [*range(20240101, 20240129)] * 1000 + [20249999]
    path = written(tmp_path, "n\n" + "\n".join(map(str, numbers)))
    assert profile_file(path).tables[0].columns[0].note is None


def test_mojibake_is_told_and_kept(tmp_path):
    profile = profile_file(written(tmp_path, "city\nMünchen\n".encode().decode("latin-1")))
    assert "looks damaged" in said(profile)
    assert profile.tables[0].columns[0].examples == ("MÃ¼nchen",)


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_gzip_is_read_whatever_the_name(tmp_path, monkeypatch, name):
    path = written(tmp_path, gzip.compress(b"a,b\n1,2\n3,4\n"), name)
    line = load_line(path, monkeypatch)
    assert ('compression="gzip"' in line) == (name == "x.csv")


def test_plain_text_named_gz_is_read(tmp_path, monkeypatch):
    assert "compression=None" in load_line(written(tmp_path, "a,b\n1,2\n", "x.csv.gz"), monkeypatch)


def test_nul_bytes_are_never_read_as_csv(tmp_path):
    with pytest.raises(DataFileError, match=r"2 NUL bytes.*tr -d"):
        profile_file(written(tmp_path, b"a,b\n1,\x00\x002\n3,4\n"))


def test_long_field_is_cut(tmp_path):
    profile = profile_file(written(tmp_path, "v\n" + "x" * 300_000 + "\n"))
    assert profile.tables[0].row_count == 1
    assert len(render(profile)) < 600


def test_columns_parted_by_spaces_in_a_txt(tmp_path, monkeypatch):
    path = written(tmp_path, "a   b    c\n1   2    3\n10  20   30\n", "x.txt")
    assert r'sep="\\s+"' in load_line(path, monkeypatch)


def test_header_alone_is_a_table_without_rows(tmp_path, monkeypatch):
    profile = assert_load_code_agrees(written(tmp_path, "id,name,amount\n"), monkeypatch)
    assert "0 rows x 3 columns" in render(profile)


@pytest.mark.parametrize("content", ["\n\n \n", "\ufeff"])
def test_blank_file_is_refused(tmp_path, content):
    with pytest.raises(DataFileError, match=r"x\.csv"):
        profile_file(written(tmp_path, content))


@pytest.mark.slow
def test_large_file_is_described_whole(tmp_path, monkeypatch):
    rows = 150_000
    filler = "y" * (WHOLE_BYTES // rows)
    path = tmp_path / "big.csv"
    with path.open("w") as stream:
        stream.write("id,year,text,code\n")
        stream.writelines(
            f'{i},{2000 + i // 10_000},"a\n{filler}",{"" if i == 149_000 else i % 7}\n'
            for i in range(rows)
        )
    table = assert_load_code_agrees(path, monkeypatch).tables[0]
    assert (table.row_count, table.sampled_rows) == (rows, None)
    ids, years, texts, codes = table.columns
    assert (ids.minimum, ids.maximum, ids.unique) == (0, rows - 1, rows)
    assert (years.minimum, years.maximum, years.unique) == (2000, 2014, 15)
    assert texts.frequent[0][1] == rows
    assert (codes.dtype, codes.missing) == ("float64", 1)
    assert len({row[1] for row in table.sample_rows}) > 3


def test_lines_that_do_not_fit_are_found_in_the_whole_of_a_large_file(tmp_path, monkeypatch):
    path = tmp_path / "big.csv"
    lines = [f"{i},{'y' * 100},{i % 7}" for i in range(200_000)]
    lines[170_000] = "1,2"
    lines[180_000] = "1,2,3,4"
    lines[190_000] = '1,"a\nb",3'
    lines[195_000] = "1,2,3,4,5"
    path.write_text("a,b,c\n" + "\n".join(lines) + "\n")
    text = said(assert_load_code_agrees(path, monkeypatch))
    assert "line 170002 has 2 fields instead of 3" in text
    assert "line 180002 has 4, line 195003 has 5 fields instead of 3" in text


def test_footer_of_a_large_file_is_left_out(tmp_path, monkeypatch):
    path = tmp_path / "big.csv"
    rows = "".join(f"{i},{'y' * 100}\n" for i in range(200_000))
    path.write_text(f"id,text\n{rows}\nNote: provisional\n")
    table = assert_load_code_agrees(path, monkeypatch).tables[0]
    assert table.row_count == 200_000
    assert (table.columns[0].dtype, table.columns[0].maximum) == ("int64", 199_999)


def test_what_there_was_no_time_for_is_said(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,year\n" + "".join(f"{i},{2000 + i // 2000}\n" for i in range(10_000)))
    settings = StreamedPass(piece_cells=4096, deadline=Deadline(time.monotonic() - 1))
    table = streamed_table(Source(path, "x.csv"), ReadCall("read_csv"), settings, row_count=10_000)
    assert (table.row_count, table.sampled_rows) == (10_000, 2048)
    assert "the first 2,048 rows of 10,000 (20 %)" in table.warnings[0]


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("seed", range(10))
def test_facts_of_pieces_equal_those_of_the_whole(tmp_path, order, seed):
    rng = np.random.default_rng(seed)
    count = 30_000
    frame = pd.DataFrame(
        {
            "id": np.arange(count) * (seed + 1),
            "year": rng.integers(1990, 2024, count),
            "amount": rng.normal(0, 10.0**seed, count).round(3),
            "gap": np.where(rng.random(count) < 0.3, np.nan, rng.integers(0, 20_000, count)),
            "late": np.where(np.arange(count) < 25_000, 1.0, 1.5),
            "name": [f"n{v}" for v in rng.integers(0, 15_000, count)],
            "city": rng.choice(["Köln", "São Paulo", 'a "b", c', "x\ny"], count),
            "day": pd.Timestamp("2001-02-03") + pd.to_timedelta(rng.integers(0, 900, count), "D"),
        }
    ).sort_values("year" if order == "sorted" else "amount")
    path = tmp_path / "x.csv"
    frame.to_csv(path, index=False)
    settings = StreamedPass(piece_cells=8 * 2048)
    table = streamed_table(Source(path, "x.csv"), ReadCall("read_csv"), settings, row_count=None)
    whole = pd.read_csv(path)
    assert table.row_count == len(whole)
    for column in table.columns:
        values = whole[column.name]
        assert (column.dtype, column.missing) == (str(values.dtype), values.isna().sum())
        assert (column.unique, column.is_unique_estimated) == (values.nunique(), False)
        if column.name not in {"name", "city"}:
            assert (column.minimum, column.maximum) == (values.min(), values.max())
        for value, times in column.frequent:
            assert (values == value).sum() == times
    assert table.columns[6].frequent[0][1] == whole["city"].value_counts().iloc[0]


def test_numbers_and_text_in_one_large_column_are_loaded_as_text(tmp_path, monkeypatch):
    path = tmp_path / "big.csv"
    codes = [str(i) for i in range(200_000)] + ["n/k"]
    path.write_text("code,text\n" + "".join(f"{code},{'y' * 100}\n" for code in codes))
    profile = assert_load_code_agrees(path, monkeypatch)
    table = profile.tables[0]
    assert 'dtype={"code": str}' in str(table.load_code)
    frame = loaded(tmp_path, table, monkeypatch)
    assert frame["code"].tolist() == codes
    assert table.columns[0].unique == len(codes)


def test_load_code_survives_any_file_name(tmp_path, monkeypatch):
    for name in ("-rf.csv", "data (final) v2 – Umsätze'24.csv", 'quo"te.csv', "😀.csv", "a\\b.csv"):
        path = written(tmp_path, "a;b\n1;2\n", name)
        table = assert_load_code_agrees(path, monkeypatch).tables[0]
        assert isinstance(loaded(tmp_path, table, monkeypatch), pd.DataFrame)
