from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.scoring.closed_form import score
from training.scoring.reader import (
    CLOSED_FORM,
    MAX_SCALAR_CHARS,
    SHORT_ANSWER,
    TABLE_CELL,
    ReadingPolicy,
    exact_number,
    is_identifier,
    read_plain,
    read_written,
    scalars_equal,
)
from training.scoring.short_answer import answers_equal, final_answer
from training.scoring.tables import tables_equal
from training.scoring.values import (
    MAX_VALUE_CHARS,
    first_number,
    is_within,
    kind_of,
    read_number,
)


def is_right(label: str, answer: str) -> bool:
    return score(f"@x[{answer}]", [("x", label)]).all_right


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("02139", "02139"),
        ("7", "007"),
        ("1234", "1 234"),
        ("1234", "1\u00a0234"),
        ("1234567", "12,34,567"),
        ("1234.5", "1.234,50"),
        ("34.65", "**34.65**"),
        ("34.65", "34.65."),
        ("19.99", "$19.99"),
        ("12.5", "12.5 percent"),
        ("10:30", "10:30:00"),
        ("123", "\uff11\uff12\uff13"),
        ("1000000000000.1", "1000000000000.1001"),
    ],
)
def test_closed_form_and_short_answers_take_the_same_scalar(label: str, answer: str) -> None:
    assert is_right(label, answer)
    assert answers_equal(label, answer)


@pytest.mark.parametrize(
    ("label", "answer"),
    [
        ("2139", "02139"),
        ("02139", "2139"),
        ("34.65", "34.71"),
        ("3", "-3"),
        ("10.6", "106"),
        ("34.65", "34.65 USD"),
        ("10:30", "10:31"),
    ],
)
def test_every_suite_refuses_another_value(label: str, answer: str) -> None:
    assert not is_right(label, answer)
    assert not answers_equal(label, answer)
    assert not tables_equal([(label,)], [(answer,)])


@pytest.mark.parametrize(
    ("label", "answer", "right"),
    [
        ("a, b", "a; b", True),
        ("a, b, c", "a, b and c", True),
        ("a, b, c", "a, b, and c", True),
        ("None", "nan", True),
        ("1, 2", "1; 2", False),
        ("5 €", "$5", False),
        ("12345678.90", "12345678.91", False),
    ],
)
def test_closed_form_lists_missing_values_currencies_and_cents(
    label: str, answer: str, right: bool
) -> None:
    assert is_right(label, answer) is right


@pytest.mark.parametrize(
    "response",
    [
        "@x[5] <think>@x[6]</think>",
        "@x[5] <think> or @x[6]",
        "<think>@x[6]</think> @x[5]",
        "@x[5] as in @x[x_value]",
        "@x[5] as in @x[value]",
    ],
)
def test_a_thought_and_an_echo_of_the_format_are_no_answer(response: str) -> None:
    assert score(response, [("x", "5")]).all_right
    assert final_answer(response.replace("@x", "@answer").replace("x_", "answer_")) == "5"


def test_an_echo_alone_and_a_thought_alone_answer_nothing_right() -> None:
    assert not score("@x[x_value]", [("x", "5")]).all_right
    assert not score("<think>@x[5]", [("x", "5")]).all_right


def test_an_echo_of_a_known_format_is_no_answer_and_a_label_of_that_word_still_is() -> None:
    asked = "@r[r_coefficient] where ..."
    response = "@r[0.5], as in @r[r_coefficient]"
    assert score(response, [("r", "0.5")], answer_format=asked).all_right
    assert score("@r[r_coefficient]", [("r", "r_coefficient")], answer_format=asked).all_right
    assert score("@Mean-Fare[5] @mean_fare[mean_fare_value]", [("mean_fare", "5")]).all_right


def test_policies_differ_on_marks() -> None:
    assert scalars_equal("12.5", "12.5%", CLOSED_FORM)
    assert not scalars_equal("12.5", "12.5%", TABLE_CELL)
    assert not scalars_equal("5", "$5", TABLE_CELL)


def test_an_identifier_is_told_from_padding_and_a_long_text_from_a_number() -> None:
    assert is_identifier("02139", "2139")
    assert not is_identifier("7", "007")
    assert read_written("1" * (MAX_SCALAR_CHARS + 1)) is None
    assert read_written("1\n234") is None


POLICIES = [CLOSED_FORM, SHORT_ANSWER, TABLE_CELL]


@pytest.mark.parametrize("policy", POLICIES, ids=["closed form", "short answer", "table"])
@given(
    st.integers(-(10**13), 10**13),
    st.integers(1, 10**6),
    st.integers(0, 5),
    st.sampled_from(["{}", "{:,}", "{:E}"]),
)
def test_two_numbers_of_the_same_precision_are_equal_only_where_they_are_one(
    policy: ReadingPolicy, units: int, step: int, places: int, form: str
) -> None:
    one, other = (Decimal(number).scaleb(-places) for number in (units, units + step))
    assert not scalars_equal(str(one), form.format(other), policy)
    assert not scalars_equal(form.format(other), str(one), policy)
    assert scalars_equal(str(one), form.format(one), policy)


@given(st.decimals(-(10**9), 10**9, places=4), st.integers(0, 6))
def test_short_answers_and_cells_take_a_number_rounded_within_their_tolerance_alone(
    number: Decimal, places: int
) -> None:
    rounded = round(number, places)
    is_near = rounded == number or abs(rounded - number) < abs(number) / 10**6
    assert scalars_equal(str(number), str(rounded), SHORT_ANSWER) in {is_near, False}
    if rounded == number:
        assert scalars_equal(str(number), str(rounded), SHORT_ANSWER)


@given(
    st.one_of(
        st.integers().map(str),
        st.floats(allow_nan=False).map(repr),
        st.from_regex(r"[+-]?[0-9]{0,6}\.?[0-9]{0,6}(e[+-]?[0-9]{1,3})?", fullmatch=True),
    )
)
def test_the_quick_path_reads_what_the_grammar_reads(text: str) -> None:
    quick, written = read_plain(text), read_written(text)
    assert quick is None or (written is not None and quick == exact_number(f" {text}"))
    if quick is not None and written is not None:
        assert quick == (int(written.value) if written.is_whole else float(written.value))


@given(st.decimals(-(10**6), 10**6, places=2), st.decimals(Decimal("0.01"), 10**6, places=2))
def test_no_other_number_is_right(number: Decimal, step: Decimal) -> None:
    assert is_right(str(number), str(number))
    assert not is_right(str(number), str(number + step))


@given(st.text(), st.text())
def test_no_text_raises(one: str, other: str) -> None:
    assert scalars_equal(one, other, TABLE_CELL) in {True, False}
    assert scalars_equal(one, other, CLOSED_FORM) in {True, False}


def test_a_very_long_answer_agrees_only_word_by_word() -> None:
    long = "1 " * MAX_VALUE_CHARS
    assert answers_equal(long, long)
    assert not answers_equal(long, long + ".")
    assert not is_right("1", long)


@pytest.mark.parametrize(
    ("label", "answer", "same"),
    [
        ("158314.456", "158314.45", True),  # cut
        ("158314.456", "158314.46", True),  # rounded
        ("158314.456", "158314.47", False),
        ("158314.456", "158314.44", False),
        ("-158314.456", "-158314.45", True),
        ("-158314.456", "158314.45", False),
        ("0.123456789", "0.12345678", True),
        ("0.123456789", "0.12345679", True),
        ("0.123456789", "0.12345677", False),
        ("-0.123456789", "-0.12345678", True),
    ],
)
def test_a_long_number_may_be_cut_or_rounded(label: str, answer: str, same: bool) -> None:
    assert scalars_equal(label, answer, SHORT_ANSWER) is same
    assert scalars_equal(answer, label, SHORT_ANSWER) is same


def test_a_number_within_a_share_is_finite() -> None:
    assert is_within(200.0, 210.0, 0.05)
    assert not is_within(200.0, 211.0, 0.05)
    assert is_within(-200.0, -190.0, 0.05)
    assert is_within(0.0, 0.0, 0.05)
    assert not is_within(0.0, 1e-9, 0.05)
    for label, answer in ((math.inf, 1.0), (1.0, math.inf), (math.inf, math.inf), (1.0, math.nan)):
        assert not is_within(label, answer, 0.05)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("5", "number"), ("1,234.5", "number"), ("nan", "number"), ("a", "text"), ("", "text"),
     ("1, 2", "list"), ("[1]", "list"), ("{'a': 1}", "list"), ("a b", "text")],
)  # fmt: skip
def test_a_value_is_a_number_a_list_or_text(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "number"),
    [("12.5 %", 0.125), ("1,200", 1200), ("$5", 5), ("about 5", None), ("9" * 310, math.inf)],
)
def test_a_percentage_is_read_as_its_share(text: str, number: float | None) -> None:
    assert read_number(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("about 5 of 7", 5), ("it fell by -3.5, then", -3.5), ("45% of them", 0.45), ("none", None),
     ("7.", 7), ("9" * 400, None)],
)  # fmt: skip
def test_the_first_number_of_a_sentence(text: str, number: float | None) -> None:
    assert first_number(text) == number
