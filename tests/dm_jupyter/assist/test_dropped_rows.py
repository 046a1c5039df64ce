from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.assist.dropped_rows import dropped_rows

GAPS = ("Age", "Cabin", "Fare Paid")
ASKED = "What is the mean fare?"


def _told(cell: str, asked: str = ASKED) -> str:
    found = dropped_rows(cell, GAPS, asked)
    assert found is None or (found.rule, found.edit) == ("dropped_rows", None)
    return "" if found is None else found.suggestion


@pytest.mark.parametrize(
    ("cell", "needless"),
    [
        ("df = df.dropna(subset=['Fare Paid', 'Cabin'])\ndf['Fare Paid'].mean()", "'Cabin'"),
        ("df.dropna(subset=('Age', 'Cabin'), inplace=True)\ndf.Age.mean()", "'Cabin'"),
        ("df.dropna(subset='Cabin')['Fare Paid'].mean()", "'Cabin'"),
        ("df = df.dropna()\ndf['Fare Paid'].mean()", "'Age', 'Cabin'"),
        (
            "df = pd.read_csv('t.csv', dtype={'Cabin': str})\n"
            "df['Cabin'] = pd.to_numeric(df['Cabin'].str.strip(), errors='coerce')\n"
            "df = df.dropna(subset=['Fare Paid', 'Cabin'])\ndf['Fare Paid'].mean()",
            "'Cabin'",
        ),
        ("df = df.dropna()\nprint(f\"{df['Fare Paid'].mean():.2f}\")", "'Age', 'Cabin'"),
        ("df.dropna(subset=['Age']).dropna(subset=['Cabin'])['Age'].mean()", "'Cabin'"),
        ("c = df.dropna()\nm = c[c['Sex'] == 'male']\nm['Age'].mean()", "'Cabin', 'Fare Paid'"),
        ("c = df.dropna()\nc.groupby('Sex')['Age'].mean()", "'Cabin', 'Fare Paid'"),
        (
            "c = df.dropna()\nX = c[['Age', 'Sex']]\ny = c['Pay']\nm.fit(X, y)",
            "'Cabin', 'Fare Paid'",
        ),
    ],
)
def test_columns_that_only_cost_rows(cell: str, needless: str) -> None:
    assert _told(cell).startswith(f"No dropna() on {needless}:")


@pytest.mark.parametrize(
    "cell",
    [
        "d = df.dropna(subset=['Age', 'Fare Paid'])\n"
        "a = d['Age'].mean()\nb = d['Fare Paid'].mean()",
        "df = df.dropna(subset=['Age', 'Fare Paid'])\n"
        "print(df['Age'].mean(), df['Fare Paid'].std())",
        "df.dropna(subset=['Age', 'Fare Paid'], inplace=True)\n"
        "print(f\"{df['Age'].mean()} and {df['Fare Paid'].median()}\")",
        "d = df[['Age', 'Fare Paid']].dropna()\nprint(d['Age'].mean())\n"
        "print(d['Fare Paid'].mean())",
        "d = df.dropna(subset=['Age', 'Fare Paid'])\nprint(d[['Age', 'Fare Paid']].mean())",
        "d = df.dropna(subset=['Age', 'Fare Paid'])\nx = d['Age']\ny = d['Fare Paid']\n"
        "print(round(x.mean(), 2))\nprint(stats.skew(y))",
    ],
)
def test_separate_figures_do_not_share_their_gaps(cell: str) -> None:
    asked = "What are the mean age and the mean fare?"
    told = _told(cell, asked)
    assert told.startswith("No dropna() for several columns at once")
    assert "'Age', 'Fare Paid'" in told


RIGHT = {
    "complete rows": ("print(len(df.dropna()))", "How many rows are complete?"),
    "share of complete rows": (
        "whole = df.dropna()\nprint(len(whole) / len(df), whole['Age'].mean())",
        "Which share of the rows has no missing value, and what is their mean age?",
    ),
    "cleaning": ("clean = df.dropna()\nclean.to_csv('clean.csv')\nclean['Age'].mean()", "Tidy up."),
    "cleaning asked for": ("clean = df.dropna()\nprint(clean['Age'].mean())", "Clean this file."),
    "drop as told": (
        "df = df.dropna()\nprint(df['Age'].mean())",
        "Remove all rows with missing values, then give the mean age.",
    ),
    "a principal component analysis": (
        "X = df.dropna().select_dtypes('number')\nPCA(2).fit(X)",
        "Run a PCA.",
    ),
    "components of chosen columns": (
        "X = df[['Age', 'Fare Paid']].dropna()\nPCA(2).fit_transform(X)",
        "Run a PCA of age and fare.",
    ),
    "clusters of whole rows": (
        "df = df.dropna()\nlabels = KMeans(3).fit_predict(pd.get_dummies(df))\ndf['Age'].mean()",
        "Cluster the passengers.",
    ),
    "a regression": (
        "d = df.dropna(subset=['Age', 'Fare Paid'])\n"
        "X = d[['Age']]\ny = d['Fare Paid']\nm.fit(X, y)",
        "Regress fare on age.",
    ),
    "a regression by formula": (
        "d = df.dropna(subset=['Age', 'Fare Paid'])\nsmf.ols('pay ~ Age', d).fit()",
        "Regress pay on age.",
    ),
    "a correlation": (
        "d = df.dropna(subset=['Age', 'Fare Paid'])\n"
        "r, p = stats.pearsonr(d['Age'], d['Fare Paid'])",
        "Do age and fare correlate?",
    ),
    "a correlation of two names": (
        "d = df[['Age', 'Fare Paid']].dropna()\nx, y = d['Age'], d['Fare Paid']\nprint(x.corr(y))",
        "Do age and fare correlate?",
    ),
    "a matrix": ("print(df[['Age', 'Fare Paid']].dropna().corr())", "Do they correlate?"),
    "a difference in pairs": (
        "d = df.dropna(subset=['Age', 'Fare Paid'])\nprint((d['Age'] - d['Fare Paid']).mean())",
        "What is the mean difference of age and fare?",
    ),
    "groups": (
        "d = df.dropna(subset=['Age', 'Cabin'])\nprint(d.groupby('Cabin')['Age'].mean())",
        "Mean age by cabin?",
    ),
    "a choice of rows": (
        "d = df.dropna(subset=['Age', 'Fare Paid'])\n"
        "print(d.loc[d['Age'] > 30, 'Fare Paid'].mean())",
        "What is the mean fare above 30?",
    ),
    "the column asked": ("print(df.dropna(subset=['Age'])['Age'].mean())", "Mean age?"),
    "the column of a name": ("d = df.dropna(subset=['Age'])\nprint(d.Age.describe())", "Age?"),
    "a single column": ("x = df['Age'].dropna()\nprint(x.mean())", "What is the mean age?"),
    "a single column by name": ("x = df['Age']\nx = x.dropna()\nprint(x.mean())", "Mean age?"),
    "a column that another one is made of": (
        "df['Fare Paid'] = df['Cabin'] * 2\nx = df.dropna(subset=['Fare Paid', 'Cabin'])\n"
        "x['Fare Paid'].mean()",
        ASKED,
    ),
    "empty columns": ("df = df.dropna(axis=1)\ndf['Fare Paid'].mean()", ASKED),
    "empty rows": ("df = df.dropna(how='all')\ndf['Fare Paid'].mean()", ASKED),
    "rows with few values": ("df = df.dropna(thresh=2)\ndf['Fare Paid'].mean()", ASKED),
    "columns in a variable": ("df = df.dropna(subset=columns)\ndf['Fare Paid'].mean()", ASKED),
    "a query": ("d = df.dropna(subset=['Age'])\nd.query('Age > 3')['Fare Paid'].mean()", ASKED),
    "a column without gaps": ("df = df.dropna(subset=['Sex'])\ndf['Fare Paid'].mean()", ASKED),
    "known values": (
        "d = df.dropna(subset=['Cabin'])\nprint(d['Fare Paid'].mean())",
        "What is the mean fare of the passengers whose place is known?",
    ),
    "a named column": (
        "d = df.dropna(subset=['Cabin'])\nprint(d['Fare Paid'].mean())",
        "What is the mean fare of those with a cabin?",
    ),
    "a table that is shown": (
        "d = df.dropna()\nd.plot(x='Age', y='Pay')\nd['Age'].mean()",
        "Plot.",
    ),
    "a loop over columns": (
        "d = df.dropna()\nfor c in d.columns:\n    print(c, d[c].mean())\nd['Age'].mean()",
        "Means?",
    ),
    "a loop over chosen columns": (
        "d = df.dropna(subset=['Age', 'Fare Paid'])\nfor c in cols:\n    print(d[c].mean())",
        "Means?",
    ),
    "two tables": (
        "a = df.dropna(subset=['Age'])\nprint(a['Age'].mean())\n"
        "b = df.dropna(subset=['Fare Paid'])\nprint(b['Fare Paid'].mean())",
        "Mean age and mean fare?",
    ),
    "a ratio of columns": (
        "d = df.dropna(subset=['Age', 'Fare Paid'])\nd['r'] = d['Fare Paid'] / d['Age']\n"
        "print(d['r'].mean(), d['Age'].mean(), d['Fare Paid'].mean())",
        "What is the mean fare a year?",
    ),
    "a joined table": (
        "d = df.dropna(subset=['Age', 'Cabin']).merge(o, on='Cabin')\nd['Age'].mean()",
        "Mean age by deck?",
    ),
    "no gaps dropped": ("df['Fare Paid'].mean()", ASKED),
    "half a cell": ("df.dropna(subset=['Cabin'", ASKED),
}


@pytest.mark.parametrize(("cell", "asked"), RIGHT.values(), ids=RIGHT)
def test_a_right_cell_is_left_alone(cell: str, asked: str) -> None:
    assert _told(cell, asked) == ""


@given(st.text(max_size=200))
def test_no_text_raises(cell: str) -> None:
    assert _told(cell, cell) == ""


@given(st.lists(st.sampled_from(sorted(RIGHT)), min_size=1, max_size=4))
def test_no_mixture_of_cells_raises(names: list[str]) -> None:
    dropped_rows("\n".join(RIGHT[name][0] for name in names), GAPS, ASKED)
