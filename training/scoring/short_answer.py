"""Short answers in words and numbers, compared by what they say and not how they are written.

Two answers are equal where `values` takes them for one value under the policy `SHORT_ANSWER`. Else
an answer is read as a sequence of words and numbers: words agree without case and punctuation, and
without `the`, or an `a` or `an` in front, numbers as everywhere. The order of items matters, and a
date or time is never taken apart. Deviates from TableBench's published normaliser
(arXiv 2408.09174), which strips points and signs too, so that 10.6 equals 106 and -3 equals 3: here
the point inside a number and the sign before it stay. A different rounding is a different number.
"""

from __future__ import annotations

import re
from decimal import Decimal

from dm_jupyter.core.closed_form import given_answers, outside_thought
from training.scoring.moments import read_moment
from training.scoring.reader import (
    IDENTIFIER_DIGITS,
    SHORT_ANSWER,
    is_identifier,
    numbers_equal,
    read_written,
    straight,
)
from training.scoring.values import MAX_VALUE_CHARS, is_nothing, values_equal

__all__ = [
    "Token",
    "answers_equal",
    "final_answer",
    "is_stated",
    "read_tokens",
    "tokens_equal",
    "words_before",
]

Token = Decimal | str

_CURRENCY = re.compile(r"(?<!\w)[$€£¥](?=[-+.\d])")
_NUMBER = (
    r"(?:(?<![\w.)%])[+-])?(?<!\w)"  # a sign, but no dash of a range such as 2011-12
    r"(?:{digits}(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{{1,3}})?(?!\w)"
)
_WORD = r"\w[\w']*[+#]*"
_GROUPED = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?!,?[0-9])|[0-9]+)"
_TOKENS = {
    thousands: re.compile(f"(?P<number>{_NUMBER.format(digits=digits)})|{_WORD}")
    for thousands, digits in ((True, _GROUPED), (False, "[0-9]+"))
}


def read_tokens(text: str, *, thousands: bool = True) -> tuple[Token, ...]:
    """Returns the words (folded) and numbers of a text, in order.

    Args:
        text: any text.
        thousands: whether `314,577` is one number; else it is two.
    """
    tokens = [_token(match) for match in _TOKENS[thousands].finditer(_plain(text))]
    kept = tuple(part for part in tokens if part != "the")
    if len(kept) > 1 and kept[0] in {"a", "an"}:
        kept = kept[1:]
    return kept or tuple(tokens)


def _plain(text: str) -> str:
    return _CURRENCY.sub("", straight(text).replace("_", " "))


def _token(match: re.Match[str]) -> Token:
    found = read_written(match[0]) if match["number"] is not None else None
    is_code = found is not None and found.is_code and len(found.code) >= IDENTIFIER_DIGITS
    if found is None or is_code:
        return match[0].replace("'", "").casefold()
    return found.value


def final_answer(text: str) -> str:
    """Returns the last `@answer[…]` of a text, or all of it where it has none."""
    values = [value for name, value in given_answers(text) if name.casefold() == "answer"]
    return values[-1] if values else outside_thought(text).strip()


def answers_equal(label: str, answer: str) -> bool:
    """Returns whether two short answers say the same, whichever of them is the label."""
    if values_equal(label, answer, SHORT_ANSWER) or is_nothing(answer, label):
        return True
    if max(len(label), len(answer)) > MAX_VALUE_CHARS or is_identifier(label, answer):
        return False
    if read_moment(label) is not None or read_moment(answer) is not None:
        return False
    expected, said = _readings(label), _readings(answer)
    return any(_sequences_equal(one, other) for one in expected for other in said)


def is_stated(value: str, answer: str) -> bool:
    """Returns whether a sentence holds the value, its words and numbers side by side and whole.

    A comma between digits parts two numbers only where the value itself has several items, so that
    `347` is not stated by `1,347`.
    """
    for thousands in (True, False):
        wanted = read_tokens(value, thousands=thousands)
        said = read_tokens(answer, thousands=thousands)
        starts = range(len(said) - len(wanted) + 1) if len(wanted) > (not thousands) else ()
        if any(_sequences_equal(wanted, said[at : at + len(wanted)]) for at in starts):
            return True
    return False


def words_before(value: str, answer: str) -> str | None:
    """Returns what stands before the value with which a sentence ends; None where it does not."""
    wanted, plain = read_tokens(value), _plain(answer)
    starts = [match.start() for match in _TOKENS[True].finditer(plain)]
    longest = sum(1 for _ in _TOKENS[True].finditer(_plain(value)))
    for start in reversed(starts[-longest:]):
        if _sequences_equal(wanted, read_tokens(plain[start:])):
            return plain[:start]
    return None


def _readings(text: str) -> set[tuple[Token, ...]]:
    """The token sequences that a text may mean; none for a text without words and numbers."""
    return {read_tokens(text, thousands=grouped) for grouped in (True, False)} - {()}


def _sequences_equal(one: tuple[Token, ...], other: tuple[Token, ...]) -> bool:
    return len(one) == len(other) and all(map(tokens_equal, one, other))


def tokens_equal(one: Token, other: Token) -> bool:
    """Returns whether two tokens are the same word or the same number."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return numbers_equal(one, other, SHORT_ANSWER)
