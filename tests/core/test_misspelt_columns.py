from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.misspelt_columns import with_columns

COLUMNS = ("Fare Paid", "Age", "league goals", "a b", "a_b", "größe", "it's")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("df['fare_paid'].mean()", "df['Fare Paid'].mean()"),
        ('df["league_goals"]', "df['league goals']"),
        ("df[['age', 'Fare Paid', 'fare paid']]", "df[['Age', 'Fare Paid', 'Fare Paid']]"),
        ("df.loc[df['age'] > 3, 'fare_paid']", "df.loc[df['Age'] > 3, 'Fare Paid']"),
        ("df.groupby('age')['fare_paid']", "df.groupby('Age')['Fare Paid']"),
        ("df.dropna(subset=['AGE'])", "df.dropna(subset=['Age'])"),
        ("x = 'ä'; df['Größe'] + df['age']", "x = 'ä'; df['größe'] + df['Age']"),
        ("df['its']", 'df["it\'s"]'),
        ("df.sort_values(by=['age'])", "df.sort_values(by=['Age'])"),
        ("df.agg(top=('AGE', 'max'))['top']", "df.agg(top=('AGE', 'max'))['top']"),
        ("df['new'] = df['age'] * 2", "df['new'] = df['Age'] * 2"),
        ("df.groupby('age').sum()['fare_paid']", "df.groupby('Age').sum()['Fare Paid']"),
        (
            "g = df.groupby('age')['fare_paid'].sum().reset_index()\ng['fare_paid']",
            "g = df.groupby('Age')['Fare Paid'].sum().reset_index()\ng['Fare Paid']",
        ),
        ("df.pivot_table('age')['age']", "df.pivot_table('Age')['Age']"),
    ],
)
def test_a_name_is_written_as_the_file_spells_it(written: str, meant: str) -> None:
    assert with_columns(written, COLUMNS, []) == meant


@pytest.mark.parametrize(
    "source",
    [
        "df['Age'].mean()",
        "df.groupby('Age').agg(['its'])",  # texts of agg may be functions
        "df.merge(other, how='age')",
        "df['ages']",  # another word
        "df['AB']",  # two columns look like it
        "df['___']",
        "print('fare_paid')",
        "open('age')",
        "df['age'] = df['Age'] // 10\nprint(df['age'])",
        "found = {'age': 3}\nprint(found['age'])",
        "df = df.assign(age=df['Age'] + 1)\ndf['age']",
        "df.columns = df.columns.str.lower()\ndf['age']",
        "df = df.rename(columns=str.lower)\ndf['age']",
        "print(f\"{df['age'].mean()}\")",
        "df['age'",
        "df['fare'\n'_paid']",
        "o = df.groupby('Age')['a b'].sum().reset_index(name='age')\no.sort_values('age')",
        "o = df['Age'].to_frame('age')\no['age']",
        "df.insert(0, 'age', 1)\ndf['age']",
        "o = df['Age'].rename_axis('age').reset_index()\no['age']",
        "o = df.melt(id_vars='a b', var_name='age', value_name='its')\no[['age', 'its']]",
        "o = df.groupby('a b').sum().reset_index(names=['age'])\no['age']",
        "o = df.groupby('a b').agg(age=('Age', 'max'))\no['age']",
        "o = df.groupby('a b').agg(**{'age': ('Age', 'max')})\no['age']",
        "o = pd.DataFrame(rows, columns=['age'])\no['age']",
        "s = pd.Series([1], index=['age'])\ns['age']",
        "df['a b'].value_counts()['age']",
        "df['a b'].value_counts(normalize=True).head().loc['age']",
        "counts = df['a b'].value_counts()\ncounts['age']",
        "df.groupby('a b')['Age'].mean()['its']",
        "pd.crosstab(df['a b'], df['Age'])['its']",
        "df.pivot_table(index='a b', columns='Age', values='a_b')['its']",
    ],
)
def test_what_may_be_meant_is_left(source: str) -> None:
    assert with_columns(source, COLUMNS, []) == source


def test_names_that_an_earlier_cell_gave_hold() -> None:
    cell = "df['age'].mean()"
    assert with_columns(cell, COLUMNS, ["df['age'] = 1"]) == cell
    assert with_columns(cell, COLUMNS, ["df = df.rename(columns={'Age': 'age'})"]) == cell
    assert with_columns(cell, COLUMNS, ["df = other['Age'].value_counts()"]) == cell
    assert with_columns(cell, COLUMNS, ["df = load("]) == "df['Age'].mean()"


@given(st.text(), st.lists(st.text(max_size=4), max_size=4))
def test_any_text_is_taken(source: str, columns: list[str]) -> None:
    assert isinstance(with_columns(source, columns, [source]), str)


@given(st.lists(st.sampled_from(["age", "AGE", "fare_paid", "x", "größe"]), min_size=1, max_size=5))
def test_what_comes_out_parses_and_names_columns(names: list[str]) -> None:
    source = "\n".join(f"print('é', df[{name!r}])" for name in names)
    written = with_columns(source, COLUMNS, [])
    ast.parse(written)
    assert "fare_paid" not in written
    assert written.count("\n") == source.count("\n")
