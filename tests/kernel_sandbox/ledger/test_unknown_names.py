"""What a ledger says of a cell that failed for a name: what is called so, or what there is."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dm_jupyter.agent.sql_cell import runtime_source, sql_as_python
from dm_jupyter.core.data_facts import fact_words, is_notable
from kernel_sandbox.ledger.facts import Fact, facts_from
from kernel_sandbox.ledger.unknown_names import unknown_name
from kernel_sandbox.runners.session import KernelSession

GOALS = {"League Goals": [3.0, 4.0], "Club": ["a", "b"]}
NEAREST = "not found: {!r}; nearest: 'League Goals'"
BOTH = "not found: {!r}; there are: 'League Goals', 'Club'"


def _noted(source: str, **names: Any) -> Fact | None:
    try:
        exec(source, {"pd": pd, "df": pd.DataFrame(GOALS), **names})
    except Exception as error:  # noqa: BLE001
        return unknown_name(error)
    raise AssertionError("it was to fail")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("df['league_goals']", NEAREST.format("league_goals")),
        ("df.league_goals", NEAREST.format("league_goals")),
        ("df[['league_goals', 'Club']]", NEAREST.format("league_goals")),
        ("df[['league_goals']]", NEAREST.format("league_goals")),
        ("df.loc[df.Club == 'a', 'goals']", NEAREST.format("goals")),
        ("df.groupby('goals').sum()", NEAREST.format("goals")),
        ("df.groupby('Club')['goals'].sum()", NEAREST.format("goals")),
        ("df.sort_values('goals')", NEAREST.format("goals")),
        ("df.merge(df, on='goals')", NEAREST.format("goals")),
        ("df.query('goals > 3')", NEAREST.format("goals")),
        ("df.pivot(index='Club', columns='x', values='y')", BOTH.format("x")),
        ("df.drop(columns=['x'])", BOTH.format("x")),
        ("df['x']", BOTH.format("x")),
        ("df.set_index('Club').loc['A']", "not found: 'A'; nearest: 'a'"),
    ],
)
def test_the_names_of_a_table_are_told(source: str, told: str) -> None:
    fact = _noted(source)
    assert fact is not None
    assert fact_words(fact) == told
    assert is_notable(fact)
    assert not fact.is_absence
    assert facts_from([fact.to_json()]) == (fact,)


@pytest.mark.parametrize(
    "source",
    [
        "{'a': 1}['b']",
        "df[3]",
        "df.append(df)",
        "pd.DataFrame({0: [1]})['a']",
        "unknown + 1",
        "''.nothing",
        "raise KeyError",
        "1 / 0",
        "pd.read_csv('there is no such file')",
    ],
)
def test_other_failures_say_nothing_of_names(source: str) -> None:
    assert _noted(source) is None


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE Track (TrackId INT, Name TEXT)")
        connection.execute("CREATE TABLE InvoiceLine (TrackId INT, Quantity INT, BillingCountry)")
        connection.execute("CREATE TABLE Customer (Country TEXT)")
    return path


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT T.Quantity FROM Track T", "'T.Quantity'; nearest: 'InvoiceLine.Quantity'"),
        ("SELECT quantities FROM Track", "'quantities'; nearest: 'InvoiceLine.Quantity'"),
        ("SELECT T.track_id FROM Track T", "'T.track_id'; nearest: 'T.TrackId'"),
        ("SELECT I.Name FROM InvoiceLine AS I JOIN Track T ON I.TrackId = T.TrackId",
         "'I.Name'; nearest: 'T.Name'"),
        ("SELECT SUM(Country) FROM InvoiceLine WHERE Quantity > 1",
         "'Country'; nearest: 'InvoiceLine.BillingCountry', 'Customer.Country'"),
        ("SELECT * FROM Tracks", "'Tracks'; nearest: 'Track'"),
        ("SELECT * FROM x", "'x'; there are: 'Track', 'InvoiceLine', 'Customer'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_open", [True, False])
def test_the_names_of_a_database_are_told(
    query: str, told: str, shop: Path, *, is_open: bool
) -> None:
    with closing(sqlite3.connect(shop)) as connection:
        read = "pd.read_sql(query, connection)" if is_open else (
            f"{runtime_source()}\nrun_sql(database, query, 'result.csv')"
        )  # fmt: skip
        fact = _noted(read, connection=connection, database=str(shop), query=query)
    assert fact is not None
    assert fact_words(fact) == f"not found: {told}"


def test_a_database_that_is_gone_says_nothing(shop: Path) -> None:
    source = f"{runtime_source()}\nrun_sql(database, 'SELECT * FROM x', 'result.csv')"
    assert _noted(source, database=str(shop.with_name("gone.db"))) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=80) | st.integers(), max_size=9), st.text(max_size=80))
def test_whatever_the_names_are_a_fact_stays_small(names: list[Any], asked: str) -> None:
    frame = pd.DataFrame([range(len(names))], columns=names)
    try:
        frame[asked]
    except KeyError as error:
        fact = unknown_name(error)
        assert fact is None or facts_from([fact.to_json()])[0].kind == "unknown"


async def test_a_real_kernel_notes_it_once(shop: Path) -> None:
    query = sql_as_python("SELECT T.Quantity FROM Track T", ("shop.db",), 1)
    async with asyncio.timeout(60), KernelSession(inputs={"shop.db": shop}) as kernel:
        failed = await kernel.run(f"import pandas as pd\ndf = pd.DataFrame({GOALS})\ndf['goals']")
        assert [fact_words(fact) for fact in failed.facts] == [NEAREST.format("goals")]
        assert not [fact for fact in (await kernel.run("1 + 1")).facts if fact.kind == "unknown"]
        await kernel.run(runtime_source())
        asked = await kernel.run(query)
        assert asked.error is not None
        assert [fact.result for fact in asked.facts] == ["'InvoiceLine.Quantity'"]
