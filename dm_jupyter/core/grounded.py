"""The source of each number of an answer, as stored in a trajectory, the panel and a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["AnswerNumber", "Grounded", "Verdict", "doubt_words", "doubts"]


class Verdict(StrEnum):
    """The result of checking a number of an answer."""

    SUPPORTED = "supported"
    """A number that an output contains, perhaps rounded or in another unit."""
    DERIVED = "derived"
    """A number that was recomputed from values of outputs."""
    RESTATED = "restated"
    """A number of the question, which is not a result."""
    UNSUPPORTED = "unsupported"
    """A number without any source."""
    MISMATCHED = "mismatched"
    """A number that an output contains for something else than the answer says."""


@dataclass(frozen=True, slots=True)
class Grounded:
    """A number of an answer with its verdict."""

    text: str
    """The number as written, with `%` and the like."""
    start: int
    """Where it begins in the answer, in characters."""
    end: int
    verdict: Verdict
    cell: int | None = None
    """Index of the step whose output it comes from; `None` if it comes from none."""
    why: str = ""
    """How it was recomputed, or what it is instead."""

    @property
    def is_doubtful(self) -> bool:
        """Whether the outputs don't support it."""
        return self.verdict in (Verdict.UNSUPPORTED, Verdict.MISMATCHED)


def doubts(found: Iterable[Grounded]) -> tuple[str, ...]:
    """Return the doubtful numbers, each once, with what they are instead if that is known."""
    lines = {
        f"{one.text} ({one.why})" if one.why else one.text: None for one in found if one.is_doubtful
    }
    return tuple(lines)


def doubt_words(unsupported: Sequence[str], grounding: Iterable[Grounded]) -> tuple[str, ...]:
    """Return the lines that warn a person of numbers that the outputs don't support.

    Args:
        unsupported: all of these numbers, as written.
        grounding: each number of the answer; empty for an answer of an earlier release.
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
    """A number of an answer, with the notebook cell that it comes from."""

    text: str
    """The number as shown, with `%` and the like."""
    start: int
    """Where it begins in the shown answer, in characters."""
    verdict: str
    """A `Verdict`."""
    cell_id: str | None
    why: str
    """How it was recomputed, or what it is instead."""
    full: str = ""
    """The number as the model stated it, if it is shown with fewer digits."""
