"""Spelling is corrected where a loaded table was asked, and nowhere else: with real pandas."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.assist.loaded_tables import EarlierCell
from dm_jupyter.assist.misspelt_columns import misspelt_column
from dm_jupyter.core.schema import LoadedTable
from dm_jupyter.core.tracebacks import lines_in_cell
from kernel_sandbox.types import CellError
from tests.dm_jupyter.assist.failing import error_of

COLUMNS = ("Fare Paid", "Age", "league goals", "größe", "US")
OTHER = ("fare_paid", "Region")
LOAD = "import pandas as pd\nimport numpy as np\ndf = pd.read_csv('people.csv', sep=';')\n"
TABLES = (
    LoadedTable("df", "df = pd.read_csv('people.csv', sep=';')", COLUMNS),
    LoadedTable("shops", "shops = pd.read_csv('shops.csv')", OTHER),
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("Fare Paid;Age;league goals;größe;US\n1;2;3;4;5\n6;7;8;9;10\n")
    Path("shops.csv").write_text("fare_paid,Region\n1,north\n")
    Path("people.json").write_text('{"Age": 3}')


def corrected(source: str, *earlier: str) -> str | None:
    """The cell after the correction of what it raises; `None` where nothing is corrected."""
    error = error_of(source, earlier)
    assert error is not None, "the cell runs"
    lines = lines_in_cell(error)
    assert lines is not None
    cells = [EarlierCell(one, error_of(one, earlier[:n]) is None) for n, one in enumerate(earlier)]
    found = misspelt_column(source, error, lines.innermost, cells, TABLES)
    if found is None:
        return None
    assert found.rule == "columns"
    assert found.evidence.startswith(error.name)
    assert found.suggestion.startswith("Column spelt as in the file: ")
    return found.edit


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("df['fare_paid'].mean()", "df['Fare Paid'].mean()"),
        ('df["league_goals"]', "df['league goals']"),
        ("df[['age', 'Fare Paid']]", "df[['Age', 'Fare Paid']]"),
        ("df[['age', 'fare paid']]", "df[['Age', 'Fare Paid']]"),
        ("df.loc[df['Age'] > 3, 'fare_paid']", "df.loc[df['Age'] > 3, 'Fare Paid']"),
        ("df.groupby('age')['Fare Paid'].sum()", "df.groupby('Age')['Fare Paid'].sum()"),
        ("df.groupby('Age')['fare_paid'].sum()", "df.groupby('Age')['Fare Paid'].sum()"),
        ("df.dropna(subset=['AGE'])", "df.dropna(subset=['Age'])"),
        ("x = 'ä'; df['Größe'] + df['Age']", "x = 'ä'; df['größe'] + df['Age']"),
        ("df.sort_values(by=['age'])", "df.sort_values(by=['Age'])"),
        ("df['new'] = df['age'] * 2", "df['new'] = df['Age'] * 2"),
        ("d = df[df['Age'] > 3]\nd['fare_paid']", "d = df[df['Age'] > 3]\nd['Fare Paid']"),
        ("d = df.dropna().copy()\nd['age']", "d = df.dropna().copy()\nd['Age']"),
        ("d = df[['Age', 'US']]\nd['age']", "d = df[['Age', 'US']]\nd['Age']"),
        ("df.fare_paid.mean()", "df['Fare Paid'].mean()"),
        ("def f():\n    return 1\nprint(df['age'])", "def f():\n    return 1\nprint(df['Age'])"),
        ("print('fare_paid')\ndf['fare_paid']", "print('fare_paid')\ndf['Fare Paid']"),
    ],
)
def test_a_name_that_failed_is_written_as_the_file_spells_it(written: str, meant: str) -> None:
    assert corrected(LOAD + written) == LOAD + meant
    assert error_of(LOAD + meant) is None


def test_the_loaded_table_may_stand_in_an_earlier_cell_or_another_variable() -> None:
    assert corrected("df['age']", LOAD) == "df['Age']"
    own = "t = pd.read_csv('people.csv', sep=';')\n"
    assert corrected(f"{own}t['age']", "import pandas as pd") == f"{own}t['Age']"


def test_only_what_has_failed_is_corrected() -> None:
    cell = LOAD + "df['age']\ndf['fare_paid']"
    assert corrected(cell) == LOAD + "df['Age']\ndf['fare_paid']"


def test_each_file_has_its_own_spelling() -> None:
    both = LOAD + "shops = pd.read_csv('shops.csv')\nshops['fare_paid']\n"
    assert corrected(both + "df['fare_paid']") == both + "df['Fare Paid']"
    assert corrected(both + "shops['Fare Paid']") == both + "shops['fare_paid']"


BESIDE = {
    "environment": "import os\nos.environ['AGE_']\n",
    "loaded json": "import json, pathlib\nd = json.loads(pathlib.Path('people.json').read_text())\n"
    "d['age']",
    "dict": "d = {'Fare Paid': 1}\nd['fare_paid']",
    "counter by attribute": "from collections import Counter\nc = Counter(['US'])\nc.us",
    "other file": "o = pd.read_csv('shops.csv')\no['age']",
    "the file read otherwise": "o = pd.read_csv('people.csv')\no['age']",
    "query": "import sqlite3\nk = sqlite3.connect(':memory:')\n"
    "o = pd.read_sql('select 1 as x', k)\no['age']",
    "fitted parameters": "fit = pd.Series({'Age': 1.0, 'Intercept': 2.0})\nfit['age']",
    "figures of groups": "g = df.groupby('Age')['Fare Paid'].mean()\ng['fare_paid']",
    "counted values": "n = df['US'].value_counts()\nn['us']",
    "a row": "r = df.iloc[0]\nr['age']",
    "a made table": "o = pd.DataFrame({'x': [1]})\no['age']",
    "another word": "df['ages']",
    "a function's argument": "def f(df):\n    return df['age']\nf({'x': 1})",
    "rebound in a loop": "for df in [{'x': 1}]:\n    df['age']",
    "rebound": "df = {'x': 1}\ndf['age']",
    "renamed": "df = df.rename(columns=str.upper)\ndf['age']",
    "renamed by a list": "df.columns = list('abcde')\ndf['age']",
    "a name that the cell makes": "o = df.assign(age=1)\ndf['age']",
    "both in one statement": "import os\nprint(df['US'].sum() + float(os.environ['us']))",
    "either may have raised": "d = {}\nprint(d['age'], df['age'])",
}


@pytest.mark.parametrize("source", BESIDE.values(), ids=BESIDE)
def test_what_is_not_the_loaded_table_is_left(source: str) -> None:
    os.environ.pop("us", None)
    assert corrected(LOAD + source) is None


def test_a_counter_is_never_touched() -> None:
    cell = LOAD + "from collections import Counter\nc = Counter(df['US'])\nprint(c['us'])\n"
    assert error_of(cell) is None  # it runs as it was written
    assert corrected(cell + "df['age']") == cell + "df['Age']"


def test_an_earlier_cell_may_have_taken_the_table_away() -> None:
    assert corrected("df['age']", LOAD, "df = {'x': 1}") is None
    broken = "df = df.groupby('Age').sum()\nraise ValueError"
    assert corrected("df['age']", LOAD, broken) is None


def test_names_that_an_earlier_cell_gave_hold() -> None:
    assert corrected("df['age']", LOAD, "other = df.assign(age=1)") is None


@pytest.mark.parametrize("columns", [("a b", "a_b"), ("x",)])
def test_two_columns_that_look_alike_are_left(columns: tuple[str, ...]) -> None:
    tables = [LoadedTable("df", "df = load()", columns)]
    error = CellError("KeyError", "'AB'", ())
    assert misspelt_column("df = load()\ndf['AB']", error, 2, [], tables) is None


@given(st.text(), st.lists(st.text(max_size=4), max_size=4), st.integers(0, 5))
def test_any_text_is_taken(source: str, columns: list[str], line: int) -> None:
    tables = [LoadedTable("df", source, tuple(columns))]
    error = CellError("KeyError", source, ())
    misspelt_column(source, error, line, [EarlierCell(source)], tables)
