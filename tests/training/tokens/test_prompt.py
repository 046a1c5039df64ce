"""What is appended to a turn, by how the turn ended."""

from __future__ import annotations

import pytest

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.sampled_tokens import TurnEnd
from training.tokens.prompt import appended_text

SHOWN = "<|user|>go<|end|><|model|>"
NEXT = "<|end|><|user|>1<|end|><|model|>"


def appended(turn: str, ending: str, beyond: str, stop: str = "", *, closed: bool) -> str | None:
    end = TurnEnd.of(SHOWN + turn, turn, beyond, stop, is_closed=closed)
    messages = [Message("user", "go"), Message("assistant", turn + ending), Message("user", "1")]
    return appended_text(end, SHOWN + turn + ending + NEXT, messages)


@pytest.mark.parametrize(
    ("ending", "beyond", "stop", "expected"),
    [
        ("</code>", "</code>", "</code>", ""),
        ("</code>", "</code>\n\n", "</code>", ""),
        ("</code>\n", "</code>", "</code>", "\n"),
        ("</code>\n", "</code>\n\n", "</code>", ""),
        ("\n```", "\n```", "\n```", ""),
        ("", "\nObservation:", "\nObservation:", ""),
        # One blank in common is no sampled ending.
        ("\n</done>", "\nObservation:", "\nObservation:", "\n</done>"),
        # A mark of the template begins as the stop string does.
        ("", "<stop>", "<stop>", ""),
        ("</code>", "", "", "</code>"),
        ("", "", "", ""),
    ],
)
def test_what_was_sampled_is_not_appended_again(
    ending: str, beyond: str, stop: str, expected: str
) -> None:
    assert appended("print(1)", ending, beyond, stop, closed=False) == expected + NEXT


@pytest.mark.parametrize("ending", ["", "</code>"])
def test_a_closed_turn_gets_neither_mark_nor_ending(ending: str) -> None:
    assert appended("x", ending, "<|end|>", closed=True) == NEXT.removeprefix("<|end|>")


def test_another_closing_mark_stays_before_that_of_the_template() -> None:
    assert appended("x", "", "<|endoftext|>", closed=True) == NEXT


def test_rewritten_history_is_noticed() -> None:
    turn = "I think. 1"
    end = TurnEnd.of(SHOWN + turn, turn, "", "", is_closed=False)
    messages = [Message("user", "go"), Message("assistant", turn), Message("user", "1")]
    assert appended_text(end, f"{SHOWN}{turn}{NEXT}", messages) == NEXT
    assert appended_text(end, f"{SHOWN}1{NEXT}", messages) is None
    assert appended_text(end, SHOWN, messages[:1]) is None


def test_a_template_may_trim_the_end_of_a_turn() -> None:
    end = TurnEnd.of(f"{SHOWN}x", "x", "</code>", "</code>", is_closed=False)
    messages = [Message("assistant", "x</code>\n\n")]
    assert appended_text(end, f"{SHOWN}x</code>{NEXT}", messages) == NEXT
    assert appended_text(end, f"{SHOWN}x</co{NEXT}", messages) is None
