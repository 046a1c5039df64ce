"""Answers in words: what becomes of code and outputs, and which sentences are taken."""

from __future__ import annotations

import pytest

from training.collect.wording import read_sentence, without_form
from training.marking.asking import UnusableReplyError

NAMES = ("mean", "mean_fare", "n")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("@mean[4.2]\n@n[3]", "mean: 4.2\nn: 3"),
        ("@mean_fare[4.2]", "mean fare: 4.2"),
        ("""print(f"@mean[{df['a'].mean():.2f}]")""", """print(f"mean: {df['a'].mean():.2f}")"""),
        ('print("@n[" + str(rows[0]) + "]")', 'print("n: " + str(rows[0]) + "")'),
        ("@n[[1, 2], [3]]", "n: [1, 2], [3]"),
        ("@other[1] and me@n.org", "@other[1] and me@n.org"),
        ("@n[1] @mean[2 @n[3]", "n: 1 @mean[2 @n[3]"),  # one is never closed
        ("", ""),
    ],
)
def test_the_form_leaves_code_and_outputs(text: str, plain: str) -> None:
    assert without_form(text, NAMES) == plain


def test_a_long_output_takes_no_long_time() -> None:
    assert without_form("@n[1] " * 200_000, NAMES) == "n: 1 " * 200_000
    assert without_form("@n[" * 200_000, NAMES) == "@n[" * 200_000


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("There are 3 rows in it.", "between <answer> and </answer>"),
        ("<answer>a</answer><answer>b</answer>", "between <answer> and </answer>"),
        ("<answer> </answer>", "between <answer> and </answer>"),
        ("<answer>3 rows</answer>", "a sentence"),
        ("<answer>There are many rows in it.</answer>", "each of these values"),
        ("<answer>There are 3 rows and 7 columns.</answer>", "no other number"),
    ],
)
def test_a_reply_that_is_no_answer_is_refused_with_the_reason(reply: str, why: str) -> None:
    with pytest.raises(UnusableReplyError, match=why):
        read_sentence(reply, values=["3"], question="How many rows?")


def test_an_answer_may_repeat_a_number_of_the_question() -> None:
    reply = "So:\n<answer>There are 3 rows\nabove 7.</answer>"
    question = "How many rows are above 7?"
    assert read_sentence(reply, values=["3"], question=question) == "There are 3 rows above 7."
