from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dm_jupyter.agent.sql_cell import SqlCells, runtime_source, sql_as_python
from dm_jupyter.agent.sql_runtime import run_sql
from dm_jupyter.core.trajectory import RunCell

ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


def _database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table people (name text, age integer)")
        rows = [("Ada", 36), ("Łódź ☃", 41), ("Bo", None)]
        connection.executemany("insert into people values (?, ?)", rows)
    return path


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    path = _database(tmp_path / "people.sqlite")
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before
    left = {entry.name for entry in tmp_path.iterdir() if entry.suffix != ".csv"}
    assert left == {"people.sqlite"}


def _run(database: Path, query: str, **limits: Any) -> pd.DataFrame:
    return run_sql(str(database), query, str(database.parent / "result.csv"), **limits)


def test_a_result_is_returned_saved_and_counted(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = _run(database, "select name, age * 2 as twice from people where age > 1 order by age")
    assert result.to_dict("list") == {"name": ["Ada", "Łódź ☃"], "twice": [72, 82]}
    saved = pd.read_csv(database.parent / "result.csv")
    pd.testing.assert_frame_equal(saved, result)
    assert capsys.readouterr().out.startswith("2 rows x 2 columns, saved as ")


@pytest.mark.parametrize(
    "query",
    [
        "select upper(name), length(name), avg(age) over () from people",
        "with t as (select * from people) select count(*) from t join people using (name)",
        "select date('now'), strftime('%Y', '2024-01-02'), round(1.5), json('[1]')",
        "select * from people union select * from people limit 1;",
        "values (1, 2)",
        "select name from sqlite_master",
        "with recursive n(i) as (values (1) union all select i+1 from n where i<5) select 1 from n",
    ],
)
def test_any_kind_of_reading_is_allowed(database: Path, query: str) -> None:
    assert len(_run(database, query)) >= 1


def test_an_empty_result_keeps_its_columns(database: Path) -> None:
    result = _run(database, "select name, age from people where age > 99")
    assert (list(result.columns), len(result)) == (["name", "age"], 0)


@pytest.mark.parametrize(
    "query",
    [
        "insert into people values ('x', 1)",
        "update people set age = 1",
        "delete from people",
        "drop table people",
        "create table t (x)",
        "create temp table t (x)",
        "attach database 'other.sqlite' as other",
        "pragma journal_mode = wal",
        "pragma table_info(people)",
        "vacuum into 'copy.sqlite'",
        "begin immediate",
        "select load_extension('x')",
        "select 1; drop table people",
        "with t as (select 1) insert into people select 'x', 1 from t",
        "selec 1",
        "select nothing from people",
    ],
)
def test_anything_but_one_select_is_refused(database: Path, query: str) -> None:
    with pytest.raises((sqlite3.Error, sqlite3.Warning)):
        _run(database, query)
    assert not (database.parent / "result.csv").exists()


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        _run(tmp_path / "gone.sqlite", "select 1")
    assert not (tmp_path / "gone.sqlite").exists()


def test_rows_above_the_limit_are_cut_and_said(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(_run(database, "select * from people", max_rows=2)) == 2
    assert "cut at 2 rows" in capsys.readouterr().out
    assert len(_run(database, "select * from people", max_rows=3)) == 3
    assert "cut" not in capsys.readouterr().out


def test_a_query_that_never_ends_is_ended(database: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        _run(database, ENDLESS, max_seconds=0.2)


@pytest.mark.parametrize(
    "name", ["a b.db", "a#b.db", "a?mode=rwc.db", "100%25.db", "it's.db", "ž.db"]
)
def test_odd_file_names(tmp_path: Path, name: str) -> None:
    result = _run(_database(tmp_path / name), "select count(*) as n from people")
    assert result["n"].tolist() == [3]


def test_text_that_is_no_utf8_is_read(tmp_path: Path) -> None:
    path = _database(tmp_path / "people.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("insert into people values (cast(x'ff41' as text), 1)")
    assert "\ufffdA" in _run(path, "select name from people")["name"].tolist()


# the cell


def _told(cell: str, number: int = 1) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the cell calls `run_sql` with."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def fake(*positional: Any, **named: Any) -> pd.DataFrame:
        calls.append((positional, named))
        return pd.DataFrame()

    names: dict[str, Any] = {"run_sql": fake}
    exec(compile(cell, "cell", "exec"), names)
    assert f"result_{number}" in names
    assert len(calls) == 1
    return calls[0]


def test_the_runtime_is_whole_by_itself(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(database.parent)
    names: dict[str, Any] = {}
    exec(runtime_source(), names)
    cell = sql_as_python("select name from people", (database.name,), 3)
    exec(cell, names)
    assert len(names["result_3"]) == 3
    assert (database.parent / "result_3.csv").exists()


@settings(deadline=None)
@given(query=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_query_comes_through(query: str) -> None:
    (database, told), named = _told(sql_as_python(query, ("a.db",), 1))
    assert told.strip() == query.strip()
    assert (database, named) == ("a.db", {"save_as": "result_1.csv"})


@settings(deadline=None)
@given(query=st.text(alphabet="\\\"'\n ntx{}N%0u-\t;", max_size=30), database=st.text(min_size=1))
def test_quotes_and_backslashes_come_through(query: str, database: str) -> None:
    (named, told), _ = _told(sql_as_python(query, (database,), 1))
    assert told.strip() == query.strip()
    assert named == database


@pytest.mark.parametrize(
    ("line", "chosen"),
    [
        ("-- database: b.db", "b.db"),
        ("--Database:  'b.db'  ", "b.db"),
        ('  -- DATABASE: "b.db"', "b.db"),
        ("-- database: nowhere.db", "a.db"),
        ("-- b.db", "a.db"),
        ("", "a.db"),
    ],
)
def test_a_comment_chooses_the_database(line: str, chosen: str) -> None:
    cell = sql_as_python(f"{line}\nselect 1", ("a.db", "b.db"), 2)
    (database, _), named = _told(cell, 2)
    assert (database, named["save_as"]) == (chosen, "result_2.csv")


def test_without_any_database_the_name_in_the_comment_is_tried() -> None:
    (database, _), _ = _told(sql_as_python("-- database: c.db\nselect 1", (), 1))
    assert database == "c.db"


@pytest.mark.parametrize("query", ["select 2", 'select "é"\nfrom t -- \\ """'])
def test_a_query_that_a_person_changed_stays_one(query: str) -> None:
    cells = SqlCells(("a.db",), queries=4)
    asked = RunCell("select 1", "sql")
    cells.python(asked)
    changed = sql_as_python(query, ("a.db",), 5)
    assert cells.changed(asked, changed) == RunCell(query, "sql")


@pytest.mark.parametrize("source", ["print(1)", "x = f(1, 'select 1')", "x = (", ""])
def test_a_query_of_which_a_person_made_other_code_is_python(source: str) -> None:
    cells = SqlCells(("a.db",))
    asked = RunCell("select 1", "sql")
    more = f"{cells.python(asked)}\nprint(1)"
    assert cells.changed(asked, source) == RunCell(source)
    assert cells.changed(asked, more) == RunCell(more)
    assert cells.changed(RunCell("y = 1"), source) == RunCell(source)
