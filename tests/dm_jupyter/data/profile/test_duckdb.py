from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import profile_file, render
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said

duckdb = pytest.importorskip("duckdb", reason="skipped: no duckdb")
SCHEMA = """
CREATE TABLE maker (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE "order items" (
    maker INTEGER REFERENCES maker (id), price DECIMAL(8, 2), day DATE, tags VARCHAR[], raw BLOB
);
INSERT INTO maker VALUES (1, 'a'), (2, 'b');
INSERT INTO "order items" VALUES
    (1, 1234.50, '2024-01-31', ['x'], 'ab'), (2, NULL, '2023-05-01', [], NULL);
CREATE SCHEMA other;
CREATE TABLE other."select" (flag BOOLEAN);
CREATE VIEW cheap AS SELECT * FROM maker;
"""


def made(folder: Path, *statements: str, name: str = "x.duckdb") -> Path:
    path = folder / name
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize("name", ["x.duckdb", "x.db", "x.csv"])
def test_tables_views_and_keys(tmp_path, monkeypatch, name):
    path = made(tmp_path, SCHEMA, name=name)
    profile = assert_load_code_agrees(path, monkeypatch)
    assert profile.kind == "duckdb"
    tables = {table.name: table for table in profile.tables}
    assert list(tables) == ["maker", "order items", "other.select", "cheap"]
    items = tables["order items"]
    assert items.foreign_keys[0].table == "maker"
    assert tables["maker"].primary_key == ("id",)
    assert (tables["cheap"].is_view, tables["cheap"].row_count) == (True, None)
    price, day = items.columns[1], items.columns[2]
    assert (price.missing, price.maximum) == (1, 1234.5)
    assert (day.minimum, day.maximum) == ("2023-05-01", "2024-01-31")
    assert loaded(tmp_path, items, monkeypatch)["price"][0] == 1234.5
    assert ("the name says .csv" in said(profile)) == (name == "x.csv")
    assert 'table "order items" (2 rows)' in render(profile)


def test_facts_are_of_all_rows(tmp_path):
    path = made(tmp_path, "CREATE TABLE t AS SELECT i // 1000 AS k, i AS n FROM range(300000) r(i)")
    k, n = profile_file(path).tables[0].columns
    assert (k.unique, k.minimum, k.maximum) == (300, 0, 299)
    assert (n.unique, n.maximum, n.missing) == (300_000, 299_999, 0)


def test_a_large_table_is_queried_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr("dm_jupyter.data.profile.duckdb_file._LOADED_CELLS", 10)
    table = profile_file(made(tmp_path, "CREATE TABLE t AS FROM range(100)")).tables[0]
    assert (table.row_count, table.load_code) == (100, None)


def test_a_view_that_reads_another_file_reads_nothing(tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nSECRET\n")
    path = made(tmp_path, f"CREATE VIEW v AS SELECT * FROM read_csv('{secret}')")
    profile = profile_file(path)
    assert [table.name for table in profile.tables] == ["v"]
    assert "SECRET" not in str(profile)


def test_profiling_changes_no_file(tmp_path):
    path = made(tmp_path, SCHEMA)
    before = path.read_bytes()
    profile_file(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["x.duckdb"]


def test_an_empty_database_is_said_to_be(tmp_path):
    assert "no tables" in said(profile_file(made(tmp_path)))


@pytest.mark.parametrize("kept", [100, 5000])
def test_a_damaged_database_is_refused(tmp_path, kept: int) -> None:
    path = made(tmp_path, SCHEMA)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataFileError, match="DuckDB database can't be read"):
        profile_file(path)


def test_a_database_that_another_program_writes_is_refused(tmp_path, monkeypatch: Any) -> None:
    path = made(tmp_path, SCHEMA)
    with duckdb.connect(str(path)), pytest.raises(DataFileError, match="open in another program"):
        profile_file(path)
