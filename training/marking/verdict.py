"""What a judge's reply says: scores in tags, read strictly. Anything else is no verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from training.marking.errors import UnusableReplyError

__all__ = ["Grades", "Marks", "Scale", "read_reason", "read_scores"]

Scale = tuple[float, float]
"""The lowest and the highest score."""

_SCORE = re.compile(r'<score(?: name="([\w-]+)")?>([^<>]*)</score>')
_ANY_SCORE_TAG = re.compile(r"</?\s*score\b", re.IGNORECASE)
_REASON_TAG = re.compile(r"</?reason>")
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Marks:
    """One score."""

    score: float
    reason: str
    """The judge's words beside the score."""
    is_cached: bool
    """Whether the judge was not asked for it again."""


@dataclass(frozen=True, slots=True)
class Grades:
    """Several named scores of one reply."""

    scores: Mapping[str, float]
    reason: str
    """The judge's words beside the scores."""
    is_cached: bool
    """Whether the judge was not asked for them again."""


def read_scores(
    reply: str, scales: Mapping[str, Scale], *, is_whole: bool = False
) -> dict[str, float]:
    """Returns the score of each name, in the order of `scales`.

    Args:
        reply: the judge's words.
        scales: the range of each name, both ends included; `<score>` alone has the name "".
        is_whole: whether a score must be a whole number.

    Raises:
        UnusableReplyError: a score is missing, stands twice, was not asked for, is no plain
            number, or is out of its range.
    """
    found = [(match[1] or "", match[2].strip()) for match in _SCORE.finditer(reply)]
    if len(_ANY_SCORE_TAG.findall(reply)) != 2 * len(found):
        raise UnusableReplyError("a score tag in it is broken")
    said = [name for name, _ in found]
    for name in scales:
        if said.count(name) != 1:
            times = said.count(name)
            raise UnusableReplyError(
                f"{_tag(name)} must stand in it once, and stands {times} times"
            )
    for name in said:
        if name not in scales:
            raise UnusableReplyError(f"nobody asked for {_tag(name)}")
    texts = dict(found)
    return {
        name: _number(name, texts[name], scale, is_whole=is_whole) for name, scale in scales.items()
    }


def read_reason(reply: str) -> str:
    """Returns what a reply says beside its scores."""
    return _REASON_TAG.sub("", _SCORE.sub("", reply)).strip()


def _number(name: str, text: str, scale: Scale, *, is_whole: bool) -> float:
    low, high = scale
    if _NUMBER.fullmatch(text) is None:
        raise UnusableReplyError(f"{_tag(name)} holds {text[:40]!r}, which is no plain number")
    number = float(text)
    if not low <= number <= high:
        raise UnusableReplyError(f"{_tag(name)} holds {text}, and must be {low:g} to {high:g}")
    if is_whole and not number.is_integer():
        raise UnusableReplyError(f"{_tag(name)} holds {text}, and must be a whole number")
    return number


def _tag(name: str) -> str:
    return f'<score name="{name}">' if name else "<score>"
