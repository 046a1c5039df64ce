"""Numbers are bound to what they are about: rows, columns and units of the output they are from."""

import unicodedata
from typing import Literal

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dm_jupyter.assist.grounding import ground, unshown_values, unsupported_numbers
from dm_jupyter.core.grounded import Verdict, doubt_words

MASSES = pd.DataFrame(
    {"body_mass_g": [3700.66, 3733.09, 5076.02], "flipper_length_mm": [189.95, 195.82, 217.19]},
    index=pd.Index(["Adelie", "Chinstrap", "Gentoo"], name="species"),
)
SALES = pd.DataFrame({"year": [2019, 2020, 2021], "sales": [1250, 980, 1410]})
NAMES = st.sampled_from(
    ["North", "New York", "group A", "Model 3", "18-25", "Q1", "très bon", "x_1"]
)


@pytest.mark.parametrize(
    ("answer", "verdict", "why"),
    [
        ("The heaviest is Chinstrap at 5076 g.", Verdict.MISMATCHED, "is for Gentoo, not Chinst"),
        ("Chinstrap is the heaviest with 3733 g.", Verdict.MISMATCHED, "largest there is 5076.02"),
        ("Gentoo have flippers of 5076.02 mm.", Verdict.MISMATCHED, "another unit"),
        ("Gentoo weigh 5076 kg.", Verdict.MISMATCHED, "another unit"),
        ("Gentoo weigh 5077 g.", Verdict.UNSUPPORTED, ""),
        ("Gentoo weigh 5076 g.", Verdict.SUPPORTED, ""),
        ("Gentoo weigh about 5,100 g.", Verdict.SUPPORTED, ""),
        ("Gentoo weigh about 5,200 g.", Verdict.UNSUPPORTED, ""),
        ("Gentoo weigh 5.08 kg.", Verdict.DERIVED, "from 5076.02"),
        ("Gentoo are 37 % heavier than Adelie.", Verdict.DERIVED, "5076.02 / 3700.66 - 1"),
        ("Gentoo are 47 % heavier than Adelie.", Verdict.UNSUPPORTED, ""),
        ("Gentoo exceed Adelie by 1,375 g.", Verdict.DERIVED, "5076.02 - 3700.66"),
        ("The 3 species differ.", Verdict.DERIVED, "3 rows"),
        ("The 4 species differ.", Verdict.UNSUPPORTED, ""),
    ],
)
def test_a_number_is_bound_to_row_column_and_unit(answer: str, verdict: Verdict, why: str) -> None:
    (found,) = ground(answer, [str(MASSES)], "Which species is heaviest?")
    assert (found.verdict, why in found.why) == (verdict, True)
    assert answer[found.start : found.end].strip() == found.text


@pytest.mark.parametrize(
    "output",
    [
        str(MASSES),
        str(MASSES.reset_index()),
        MASSES.reset_index().to_string(index=False),
        str(MASSES["body_mass_g"]),
        MASSES.to_csv(),
        repr(MASSES["body_mass_g"].to_dict()),
        repr(MASSES.to_dict("index")),
        repr(MASSES.reset_index().to_dict("records")),
        repr(list(MASSES["body_mass_g"].items())),
        "\n".join(f"{name}: {mass} g" for name, mass in MASSES["body_mass_g"].items()),
        "\n".join(f"The mass of {name} is {mass}" for name, mass in MASSES["body_mass_g"].items()),
        "\n".join(f"@{name.lower()}[{mass}]" for name, mass in MASSES["body_mass_g"].items()),
        f"Result:\n{MASSES}\n[3 rows x 2 columns]",
    ],
)
def test_every_form_of_output_tells_whose_a_value_is(output: str) -> None:
    assert unsupported_numbers("Gentoo weigh 5076 g, Adelie 3701 g.", ["start", output]) == ()
    assert unsupported_numbers("Adelie weigh 5076 g.", ["start", output]) == ("5076",)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_an_accent_may_be_a_character_of_its_own(form: Literal["NFC", "NFD"]) -> None:
    table = unicodedata.normalize(form, "stadt       n\nK\u00f6ln 2   5000\nBonn     3000\n")
    for other in ("NFC", "NFD"):
        answer = unicodedata.normalize(other, "K\u00f6ln 2 has {}.")
        assert unsupported_numbers(answer.format(5000), [table]) == ()
        found = ground(answer.format(3000), [table])[-1]
        assert (found.is_doubtful, found.start) == (True, answer.index("{"))


def test_numbers_of_a_list_belong_to_the_names_in_their_order() -> None:
    right = "Adelie, Chinstrap and Gentoo weigh 3701, 3733 and 5076 g respectively."
    assert unsupported_numbers(right, [str(MASSES)]) == ()
    swapped = right.replace("3701, 3733", "3733, 3701")
    assert unsupported_numbers(swapped, [str(MASSES)]) == ("3733", "3701")


def test_a_table_of_the_answer_is_read_by_row_and_column() -> None:
    table = "| species | body mass |\n|---|---|\n| Gentoo | 5076 |\n| Adelie | 3733 |"
    assert unsupported_numbers(table, [str(MASSES)]) == ("3733",)


def test_a_row_of_the_answer_may_have_more_cells_than_its_head() -> None:
    table = "| species |\n|---|\n| Gentoo | 5076 |\n| Adelie | 3701 | 4711 |"
    assert unsupported_numbers(table, [str(MASSES)]) == ("4711",)


def test_a_rise_that_falls_is_doubted() -> None:
    output = SALES.to_string(index=False)
    assert unsupported_numbers("Sales fell from 1250 in 2019 to 980 in 2020.", [output]) == ()
    turned = "Sales rose from 1250 in 2019 to 980 in 2020."
    assert unsupported_numbers(turned, [output]) == ("1250", "980")


def test_a_year_belongs_to_its_row() -> None:
    output = SALES.to_string(index=False)
    assert unsupported_numbers("In 2021 sales were 1410, up 43.9%.", [output]) == ()
    assert unsupported_numbers("In 2020 sales were 1410.", [output]) == ("1410",)


def test_a_number_may_follow_from_those_of_the_sentences_before() -> None:
    output = "revenue: 500\ntax: 900\nrent: 77\ncosts: 300\nfuel: 64\nfood: 35"
    answer = "Revenue was 500. Costs were 300. That is a difference of {}."
    assert unsupported_numbers(answer.format(200), [output]) == ()
    assert unsupported_numbers(answer.format(210), [output]) == ("210",)


def test_a_year_of_the_question_belongs_to_no_row() -> None:
    cities = "city,founded\nOslo,1990\nRome,2003"
    asked = "Which city was founded after 1990?"
    (found,) = ground("Rome was founded after 1990.", [cities], asked)
    assert (found.verdict, found.cell) == (Verdict.SUPPORTED, 0)
    assert unsupported_numbers("Rome was founded in 1990.", [cities], "Which one?") == ("1990",)


def test_a_table_written_by_hand_may_have_lines_of_any_length() -> None:
    output = "name      price\nAnna   5\nBob    7000"
    assert unsupported_numbers("Bob paid 7000, Anna 5.", [output]) == ()
    assert unsupported_numbers("Anna paid 7000.", [output]) == ("7000",)


def test_what_numbers_the_rows_is_no_value() -> None:
    output = str(
        pd.DataFrame({"city": ["Oslo", "Rome", "Bonn", "Lima"], "price": [10, 20, 30, 40]})
    )
    assert unsupported_numbers("The price in Bonn is 2.", [output]) == ("2",)
    among = "Bonn is among the top {} with a price of 30."
    assert unsupported_numbers(among.format(3), [output, "a  b\nx  7\ny  8"]) == ()
    assert unsupported_numbers(among.format(9), [output]) == ("9",)


def test_an_empty_output_supports_only_that_there_is_nothing() -> None:
    empty = "Empty DataFrame\nColumns: [a]\nIndex: []"
    assert unsupported_numbers("There are 0 such orders.", [empty]) == ()
    assert unsupported_numbers("There are 5 such orders.", [empty]) == ("5",)


def test_numbers_of_the_question_are_no_results() -> None:
    question = "How many passengers are older than 30?"
    assert unsupported_numbers("412 passengers are older than 30.", ["412"], question) == ()
    assert unsupported_numbers("There are 30 passengers.", ["412"], question) == ("30",)


def test_a_fraction_is_no_percentage() -> None:
    assert unsupported_numbers("41 % of orders came back.", ["return rate: 0.41"]) == ()
    assert unsupported_numbers("0.41 % of orders came back.", ["return rate: 0.41"]) == ("0.41 %",)


def test_another_cell_may_hold_what_is_named() -> None:
    outputs = ["mean price: 41.3", "median price: 38.0"]
    assert unsupported_numbers("The median price is 38.", outputs) == ()
    assert unsupported_numbers("The median price is 41.3.", outputs) == ("41.3",)


def test_each_number_has_the_output_that_it_is_from() -> None:
    answer = "Gentoo weigh 5076 g; 412 were seen."
    found = ground(answer, ["loaded", str(MASSES), "seen: 412"])
    assert [(one.text, one.cell) for one in found] == [("5076", 1), ("412", 2)]


def test_a_person_is_told_what_a_number_is_instead() -> None:
    found = ground("Chinstrap weigh 5076 g, Adelie 999 g.", [str(MASSES)])
    unsupported = tuple(one.text for one in found if one.is_doubtful)
    assert doubt_words(unsupported, found) == (
        "Not found in the outputs: 999",
        "At odds with the outputs: 5076 (5076.02 is for Gentoo, not Chinstrap)",
    )
    assert doubt_words(("3",), ()) == ("Not found in the outputs: 3",)


@settings(deadline=None)
@given(
    st.lists(NAMES, min_size=2, max_size=5, unique=True),
    st.lists(st.decimals(100, 9_999, places=2), min_size=5, max_size=5, unique=True),
    st.sampled_from(["price", "mean_mass", "Total Sales"]),
    st.booleans(),
)
def test_a_cell_quoted_with_its_row_and_column_is_supported(
    names: list[str], values: list[float], column: str, is_index: bool
) -> None:
    frame = pd.DataFrame({"name": names, column: [float(value) for value in values[: len(names)]]})
    output = str(frame.set_index("name") if is_index else frame)
    for name, value in zip(names, values, strict=False):
        answer = f"The {column} of {name} is {float(value):.2f}."
        assert unsupported_numbers(answer, [output]) == ()


@pytest.mark.parametrize(
    "output",
    [
        "[" * 50_000 + "1" + "]" * 50_000,
        "{'a':" * 20_000,
        "1% " * 30_000,
        "9" * 100_000,
        "a 5 kg, " * 20_000,
        "\n".join(f"same    {at}" for at in range(8_000)),
        "'" * 100_000,
        "x" + " " * 100_000,
        "\n" * 100_000,
        ("[1" + "]" * 7_900 + "a)\n") * 40,
        ("(1 a" + " " * 7_900 + "! 2\n") * 40,
        "1e999 -1e999 NaN inf",
    ],
)
def test_hostile_outputs_are_read(output: str) -> None:
    found = ground("There are 5 kg of same, 7 % more.", [output])
    assert [one.text for one in found] == ["5", "7 %"]


def test_a_number_beyond_the_labelled_ones_is_still_found() -> None:
    output = "\n".join(f"line {at} holds {at * 7.25}" for at in range(5_000))
    assert unsupported_numbers(f"It holds {4_999 * 7.25}.", [output]) == ()
    assert unsupported_numbers("It holds 36,242.76.", [output]) == ("36,242.76",)


def test_a_very_long_answer_is_judged_to_its_end() -> None:
    answer = "Adelie weigh 3701 g. " * 2_000 + "Gentoo weigh 4711 g."
    found = ground(answer, [str(MASSES)])
    assert len(found) == 2_001
    assert [one.text for one in found if one.is_doubtful] == ["4711"]


def test_a_raised_digit_numbers_no_row() -> None:
    output = "key  value\n36²  5\n37²  6"
    assert unsupported_numbers("The values are 5 and 6.", [output]) == ()


PROFILE = """File 'penguins.csv' (csv, 15 kB): 344 rows x 8 columns
Load: df = pd.read_csv("penguins.csv")
Columns:
- 'species': str, 3 distinct: 'Adelie' (152), 'Gentoo' (124), 'Chinstrap' (68)
- 'Home': str, 3 distinct: 'Biscoe' (168), 'Palmer Archipelago' (1), 'male' (168)
"""
OVERALL = "print(df['body_mass_g'].mean())"


def _doubted(answer: str, question: str, cell: str, output: str) -> list[tuple[str, str]]:
    unshown = unshown_values(PROFILE, question, ["penguins.csv", cell, output])
    found = ground(answer, [output], question, unshown)
    return [(one.text, one.why) for one in found if one.is_doubtful]


@pytest.mark.parametrize(
    ("answer", "question", "name"),
    [
        ("The mass of Gentoo penguins is 4202 g.", "How heavy are they?", "Gentoo"),
        ("The mean of Palmer Archipelago is 4202.", "What is the mean?", "Palmer Archipelago"),
        ("Emperor penguins weigh 4202 g.", "How heavy are the Emperor penguins?", "Emperor"),
        ("The mean of August is 4202.", "What is the mean of August?", "August"),
        ("It fell by 4202 in 2011.", "Why did the mass fall in 2011?", "2011"),
    ],
)
def test_a_number_is_none_of_a_name_that_no_cell_knows(
    answer: str, question: str, name: str
) -> None:
    doubted = _doubted(answer, question, OVERALL, "4201.754")
    assert doubted == [("4202", f"no cell selects or shows {name}")]


@pytest.mark.parametrize(
    ("answer", "question", "cell", "output"),
    [
        ("Gentoo weigh 4202 g.", "How heavy?", "df[df.species == 'Gentoo'].m.mean()", "4201.7"),
        ("Gentoo weigh 4202 g.", "How heavy?", OVERALL, "Gentoo 4201.7"),
        ("The Adelie have 151 points.", "How many?", "scatter(df)", "scatter 'Adelie' of 151"),
        ("There are 3 species: Adelie, Gentoo, Chinstrap.", "How many?", "df.nunique()", "3"),
        ("The 3 species (Adelie, Gentoo) differ.", "How many?", "df.nunique()", "3"),
        ("Chinstrp penguins: 68.", "How many Chinstrp?", "df.species == 'Chinstrap'", "68"),
        ("The mean of August is 9.", "And of August?", "df[df.date.dt.month == 8]", "9"),
        ("The male ones weigh 9 g.", "How heavy are the male ones?", "df.m.mean()", "9"),
        ("It is 9 in 2011.", "And in 2011?", "df[df.year == 2011].m.mean()", "9"),
        ("It is 9 in 2011.", "And in 2011?", "df.groupby('date').m.mean()", "2011-08-01 9"),
        ("The ANOVA gives 9.", "What does an ANOVA give?", "f_oneway(a, b)", "9"),
        ("It is 9 degrees Celsius.", "How warm in Celsius is the day?", "df.t.mean()", "9"),
        ("Die Masse der Pinguine ist 9.", "Wie schwer sind Pinguine?", "df.m.mean()", "9"),
        ("The Mean Mass is 9.", "What Is The Mean Mass Of Birds?", "df.m.mean()", "9"),
        ("Spearman's rho is 9.", "What is the Spearman rho?", "spearmanr(a, b)", "9"),
    ],
)
def test_a_name_that_a_cell_knows_or_that_is_none_is_not_doubted(
    answer: str, question: str, cell: str, output: str
) -> None:
    assert _doubted(answer, question, cell, output) == []
