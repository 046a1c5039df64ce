"""Why a query of a database came to nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dm_jupyter.agent.sql_cell import runtime_source, sql_as_python
from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.ledger.queries import coverage_in_file
from tests.kernel_sandbox.ledger.ledger_shell import LedgerShell

PLACES = ("France", "France", "United Kingdom")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as connection:
        connection.execute("CREATE TABLE place (id INTEGER, name TEXT)")
        connection.execute("CREATE TABLE sale (place INTEGER, day TEXT, total REAL, note TEXT)")
        rows = [(number, name) for number, name in enumerate(PLACES)]
        connection.executemany("INSERT INTO place VALUES (?, ?)", rows)
        connection.executemany(
            "INSERT INTO sale VALUES (?, ?, ?, NULL)",
            [(0, "2021-03-01", 5.0), (1, "2022-07-09", 7.5), (1, "2023-01-31", 0.0)],
        )
        connection.commit()
    return "shop.db"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT COUNT(*) FROM place WHERE name = 'Untied Kingdom'",
            Coverage("name = 'Untied Kingdom'", 0, "name", near=(("'United Kingdom'", 1),)),
        ),
        (
            "SELECT SUM(s.total) FROM sale AS s JOIN place p ON p.id = s.place "
            "WHERE p.name LIKE '%Kingdon%'",
            Coverage("name LIKE '%Kingdon%'", 0, "name", near=(("'United Kingdom'", 1),)),
        ),
        (
            "SELECT * FROM sale WHERE day BETWEEN '2030-01-01' AND '2030-12-31' AND total > 1",
            Coverage("day BETWEEN '2030-01-01' AND '2030-12-31'", 0, "day",
                     low="2021-03-01", high="2023-01-31"),
        ),
        (
            "select sum(total) from sale where strftime('%Y', day) = '2030' -- a year",
            Coverage("day = '2030'", 0, "day", low="2021", high="2023"),
        ),
        (
            "SELECT COUNT(*) FROM sale WHERE total > 100 GROUP BY place",
            Coverage("total > 100", 0, "total", low="0.0", high="7.5"),
        ),
        (
            "SELECT place, COUNT(*) FROM sale GROUP BY place HAVING place > 9 AND COUNT(*) > 1; --",
            Coverage("place > 9", 0, "place", low="0", high="1"),
        ),
        (
            "SELECT name FROM place GROUP BY name HAVING name = 'Frence'",
            Coverage("name = 'Frence'", 0, "name", near=(("'France'", 2),)),
        ),
        (
            "SELECT note FROM sale WHERE note IS NOT NULL",
            Coverage("note IS NOT NULL", 0, "note"),
        ),
        (
            "SELECT COUNT(*) FROM sale WHERE total > 1 AND place = "
            "(SELECT id FROM place WHERE name = 'Frence')",
            Coverage("name = 'Frence'", 0, "name", near=(("'France'", 2),)),
        ),
        (
            "SELECT COUNT(*) FROM sale WHERE place IN (SELECT id FROM place WHERE id IN "
            "(SELECT id FROM place WHERE name = 'Frence'))",
            Coverage("name = 'Frence'", 0, "name", near=(("'France'", 2),)),
        ),
    ],
)  # fmt: skip
def test_a_query_without_rows_is_explained_by_what_the_columns_hold(
    shop: str, query: str, expected: Coverage
) -> None:
    found = coverage_in_file(shop, query)
    assert found is not None
    assert expected in found


@pytest.mark.parametrize(
    "query",
    [
        "SELECT total FROM sale WHERE day = '2023-01-31'",  # a value that is 0
        "SELECT COUNT(note) FROM sale",
        "SELECT SUM(total) FROM sale WHERE total < 1 GROUP BY place HAVING COUNT(*) > 0",
        "SELECT COUNT(s.day) FROM place p LEFT JOIN sale s ON s.place = p.id WHERE p.id = 2",
        "SELECT 1 FROM sale WHERE total > 100 UNION SELECT 2 FROM place WHERE id > 100",
        "SELECT nonsense",
        "not even SQL '",
    ],
)
def test_a_query_that_selects_rows_or_cannot_be_read_is_not(shop: str, query: str) -> None:
    assert coverage_in_file(shop, query) is None


def test_conditions_of_which_one_is_enough_are_not_taken_apart(shop: str) -> None:
    query = "SELECT COUNT(*) FROM place WHERE name = 'Rome' OR name = 'Oslo'"
    assert coverage_in_file(shop, query) == ()


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT id FROM place WHERE name = 'France'",  # has rows
        "SELECT id FROM place WHERE name = sale.day",  # names the query around it
    ],
)
def test_a_subquery_with_rows_or_of_the_query_around_it_explains_nothing(
    shop: str, inner: str
) -> None:
    query = f"SELECT COUNT(*) FROM sale WHERE total > 100 AND place IN ({inner})"
    found = coverage_in_file(shop, query)
    assert found is not None
    assert [one.part for one in found] == ["total > 100"]


def test_a_limit_of_groups_needs_no_explanation(shop: str) -> None:
    for limit in ("SUM(total) > 100", "most > 100"):
        query = f"SELECT place, SUM(total) AS most FROM sale GROUP BY place HAVING {limit}"
        assert coverage_in_file(shop, query) == ()


def test_a_query_that_takes_too_long_is_given_up(shop: str) -> None:
    tables = ", ".join(f"sale s{number}" for number in range(24))
    query = f"SELECT COUNT(*) FROM {tables} WHERE s0.total + s23.total > 1000"
    assert coverage_in_file(shop, query) is None


def _facts(source: str) -> tuple[Fact, ...]:
    shell = LedgerShell()
    shell.run(runtime_source(), keeps=False)
    return shell.run(source)


def test_a_count_of_0_in_a_sql_cell_is_noted(shop: str) -> None:
    query = "SELECT COUNT(*) AS places FROM place WHERE name = 'Untied Kingdom'"
    fact, saved = _facts(sql_as_python(query, (shop,), 1))
    assert saved.kind == "saved"
    assert (fact.kind, fact.operation, fact.after, fact.condition) == ("kept", "read_sql", 0, query)
    assert fact.coverage[0].near == (("'United Kingdom'", 1),)


def test_groups_that_a_sql_cell_does_not_find_are_noted(shop: str) -> None:
    query = "SELECT place FROM sale GROUP BY place HAVING SUM(total) > 100"
    fact, *others = _facts(sql_as_python(query, (shop,), 1))
    assert (fact.kind, fact.operation, fact.after, fact.coverage) == ("kept", "read_sql", 0, ())
    assert [one.kind for one in others] == ["shown", "saved", "shown"]


def test_a_count_of_0_by_pandas_is_noted_and_the_connection_is_left_alone(shop: str) -> None:
    source = f"""
import sqlite3, pandas as pd
c = sqlite3.connect({shop!r})
c.row_factory = sqlite3.Row
pd.read_sql_query("SELECT COUNT(*) AS n FROM place WHERE name = 'Untied Kingdom'", c)
"""
    (fact,) = _facts(source)
    assert (fact.after, fact.coverage[0].near) == (0, (("'United Kingdom'", 1),))


def test_what_is_not_written_yet_is_not_explained_by_the_file(shop: str) -> None:
    source = f"""
import sqlite3, pandas as pd
c = sqlite3.connect({shop!r})
_ = c.execute("INSERT INTO place VALUES (9, 'Rome')")
pd.read_sql_query("SELECT * FROM place WHERE name = 'Oslo'", c)
"""
    kept = next(fact for fact in _facts(source) if fact.kind == "kept")
    assert (kept.after, kept.coverage) == (0, ())
