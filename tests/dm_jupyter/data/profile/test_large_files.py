from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.profile_facts import KINDS, differences, written
from dm_jupyter.data.profile import TableProfile, csv_file, profile_file
from dm_jupyter.data.profile.csv_file import WHOLE_BYTES
from dm_jupyter.data.profile.source import Effort
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said

ROWS = 200_000
"""So many rows with a filler are more than is read whole."""
FILLER = "y" * (WHOLE_BYTES // ROWS + 10)


def large_csv(path: Path, **columns: list[str]) -> Path:
    """Writes a csv file, too large to be read whole, with these columns and a long text."""
    names = ";".join([*columns, "text"])
    rows = zip(*columns.values(), strict=True)
    path.write_text(f"{names}\n" + "".join(f"{';'.join(row)};{FILLER}\n" for row in rows))
    return path


def only_table(path: Path, seconds: float = 300.0) -> TableProfile:
    return profile_file(path, effort=Effort(seconds)).tables[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaps", "codes", "signs", "typed", "records"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_facts_of_a_large_file_equal_those_that_duckdb_counts(tmp_path, name, is_sorted):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    path = written(tmp_path, name, 20 << 20, is_sorted=is_sorted)
    assert differences(path, KINDS[name].read) == []


def test_a_format_that_begins_late_in_a_large_file_is_read(tmp_path, monkeypatch):
    amounts = [str(i % 1000) for i in range(ROWS)]
    amounts[-1] = "1.234.567"
    path = large_csv(tmp_path / "x.csv", amount=amounts, share=[f"{i % 50},5" for i in range(ROWS)])
    table = assert_load_code_agrees(path, monkeypatch).tables[0]
    frame = loaded(tmp_path, table, monkeypatch)
    assert frame["amount"].tolist() == [*(i % 1000 for i in range(ROWS - 1)), 1_234_567]
    amount, share, _ = table.columns
    assert (amount.dtype, amount.maximum, share.maximum) == ("int64", 1_234_567, 49.5)


def test_a_unit_that_begins_late_in_a_large_file_is_converted(tmp_path, monkeypatch):
    times = [f"{1 + i % 90} min" for i in range(ROWS)]
    times[-1] = "1.5 h"
    path = large_csv(tmp_path / "x.csv", time=times)
    table = assert_load_code_agrees(path, monkeypatch).tables[0]
    frame = loaded(tmp_path, table, monkeypatch)
    assert frame["time"].tolist() == [*(1 + i % 90 for i in range(ROWS - 1)), 90]
    assert (table.columns[0].dtype, table.columns[0].maximum) == ("float64", 90)


@pytest.mark.slow
def test_a_number_in_another_format_late_in_a_large_file_keeps_its_column_text(tmp_path):
    amounts = [f"{1 + i % 9}.{i % 1000:03d},50" for i in range(ROWS)]
    amounts[-1] = "12.50"
    table = only_table(large_csv(tmp_path / "x.csv", amount=amounts))
    assert (table.columns[0].dtype, table.columns[0].unique) == ("str", len(set(amounts)))
    assert "to_numeric" not in str(table.load_code)
    assert "thousands" not in str(table.load_code)


def test_zeros_in_front_late_in_a_large_file_are_kept(tmp_path, monkeypatch):
    codes = [f"{90_000 - i * 89_000 // ROWS:05d}" for i in range(ROWS)]
    plain = [str(i) for i in range(ROWS)]
    path = large_csv(tmp_path / "x.csv", zip=codes, n=plain)
    profile = assert_load_code_agrees(path, monkeypatch)
    table = profile.tables[0]
    assert loaded(tmp_path, table, monkeypatch)["zip"].tolist() == codes
    column, other, _ = table.columns
    assert (column.dtype, column.unique, other.dtype) == ("str", len(set(codes)), "int64")
    assert "leading zeros" in str(column.note)


@pytest.mark.slow
def test_what_there_is_no_time_to_check_is_left_as_text(tmp_path):
    amounts = [f"{1 + i % 9}.{i % 1000:03d},50 €" for i in range(ROWS)]
    others = {f"c{i}": ["1"] * ROWS for i in range(10)}
    path = large_csv(tmp_path / "x.csv", amount=amounts, **others)
    profile = profile_file(path, effort=Effort(0.0))
    assert "left as text in 'amount': not every value was seen" in said(profile)
    assert "nothing is known of the rest" in said(profile)
    assert "to_numeric" not in str(profile.tables[0].load_code)


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_pass_tells_how_far_it_is(tmp_path, monkeypatch, is_counted):
    told: list[float] = []
    if not is_counted:  # the count of the lines took too long
        monkeypatch.setattr(csv_file, "_SCAN_SHARE", 0.0)
    path = large_csv(tmp_path / "x.csv", n=[str(i) for i in range(ROWS)], m=["1"] * ROWS)
    profile_file(path, effort=Effort(300.0, told.append))
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0, abs=0 if is_counted else 0.1)


def large_parquet(path: Path) -> Path:
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 1000, 300_000) for i in range(8)})
    frame["when"] = pd.Timestamp("2001-01-01") + pd.to_timedelta(np.arange(300_000), "min")
    frame["part"] = np.where(np.arange(300_000) % 3, np.arange(300_000) / 2, np.nan)
    frame.to_parquet(path, row_group_size=50_000, index=False)
    return path


def test_of_a_parquet_file_that_is_not_read_whole_the_footer_tells_the_ranges(tmp_path):
    path = large_parquet(tmp_path / "x.parquet")
    profile = profile_file(path, effort=Effort(0.0))
    table = profile.tables[0]
    assert table.row_count == 300_000
    assert table.sampled_rows is not None
    assert table.sampled_rows < 300_000
    when, part = table.columns[-2:]
    assert (when.minimum, when.maximum) == ("2001-01-01", "2001-07-28 07:59:00")
    assert (part.minimum, part.maximum) == (0.5, 149_999.5)
    assert "are those of the whole file, as its footer says" in said(profile)


@pytest.mark.slow
def test_text_of_a_large_parquet_file_becomes_numbers_where_all_are(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"price": [f"${i:,}.00" for i in range(600_000)], "n": range(600_000)})
    frame.assign(m=1, k=2).to_parquet(path, index=False)
    profile = assert_load_code_agrees(path, monkeypatch)
    column = profile.tables[0].columns[0]
    assert (column.maximum, column.unique) == (599_999, 600_000)
    assert loaded(tmp_path, profile.tables[0], monkeypatch)["price"].max() == 599_999


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_records_that_differ_are_put_together(tmp_path, monkeypatch, name):
    records: list[dict[str, object]] = [{"id": i, "at": "2024-01-01"} for i in range(ROWS)]
    records[-1] |= {"zip": "02139", "tags": ["a"]}
    for record in records:
        record["text"] = FILLER
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text, 1) if name.endswith("gz") else text)
    profile = assert_load_code_agrees(path, monkeypatch)
    table = profile.tables[0]
    found = {column.name: column for column in table.columns}
    assert (table.row_count, table.sampled_rows) == (ROWS, None)
    assert (found["id"].maximum, found["zip"].missing) == (ROWS - 1, ROWS - 1)
    assert found["zip"].examples == ("02139",)
    assert "lists or dictionaries in 'tags'" in said(profile)


def test_records_for_which_there_is_no_time_are_said(tmp_path):
    path = tmp_path / "x.jsonl"
    line = json.dumps({"id": 1, "text": FILLER}) + "\n"
    path.write_text(line * ROWS)
    profile = profile_file(path, effort=Effort(0.0))
    assert profile.tables[0].sampled_rows == 20_000
    assert "the first 20,000 rows" in said(profile)


def test_a_sign_for_missing_values_that_later_rows_refute_is_a_number(tmp_path, monkeypatch):
    latency = [str(at % 9) if at % 1000 else "999" for at in range(60_000)]
    latency += [str(at % 2000) for at in range(60_000, ROWS)]
    temp = [f"{at % 30},5" if at % 1000 else "-999,0" for at in range(ROWS)]
    load = [f"{at % 9},5" if at % 1000 else "999,0" for at in range(60_000)]
    load += [f"{at % 2000},5" for at in range(60_000, ROWS)]
    path = large_csv(tmp_path / "x.csv", latency=latency, temp=temp, load=load)
    profile = assert_load_code_agrees(path, monkeypatch)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame["latency"].isna().sum() == frame["load"].isna().sum() == 0
    assert frame["temp"].isna().sum() == 200
    columns = {column.name: column for column in profile.tables[0].columns}
    assert (columns["latency"].maximum, columns["latency"].missing) == (1999, 0)
    assert (columns["load"].maximum, columns["load"].missing) == (1999.5, 0)
    assert (columns["temp"].minimum, columns["temp"].missing) == (0.5, 200)
    assert "read as missing: -999 in 'temp' (200)\n" in said(profile) + "\n"
    words = "left as numbers: 999 in 'latency' (50), 999 in 'load' (50) (in the first 50,000 rows)"
    assert words in said(profile)
