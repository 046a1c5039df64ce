import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dm_jupyter.assist.schema_hints import schema_hint
from dm_jupyter.core.schema import DatabaseTable, Link
from dm_jupyter.data.data_context import build_data_context
from dm_jupyter.data.profile_reader import ProfileReader

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
    tables = {
        table.name: table
        for table in (await build_data_context({"keys.sqlite": path}, reader)).tables
    }
    assert tables["Country"] == DatabaseTable("Country", ("code", "name"))
    assert tables["city"].links == (Link("Country", (("code", "code"),)),)
    assert tables["loan"].links == (Link("branch", (("bank", "bank"), ("number", "number"))),)
    assert tables["names"].links == (Link("models", (("model", "model"),)),)


async def test_other_files_have_no_tables(tmp_path: Path, reader: ProfileReader) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", "utf-8")
    assert (await build_data_context({"a.csv": tmp_path / "a.csv"}, reader)).tables == ()


CHINOOK = Path(__file__).parents[3] / "examples" / "chinook.sqlite"
_JOINS = re.compile(r": (\w+ JOIN [^:]+)\.$")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT Genre.Name, SUM(Total) FROM Genre GROUP BY 1",
        "SELECT GenreId, SUM(Total) FROM Invoice GROUP BY 1",
        "SELECT TrackId, SUM(Total) FROM Invoice GROUP BY 1",
        "SELECT SUM(Total) FROM Track",
        "SELECT SUM(Total) FROM InvoiceLine",
        "SELECT Quantity, sum(total) FROM Invoice GROUP BY 1",
        "SELECT SupportRepId, SUM(Total) FROM Invoice GROUP BY 1",
        "SELECT BillingCountry, SUM(UnitPrice * Quantity) FROM InvoiceLine GROUP BY 1",
    ],
)
async def test_no_hint_leads_to_a_total_that_is_counted_several_times(
    query: str, reader: ProfileReader
) -> None:
    tables = (await build_data_context({"chinook.sqlite": CHINOOK}, reader)).tables
    with closing(sqlite3.connect(f"file:{CHINOOK}?mode=ro", uri=True)) as database:
        (true,) = database.execute("SELECT SUM(Total) FROM Invoice").fetchone()
        with pytest.raises(sqlite3.OperationalError, match="no such column") as failed:
            database.execute(query)
        told = schema_hint(str(failed.value), query, tables)
        joined = _JOINS.search(told)
        if joined is None:
            assert "repeats each row of" in told
            return
        figure = "Invoice.Total" if "Total" in query else "InvoiceLine.UnitPrice * Quantity"
        (added,) = database.execute(f"SELECT SUM({figure}) FROM {joined[1]}").fetchone()
    assert added == pytest.approx(true)
