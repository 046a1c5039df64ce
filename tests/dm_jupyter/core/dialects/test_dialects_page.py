"""What the architecture page says of each dialect, compared with the dialects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, RunCell, Trajectory, Turn

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "architecture.md"
SECTION = PAGE.read_text("utf-8").partition("\n## Dialects\n")[2].partition("\n## ")[0]
SHOP = DataContext(databases=("shop.db",))


def rows() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The cells of both tables by the dialect's name."""
    form, properties = re.findall(r"(?:^\|.*\n)+", SECTION, re.MULTILINE)
    tables = []
    for table in (form, properties):
        lines = [line.strip("|").split("|") for line in table.splitlines()[2:]]
        tables.append({line[0].strip(" `"): [cell.strip() for cell in line] for line in lines})
    return tables[0], tables[1]


def test_both_tables_have_every_dialect() -> None:
    form, properties = rows()
    assert set(form) == set(properties) == set(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
def test_the_properties_are_those_of_the_dialect(name: str) -> None:
    _, appends, stops, query = rows()[1][name]
    dialect = dialect_named(name)
    assert appends.startswith("yes" if dialect.is_append_only else "no: ")
    stop = [one.strip() for one in dialect.stop(Trajectory(Task("t", "?"), name), "")]
    told = {"markdown": ["```"], "tools": []}.get(name, re.findall(r"`([^`]+)`", stops))
    assert stop == told
    text = dialect.render(Turn("look", RunCell("SELECT 1", "sql")))
    for mark in re.findall(r"`([^`]+)`", query):
        assert mark in text


@pytest.mark.parametrize("name", DIALECTS)
def test_queries_are_explained_only_where_the_data_has_databases(name: str) -> None:
    dialect = dialect_named(name)
    task = Task("t", "How many?")
    told = [
        dialect.messages(Trajectory(task, name, brief))[0].content
        for brief in (SHOP, DataContext())
    ]
    if name != "tools":  # its tools are told beside the messages, and one of them is for queries
        assert "sql" in told[0].lower()
        assert "sql" not in told[1].lower()
