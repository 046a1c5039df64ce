"""Which cells an output rests on."""

import ast

import pytest

from dm_jupyter.agent.answer_cells import makes_files, needed_cells
from dm_jupyter.assist.cell_effects import EarlierCell
from dm_jupyter.assist.cell_names import loaded_names

LOAD = "import pandas as pd\ndf = pd.read_csv('sales.csv')"


def _needed(*sources: str, wanted: int | None = None, failed: tuple[int, ...] = ()) -> list[int]:
    cells = [EarlierCell(source, at not in failed) for at, source in enumerate(sources)]
    return sorted(needed_cells(cells, {len(cells) - 1 if wanted is None else wanted}))


@pytest.mark.parametrize(
    "look",
    [
        "df.head()",
        "print(df.info())",
        "df.describe()",
        "print(df.columns.tolist())",
        "df['region'].value_counts().plot(kind='bar')",
        "for name in df.columns:\n    print(name, df[name].nunique())",
        "if len(df) > 3:\n    print('long')\nelse:\n    print('short')",
        "other = df.groupby('region').sum().reset_index()\nother['share'] = 1.0",
        "import pandas as pd\nprint(pd.__version__)",
        "print(df.shape, len(df), sorted(df['region'].unique()))",
        "[n for n in df.columns]",
        "with pd.ExcelFile('other.xlsx') as book:\n    print(book.sheet_names)",
        "def shown(x):\n    return x.head()\nshown(df)",
    ],
)
def test_a_cell_that_only_looks_is_not_needed(look: str) -> None:
    assert _needed(LOAD, look, "print(df.sales.sum())") == [0, 2]


@pytest.mark.parametrize(
    "change",
    [
        "df['sales'] = df['sales'] * 2",
        "df.loc[df.sales < 0, 'sales'] = 0",
        "df.drop(columns='a', inplace=True)",
        "df.columns = [c.lower() for c in df.columns]",
        "df = df.dropna()",
        "part = df\npart['sales'] = 1",
        "part = df.loc[:, 'sales']\npart[0] = 1",
        "for name in ['a']:\n    df[name] = 0",
        "def clean(t):\n    t['sales'] = 1\nclean(df)",
        "def clean():\n    df['sales'] = 1\nclean()",
        "def clean():\n    global df\n    df = df.head(1)\nclean()",
        "df.insert(0, 'new', 1)",
        "df.unheard_of_method()",
        "unheard_of_function(df)",
        "pd.set_option('display.precision', 2)",
        "import numpy as np\nnp.random.seed(1)",
        "%matplotlib inline",
        "this is no python",
        "exec('df = 1')",
        "try:\n    df = df.astype({'sales': float})\nexcept ValueError:\n    pass",
        "if True:\n    df = df.head()",
        "import os\nos.chdir('..')",
        "(df := df.head())",
        "from numpy.random import shuffle\nshuffle(df)",
        "model = df\nmodel.fit(1)",
    ],
)
def test_a_cell_that_changes_what_is_read_is_needed(change: str) -> None:
    assert _needed(LOAD, change, "print(df.sales.sum())") == [0, 1, 2]


def test_a_value_that_is_made_again_does_not_need_its_first_maker() -> None:
    assert _needed("x = 1", "x = 2", "print(x)") == [1, 2]


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        ("x = 1", "x += 1", "print(x)"),
        ("xs = [1]", "xs[0] += 1", "print(xs)"),
        ("xs = [1, 2]", "del xs[0]", "print(xs)"),
        ("x: int = 1", "y: int = x", "print(y)"),
        ("n = 3", "while n > 0:\n    n -= 1", "print(n)"),
        ("n = 3", "for _ in range(n):\n    last = n", "print(last)"),
        ("kind = 'a'", "match kind:\n    case str() as found:\n        pass", "print(found)"),
        ("name = 'a'", "with open(name) as file:\n    text = file.read()", "print(text)"),
        ("x = 1", "try:\n    y = x\nfinally:\n    z = y", "print(z)"),
        ("import math", "half = math.pi / 2", "print(half)"),
        ("base = 2", "def f(x=base):\n    return x", "print(f())"),
        ("base = 2", "double = lambda: base * 2", "print(double())"),
    ],
)
def test_a_chain_of_cells_is_needed_whole(first: str, second: str, third: str) -> None:
    assert _needed(first, "unused = 1", second, third) == [0, 2, 3]


def test_a_place_that_is_counted_up_is_read() -> None:
    assert _needed("xs = [1]", "i = 0", "unused = 1", "xs[i] += 1", "print(xs)") == [0, 1, 3, 4]
    assert _needed("xs = [1]", "i = 0", "unused = 1", "xs[i] = 1", "print(xs)") == [0, 1, 3, 4]


def test_a_value_made_on_every_way_does_not_need_its_first_maker() -> None:
    both = "if len('a') > 3:\n    x = 2\nelse:\n    x = 3"
    assert _needed("x = 1", both, "print(x)") == [1, 2]
    assert _needed("x = 1", "if len('a') > 3:\n    x = 2", "print(x)") == [0, 1, 2]
    assert _needed("x = 1", "try:\n    x = 2\nexcept OSError:\n    x = 3", "print(x)") == [1, 2]
    assert _needed("x = 1", "import x", "print(x)") == [1, 2]


def test_of_a_very_long_notebook_all_cells_are_needed() -> None:
    cells = [f"x_{at} = {at}" for at in range(1_999)]
    assert _needed(*cells, "print(x_7)") == [7, 1_999]
    assert len(_needed(*cells, "y = 1", "print(x_7)")) == 2_001


def test_a_loop_may_not_have_run() -> None:
    assert _needed("x = 1", "for x in []:\n    pass", "print(x)") == [0, 1, 2]


def test_what_a_function_reads_is_needed_where_it_is_called() -> None:
    cells = ("def f():\n    return rate * 2", "rate = 3", "unused = 4", "print(f())")
    assert _needed(*cells) == [0, 1, 3]


def test_a_function_that_calls_another_needs_what_that_reads() -> None:
    cells = ("rate = 3", "def f():\n    return rate", "def g():\n    return f()", "print(g())")
    assert _needed(*cells) == [0, 1, 2, 3]


def test_a_function_s_own_names_are_none_of_the_notebook_s() -> None:
    cells = ("row = 1", "def f(x):\n    row = x\n    return row", "print(f(2))")
    assert _needed(*cells) == [1, 2]


def test_a_file_that_one_cell_writes_and_another_reads_ties_them() -> None:
    write = "df.to_csv('clean/sales.csv')"
    assert _needed(LOAD, write, "print(open('clean/sales.csv').read())") == [0, 1, 2]
    assert _needed(LOAD, write, "print(df.sales.sum())") == [0, 2]
    unknown = "name = 'a'\ndf.to_csv(f'{name}.csv')"
    assert _needed(LOAD, unknown, "pd.read_csv('a.csv')") == [0, 1, 2]


def test_a_query_s_saved_result_is_tied_by_its_name() -> None:
    runtime = "def run_sql(database, query, save_as):\n    rows.to_csv(save_as)"
    query = "result_1 = run_sql('s.db', 'select 1', save_as='result_1.csv')\nresult_1.head()"
    other = query.replace("_1", "_2")
    cells = [EarlierCell(source) for source in (runtime, query, other)]
    assert makes_files(cells) == frozenset()
    assert _needed(runtime, query, other) == [0, 2]
    assert _needed(runtime, query, "print(open('result_1.csv').read())") == [0, 1, 2]


def test_a_cell_that_failed_may_have_bound_what_it_binds_or_not() -> None:
    cells = ("x = 1", "x = 2\nx.gone", "print(x)")
    assert _needed(*cells, failed=(1,)) == [0, 1, 2]
    assert _needed("x = 1", "x = 2\nx.gone", "x = 3", "print(x)", failed=(1,)) == [2, 3]


def test_cells_below_the_wanted_one_are_not_needed() -> None:
    assert _needed("x = 1", "print(x)", "x = 2", "y = x", wanted=1) == [0, 1]


def test_a_figure_drawn_over_two_cells_needs_both() -> None:
    cells = ("import matplotlib.pyplot as plt", "fig, ax = plt.subplots()", "ax.plot([1])", "fig")
    assert _needed(*cells) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "source",
    [
        "df.to_csv('a.csv')",
        "fig.savefig('a.png')",
        "with open('a.txt', 'w') as f:\n    f.write('')",
    ],
)
def test_cells_that_are_there_to_write_a_file_are_found(source: str) -> None:
    assert makes_files([EarlierCell("df = 1"), EarlierCell(source)]) == {1}
    assert makes_files([EarlierCell("text = open('a.txt').read()")]) == frozenset()


@pytest.mark.parametrize("source", ["(" * 5_000, "\0", "x = " + "-" * 60_000 + "1", "a." * 20_000])
def test_any_text_gives_an_answer(source: str) -> None:
    assert _needed("x = 1", source, "print(x)")[-1] == 2


def test_names_of_deep_comprehensions_are_read_in_time() -> None:
    code = "x"
    for _ in range(25):
        code = f"[x for x in {code}]"
    assert loaded_names(ast.parse(code)) == {"x"}
    assert loaded_names(ast.parse("[a for a in b if c], {d: a for d in e for e in d}")) == set(
        "abce"
    )
