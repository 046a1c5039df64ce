from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file, render
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said

RECORDS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
NESTED = [{"id": 1, "by": {"name": "a", "age": 3}}, {"id": 2, "by": {"name": "b", "age": 4}}]


def dumped(tmp_path: Path, data: object, name: str = "x.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    "data",
    [
        RECORDS,
        {"id": [1, 2], "name": ["a", "b"]},
        {"id": {"0": 1, "1": 2}, "n": {"0": "a", "1": "b"}},
    ],
)
def test_flat_json_gets_the_simplest_call(tmp_path, monkeypatch, data):
    table = assert_load_code_agrees(dumped(tmp_path, data), monkeypatch).tables[0]
    assert table.load_code == 'df = pd.read_json("x.json")'
    assert (table.row_count, len(table.columns)) == (2, 2)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (NESTED, "pd.json_normalize(data)"),
        ({"meta": {"n": 2}, "data": {"items": NESTED}}, 'json_normalize(data["data"]["items"])'),
    ],
)
def test_nested_json_is_normalised(tmp_path, monkeypatch, data, code):
    table = assert_load_code_agrees(dumped(tmp_path, data), monkeypatch).tables[0]
    assert code in str(table.load_code)
    assert [column.name for column in table.columns] == ["id", "by.name", "by.age"]


ORIENTS: list[tuple[object, str, list[str], list[list[object]]]] = [
    ({"u1": {"name": "Ann", "age": 3}, "u2": {"name": "Bo", "age": 4}}, 'orient="index"',
     ["u1", "u2"], [["Ann", 3], ["Bo", 4]]),
    ({"01": {"a": 1, "b": "x"}, "02": {"a": 3, "b": "y"}}, "convert_axes=False",
     ["01", "02"], [[1, "x"], [3, "y"]]),
    ({"columns": ["a", "b"], "index": ["01", "02"], "data": [[1, "x"], [3, "y"]]},
     'orient="split"', ["01", "02"], [[1, "x"], [3, "y"]]),
    ({"schema": {"fields": [{"name": "a", "type": "integer"}, {"name": "b", "type": "string"}]},
      "data": [{"a": 1, "b": "02"}]}, 'orient="table"', [0], [[1, "02"]]),
    ({"a": {"x": 1, "y": 2}, "n": {"x": "p", "y": "q"}}, 'read_json("x.json")',
     ["x", "y"], [[1, "p"], [2, "q"]]),
    ([["a", "b"], [1, "x"], [2, "y"]], "data[1:], columns=data[0]", [0, 1], [[1, "x"], [2, "y"]]),
    ([{"zip": "02139", "v": 1.5}, {"zip": "10001", "v": 2.5}], "dtype=False",
     [0, 1], [["02139", 1.5], ["10001", 2.5]]),
    ([{"modified": 1700000000}, {"modified": 1700000001}], "dtype=False",
     [0, 1], [[1700000000], [1700000001]]),
    ([{"id": 12345678901234567890123}], "json.load", [0], [[12345678901234567890123]]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "code", "index", "values"), ORIENTS)
def test_each_orient_keeps_labels_and_values(tmp_path, monkeypatch, data, code, index, values):
    profile = assert_load_code_agrees(dumped(tmp_path, data), monkeypatch)
    assert code in str(profile.tables[0].load_code)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    assert frame.index.tolist() == index
    assert frame.to_numpy(dtype=object).tolist() == values


def test_rows_or_columns_that_cannot_be_told_apart_are_said(tmp_path):
    data = {"north": {"x": 1.5, "y": 2}, "south": {"x": 3, "y": 4}, "west": {"x": 5, "y": 6}}
    assert "df.T has rows and columns the other way" in said(profile_file(dumped(tmp_path, data)))


def test_a_second_list_of_records_is_named(tmp_path):
    data = {"users": RECORDS, "meta": {"tags": [{"t": 1}]}}
    assert "not read: meta.tags" in said(profile_file(dumped(tmp_path, data)))


def test_gzipped_nested_json(tmp_path, monkeypatch):
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(json.dumps(NESTED).encode()))
    assert assert_load_code_agrees(path, monkeypatch).tables[0].row_count == 2


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.json"])
def test_json_lines(tmp_path, monkeypatch, name):
    path = tmp_path / name
    records = [{**RECORDS[0], "note": "a\u2028b"}, *RECORDS[1:]]
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_text("".join(lines), "utf-8")
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "jsonl"
    assert "lines=True" in str(profile.tables[0].load_code)


def test_lists_in_cells_are_told(tmp_path):
    path = dumped(tmp_path, [{"id": 1, "tags": ["a", "b"]}])
    assert "lists or dictionaries in 'tags'" in said(profile_file(path))


@pytest.mark.parametrize("content", ["{", "3", '"x"', "[1, 2]", "[]", "[" * 100_000])
def test_json_without_records_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DataFileError, match=r"x\.json"):
        profile_file(path)


def test_json_named_csv_is_read_as_json(tmp_path, monkeypatch):
    profile = assert_load_code_agrees(dumped(tmp_path, RECORDS, "x.csv"), monkeypatch)
    assert profile.kind == "json"
    assert "the name says .csv" in said(profile)


def test_parquet_types(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame(
        {
            "g": pd.Categorical(["a", "b", "a"]),
            "t": pd.date_range("2024-01-01", periods=3, freq="h", tz="UTC"),
            "l": [[1, 2], [1], []],
            "d": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    frame.to_parquet(path)
    profile = assert_load_code_agrees(path, monkeypatch)
    kinds = {column.name: column.dtype for column in profile.tables[0].columns}
    assert kinds["g"] == "category"
    assert "UTC" in kinds["t"]
    assert kinds["d"] == "Int64"
    assert profile.tables[0].columns[2].unique is None
    assert "3 rows x 4 columns" in render(profile)


def test_large_parquet_is_described_whole(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    pd.DataFrame({f"c{i}": range(300_000) for i in range(8)}).to_parquet(path)
    table = profile_file(path).tables[0]
    assert (table.row_count, table.sampled_rows) == (300_000, None)
    assert {(c.minimum, c.maximum, c.unique) for c in table.columns} == {(0, 299_999, 300_000)}
    assert int(str(table.sample_rows[2][0])) > 50_000


def test_damaged_parquet_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + b"\x00" * 100)
    with pytest.raises(DataFileError, match="damaged or incomplete"):
        profile_file(path)
