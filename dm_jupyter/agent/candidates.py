"""Runs that ended, and how one of them is chosen: by a vote, or by its value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dm_jupyter.assist.critique import misfits
from dm_jupyter.assist.grounding import stated_numbers
from dm_jupyter.core.closed_form import find_answers, is_undefined
from dm_jupyter.core.trajectory import Trajectory

__all__ = [
    "Agree",
    "Candidate",
    "best_by_mode",
    "best_by_value",
    "best_by_vote",
    "groups_of",
    "is_fit",
    "say_the_same",
]

_RELATIVE_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that ended."""

    trajectory: Trajectory
    folder: Path | None = None
    """Where the files that its code made lie now."""
    value: float | None = None
    """What a value model thinks of it, -1 to 1; `None` without one."""
    weight: Fraction = Fraction(1)
    """What it counts in a vote."""


Agree = Callable[[Candidate, Candidate], bool]
"""Whether two candidates say the same. It may be intransitive, as tolerances are.

Strategies call it in a thread beside the event loop, for it may take long."""


def groups_of(candidates: Sequence[Candidate], agree: Agree) -> list[list[int]]:
    """Returns the places of the candidates that answered, those that agree together.

    Each joins the first group whose first member it agrees with; the group with the most weight
    comes first, of equal ones the one with the earliest member.
    """
    groups: list[list[int]] = []
    for place, candidate in enumerate(candidates):
        if not has_answer(candidate):
            continue
        for group in groups:
            if agree(candidates[group[0]], candidate):
                group.append(place)
                break
        else:
            groups.append([place])
    return sorted(groups, key=lambda group: (-_weight(candidates, group), group[0]))


def best_by_vote(candidates: Sequence[Candidate], agree: Agree) -> int:
    """Returns the place of the first candidate that says what most of them say.

    The mode under the given equality, not of raw strings; of equal weights the one said first. An
    answer with a value of another kind than its format asks for gives way to any that has none,
    and one that says nothing, such as `nan`, to both. Without an answer: 0.
    """
    groups = groups_of(candidates, agree)
    return min(groups, key=lambda group: _unfitness(candidates[group[0]]), default=[0])[0]


def best_by_mode(candidates: Sequence[Candidate], agree: Agree) -> int:
    """Returns the place of the first candidate that says what most candidates say.

    Each counts one, whatever its weight and the form of its answer; of equal counts the one said
    first. Without an answer: 0.
    """
    alike = [replace(one, weight=Fraction(1)) for one in candidates]
    return next(iter(groups_of(alike, agree)), [0])[0]


def best_by_value(candidates: Sequence[Candidate]) -> int:
    """Returns the place of the candidate with the highest value that answered, of equals the first.

    Without values this is the first that answered; without an answer 0.
    """
    answered = [place for place, one in enumerate(candidates) if has_answer(one)]
    return max(answered, key=lambda place: (_value(candidates[place]), -place), default=0)


def say_the_same(one: Candidate, other: Candidate) -> bool:
    """Whether two answers say the same, where no benchmark's rules are at hand.

    Answers in the form `@name[value]` do when the same names have the same values: numbers may
    differ by 1e-6 of themselves, words by case and spaces. Free answers do when they state the same
    set of numbers, whatever the words around them; without any number, when they are the same text
    but for case and spaces.
    """
    first, second = one.trajectory.answer or "", other.trajectory.answer or ""
    if not first.strip() or not second.strip():
        return False
    if _plain(first) == _plain(second):
        return True
    pairs, others = dict(find_answers(first)), dict(find_answers(second))
    if pairs or others:
        return pairs.keys() == others.keys() and all(
            _equal(pairs[name], others[name]) for name in pairs
        )
    numbers = stated_numbers(first)
    return bool(numbers) and numbers == stated_numbers(second)


def has_answer(candidate: Candidate) -> bool:
    """Whether the run ended with an answer."""
    return bool((candidate.trajectory.answer or "").strip())


def is_fit(candidate: Candidate) -> bool:
    """Whether it has an answer to such a question: a vote takes no other where there is one."""
    return has_answer(candidate) and _unfitness(candidate) == 0


def _unfitness(candidate: Candidate) -> int:
    """2 for an answer that says nothing, 1 for one that is no answer to such a question, else 0."""
    said = dict(find_answers(candidate.trajectory.answer or ""))
    if said and all(map(is_undefined, said.values())):
        return 2
    return int(bool(misfits(candidate.trajectory.task.answer_format, said)))


def _weight(candidates: Sequence[Candidate], group: Sequence[int]) -> Fraction:
    return sum((candidates[place].weight for place in group), start=Fraction(0))


def _value(candidate: Candidate) -> float:
    return float("-inf") if candidate.value is None else candidate.value


def _equal(one: str, other: str) -> bool:
    try:
        first, second = float(one), float(other)
    except ValueError:
        return _plain(one) == _plain(other)
    return abs(first - second) <= _RELATIVE_TOLERANCE * max(abs(first), abs(second))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
