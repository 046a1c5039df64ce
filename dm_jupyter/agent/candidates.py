"""Ended runs as candidates, and the choice of one of them by a vote or by its value."""

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
    """The current folder of the files that its code created."""
    value: float | None = None
    """The estimate of a value model, -1 to 1; `None` without one."""
    weight: Fraction = Fraction(1)
    """Its weight in a vote."""


Agree = Callable[[Candidate, Candidate], bool]
"""Whether two candidates give the same answer. It may be intransitive, as tolerances are.

Strategies call it in a thread beside the event loop, since it may take long."""


def groups_of(candidates: Sequence[Candidate], agree: Agree) -> list[list[int]]:
    """Return the indices of the candidates that answered, in groups that agree.

    Each candidate joins the first group whose first member it agrees with. The group with the most
    weight comes first, of equal ones the one with the earliest member.
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
    """Return the index of the first candidate with the majority answer.

    This is the mode under the given equality, not of raw strings; of equal weights, the answer
    given first wins. An answer with a value of another kind than its format asks for loses to any
    answer without one. An answer that says nothing, such as `nan`, loses to both. Without any
    answer, return 0.
    """
    groups = groups_of(candidates, agree)
    return min(groups, key=lambda group: _unfitness(candidates[group[0]]), default=[0])[0]


def best_by_mode(candidates: Sequence[Candidate], agree: Agree) -> int:
    """Return the index of the first candidate with the most frequent answer.

    Each counts one, whatever its weight and the form of its answer; of equal counts, the answer
    given first wins. Without any answer, return 0.
    """
    alike = [replace(one, weight=Fraction(1)) for one in candidates]
    return next(iter(groups_of(alike, agree)), [0])[0]


def best_by_value(candidates: Sequence[Candidate]) -> int:
    """Return the index of the answered candidate with the highest value, of equals the first.

    Without values this is the first that answered. Without any answer, return 0.
    """
    answered = [place for place, one in enumerate(candidates) if has_answer(one)]
    return max(answered, key=lambda place: (_value(candidates[place]), -place), default=0)


def say_the_same(one: Candidate, other: Candidate) -> bool:
    """Whether two answers are the same, if no benchmark's rules apply.

    Answers in the form `@name[value]` are the same if the same names have the same values: numbers
    may differ by 1e-6 of themselves, words by case and spaces. Free answers are the same if they
    state the same set of numbers, whatever the words around them. Without any number, the texts
    must be the same except for case and spaces.
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
    """Whether it has an answer that fits its question's format, which a vote prefers."""
    return has_answer(candidate) and _unfitness(candidate) == 0


def _unfitness(candidate: Candidate) -> int:
    """Return 2 for an answer that says nothing, 1 for one that violates its format, else 0."""
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
