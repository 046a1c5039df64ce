"""Facts name a column of the data only if they are about its values."""

from __future__ import annotations

import math

import pytest

from dm_jupyter.core.data_facts import fact_words
from kernel_sandbox.ledger import book, origins
from kernel_sandbox.ledger.facts import Fact
from tests.kernel_sandbox.ledger.ledger_shell import LedgerShell

SET_UP = """
import numpy as np
import pandas as pd
df = pd.DataFrame({
    'score': [50.0, 60, 70, 80], 'price': [2, 3, 4, 5], 'weight': [1.5, 2.7, None, 4.2],
    'name': ['ab', 'abc', 'abcd', 'x'], 'paid': ['1', '2', '3', '4'],
    'day': pd.to_datetime(['2021-01-03', '2021-02-03', '2021-03-03', '2021-04-03']),
})
by_day = df.set_index('day').price
doubled = df.price * 2
"""


def facts_of(source: str) -> tuple[Fact, ...]:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    return shell.run(source)


@pytest.mark.parametrize(
    "condition",
    [
        "df.score.rank(ascending=False) > 9",
        "df['price'] * 2 > 900",
        "doubled > 900",
        "df.price.diff() > 5",
        "df.price.shift(1) == 5",
        "df.name.shift(1) == 'x'",
        "df.price.pct_change() > 5",
        "df.price.cumsum() > 900",
        "df.price.sub(9).abs() > 900",
        "df.price.rolling(2).mean() > 900",
        "df.groupby('name').price.transform('size') > 900",
        "np.log(df.price) > 900",
        "df.price.astype('Int64') + 1 > 900",
        "df.price.map(lambda x: x * 3) > 900",
        "df.copy().price.diff() > 900",
        "df.name.str.len() > 30",
        "df.day.diff() > '900 days'",
        "df.price + df.score > 900",
        "(df.price * 2).between(900, 901)",
        "(df.price > 2) & (df.price.diff() > 900)",
        "~(df.price.diff() < 900) & (df.price > 2)",
    ],
)
def test_a_computed_value_is_not_named_for_its_column_and_its_lack_is_no_absence(
    condition: str,
) -> None:
    facts = facts_of(f"df[{condition}]")
    assert facts
    for fact in facts:
        assert "a computed value" in fact_words(fact)
        assert "runs from" not in fact_words(fact)
        assert not fact.is_absence


def test_differences_that_occur_in_their_column_are_not_its_values() -> None:
    source = "t = pd.DataFrame({'price': [1, 2, 4]}, index=list('abc')).price.diff()\n"
    (fact, *_) = facts_of("df['price'] = [1, 2, 3, 4]\n" + source + "t[t > 900]")
    assert fact.condition == "a computed value > 900"


def test_groups_are_not_the_column_that_they_sum() -> None:
    (fact, *_) = facts_of("sums = df.groupby('name').score.sum() * 7\nsums[sums > 900]")
    assert fact_words(fact) == "no row has a computed value > 900 (of 4)"


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("df['price'] > 900", "price > 900 (of 4); price runs from 2 to 5"),
        ("df.price.astype(float) > 900", "price > 900 (of 4); price runs from 2.0 to 5.0"),
        ("df.weight.fillna(0) > 900", "weight > 900 (of 4); weight runs from 0.0 to 4.2"),
        ("df.weight.fillna(0).astype(int) > 900", "weight > 900 (of 4); weight runs from 0 to 4"),
        ("df.score.replace(80, np.nan) > 900", "score > 900 (of 4); score runs from 50.0 to 70.0"),
        ("df.loc[:, 'price'] > 900", "price > 900 (of 4); price runs from 2 to 5"),
        ("df.name.str.strip().str.lower() == 'abd'", "name == 'abd' (of 4); 'abcd' has 1"),
        ("pd.to_numeric(df.paid) > 900", "paid > 900 (of 4); paid runs from 1 to 4"),
        ("df.paid.astype(int) > 900", "paid > 900 (of 4); paid runs from 1 to 4"),
        ("df.day.dt.year == 2009", "day == 2009 (of 4); day runs from 2021 to 2021"),
        ("pd.to_datetime(df.day) > '2029'", "day > '2029' (of 4); day runs from 2021-01-03 to"),
        (
            "(df.price > 900) & (df.price.diff() > 900)",
            "price > 900 and a computed value > 900 (of 4); price runs from 2 to 5",
        ),
    ],
)
def test_the_values_of_a_column_keep_its_name_when_they_are_cleaned(
    condition: str, words: str
) -> None:
    fact = next(one for one in facts_of(f"df[{condition}]") if one.kind == "kept")
    assert fact_words(fact).startswith(f"no row has {words}")
    assert fact.is_absence


@pytest.mark.parametrize(
    "source",
    [
        "by_day[by_day > 900]",
        "t = df.set_index('day')\nt[t.price > 900]",
        "df[df.set_index('day').price.to_frame().reset_index().price > 900]",
        "p = df.tail(3).price.dropna()\np[p > 900]",
        "def pricey(path):\n    t = pd.DataFrame({'price': [2, 3, 4, 5]})\n"
        "    return t[t.price > 900]\npricey('')",
        "s = df.sort_values('score').set_index('name').price\ns[s.fillna(1) > 900]",
    ],
)
def test_a_column_keeps_its_name_in_another_table(source: str) -> None:
    fact = facts_of(source)[0]
    assert "price > 900" in fact.condition
    assert fact.is_absence


def test_a_column_compared_with_a_computed_one_says_so() -> None:
    (fact, *_) = facts_of("df[df.price > df.price.shift(1) + 90]")
    assert fact_words(fact) == "no row has price > a computed value (of 4)"
    assert not fact.is_absence


def test_a_mask_whose_truths_were_moved_stands_for_no_condition() -> None:
    (fact,) = facts_of("m = df.price > 3\nm[0] = True\nm[3] = False\ndf[m]")
    assert fact_words(fact) == "kept 2 of 4 rows"


@pytest.mark.parametrize(
    ("inclusive", "text"),
    [("both", "[5, 9]"), ("right", "(5, 9]"), ("left", "[5, 9)"), ("neither", "(5, 9)")],
)
def test_a_range_says_which_of_its_ends_belong_to_it(inclusive: str, text: str) -> None:
    fact = facts_of(f"df[df.price.between(5, 9, inclusive={inclusive!r})]")[0]
    assert fact.condition == f"price between {text}"


def test_a_cross_join_has_no_keys() -> None:
    (fact,) = facts_of("df.merge(df, how='cross')")
    assert fact_words(fact) == "merge: 4 and 4 rows gave 16"


@pytest.mark.parametrize("axis", ["axis=1", "axis='columns'"])
def test_a_sum_of_each_row_is_not_that_of_a_column_of_its_number(axis: str) -> None:
    source = f"z = pd.DataFrame({{0: [np.nan, np.nan], 1: [0.0, 1.0]}})\nz.sum({axis})"
    assert facts_of(source) == ()


def test_what_a_shift_lacks_is_no_gap_of_its_column() -> None:
    assert facts_of("df.price.shift(1).fillna(0)") == ()
    assert facts_of("df.price.head(1).diff().sum()")[0].condition == "a computed value"


def test_counting_computed_values_is_no_absence() -> None:
    (fact,) = facts_of("(df.price.diff() > 5).sum()")
    assert fact_words(fact) == "no row has a computed value > 5 (of 4)"
    assert not fact.is_absence


LOOP = "p = df.price.iloc[::-1]\nfor limit in range(900, 950):\n    c = {column}\n    c[c > limit]"


def compared_in_a_loop(column: str, monkeypatch: pytest.MonkeyPatch) -> int:
    compared = []

    def has_values(values: object, source: object) -> bool:
        compared.append(values)
        return original(values, source)

    original = origins._has_values
    monkeypatch.setattr(origins, "_has_values", has_values)
    facts_of(LOOP.format(column=column))
    return len(compared)


def test_a_column_is_searched_for_once_however_often_a_loop_compares_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert compared_in_a_loop("p", monkeypatch) == 1


@pytest.mark.parametrize(("seconds", "times"), [(math.inf, 50), (0.0, 1)])
def test_the_search_for_columns_ends_when_its_time_is_up(
    seconds: float, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "_COMPARING_S", seconds)
    assert compared_in_a_loop("df.price.iloc[::-1]", monkeypatch) == times
