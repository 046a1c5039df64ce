from __future__ import annotations

import string
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.scoring.short_answer import answers_equal, final_answer, is_stated, read_tokens
from training.scoring.values import MAX_VALUE_CHARS


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("-0.93", (Decimal("-0.93"),)),
        ("r=-0.93", ("r", Decimal("-0.93"))),
        ("2011-12", (2011, 12)),
        ("-$1,234.50", (-1234.5,)),
        ("12.5%", (12.5,)),
        ("02139 and 007", ("02139", "and", 7)),
        ("The Beatles", ("beatles",)),
        ("A", ("a",)),
        ("a group", ("group",)),
        ("men's C++, not_normal.", ("mens", "c++", "not", "normal")),
        ("3rd", ("3rd",)),
        ("…", ()),
    ],
)
def test_an_answer_is_words_and_numbers(text: str, tokens: tuple[object, ...]) -> None:
    assert read_tokens(text) == tokens


@pytest.mark.parametrize(
    ("label", "answer", "same"),
    [
        ("2926310", "2,926,310", True),
        ("12.5%", "12.50", True),
        ("$5", "5.0", True),
        ("no clear impact", "No clear impact.", True),
        ("904, 916, 940", "904,916,940", True),
        ("2020, 1861550", "2020, 1,861,550", True),
        ("158314.450361634", "158314.45", True),
        ("10.6", "106", False),
        ("-3", "3", False),
        ("3.14", "3.1", False),
        ("Paris, London", "London, Paris", False),
        ("123456789", "123456790", False),
        ("17854340", "17854350.0", False),
        ("17854340", "17854340.0", True),
        ("17854340.2", "17854340", True),
        ("yes", "", False),
        ("...", "!", False),
        ("9" * 400, "1.5", False),
        ("2012-08-25", "25 August 2012", True),
        ("2012-08-25", "2012, 8, 25", False),
        ("10:30", "10, 30", False),
        ("None", "no rows", True),
        ("None", "0", False),
        ("The first, 12345678.90", "the first; 12345678.91", False),
        ("Boston, 02139", "Boston 2139", False),
    ],
)
def test_short_answers(label: str, answer: str, same: bool) -> None:
    assert answers_equal(label, answer) is same
    assert answers_equal(answer, label) is same


@pytest.mark.parametrize(
    ("value", "answer", "stated"),
    [
        ("347", "There are 347 albums.", True),
        ("347", "There are 1,347 albums.", False),
        ("347", "There are 347.5 albums.", False),
        ("904, 916", "They are 904,916.", True),
        ("Iron Maiden", "It is **Iron Maiden**, with 213 tracks.", True),
        ("Iron Maiden", "Iron, then Maiden", False),
        ("Rock", "Rockabilly", False),
        ("", "anything", False),
    ],
)
def test_a_sentence_states_a_value_whole(value: str, answer: str, stated: bool) -> None:
    assert is_stated(value, answer) is stated


@given(st.text(), st.text())
def test_equality_is_symmetric_and_never_raises(one: str, other: str) -> None:
    assert answers_equal(one, one)
    assert answers_equal(one, other) == answers_equal(other, one)
    assert is_stated(one, other) in {True, False}


@given(st.integers(-(10**9), 10**9))
def test_separators_and_zeros_do_not_change_a_number(number: int) -> None:
    assert answers_equal(str(number), f"{number:,}.00 %")
    assert is_stated(str(number), f"I found {number:,} in all.")


@given(st.lists(st.text(string.ascii_lowercase, min_size=2, max_size=6), min_size=1, max_size=4))
def test_case_and_punctuation_do_not_change_words(words: list[str]) -> None:
    assert answers_equal(", ".join(words), " ".join(words).upper() + ".")


def test_only_an_answer_of_readable_length_is_compared_in_words() -> None:
    label = "rock, jazz; " * (MAX_VALUE_CHARS // 12)
    label += "x" * (MAX_VALUE_CHARS - len(label))
    assert answers_equal(label, label.replace(", ", " ").upper())
    longer = f"{label}x"
    assert not answers_equal(longer, longer.replace(", ", " ").upper())


def test_the_last_tagged_answer_counts_or_else_the_whole_text() -> None:
    assert final_answer("First @answer[4], no: @Answer[a, [b]]. @note[x]") == "a, [b]"
    assert final_answer("  just 4 ") == "just 4"
    assert final_answer("") == ""
