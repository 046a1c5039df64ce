"""Where a number of an answer comes from, as a trajectory, the panel and a notebook keep it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["AnswerNumber", "Grounded", "Verdict", "doubt_words", "doubts"]


class Verdict(StrEnum):
    """What was found out about a number of an answer."""

    SUPPORTED = "supported"
    """An output holds it, rounded or in another unit."""
    DERIVED = "derived"
    """It was recomputed from values of outputs."""
    RESTATED = "restated"
    """The question holds it, and it is no result."""
    UNSUPPORTED = "unsupported"
    """Nothing gives it."""
    MISMATCHED = "mismatched"
    """An output holds it for something else than the answer says."""


@dataclass(frozen=True, slots=True)
class Grounded:
    """A number of an answer with its verdict."""

    text: str
    """As it is written, with `%` and the like."""
    start: int
    """Where it begins in the answer, in characters."""
    end: int
    verdict: Verdict
    cell: int | None = None
    """Index of the step whose output it comes from; `None` where it comes from none."""
    why: str = ""
    """How it was recomputed, or what it is instead."""

    @property
    def is_doubtful(self) -> bool:
        """Whether the outputs don't bear it out."""
        return self.verdict in (Verdict.UNSUPPORTED, Verdict.MISMATCHED)


def doubts(found: Iterable[Grounded]) -> tuple[str, ...]:
    """Returns the doubtful numbers, each once, with what they are instead where that is known."""
    lines = {
        f"{one.text} ({one.why})" if one.why else one.text: None for one in found if one.is_doubtful
    }
    return tuple(lines)


def doubt_words(unsupported: Sequence[str], grounding: Iterable[Grounded]) -> tuple[str, ...]:
    """Returns what a person is told of numbers that the outputs don't bear out, a line each.

    Args:
        unsupported: all of them, as written.
        grounding: each number of the answer; empty where an earlier release has answered.
    """
    found = tuple(grounding)
    mismatched = tuple(one for one in found if one.verdict is Verdict.MISMATCHED)
    elsewhere = {one.text for one in mismatched}
    lost = [text for text in unsupported if text not in elsewhere]
    lines = [f"Not found in the outputs: {', '.join(lost)}"] if lost else []
    if mismatched:
        lines.append(f"At odds with the outputs: {'; '.join(doubts(mismatched))}")
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class AnswerNumber:
    """A number of an answer, with the cell of the notebook that it comes from."""

    text: str
    """As it is shown, with `%` and the like."""
    start: int
    """Where it begins in the answer as it is shown, in characters."""
    verdict: str
    """A `Verdict`."""
    cell_id: str | None
    why: str
    """How it was recomputed, or what it is instead."""
    full: str = ""
    """As the model stated it, where it is shown with fewer digits."""
