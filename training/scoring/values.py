"""Comparison of two written values under the policy of a suite, shared by all suites.

It reads numbers, dates, times, ranges, words, lists and dicts; see `reader`, `moments` and `lists`.
Nothing is ever evaluated: the readers are regular expressions and one bracket-aware splitter,
linear in the length of the text.

A benchmark's relative tolerance applies to its own questions only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal

from training.scoring.lists import Group, folded_text, pairs_of, parse_group, read_range, readings
from training.scoring.moments import read_moment
from training.scoring.reader import (
    MAX_SCALAR_CHARS,
    ReadingPolicy,
    as_float,
    exact_number,
    is_identifier,
    plain_text,
    read_written,
    scalars_equal,
)

__all__ = [
    "MAX_VALUE_CHARS",
    "first_number",
    "is_nothing",
    "is_within",
    "kind_of",
    "read_number",
    "values_equal",
]

MAX_VALUE_CHARS = 20_000
"""Longer values agree only word by word, so that comparison stays fast."""
MAX_DEPTH = 8
"""Nested lists deeper than this equal only the same text."""
MAX_UNORDERED = 500
"""Maximum number of items to match in any order, beyond word-by-word matches; more don't agree."""
_NOTHING_LABELS = frozenset({"", "None", "null", "[]", "()", "{}"})
_NOTHING_ANSWERS = frozenset(
    {
        *("", "none", "null", "[]", "()", "{}", "nan", "nat", "<na>", "n/a", "empty", "nothing"),
        *("no rows", "no such rows", "no such row", "no results", "no matches", "not available"),
    }
)
_FIRST = re.compile(r"-?[0-9]+\.?[0-9]*%?")


def kind_of(value: str) -> Literal["number", "list", "text"]:
    """Return the kind of a written value; a dict and anything in brackets is a list."""
    if exact_number(value) is not None:
        return "number"
    group = parse_group(value)
    return "list" if group.bracketed or len(group.items) > 1 else "text"


def is_nothing(label: str, answer: str) -> bool:
    """Return whether both the label and the answer say that there is nothing.

    The word `none` in lower case is an answer like any other (no relationship). As a label, it is
    not matched by empty brackets.
    """
    return (
        label.strip() in _NOTHING_LABELS
        and folded_text(plain_text(answer)).removesuffix(".") in _NOTHING_ANSWERS
    )


def values_equal(label: str, answer: str, policy: ReadingPolicy) -> bool:
    """Return whether two written values are the same value.

    Tried in order: the same folded text, nothing, two numbers, two dates or times, two ranges, two
    dicts (any order of keys) and two lists (item by item; brackets and quotes are optional). An
    answer longer than `MAX_VALUE_CHARS` must equal the label word by word.

    Args:
        label: the expected value.
        answer: the value to judge.
        policy: the suite's policy.
    """
    if max(len(label), len(answer)) > MAX_VALUE_CHARS:
        return label.split() == answer.split()
    return is_nothing(label, answer) or _equal(label, answer, policy, 0)


def _equal(label: str, answer: str, policy: ReadingPolicy, depth: int) -> bool:
    if folded_text(label) == folded_text(answer) or _bare(label) == _bare(answer):
        return True
    if is_identifier(label, answer):
        return False
    if scalars_equal(label, answer, policy) or _specials_equal(label, answer):
        return True
    moment = read_moment(label)
    if moment is not None and moment == read_moment(answer):
        return True
    return _ranges_equal(label, answer, policy) or (
        depth < MAX_DEPTH and _lists_equal(label, answer, policy, depth)
    )


def _bare(text: str) -> str:
    """Return the folded text without emphasis around it and one full stop after it."""
    plain = folded_text(plain_text(text))
    return plain.removesuffix(".") if not plain.endswith("..") and len(plain) > 1 else plain


def _specials_equal(label: str, answer: str) -> bool:
    """Whether both are undefined, or both are the same infinity."""
    first, second = exact_number(label), exact_number(answer)
    if not isinstance(first, float) or not isinstance(second, float):
        return False
    is_special = abs(first) == float("inf") or first != first  # noqa: PLR0124  (not a number)
    return is_special and _is_named(label) and _is_named(answer) and repr(first) == repr(second)


def _is_named(text: str) -> bool:
    """Whether a number is written as a word, not as digits that overflow a float."""
    return not any(map(str.isdecimal, text))


def _ranges_equal(label: str, answer: str, policy: ReadingPolicy) -> bool:
    ends, others = read_range(label), read_range(answer)
    return (
        ends is not None
        and others is not None
        and all(scalars_equal(one, other, policy) for one, other in zip(ends, others, strict=True))
    )


def _lists_equal(label: str, answer: str, policy: ReadingPolicy, depth: int) -> bool:
    if depth:
        return _groups_equal(parse_group(label), parse_group(answer), policy, depth)
    left, right = list(readings(label)), list(readings(answer))
    return any(_groups_equal(one, other, policy, depth) for one in left for other in right)


def _groups_equal(left: Group, right: Group, policy: ReadingPolicy, depth: int) -> bool:
    if left.is_plain and right.is_plain:
        return False
    if left.kind != right.kind or left.is_strange != right.is_strange:
        return False
    if len(left.items) != len(right.items) or not left.items:
        return False
    entries, others = pairs_of(left), pairs_of(right)
    if entries is not None and others is not None and entries.keys() == others.keys():
        return all(_equal(value, others[key], policy, depth + 1) for key, value in entries.items())
    if policy.is_order_free and left.kind == "list":
        return _same_bag(left.items, right.items, policy, depth + 1)
    return all(
        _equal(one, other, policy, depth + 1)
        for one, other in zip(left.items, right.items, strict=True)
    )


def _same_bag(
    labels: Sequence[str], answers: Sequence[str], policy: ReadingPolicy, depth: int
) -> bool:
    """Whether the items pair off in any order, those with the same text first."""
    free = list(answers)
    missing = []
    by_text: dict[str, int] = {}
    for item in free:
        by_text[folded_text(item)] = by_text.get(folded_text(item), 0) + 1
    for item in labels:
        if by_text.get(folded_text(item), 0):
            by_text[folded_text(item)] -= 1
        else:
            missing.append(item)
    left = [text for text, count in by_text.items() for _ in range(count)]
    if len(missing) > MAX_UNORDERED:
        return False
    for item in missing:
        match = next((at for at, one in enumerate(left) if _equal(item, one, policy, depth)), None)
        if match is None:
            return False
        left.pop(match)
    return True


def read_number(text: str) -> float | None:
    """Return the number that the entire text writes; a percent sign divides by 100."""
    number = exact_number(text)
    if number is None:
        return None
    value, found = as_float(number), read_written(text)
    return value / 100 if found is not None and found.is_percent else value


def first_number(text: str) -> float | None:
    """Return the first plain number anywhere in a text; a percent sign divides by 100."""
    match = _FIRST.search(text)
    if match is None or len(match[0]) > MAX_SCALAR_CHARS:
        return None
    value = as_float(float(match[0].rstrip("%")))
    return value / 100 if match[0].endswith("%") else value


def is_within(label: float, answer: float, share: float) -> bool:
    """Return whether the answer misses the label by at most a share of the label.

    A label of 0 needs exactly 0. Nothing is within a share of an infinite or undefined number.
    """
    if not (math.isfinite(label) and math.isfinite(answer)):
        return False
    return abs(label - answer) <= share * abs(label) * (1 + 1e-9)
