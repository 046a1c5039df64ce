import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dm_jupyter.agent.brief import brief_of
from dm_jupyter.agent.profile_reader import ProfileReader
from dm_jupyter.core.schema import DatabaseTable, Link

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEMA = """
create table Country (code text primary key, name text);
create table city (id integer primary key, code text references country, name text);
create table branch (bank text, number integer, primary key (bank, number));
create table loan (bank text, number integer, amount real,
    foreign key (bank, number) references branch (bank, number));
create table names (model text references models (modelle), maker text references makers (maker),
    one text references models (eins), other text references nowhere (id));
create table models (id integer primary key, model text);
"""


async def test_keys_become_links_where_the_schema_tells_what_they_point_at(
    tmp_path: Path, reader: ProfileReader
) -> None:
    path = tmp_path / "keys.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
    tables = {table.name: table for table in (await brief_of({"keys.sqlite": path}, reader)).tables}
    assert tables["Country"] == DatabaseTable("Country", ("code", "name"))
    assert tables["city"].links == (Link("Country", (("code", "code"),)),)
    assert tables["loan"].links == (Link("branch", (("bank", "bank"), ("number", "number"))),)
    assert tables["names"].links == (Link("models", (("model", "model"),)),)


async def test_other_files_have_no_tables(tmp_path: Path, reader: ProfileReader) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", "utf-8")
    assert (await brief_of({"a.csv": tmp_path / "a.csv"}, reader)).tables == ()
