from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import DataFileError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.data.data_context import DataContextSize, build_data_context, data_context_size
from dm_jupyter.data.profile_reader import ProfileReader

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _csv(path: Path, text: str = "Age,Fare\n30,7.25\n41,8.5\n29,9.0\n") -> Path:
    path.write_text(text, "utf-8")
    return path


def _database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table people (id integer primary key, age integer)")
        connection.execute("insert into people (age) values (30), (41)")
    return path


def _loaded(preamble: str, folder: Path) -> dict[str, Any]:
    """The names that the preamble defines, run in the folder."""
    before = Path.cwd()
    names: dict[str, Any] = {}
    os.chdir(folder)
    try:
        exec(preamble, names)
    finally:
        os.chdir(before)
    return names


async def test_no_file_leaves_the_imports(reader: ProfileReader) -> None:
    data_context = await build_data_context({}, reader)
    assert "import pandas as pd" in data_context.preamble
    assert (data_context.text, data_context.databases) == ("", ())


async def test_one_csv_file_is_df(tmp_path: Path, reader: ProfileReader) -> None:
    data_context = await build_data_context({"a b.csv": _csv(tmp_path / "a b.csv")}, reader)
    assert "a b.csv" in data_context.text
    assert data_context.databases == ()
    assert _loaded(data_context.preamble, tmp_path)["df"].shape == (3, 2)


async def test_sheets_that_continue_one_another_are_named_after_the_file(
    tmp_path: Path, reader: ProfileReader
) -> None:
    path = tmp_path / "cafe slips.xlsx"
    with pd.ExcelWriter(path) as book:
        for name, first in (("2023", 0), ("2024", 9), ("Prices", 5)):
            other = "price" if name == "Prices" else "b"
            frame = pd.DataFrame({"a": range(first, first + 3), other: 1})
            frame.to_excel(book, sheet_name=name, index=False)
    data_context = await build_data_context({path.name: path}, reader)
    names = _loaded(data_context.preamble, tmp_path)
    assert names["cafe_slips"]["sheet"].tolist() == [2023] * 3 + [2024] * 3
    assert names["prices"].shape == (3, 2)


async def test_two_csv_files_are_variables_named_after_them(
    tmp_path: Path, reader: ProfileReader
) -> None:
    _csv(tmp_path / "Sales 2024.csv")
    _csv(tmp_path / "2023.csv", "City,Age\nBrno,3\nOslo,4\n")
    names = {name: tmp_path / name for name in ("Sales 2024.csv", "2023.csv")}
    data_context = await build_data_context(names, reader)
    loaded = _loaded(data_context.preamble, tmp_path)
    assert list(loaded["sales_2024"].columns) == ["Age", "Fare"]
    assert list(loaded["df_2023"].columns) == ["City", "Age"]
    assert "df" not in loaded


async def test_files_of_one_name_in_two_folders_are_two_variables(
    tmp_path: Path, reader: ProfileReader
) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        _csv(tmp_path / folder / "t.csv")
    names = {name: tmp_path / name for name in ("x/t.csv", "y/t.csv")}
    loaded = _loaded((await build_data_context(names, reader)).preamble, tmp_path)
    assert len(loaded["t"]) == len(loaded["t_2"]) == 3


async def test_stray_spaces_of_column_names_are_taken_away(
    tmp_path: Path, reader: ProfileReader
) -> None:
    _csv(tmp_path / "a.csv", "Age , Fare\n30,7.25\n41,8.5\n29,9.0\n")
    data_context = await build_data_context({"a.csv": tmp_path / "a.csv"}, reader)
    assert list(_loaded(data_context.preamble, tmp_path)["df"].columns) == ["Age", "Fare"]


async def test_a_database_is_queried_not_loaded(tmp_path: Path, reader: ProfileReader) -> None:
    data_context = await build_data_context(
        {"shop.sqlite": _database(tmp_path / "shop.sqlite")}, reader
    )
    assert data_context.databases == ("shop.sqlite",)
    assert data_context.preamble == ""
    assert all(name in data_context.text for name in ("people", "id", "age"))


async def test_tables_of_databases_can_be_read_whole(tmp_path: Path, reader: ProfileReader) -> None:
    """Names that are no Python names, and two tables whose names become the same."""
    path = _database(tmp_path / 'a "b".sqlite')
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in ("class", "pd", "Größe 1", "größe-1", 'sa"id'):
            quoted = name.replace('"', '""')
            connection.execute(f'create table "{quoted}" (x integer)')
        connection.execute("create view seen as select * from people")
    data_context = await build_data_context({path.name: path}, reader)
    names = _loaded(data_context.whole_tables, tmp_path)
    for name in ("people", "df_class", "pd_2", "größe_1", "größe_1_2", "sa_id"):
        assert list(names[name].columns) == (["id", "age"] if name == "people" else ["x"])
    assert "seen" not in names
    assert data_context.preamble == ""
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        names["connection"].execute("drop table people")
    names["connection"].close()
    path.unlink()
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        _loaded(data_context.whole_tables, tmp_path)
    assert not path.exists()


@pytest.mark.parametrize(("tables", "rows"), [(13, 1), (2, 100_001)])
async def test_large_databases_are_never_read_whole(
    tables: int, rows: int, tmp_path: Path, reader: ProfileReader
) -> None:
    path = tmp_path / "large.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in range(tables):
            connection.execute(f"create table t{number} (x integer)")
            connection.executemany(f"insert into t{number} values (?)", ((1,) for _ in range(rows)))
    assert (await build_data_context({path.name: path}, reader)).whole_tables == ""


async def test_a_database_beside_a_csv_file_keeps_the_preamble(
    tmp_path: Path, reader: ProfileReader
) -> None:
    names = {"s.sqlite": _database(tmp_path / "s.sqlite"), "a.csv": _csv(tmp_path / "a.csv")}
    data_context = await build_data_context(names, reader)
    assert data_context.databases == ("s.sqlite",)
    assert _loaded(data_context.preamble, tmp_path)["df"].shape == (3, 2)


async def test_several_files_share_the_room(tmp_path: Path, reader: ProfileReader) -> None:
    header = ",".join(f"column_{number}" for number in range(80))
    row = ",".join(str(number) for number in range(80))
    names = {
        f"f{number}.csv": _csv(tmp_path / f"f{number}.csv", f"{header}\n{row}\n{row}\n")
        for number in range(5)
    }
    assert len((await build_data_context(names, reader)).text) < 6_000


async def test_a_missing_file_is_named(tmp_path: Path, reader: ProfileReader) -> None:
    with pytest.raises(DataFileError, match=r"gone\.csv"):
        await build_data_context({"gone.csv": tmp_path / "gone.csv"}, reader)


async def test_a_changed_file_is_read_again(tmp_path: Path, reader: ProfileReader) -> None:
    path = _csv(tmp_path / "people.csv")
    assert await build_data_context({"people.csv": path}, reader) == await build_data_context(
        {"people.csv": path}, reader
    )
    _csv(path, "Age,Height\n30,180\n")
    assert "Height" in (await build_data_context({"people.csv": path}, reader)).text


async def test_a_database_in_use_is_read_each_time(tmp_path: Path, reader: ProfileReader) -> None:
    path = tmp_path / "live.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode=wal")
        for name in ("first", "second"):
            connection.execute(f"create table {name} (n integer)")
            connection.commit()
            assert name in (await build_data_context({"live.sqlite": path}, reader)).text


async def test_columns_with_gaps_are_named(tmp_path: Path, reader: ProfileReader) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Name,Age\nAnn,3\nBo,\n")
    assert (await build_data_context({"people.csv": path}, reader)).incomplete == ("Age",)


async def test_the_question_changes_nothing_before_it(
    tmp_path: Path, reader: ProfileReader
) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Nation,Age\n" + "GREAT BRITAIN,3\nFRANCE,4\n" * 9)
    question = "How old is Great Britain?"
    ahead = await build_data_context({"people.csv": path}, reader)
    asked = await build_data_context({"people.csv": path}, reader, question)
    assert asked == replace(ahead, links=asked.links)
    assert "'Great Britain' → 'GREAT BRITAIN' in column 'Nation' (9 rows)" in asked.links
    for name in ("markdown", "tools", "react"):
        before, after = (
            dialect_named(name)
            .messages(Trajectory(Task("", text, (path,)), name, data_context))[1]
            .content
            for text, data_context in (("", ahead), (question, asked))
        )
        assert after.startswith(before.rstrip().removesuffix("Question:"))
        assert after.index(question) < after.index(asked.links)
    for name in ("react-published", "datamind-published", "jupiter"):
        start = Trajectory(Task("", question, (path,)), name, asked)
        assert "GREAT BRITAIN" not in "".join(
            message.content for message in dialect_named(name).messages(start)
        )


async def test_links_can_be_left_out(tmp_path: Path, reader: ProfileReader) -> None:
    path = tmp_path / "people.csv"
    path.write_text("Nation,Age\n" + "GREAT BRITAIN,3\nFRANCE,4\n" * 9)
    room = DataContextSize(links_chars=0)
    assert not (
        await build_data_context({"people.csv": path}, reader, "Great Britain?", room)
    ).links


@pytest.mark.parametrize("context", [None, 0, 8_192, 16_384])
async def test_a_small_or_unknown_context_gets_the_short_data_context(context: int | None) -> None:
    assert data_context_size(context) == DataContextSize(2_200, 300)


async def test_a_large_context_gets_more_of_a_wide_table(
    tmp_path: Path, reader: ProfileReader
) -> None:
    header = ",".join(f"a name of {number * number}" for number in range(120))
    row = ",".join(f"value {number}" for number in range(120))
    path = _csv(tmp_path / "wide.csv", f"{header}\n" + f"{row}\n" * 9)
    short = (await build_data_context({"wide.csv": path}, reader)).text
    large = (
        await build_data_context({"wide.csv": path}, reader, "", data_context_size(32_768))
    ).text
    assert len(short) <= 2_200 < len(large) <= 12_000
    assert "not shown" in short
    assert "not shown" not in large
