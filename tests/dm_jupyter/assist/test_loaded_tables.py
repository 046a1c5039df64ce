"""Which variables hold a loaded table when a statement begins."""

import ast

import pytest

from dm_jupyter.assist.loaded_tables import EarlierCell, statements_with_tables
from dm_jupyter.core.schema import LoadedTable

SALES = LoadedTable("df", "import pandas as pd\ndf = pd.read_csv('sales.csv')", ("region", "n"))
SHOPS = LoadedTable("shops", "shops = pd.read_csv('shops.csv')", ("name",))
WHOLE, NOTHING = {"df": {"region", "n"}}, dict[str, set[str]]()


def _held(*cells: str, failed: bool = False) -> dict[str, set[str]]:
    """What is held after some cells, as the first statement of the next cell sees it."""
    earlier = [EarlierCell(cell) for cell in cells]
    if failed:
        earlier[-1] = EarlierCell(cells[-1], is_whole=False)
    ((_, held),) = statements_with_tables(ast.parse("pass"), earlier, [SALES, SHOPS])
    return {name: set(columns) for name, columns in held.items()}


def test_a_variable_holds_the_table_that_its_own_code_has_loaded() -> None:
    assert _held() == NOTHING
    assert _held(SALES.load) == WHOLE
    assert _held(SALES.load, SHOPS.load) == {**WHOLE, "shops": {"name"}}
    assert _held("import pandas as pd\ndf = pd.read_csv('other.csv')") == NOTHING
    assert _held("shops_2 = pd.read_csv('shops.csv')") == {"shops_2": {"name"}}


@pytest.mark.parametrize(
    ("code", "columns"),
    [
        ("part = df", {"region", "n"}),
        ("part = df.copy()", {"region", "n"}),
        ("part = df.dropna().head(3)", {"region", "n"}),
        ("part = df[df.n > 3]", {"region", "n"}),
        ("part = df[:5]", {"region", "n"}),
        ("part = df.loc[~df.n.isna() & (df.n > 3)]", {"region", "n"}),
        ("part = df[['n']]", {"n"}),
        ("part = df[df.region.isin(['a'])][['region']]", {"region"}),
        ("part = df['n']", None),
        ("part = df[['n', 'unknown']]", None),
        ("part = df.groupby('region').sum()", None),
        ("part = df.loc['a']", None),
        ("part = {}", None),
    ],
)
def test_a_copy_and_a_choice_of_rows_or_columns_hold_it_too(
    code: str, columns: set[str] | None
) -> None:
    assert _held(SALES.load, code).get("part") == columns


@pytest.mark.parametrize(
    "code",
    [
        "df = 5",
        "df = df.groupby('region').sum()",
        "del df",
        "for df in others:\n    pass",
        "with opened() as df:\n    pass",
        "import other as df",
        "def df():\n    pass",
        "a, df = 1, 2",
        "this is no python",
    ],
)
def test_whatever_else_a_variable_is_given_takes_that_away(code: str) -> None:
    assert _held(SALES.load, code) == NOTHING


def test_a_cell_that_failed_may_have_bound_what_it_binds() -> None:
    assert _held(SALES.load, "print(df)\n1 / 0", failed=True) == WHOLE
    assert _held(SALES.load, "other = df\ndf = df.copy()\n1 / 0", failed=True) == NOTHING


def test_each_statement_sees_what_is_held_when_it_begins() -> None:
    tree = ast.parse(f"{SALES.load}\nprint(df)\ndf = 5\nprint(df)")
    seen = list(statements_with_tables(tree, [], [SALES]))
    assert ["df" in held for _, held in seen] == [False, False, True, True, False]
    bound = ast.parse("print([df for df in x], (other := df))")
    ((_, held),) = statements_with_tables(bound, [EarlierCell(SALES.load)], [SALES])
    assert "df" not in held
