"""Programs: lists of steps, each of which works on the result of the one before it.

A table step produces another table: `where` selects rows, `derive` adds a column, and so on with
`group` and `top`. A value step produces a named value: `value` computes it from the table, `calc`
from other values, `at` and `list` read it from the table. Both programs of a question run the same
steps; they share no code that computes. A `Reading` is another interpretation of the question. The
first program runs under each to check whether it changes the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "MAX_DEPTH",
    "ProgramAnswer",
    "ProgramStep",
    "Reading",
    "Result",
    "ResultRow",
    "StepError",
    "UnfitError",
    "depth",
    "make_step",
]

ProgramAnswer = str | int | float | tuple[str, ...]
"""A named value that a program computed; a tuple is a list."""
ResultRow = tuple[str | int | float | None, ...]

MAX_DEPTH = 5

_KEYS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    name: (frozenset(needed.split()), frozenset(free.split()))
    for name, needed, free in (
        ("present", "columns", ""),
        ("where", "column test value", "least"),
        ("derive", "into how of", "expr value limit edges names by low high"),
        ("group", "by make", ""),
        ("top", "by order", "k skip"),
        ("sort", "by", "order"),
        ("fill", "column how", "by"),
        ("change", "into of how along", ""),
        ("running", "into of how along", "window"),
        ("join", "columns", ""),
        ("keep", "by how of order", "k least"),
        ("gaps", "columns", ""),
        ("value", "into how", "of q only"),
        ("at", "into column", "row"),
        ("list", "into column", ""),
        ("calc", "into expr", ""),
        ("verdict", "into of test than", "yes no"),
        ("grade", "into of edges words", "size"),
        ("letters", "into claims", ""),
    )
}
"""Required and optional keys of each step."""
_READ_OUT = frozenset({"present", "at", "list", "verdict", "grade", "letters", "sort"})
"""Steps that show or order the result of another step."""
_DATE_PARTS = frozenset({"year", "quarter", "month", "weekday"})


@dataclass(frozen=True, slots=True)
class Reading:
    """Interpretation of a question with ambiguous words; the default is what the words say."""

    keeps_repeats: bool = False
    """Repeated rows count as often as they occur in the file."""
    skips_gaps: bool = False
    """Rows with a missing value stay; each figure ignores only its own gaps."""
    zero_gaps: bool = False
    """A missing number counts as 0, and a missing label is a label like any other."""
    raw_labels: bool = False
    """Labels that differ in case or spaces are different."""
    population: bool = False
    """Standard deviation and variance use the other divisor, of sample or population."""
    nearest_quantile: bool = False
    """A quantile is the next lower value of the data, not a point between two values."""


class StepError(ValueError):
    """A step of a template is invalid."""


class UnfitError(Exception):
    """The steps have no single answer on these data; not a fault, and counted by reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """One step."""

    do: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """Values and rows that the steps produced."""

    values: Mapping[str, ProgramAnswer]
    rows: tuple[ResultRow, ...] = ()
    """The last table; empty if it was not requested."""


def make_step(raw: Mapping[str, Any]) -> ProgramStep:
    """Return the step that a data file describes.

    Raises:
        StepError: there is no such step, or a key is missing or unknown.
    """
    do = str(raw.get("do"))
    if do not in _KEYS:
        raise StepError(f"there is no step {do!r}")
    args = {name: value for name, value in raw.items() if name != "do"}
    needed, free = _KEYS[do]
    if missing := sorted(needed - args.keys()):
        raise StepError(f"step {do} needs {', '.join(missing)}")
    if unknown := sorted(args.keys() - needed - free):
        raise StepError(f"step {do} takes no {', '.join(unknown)}")
    return ProgramStep(do, args)


def depth(steps: Sequence[ProgramStep]) -> int:
    """Return the number of steps that a person would count.

    Values computed side by side are one step, and so are calculations with them. These are not
    steps: a date part by which rows are directly grouped, reading out a value, and a value that no
    later step needs. `keep` is two steps: it finds a group, and takes its rows.
    """
    chain = [
        step
        for place, step in enumerate(steps)
        if step.do not in _READ_OUT and not _is_beside(step, steps[place + 1 :])
    ]
    counted, before = 0, ""
    for step in chain:
        if step.do != before or step.do not in ("value", "calc", "derive"):
            counted += 2 if step.do == "keep" else 1
        before = step.do
    return counted


def _is_beside(step: ProgramStep, later: Sequence[ProgramStep]) -> bool:
    """Whether a step is part of another step, or not part of the chain."""
    if step.do == "derive" and later and later[0].do in ("group", "keep"):
        return step.args["into"] in later[0].args["by"] and step.args["how"] in _DATE_PARTS
    if step.do != "value" or all(one.do in (*_READ_OUT, "value", "calc") for one in later):
        return False
    name = re.compile(rf"\b{re.escape(step.args['into'])}\b")
    needs = [one.args for one in later if one.do in ("calc", "where", "derive", "value")]
    return not any(name.search(text) for args in needs for text in _references(args))


def _references(args: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a step that may name a value."""
    given = [args.get(name, "") for name in ("value", "expr", "low", "high")]
    given.append(args.get("only", {}).get("value", ""))
    return [str(one) for one in given]
