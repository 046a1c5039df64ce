"""Which answers rest on what the data do not have, beyond figures of nothing that they state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dm_jupyter.core.absent_data import absent_data, covered_words, names_absent, says_absent
from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.types import CellResult, CellStatus, Stream


def none_of(condition: str, *coverage: Coverage, operation: str = "[]") -> Fact:
    return Fact("kept", operation, 344, 0, condition=condition, coverage=coverage)


def cell(*facts: Fact, shows: str) -> CellResult:
    return CellResult(CellStatus.OK, (Stream("stdout", shows),), facts=facts)


YEAR = none_of("year == 2018", Coverage("year == 2018", 0, "year", low="2012", high="2015"))
LATER = none_of("year > 2018", Coverage("year > 2018", 0, "year", low="2012", high="2015"))
DAY = none_of(
    "day >= '2030-01-01'", Coverage("day >= '2030-01-01'", 0, "day", "2021-01-03", "2024-11-13")
)
HEAVY = none_of("mass > 10000", Coverage("mass > 10000", 0, "mass", low="2700.0", high="6300.0"))
BOTH = none_of(
    "species == 'Gentoo' and island == 'Dream'",
    Coverage("species == 'Gentoo'", 124), Coverage("island == 'Dream'", 124),
)  # fmt: skip
GENTO = none_of(
    "species == 'Gento'", Coverage("species == 'Gento'", 0, "species", near=(("'Gentoo'", 124),))
)
UK = none_of("country == 'UK'", Coverage("country == 'UK'", 0, "country"))
QUERY = none_of(
    "SELECT COUNT(*) FROM i WHERE total > 30",
    Coverage("total > 30", 0, "total", low="0.99", high="25.86"), operation="read_sql",
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "fact", "is_marked"),
    [
        ("How many weigh over 10 kg?", HEAVY, False),
        ("How many Gentoos live on Dream?", BOTH, False),
        ("How many rows have no mass?", none_of("mass missing"), False),
        ("How many rows are duplicates?", none_of(""), False),
        ("How many invoices are above the limit?", QUERY, False),
        ("How many keys are in both files?", Fact("merged", "merge", 4, 0, 4), False),
        ("How many Gento penguins are there?", GENTO, True),
        ("How many were measured in 2018?", YEAR, True),
        ("How many were measured after 2018?", LATER, True),
        ("How many orders came since 2030?", DAY, True),
        ("What do the matched orders come to?", Fact("merged", "merge", 4, 0, 4), True),
        ("What is the total of those over 10 kg?", HEAVY, True),
        ("What do the Gentoos on Dream weigh together?", BOTH, True),
    ],
)
def test_a_count_of_0_is_true_where_the_data_hold_what_is_counted(
    question: str, fact: Fact, is_marked: bool
) -> None:
    assert bool(absent_data("It is 0.", question, [cell(fact, shows="0\n")])) is is_marked


OF_NONE = Fact("kept", "[]", 0, 0, condition="species == 'Gentoo'")
MEAN = Fact("nothing", "mean", 0, 0, result="nan")
SUM = Fact("nothing", "sum", 0, 0, condition="mass > 10000", result="0.0")
JAPAN = none_of("country == 'Japan'", Coverage("country == 'Japan'", 0, "country"))
NEGATIVE = none_of("mass < 0", Coverage("mass < 0", 0, "mass", low="0.0", high="6300.0"))
MISSING = none_of("mass missing")


@pytest.mark.parametrize(
    ("question", "facts", "answer", "is_marked"),
    [
        ("What percentage weighs over 10000 g?", (HEAVY,), "0 %.", False),
        ("What is the proportion of Gentoos on Dream?", (BOTH,), "It is 0.0.", False),
        ("What share of the mass is that of those over 10000 g?", (HEAVY, SUM), "0 %", False),
        ("What % of those over 10000 g are Gentoos?", (HEAVY, OF_NONE), "0 %", True),
        ("What % of those over 10000 g are Gentoos?", (HEAVY, MEAN), "0 %", True),
        ("What share of those over 10000 g are Gentoos?", (HEAVY,), "It is nan.", True),
        ("What percentage lives in Japan?", (JAPAN,), "0 %", True),
        ("What percentage lives on islands of the East?", (JAPAN,), "0 %", True),
        ("What share was measured in 2018?", (YEAR,), "0 %", True),
        ("What share was measured after 2018?", (LATER,), "0 %", True),
        ("What are all totals over 10000 g?", (HEAVY,), "0 g", True),
        ("What is the share price of those over 10 kg?", (HEAVY, MEAN), "It is 0.", True),
        ("Check whether any are over 10000 g.", (HEAVY,), "0 are.", False),
        ("Verify that none is over 10000 g.", (HEAVY,), "0 are.", False),
        ("Does every penguin weigh less than 10000 g?", (HEAVY,), "Yes, 0 weigh more.", False),
        ("Verify the customers in Japan.", (JAPAN,), "0 customers.", True),
    ],
)
def test_a_share_or_a_check_of_0_is_true_where_the_data_hold_what_is_counted(
    question: str, facts: tuple[Fact, ...], answer: str, *, is_marked: bool
) -> None:
    results = [cell(*facts, shows="0.0 nan\n")]
    assert bool(absent_data(answer, question, results)) is is_marked


@pytest.mark.parametrize(
    ("question", "facts", "is_marked"),
    [
        ("Describe mass.", (HEAVY,), False),
        (
            "Describe mass.",
            (HEAVY, Fact("shown", "display", 0, 0, condition="mass > 10000")),
            False,
        ),
        ("Describe the mass of 2009.", (HEAVY,), False),
        ("Look at the file.", (none_of(""), NEGATIVE, MISSING), False),
        ("What is the least mass, and does no mass lack?", (MISSING,), False),
        ("What do the heaviest penguins weigh together?", (HEAVY, SUM), True),
        ("What do penguins over 10 kg weigh together?", (HEAVY,), True),
        ("What did customers pay?", (QUERY,), True),
        ("Describe the customers.", (JAPAN,), True),
        ("Describe the penguins.", (none_of("species.str.contains('Gento')"),), True),
        ("Describe the years.", (YEAR,), True),
        ("Describe the matched orders.", (Fact("merged", "merge", 4, 0, 4),), True),
    ],
)
def test_a_0_is_not_tied_to_a_check_that_the_question_does_not_ask_for(
    question: str, facts: tuple[Fact, ...], *, is_marked: bool
) -> None:
    results = [cell(*facts, shows="min 0.0\nmax 47.0\n")]
    assert bool(absent_data("It runs from 0 to 47.", question, results)) is is_marked


def test_nan_is_no_0_of_a_check() -> None:
    results = [cell(HEAVY, shows="0 nan\n")]
    assert absent_data("There are 0, and their mean is nan.", "How heavy are they?", results)


PREMISE = "Why was 2018 windier than 2014?"
OTHER = Fact("kept", "[]", 1461, 365, condition="year == 2014")
FOUND = Fact("kept", "[]", 412, 21, condition="country == 'United Kingdom'")


def test_an_answer_about_the_value_that_no_row_has_is_marked() -> None:
    worked = [cell(YEAR, OTHER, shows="2018: nan\n2014: 3.79\n")]
    assert absent_data("Storms made 2018 windier; 2014 had 3.79.", PREMISE, worked) != ()
    assert absent_data("2014 had 3.79; the data end in 2015.", PREMISE, worked) == ()
    # It passes over the year that was asked about.
    assert absent_data("In 2014 the mean was 3.79.", PREMISE, worked) != ()
    only = "The 'year' column only contains values up to 2015."
    assert absent_data(only, PREMISE, worked) == ()
    assert absent_data("No storms were measured in that year.", PREMISE, worked) == ()


def test_a_value_that_was_found_under_another_name_is_not_absent() -> None:
    question, answer = "What are the sales in the UK?", "Sales in the UK were 112.86."
    assert absent_data(answer, question, [cell(UK, FOUND, shows="112.86")]) == ()
    assert absent_data(answer, question, [cell(UK, shows="112.86")]) != ()


def test_a_label_that_reindexing_did_not_find_is_absent() -> None:
    fact = Fact("lost", "reindex", 3, 1, condition="year", result="2010, 2011")
    answer = "The number dropped from 44 to 0 in 2011."
    shown = cell(fact, shows="2009 44\n2010 0\n2011 0\n")
    assert absent_data(answer, "Why did the number drop in 2011?", [shown]) != ()
    assert absent_data("In 2009 there were 44.", "And in 2009?", [shown]) == ()


@pytest.mark.parametrize(
    ("shows", "is_marked"),
    [
        ("Empty DataFrame\nColumns: [temp_2, wind]\nIndex: []\n", True),
        ("Series([], Name: ph, dtype: float64)\n", True),
        ("[]\n", True),
        ("None\n", True),
        ("mean: nan\n", True),
        ("Adelie\n", False),
        ("['Adelie']\n", False),
        ("", False),
    ],
)
def test_words_about_a_selection_that_showed_nothing_are_marked(
    shows: str, is_marked: bool
) -> None:
    results = [cell(GENTO, shows="ready\n"), cell(shows=shows)]
    found = absent_data("They are heavy.", "Are they heavy?", results)
    assert bool(found) is is_marked


def test_words_of_the_question_say_nothing_about_the_data() -> None:
    fact = Fact("nothing", "mean", 2, 0, condition="bill", result="nan")
    question = "What is the mean bill where the mass is missing?"
    results = [cell(fact, shows="nan")]
    assert absent_data("Where the mass is missing it is nan.", question, results) != ()
    assert absent_data("All bills are missing there, too.", "What is the bill?", results) == ()


MISSED = ("2020 lies outside of 'date' (2012-01-01 … 2015-12-31)",)


@pytest.mark.parametrize(
    ("answer", "is_marked"),
    [
        ("There were 0 days in 2020 with snow.", True),
        ("The mean in 2020 is nan.", True),
        ("No, it never snowed in 2020.", True),
        ("The data only cover 2012 to 2015, so it is 0.", False),
        ("There are no rows for 2020.", False),
        ("At this rate, 2020 has 12 days.", False),
        ("There is no trend, so 2020 has 12 days as well.", False),
    ],
)
def test_nothing_in_a_year_that_the_data_miss_is_marked_whatever_a_cell_selected(
    answer: str, is_marked: bool
) -> None:
    question, shown = "How many days in 2020 had snow?", [cell(shows="0 False\n1 False")]
    assert absent_data(answer, question, shown, MISSED) == (MISSED if is_marked else ())
    assert absent_data(answer, question, [], MISSED) == ()


def test_the_selection_itself_is_named_where_it_is_known() -> None:
    (found,) = absent_data("0 days.", "How many in 2018?", [cell(YEAR, shows="0")], MISSED)
    assert "year == 2018" in found


LEGAL = none_of("Department == 'Legal'", Coverage("Department == 'Legal'", 0, "Department"))
SNOW = none_of("date == 2016", Coverage("date == 2016", 0, "date", low="2012", high="2015"))
BUDGET = "What is the budget of the Legal department?"


@pytest.mark.parametrize(
    ("question", "fact", "later", "answer", "is_marked"),
    [
        (BUDGET, LEGAL, "print('budget of legal: 0')", "The budget is 0.", True),
        (BUDGET, LEGAL, "print(df.department.eq('Law').sum())", "The budget is 0.", False),
        (BUDGET, LEGAL, "print('budget of legal: 0')", "The data contain no Legal.", False),
        ("What is the budget?", LEGAL, "print('budget: 0')", "The budget is 0.", False),
        ("How often did it snow in 2016?", SNOW, "print(len(df[df.rain > 0]))", "23 days.", True),
        ("How often did it snow in 2016?", SNOW, "print(len(df[df.date > '2']))", "23.", False),
    ],
)
def test_a_condition_that_later_cells_give_up_is_not_forgotten(
    question: str, fact: Fact, later: str, answer: str, is_marked: bool
) -> None:
    failed = CellResult(CellStatus.ERROR, facts=(fact,))
    results = [failed, cell(shows="23 or 0")]
    assert bool(absent_data(answer, question, results, (), ["…", later])) == is_marked
    is_said = "no Legal" in answer
    is_named = any(name in question for name in ("Legal", "2016"))
    assert bool(absent_data(answer, question, [failed])) == (is_named and not is_said)


def test_a_value_that_a_later_cell_finds_in_another_column_is_not_given_up() -> None:
    code = none_of("Code == 'France'", Coverage("Code == 'France'", 0, "Code"))
    found = Fact("kept", "[]", 9, 1, condition="Name == 'France'")
    question, sources = "How many live in France?", ["…", "print(df[df.Name == c].size)"]
    results = [cell(code, shows=""), cell(found, shows="67.8")]
    assert absent_data("67.8 million.", question, results, (), sources) == ()
    assert absent_data("67.8 million.", question, [results[0], cell(shows="67.8")], (), sources)


def test_a_number_that_no_row_has_is_no_slip_of_another_one() -> None:
    near = (("'S-05'", 1), ("'S-03'", 1))
    facts = [none_of("sample == 'S-09'", Coverage("sample == 'S-09'", 0, "sample", near=near))]
    assert names_absent(facts, "What pH did sample S-09 have?")
    other = Coverage("sample == 'S-09'", 0, "sample", near=(("'S-09b'", 1), *near))
    assert not names_absent([none_of("sample == 'S-09'", other)], "What pH did S-09 have?")


@pytest.mark.parametrize(
    ("part", "is_told"),
    [
        (Coverage("country == 'usa'", 0, "country", near=(("'USA'", 312),)), False),
        (Coverage("country == 'usa'", 0, "country", dtype="int64"), False),
        (Coverage("country == 'usa'", 0, "country", frequent=(("'UK'", 3),)), True),
    ],
)
def test_what_a_cell_spelt_wrongly_is_not_called_absent(part: Coverage, *, is_told: bool) -> None:
    facts = [none_of("country == 'usa'", part)]
    assert names_absent(facts, "How many live in the USA?") is is_told
    assert not names_absent(facts, "How many live there?")


IN_2014 = Fact("kept", "[]", 1461, 365, condition="year == 2014")
NO_SNOW = Fact(
    "kept", "[]", 365, 0, condition="weather contains 'snow'",
    coverage=(Coverage("weather contains 'snow'", 0, "weather", frequent=(("'sun'", 211),)),),
)  # fmt: skip
NO_RAIM = Fact(
    "kept", "[]", 365, 0, condition="weather == 'raim'",
    coverage=(Coverage("weather == 'raim'", 0, "weather", near=(("'rain'", 30),)),),
)  # fmt: skip
UNLISTED = none_of(
    "island == False",
    Coverage("island == False", 0, "island", frequent=(("True", 344),)),
)  # fmt: skip


TEXT = none_of("coached == True", Coverage("coached == True", 0, "coached", dtype="text"))
PRESENT = Fact("kept", "[]", 1461, 365, condition="weather present")


@pytest.mark.parametrize(
    ("facts", "is_marked"),
    [
        ((IN_2014, NO_SNOW), False),
        ((NO_SNOW,), True),
        ((replace(IN_2014, after=364), NO_SNOW), True),
        ((PRESENT, NO_SNOW), True),
        ((IN_2014, NO_RAIM), True),
        ((UNLISTED,), False),
        ((TEXT,), True),
    ],
)
def test_a_label_that_rows_chosen_before_lack_may_be_counted_as_0(
    facts: tuple[Fact, ...], is_marked: bool
) -> None:
    question = "How many days are there in 2014?"
    found = absent_data("It is 0.", question, [cell(*facts, shows="0\n")])
    assert bool(found) is is_marked


@pytest.mark.parametrize(
    ("answer", "is_said"),
    [
        ("The data contain no rows for 2018.", True),
        ("The table has none, and covers 2012 to 2015.", True),
        ("No, the data show no increase.", False),
        ("The data have no clear trend.", False),
    ],
)
def test_what_data_show_is_not_what_they_lack(answer: str, *, is_said: bool) -> None:
    assert says_absent(answer, "Did the wind increase?") is is_said


def test_a_query_explains_the_empty_table_that_it_shows() -> None:
    shown = Fact("shown", "frame", 0, 0)
    results = [cell(QUERY, shown, shows="Empty DataFrame\nColumns: [a]\nIndex: []\n")]
    question = "Which customers spent more than 30 dollars?"
    assert absent_data("No customers spent more than 30 dollars.", question, results) == ()
    other = [
        cell(QUERY, shows="0\n"),
        cell(shown, shows="Empty DataFrame\nColumns: [a]\nIndex: []\n"),
    ]
    assert absent_data("No customers spent more than 30 dollars.", question, other)
    told = absent_data("Paul spent more than 30 dollars.", question, results)
    assert told
    assert told[0].startswith("no row fits")


DUPLICATES = none_of("")


@pytest.mark.parametrize(
    ("facts", "is_marked"),
    [
        ((DUPLICATES, Fact("shown", "display", 0, 0, condition="a mask")), False),
        ((DUPLICATES, Fact("nothing", "count", 0, 0, condition="a mask", result="0")), False),
        ((DUPLICATES, Fact("shown", "display", 0, 0)), False),
        ((HEAVY, Fact("shown", "to_csv", 0, 0)), False),
        ((GENTO, Fact("shown", "display", 0, 0)), True),
        ((Fact("shown", "display", 0, 0), DUPLICATES), True),
        ((DUPLICATES, Fact("shown", "display", 0, 0, condition="dropna")), True),
        ((DUPLICATES, Fact("shown", "display", 3, 0, condition="mass")), True),
        ((Fact("shown", "display", 0, 0, condition="a mask"),), True),
    ],
)
def test_a_table_without_rows_is_judged_by_the_selection_of_its_cell(
    facts: tuple[Fact, ...], *, is_marked: bool
) -> None:
    results = [cell(*facts, shows="0\n")]
    assert bool(absent_data("0", "How many rows are there twice?", results)) is is_marked


def test_a_table_is_judged_by_a_nameless_selection_of_an_earlier_cell() -> None:
    shown = Fact("shown", "display", 0, 0, condition="a mask")
    results = [cell(DUPLICATES, shows="0\n"), cell(shown, shows="0\n")]
    assert absent_data("0", "How many rows are there twice?", results) == ()


def test_an_answer_that_says_what_the_data_lack_gets_what_they_have() -> None:
    question, answer = "How many were measured in 2018?", "The data contain no rows for 2018."
    results = [cell(YEAR, shows="0\n"), cell(YEAR, shows="0\n")]
    assert covered_words(answer, question, results, MISSED) == ("year runs from 2012 to 2015.",)
    assert covered_words(answer, question, [cell(shows="0")], MISSED) == (f"{MISSED[0]}.",)
    assert covered_words("There were 0.", question, results, MISSED) == ()
    assert covered_words(answer, "How many were measured?", results) == ()
    labels = Coverage("who == 'Al'", 0, "who", frequent=(("'Bo'", 3), ("'Cy'", 1)))
    told = covered_words(
        "There is no data on Al.", "And Al?", [cell(none_of("who == 'Al'", labels), shows="")]
    )
    assert told == ("who has values such as 'Bo' (3), 'Cy' (1).",)
    both = "How many Gentoos live on Dream?"
    assert covered_words("There are no rows for them.", both, [cell(BOTH, shows="0")]) == ()


@pytest.mark.parametrize(
    ("question", "code", "is_marked"),
    [
        ("What was the total in 2020?", "print(df.total.sum())", True),
        ("What was the total in May 2020?", "print(df[df.day < '2015'].total.sum())", True),
        ("What was the total in 2020?", "print(df[df.year == 2020].total.sum())", False),
        ("What will the total of 2020 be?", "print(line.predict(9))", False),
        ("Forecast the total for 2020.", "print(line.predict(9))", False),
        ("What was the total before 2020?", "print(df.total.sum())", False),
        ("What was the total since 1 May 2020?", "print(df.total.sum())", False),
    ],
)
def test_a_year_without_data_that_no_cell_uses_is_marked(
    question: str, code: str, *, is_marked: bool
) -> None:
    results = [CellResult(CellStatus.ERROR), cell(shows="14")]
    found = absent_data("The total was 14.", question, results, MISSED, ["df['2020']", code])
    assert found == (MISSED if is_marked else ())
    assert absent_data("The data end in 2015.", question, results, MISSED, ["", code]) == ()
