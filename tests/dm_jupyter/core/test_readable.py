"""A free answer as people read it: what changes, what never does, and where its numbers go."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dm_jupyter.core.grounded import Grounded, Verdict
from dm_jupyter.core.readable import readable, shown_answer, shown_numbers
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from tests.examples import examples

SHOWN = {
    "The average is 3.4567890123 kg.": "The average is 3.46 kg.",
    "29.69911764705882 years": "29.70 years",
    "a sum of 0.30000000000000004": "a sum of 0.3",
    "2.9999999999999996 of 12.100000000000001": "3.0 of 12.1",
    "p = 0.0345678901, r=-0.98765432": "p = 0.0346, r=-0.988",
    "1.23456789e-10": "1.23e-10",
    "**1,234,567.891234** km": "**1,234,567.89** km",
    "$1234.5678 and 10.125678 USD": "$1234.57 and 10.13 USD",
    "23.4567890 °C, 3.4567890123kg, 45.678901 %": "23.46 °C, 3.46kg, 45.68 %",
    "| a | 3.4567890123 |\n|---|---|\n| b | 3.45678 |": "| a | 3.46 |\n|---|---|\n| b | 3.45678 |",
    "The regions:\n• North: 3\n• South: 4": "The regions:\n\n- North: 3\n- South: 4",
    "Result:\n- a - b": "Result:\n\n- a\n- b",
    "The regions are: - North - South - East": "The regions are:\n\n- North\n- South\n- East",
    "• a • b • c": "- a\n- b\n- c",
    "- North: 3 - South: 4 - East: 5": "- North: 3\n- South: 4\n- East: 5",
    "`a` is 3.4567890123 and `b` is 2": "`a` is 3.46 and `b` is 2",
    "0.99999123 is nearly all": "0.99999 is nearly all",
    "0.999999123 is nearly all": "0.999999 is nearly all",
    "0.9999999123 is as good as all": "1.000 is as good as all",
    "Total is 3:\n1. a\n2. b": "Total is 3:\n\n1. a\n2. b",
}
LEFT = (
    "In 2020, 1234567 of 9,876,543 people; p = 0.0346; 3.4567 kg.",
    "99.9999 % is not 100 %",
    "pandas 2.3.1, version 3.14159265, id 12345.678901",
    "`3.4567890123`\n```\n3.4567890123\n```\n",
    "[3](https://x.example/3.4567890123) data/3.4567890123.csv http://x.example/?a=3.4567890123",
    "@mean[3.4567890123]",
    "2024-01-01 12:30:45.123456 and 1700000000.123456",
    "lat 48.858370123, lon 2.294481234",
    "one has 3.4567890, the other 3.4567899",  # they would become one
    "'3.4567890123' and \"3.4567890123\"",
    "$x = 3.4567890123$ and $$y = 3.4567890123$$",
    "a  3.4567890123\nb  4.5678901234",  # lined up
    "- North - 3.4 kg\n- South - 4.5 kg",
    "- North - the best region of all five",
    "In total\n12. Then it rose.",
    "- a\n  goes on\n- b",
    "Text.\n\n- a\n  - b\n- c",
    "1. a\n2. b",
)  # fmt: skip


@pytest.mark.parametrize(("stated", "shown"), SHOWN.items())
def test_long_numbers_and_broken_lists_become_readable(stated: str, shown: str) -> None:
    assert readable(stated).text == shown


@pytest.mark.parametrize("stated", LEFT)
def test_what_may_be_meant_so_stays(stated: str) -> None:
    assert readable(stated).text == stated


PIECES = st.sampled_from(
    (*SHOWN, *LEFT, "\n", "\n\n", "- ", "• ", " - ", ": ", "kg", "`", "```\n", "| ", "$", "€", "(",
     "[", "a", "North: 3", "0.00099996", "99.99999876", "1.", "@x[", "°", "-", "−", "'")
)  # fmt: skip
NUMBERS = st.decimals(
    min_value=-(10**7), max_value=10**7, allow_nan=False, allow_infinity=False, places=9
).map(lambda one: f"{one:f}")
TEXTS = st.lists(st.one_of(PIECES, NUMBERS, st.text(max_size=5)), max_size=8).map("".join)
KEPT = re.compile(r"`[^`\n]+`|\]\([^()\n]*\)|https?://\S+|@\w+\[[^\n]*")
DECIMAL = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?(?!\d|[.,]\d)", re.ASCII
)


@examples(400)
@given(TEXTS)
@example("99.99999876 and 0.00099996")
@example("• a: - b - c")
def test_formatting_again_changes_nothing(text: str) -> None:
    once = readable(text).text
    assert readable(once).text == once


@examples(400)
@given(TEXTS)
def test_no_number_moves_by_more_than_half_a_unit_of_its_last_digit(text: str) -> None:
    shown = readable(text)
    for found in DECIMAL.finditer(text):
        part = shown.part(*found.span())
        before, after = (Decimal(one.replace(",", "")) for one in (found[0], part))
        unit = Decimal(1).scaleb(int(after.as_tuple().exponent))
        assert abs(before - after) <= unit / 2


@examples(400)
@given(TEXTS)
def test_nothing_changes_but_long_decimals_and_the_signs_and_lines_of_lists(text: str) -> None:
    def bare(text: str) -> str:
        return re.sub(r"[\s•\u00a0·–—-]", "", DECIMAL.sub("0.0", text))

    assert bare(readable(text).text) == bare(text)


@examples(300)
@given(TEXTS)
def test_code_links_and_named_values_are_never_touched(text: str) -> None:
    whole = f"{text}\n\n`3.4567890123 - a` [x](http://a/3.4567890123)\n@mean[3.4567890123]"
    if "`" in text or "$" in text or "\\" in text:  # what they open may go on
        return
    for part in KEPT.findall(whole):
        assert part in readable(whole).text


@pytest.mark.parametrize(
    "text", ["`a " * 9_000, "<a" * 9_000, "](" * 9_000, "~~~" * 9_000, "- a " * 9_000, "1." * 9_000]
)
def test_a_hostile_answer_is_shown_all_the_same(text: str) -> None:
    assert readable(text[:12_000]).text
    assert readable(text).text == text  # too long to be looked at


def _ended(answer: str, **parts: str) -> Trajectory:
    task = Task("t", **{"question": "What is the mean?", **parts})
    return Trajectory(task, "markdown", stop=StopReason.ANSWERED, answer=answer)


@pytest.mark.parametrize(
    "parts",
    [
        {"answer_format": "@mean[mean]"},
        {"answer_format": "a number"},
        {"constraints": "Round to 8 decimals."},
        {"question": "What is the exact mean?"},
    ],
)
def test_an_answer_whose_form_was_asked_for_is_shown_as_stated(parts: dict[str, str]) -> None:
    assert shown_answer(_ended("3.4567890123", **parts)).text == "3.4567890123"
    assert shown_answer(_ended("3.4567890123")).text == "3.46"


def test_numbers_lead_from_where_they_are_shown_and_keep_their_full_value() -> None:
    answer = "Means: - a: 3.4567890123 kg - b: 9.8765432109 kg"
    spans = [(x.start(), x.end()) for x in re.finditer(r"[\d.]+", answer)]
    found = tuple(Grounded(answer[a:b], a, b, Verdict.SUPPORTED, cell=0) for a, b in spans)
    ended = replace(_ended(answer), grounding=found)
    shown = shown_answer(ended)
    assert shown.text == "Means:\n\n- a: 3.46 kg\n- b: 9.88 kg"
    numbers = shown_numbers(ended, {0: "c1"})
    assert [(one.text, one.full, one.cell_id) for one in numbers] == [
        ("3.46", "3.4567890123", "c1"),
        ("9.88", "9.8765432109", "c1"),
    ]
    assert [shown.text[x.start : x.start + len(x.text)] for x in numbers] == ["3.46", "9.88"]
    assert ended.answer == answer


def test_a_number_that_no_output_bears_out_is_shown_as_stated() -> None:
    answer = "It is 3.4567890123."
    doubtful = Grounded("3.4567890123", 6, 18, Verdict.UNSUPPORTED)
    ended = replace(_ended(answer), grounding=(doubtful,), unsupported=("3.4567890123",))
    assert shown_answer(ended).text == answer
