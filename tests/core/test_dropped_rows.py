from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.dropped_rows import needless_columns

GAPS = ("Age", "Cabin", "Fare Paid")
ASKED = "What is the mean fare?"


@pytest.mark.parametrize(
    ("cell", "needless"),
    [
        ("df = df.dropna(subset=['Fare Paid', 'Cabin'])\ndf['Fare Paid'].mean()", ("Cabin",)),
        ("df.dropna(subset=('Age', 'Cabin'), inplace=True)\ndf.Age.mean()", ("Cabin",)),
        ("df.dropna(subset='Cabin')['Fare Paid'].mean()", ("Cabin",)),
        ("df = df.dropna()\ndf['Fare Paid'].mean()", ("Age", "Cabin")),
        ("df = df.dropna(subset=['Age'])\ndf.query('Age > 3')['Fare Paid'].mean()", ()),
        ("df = df.dropna(subset=['Sex'])\ndf['Fare Paid'].mean()", ()),
        ("x = df['Age'].dropna()\nx.mean()", ()),
        ("x = df[['Age', 'Cabin']].dropna()\nx.mean()", ()),
        ("df = df.dropna(axis=1)\ndf['Fare Paid'].mean()", ()),
        ("df = df.dropna(how='all')\ndf['Fare Paid'].mean()", ()),
        ("df = df.dropna(subset=columns)\ndf['Fare Paid'].mean()", ()),
        ("df = df.dropna(subset=['Age'])\ndf['Age'].dropna().mean()", ()),
        ("df.dropna(subset=['Age']).dropna(subset=['Cabin'])['Age'].mean()", ("Cabin",)),
        ("df['Fare Paid'].mean()", ()),
        ("df.dropna(subset=['Cabin'", ()),
    ],
)
def test_columns_that_only_cost_rows(cell: str, needless: tuple[str, ...]) -> None:
    assert needless_columns(cell, GAPS, ASKED) == needless


def test_a_column_the_task_names_is_needed() -> None:
    cell = "df = df.dropna(subset=['Fare Paid', 'Cabin'])\nlen(df)"
    assert needless_columns(cell, GAPS, "Drop rows without a CABIN. Fare_paid matters.") == ()
    assert needless_columns(cell, GAPS, "How many scabins?") == ("Fare Paid", "Cabin")


def test_a_task_that_wants_whole_rows_gets_them() -> None:
    asked = "Remove all rows with missing values, then count the rest."
    assert needless_columns("df = df.dropna()\nlen(df)", GAPS, asked) == ()
    part = "df = df.dropna(subset=['Cabin'])\nlen(df)"
    assert needless_columns(part, GAPS, asked) == ("Cabin",)


@given(st.text(max_size=200))
def test_no_text_raises(cell: str) -> None:
    assert needless_columns(cell, GAPS, cell) == ()
