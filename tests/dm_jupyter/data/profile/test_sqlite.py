from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import ForeignKey, profile_file, render

SCHEMA = """
CREATE TABLE "select" ("order" int, "a b" text, "q""uote" real, data blob);
INSERT INTO "select" VALUES (1, 'x', 1.5, x'0102'), (9223372036854775807, 'y', NULL, NULL);
CREATE TABLE maker (id integer PRIMARY KEY, name text NOT NULL);
INSERT INTO maker VALUES (1, 'A'), (2, 'B');
CREATE TABLE "Order Details" (
  a int, b int, maker int REFERENCES maker (id), other int REFERENCES maker, PRIMARY KEY (a, b));
INSERT INTO "Order Details" VALUES (1, 1, 1, 2);
CREATE TABLE g (a int, b int GENERATED ALWAYS AS (a * 2) STORED);
INSERT INTO g (a) VALUES (1);
CREATE TABLE empty_t (a);
CREATE TRIGGER tr AFTER INSERT ON empty_t BEGIN DELETE FROM maker; END;
CREATE VIEW named AS SELECT name FROM maker;
CREATE VIEW broken AS SELECT x FROM not_there;
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "x y.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        connection.commit()
    return path


def test_tables_views_and_keys_are_listed(database):
    tables = {table.name: table for table in profile_file(database).tables}
    assert list(tables)[-2:] == ["named", "broken"]
    assert tables["named"].is_view
    assert tables["named"].row_count == 2
    assert tables["maker"].primary_key == ("id",)
    details = tables["Order Details"]
    assert details.primary_key == ("a", "b")
    assert set(details.foreign_keys) == {
        ForeignKey(("maker",), "maker", ("id",)),
        ForeignKey(("other",), "maker", ()),
    }
    assert [column.name for column in tables["g"].columns] == ["a", "b"]


def test_values_are_looked_up_and_blobs_only_measured(database):
    columns = {c.name: c for c in profile_file(database).tables[0].columns}
    assert columns["order"].maximum == 9223372036854775807
    assert columns['q"uote'].missing == 1
    assert columns["data"].examples == ("<2 bytes>",)
    assert columns["a b"].examples == ("x", "y")


def test_names_are_quoted_where_needed(database):
    text = render(profile_file(database))
    for part in ('table "select"', '"order" INT', '"a b"', '"q""uote"', '"Order Details"'):
        assert part in text
    assert "table maker (2 rows)" in text
    assert "maker INT -> maker.id" in text


def test_broken_view_does_not_hide_the_rest(database):
    broken = profile_file(database).tables[-1]
    assert broken.row_count is None
    assert "not_there" in broken.warnings[0]


def test_nothing_is_written(database):
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    profile_file(database)
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_open_write_ahead_log_is_read(tmp_path):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.commit()
        assert profile_file(path).tables[0].row_count == 1


def test_endless_view_is_given_up(tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE VIEW v AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) "
            "SELECT i FROM c"
        )
        connection.commit()
    table = profile_file(path).tables[0]
    assert table.row_count is None
    assert table.sample_rows == ((1,), (2,))
    assert "not counted" in render(profile_file(path))


def test_empty_database_has_no_tables(tmp_path):
    path = tmp_path / "x.sqlite"
    path.touch()
    profile = profile_file(path)
    assert profile.tables == ()
    assert "no tables" in render(profile)


def test_text_is_no_database(tmp_path):
    path = tmp_path / "x.sqlite"
    path.write_text("hello\n")
    with pytest.raises(DataFileError, match="SQLite format 3"):
        profile_file(path)


def test_damaged_database_is_refused(tmp_path, database):
    content = bytearray(database.read_bytes())
    content[100:4000] = b"\xff" * 3900
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(content)
    with pytest.raises(DataFileError, match="damaged"):
        profile_file(damaged)


def test_many_tables_stay_within_the_bound(tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        for i in range(80):
            connection.execute(f'CREATE TABLE "table {i}" (a int, b text, c real)')
            connection.execute(f"CREATE VIEW view_{i} AS SELECT 1 AS one")
        connection.commit()
    text = render(profile_file(path))
    assert len(text) <= 2200
    assert '"table 0"' in text
    assert "more" in text or "cut" in text
    assert "views: view_0" in text


def test_ranges_and_frequent_values_are_named(tmp_path):
    path = tmp_path / "sales.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE sale (id integer PRIMARY KEY, day text, price real, town text, mixed)"
        )
        connection.executemany(
            "INSERT INTO sale (day, price, town, mixed) VALUES (?, ?, ?, ?)",
            (
                (
                    f"20{10 + n % 15}-02-0{1 + n % 9}",
                    n / 2,
                    f"town {min(n % 30, 12)}",
                    n if n % 2 else "x",
                )
                for n in range(300)
            ),
        )
    profile = profile_file(path)
    columns = {column.name: column for column in profile.tables[0].columns}
    assert (columns["day"].minimum, columns["day"].maximum) == ("2010-02-01", "2024-02-09")
    assert (columns["price"].minimum, columns["price"].maximum) == (0.0, 149.5)
    assert columns["town"].frequent[0] == ("town 12", 180)
    assert dict(columns["town"].values)["town 3"] == 10
    assert columns["mixed"].values == (("x", 150),)
    text = render(profile)
    assert "day TEXT ['2010-02-01' … '2024-02-09']" in text
    assert "price REAL [0 … 149.5]" in text
    assert "town TEXT ['town 12' (180), 'town " in text
    assert "mixed ['x' (150), …]" in text
    assert "id INTEGER primary key, " in text


def test_dates_with_one_that_is_none_have_no_range(tmp_path):
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (day text)")
        connection.executemany(
            "INSERT INTO t VALUES (?)", [("2020-01-01",), ("2020-01-0x",), ("unknown",)]
        )
    column = profile_file(path).tables[0].columns[0]
    assert (column.minimum, column.maximum) == (None, None)


def test_a_table_too_large_to_scan_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("dm_jupyter.data.profile.sqlite_file._SCAN_S", 0.0)
    path = tmp_path / "x.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (n integer)")
        connection.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(30_000)))
    table = profile_file(path).tables[0]
    assert (table.row_count, table.columns[0].maximum) == (30_000, None)
    assert "too large to scan in time" in table.warnings[0]
    assert "too large to scan in time" in render(profile_file(path))
