"""Facts in words, and which answers rest on data that are not there."""

from __future__ import annotations

import pytest

from dm_jupyter.core.absent_data import absent_data, rests_words
from dm_jupyter.core.data_facts import fact_words, facts_block, notable_words
from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.types import CellResult, CellStatus, Display, Stream

BRITAIN = Fact(
    "kept", "[]", before=541_909, after=0, condition="Country == 'Great Britain'",
    coverage=(Coverage("Country == 'Great Britain'", 0, "Country",
                       near=(("'GREAT BRITAIN'", 12),)),), line=2,
)  # fmt: skip
SUM = Fact("nothing", "sum", 0, 0, condition=BRITAIN.condition, result="0.0")
MEAN = Fact("nothing", "mean", 0, 0, condition=BRITAIN.condition, result="nan")
PLAIN = Fact("kept", "[]", 344, 146, condition="species == 'Adelie'")
YEAR = Fact(
    "kept", "query", before=9_000, after=0, condition="year == 2012 and month == 11",
    coverage=(
        Coverage("year == 2012", 0, "year", low="2021", high="2025"),
        Coverage("month == 11", 700),
    ),
)  # fmt: skip
QUESTION = "Why did sales drop in November 2012?"

WORDS = [
    (PLAIN, "kept 146 of 344 rows (species == 'Adelie')"),
    (
        BRITAIN,
        "no row has Country == 'Great Britain' (of 541,909); 'GREAT BRITAIN' has 12",
    ),
    (
        YEAR,
        "no row has year == 2012 and month == 11 (of 9,000); year runs from 2021 to 2025; "
        "month == 11 alone has 700",
    ),
    (Fact("kept", "[]", 5, 0), "a selection kept no row (of 5)"),
    (
        Fact("kept", "read_sql", None, 0, condition="SELECT 1"),
        "no row fits the conditions of the query: SELECT 1",
    ),
    (
        Fact("kept", "[]", 5, 0, condition="id == '7'", coverage=(
            Coverage("id == '7'", 0, "id", low="1", high="9", dtype="int64"),)),
        "no row has id == '7' (of 5); id runs from 1 to 9, of type int64",
    ),
    (
        Fact("kept", "[]", 5, 0, condition="c == 'x'", coverage=(
            Coverage("c == 'x'", 0, "c", frequent=(("'a'", 3), ("'b'", 2))),)),
        "no row has c == 'x' (of 5); c has values such as 'a' (3), 'b' (2)",
    ),
    (Fact("dropped", "dropna", 344, 333), "dropna kept 333 of 344 rows"),
    (
        Fact("dropped", "groupby", 344, 333, condition="sex"),
        "groupby (sex): 11 of 344 rows have no key and are in no group",
    ),
    (
        Fact("merged", "merge", 10, 30, other=9, condition="id (inner)"),
        "merge on id (inner): 10 and 9 rows gave 30",
    ),
    (
        Fact("merged", "merge", 10, 10, other=9, missed=4, condition="id (left)"),
        "merge on id (left): 10 and 9 rows gave 10, 4 without a partner",
    ),
    (
        Fact("lost", "to_numeric", 344, 340, condition="price", result="'n/a', '-'"),
        "to_numeric: 4 of 344 values of price became NaN: 'n/a', '-'",
    ),
    (SUM, "sum of 0 rows (Country == 'Great Britain') gave 0.0"),
    (
        Fact("nothing", "mean", 12, 0, condition="price", result="nan"),
        "mean of 12 values that are all missing (price) gave nan",
    ),
    (Fact("shown", "display", 0, 0), "the table shown has 0 rows"),
    (Fact("shown", "to_csv", 0, 0), "what to_csv saved has 0 rows"),
    (Fact("dropped", "dropna", 9, 8, times=3), "dropna kept 8 of 9 rows (3 times)"),
]  # fmt: skip


@pytest.mark.parametrize(("fact", "words"), WORDS)
def test_a_fact_is_one_line_without_advice(fact: Fact, words: str) -> None:
    assert fact_words(fact) == words


def test_a_cell_that_did_nothing_to_the_data_has_no_lines() -> None:
    assert facts_block(()) == ""


def test_of_many_facts_the_notable_ones_are_kept_in_order() -> None:
    plain = [Fact("kept", "[]", 9, n, condition=f"x > {n}") for n in range(1, 9)]
    lines = facts_block([*plain[:7], BRITAIN, plain[7]]).splitlines()
    assert lines[0] == "What happened to the data:"
    assert lines[1] == "- kept 1 of 9 rows (x > 1)"
    assert lines[6] == f"- {fact_words(BRITAIN)}"
    assert lines[7] == "- and 3 more"


def test_a_person_sees_what_went_missing_and_no_plain_filter() -> None:
    grouped = Fact("dropped", "groupby", 344, 333, condition="sex")
    lost = Fact("lost", "to_numeric", 9, 7, condition="price")
    whole = Fact("merged", "merge", 10, 10, other=9, condition="id")
    missed = Fact("merged", "merge", 10, 10, other=9, missed=4, condition="id")
    more = Fact("merged", "merge", 10, 30, other=9, condition="id")
    dropped = Fact("dropped", "dropna", 9, 8)
    notable = [BRITAIN, SUM, grouped, lost, missed, more]
    assert notable_words([PLAIN, dropped, whole, *notable]) == tuple(map(fact_words, notable))
    assert notable_words([lost, lost]) == (fact_words(lost),)
    assert notable_words([PLAIN, dropped, whole]) == ()


def cell(*facts: Fact, shows: str = "", status: CellStatus = CellStatus.OK) -> CellResult:
    return CellResult(status, (Stream("stdout", shows),), facts=facts)


@pytest.mark.parametrize(
    ("answer", "results", "expected"),
    [
        ("Total sales were $0.00, a significant drop.", [cell(YEAR, SUM, shows="0.0")], True),
        ("There was a significant drop in November 2012.", [cell(YEAR, SUM, shows="0.0")], True),
        ("The total is 0.", [cell(BRITAIN, SUM, shows="0.0"), cell(shows="done")], True),
        ("The mean is nan.", [cell(BRITAIN, MEAN, shows="nan")], True),
        ("0 customers.", [cell(BRITAIN, shows="0")], True),
        ("No row of 2012 is in the data; they run from 2021.", [cell(YEAR, SUM, shows="0")], False),
        ("The data do not cover 2012.", [cell(YEAR, SUM, shows="0.0")], False),
        ("There are no records of Great Britain: 0.", [cell(BRITAIN, SUM, shows="0.0")], False),
        ("Sales were 1,200.", [cell(BRITAIN, SUM, shows="0.0"), cell(shows="1200")], False),
        ("The mean is 3.5.", [cell(BRITAIN, MEAN, shows="nan\n3.5")], False),
        ("Sales fell to 0.", [cell(PLAIN, shows="0")], False),
        ("Adelie are heavier.", [cell(BRITAIN, SUM, shows="3700.66 3733.09 0.0")], False),
        ("Sales were 0.", [cell(BRITAIN, SUM, shows="0", status=CellStatus.ERROR)], False),
        ("Nothing.", [], False),
    ],
)
def test_an_answer_rests_on_a_figure_of_nothing_that_it_states(
    answer: str, results: list[CellResult], expected: bool
) -> None:
    assert bool(absent_data(answer, QUESTION, results)) is expected


def test_the_selection_explains_the_figure() -> None:
    absent = absent_data("It is 0.", "How much?", [cell(BRITAIN, SUM, shows="0.0")])
    assert absent == (fact_words(BRITAIN),)
    assert rests_words(absent) == (
        "This answer rests on a selection without rows or values: no row has "
        "Country == 'Great Britain' (of 541,909); 'GREAT BRITAIN' has 12."
    )
    assert rests_words(()) == ""


def test_an_empty_table_that_was_shown_counts_as_put_out() -> None:
    shown = Fact("shown", "display", 1, 0, condition="SUM(total)")
    result = CellResult(CellStatus.OK, (Display({"text/plain": "  SUM(total)\n0  None"}),), 1,
                        facts=(shown,))  # fmt: skip
    assert absent_data("The sum is not larger.", "Is the sum larger?", [result]) != ()
