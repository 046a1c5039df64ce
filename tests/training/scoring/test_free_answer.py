"""Answers in free words: which texts state the values of a label."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.scoring.free_answer import MAX_OTHERS, MAX_WORDS, numbers_agree, states_values

STATED = [
    (["17.29"], "The share is 17.29%."),
    (["17.29"], "The share is 17.3 percent."),
    (["17.29"], "17.2904"),
    (["17.25"], "It is 17.2 on average."),
    (["0.377"], "The coefficient is 0.3768, a weak correlation."),
    (["1234567.89"], "Sales were $1,234,567.89."),
    (["1,234.50"], "Sales were 1234.50."),
    (["nan"], "The mean is nan."),
    (["1250000.00"], "Sales were 1.25 million."),
    (["-29.02"], "The average falls by 29.02 m2."),
    (["-29.02"], "The change is -29.02 m2."),
    (["150"], "There are 150 of them."),
    (["150"], "There are 150.0 of them."),
    (["507.00"], "507"),
    (["2021-11", "3614.71"], "November 2021 has the highest total, 3,614.71 EUR."),
    (["2018-09-05"], "The first day is September 5, 2018."),
    (["2018-09-05"], "The first day is 2018-09-05."),
    (["Old Town"], "Most visits are in the **Old Town** clinic."),
    (["Sunday", "1535.19"], "On Sunday it is highest, at 1535.2 kWh."),
]
NOT_STATED = [
    (["17.29"], "The share is 17%."),
    (["0.377"], "The coefficient is 0.4."),
    (["17.29"], "The share is 17.92%."),
    (["-29.02"], "The average grows by 29.02 m2."),
    (["150"], "The average is 150.3."),
    (["150"], "There are fifteen of them."),
    (["2021-11"], "December 2021 has the highest total."),
    (["Old Town"], "Most are in the town of old."),
    (["Sunday", "1535.19"], "On Sunday it is highest."),
    (["17.29"], ""),
    ([], "There is nothing to state."),
]


@pytest.mark.parametrize(("values", "answer"), STATED)
def test_an_answer_states_its_values(values: list[str], answer: str) -> None:
    assert states_values(values, answer, "")


@pytest.mark.parametrize(("values", "answer"), NOT_STATED)
def test_another_value_or_none_is_not_stated(values: list[str], answer: str) -> None:
    assert not states_values(values, answer, "")


def test_a_list_of_guesses_states_nothing() -> None:
    few = ", ".join(str(200 + place) for place in range(MAX_OTHERS))
    assert states_values(["150"], f"{few}, 150", "")
    assert not states_values(["150"], f"{few}, 150, 151", "")
    assert states_values(["150"], f"{few}, 150, 151", "How many are above 151?")
    assert not states_values(["150"], "150 " + "and so on " * MAX_WORDS, "")


_NUMBERS = st.from_regex(
    r"-?[0-9]{1,40}(,[0-9]{3})?(\.[0-9]{1,30})?(e[0-9]{1,3}| million|%)?", fullmatch=True
)
_TEXTS = st.lists(_NUMBERS | st.text(max_size=20), max_size=6).map(" ".join)


@given(st.lists(_NUMBERS | st.text(max_size=20), max_size=3), _TEXTS, _TEXTS)
def test_no_text_makes_a_scorer_raise(values: list[str], answer: str, other: str) -> None:
    states_values(values, answer, other)
    assert numbers_agree(answer, other) == numbers_agree(other, answer)


def test_a_day_that_does_not_exist_has_its_own_spelling_alone() -> None:
    assert states_values(["2021-02-31"], "The day is 2021-02-31.", "")
    assert not states_values(["2021-02-31"], "The day is 31 February 2021.", "")


def test_answers_agree_by_their_numbers() -> None:
    assert numbers_agree("The mean is 17.3.", "It is 17.29 on average.")
    assert not numbers_agree("The mean is 17.3.", "It is 17.3, and the median is 16.1.")
    assert not numbers_agree("The mean is 17.3.", "It is 18.")
    assert not numbers_agree("It is Sunday.", "It is Sunday.")
