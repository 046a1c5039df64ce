"""What a program is: a list of steps, each of which takes what the one before it left.

A step of a table leaves another table: `where` some rows, `derive` a column, `group`, `top`. A step
of a value leaves a named value: `value` computes it from the table, `calc` from other values, `at`
and `list` read it off. Both programs of a question run the same steps; they share no code that
computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "MAX_DEPTH",
    "Answer",
    "Result",
    "Row",
    "Step",
    "StepError",
    "UnfitError",
    "depth",
    "make_step",
]

Answer = str | int | float | tuple[str, ...]
"""A named value that a program left; a tuple is a list."""
Row = tuple[str | int | float | None, ...]

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
"""The keys that a step needs, and those that it may have."""
_READ_OUT = frozenset({"present", "at", "list", "verdict", "grade", "letters", "sort"})
"""Steps that show or order what another one computed."""


class StepError(ValueError):
    """A step of a template that is not as it should be."""


class UnfitError(Exception):
    """The steps have no single answer on these data; no fault, and counted by its reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Step:
    """One step."""

    do: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What the steps left."""

    values: Mapping[str, Answer]
    rows: tuple[Row, ...] = ()
    """The last table; empty where nobody asked for it."""


def make_step(raw: Mapping[str, Any]) -> Step:
    """Return the step that a data file describes.

    Raises:
        StepError: there is no such step, or its keys are others.
    """
    do = raw.get("do")
    if do not in _KEYS:
        raise StepError(f"there is no step {do!r}")
    args = {name: value for name, value in raw.items() if name != "do"}
    needed, free = _KEYS[do]
    if missing := sorted(needed - args.keys()):
        raise StepError(f"step {do} needs {', '.join(missing)}")
    if unknown := sorted(args.keys() - needed - free):
        raise StepError(f"step {do} takes no {', '.join(unknown)}")
    return Step(do, args)


def depth(steps: Sequence[Step]) -> int:
    """Return how many steps a person would count.

    Values computed side by side are one step, and so are sums with them; reading a value off is
    none. `keep` is two: it finds a group, and takes its rows.
    """
    counted, before = 0, ""
    for step in steps:
        if step.do in _READ_OUT:
            continue
        beside = step.do == before and step.do in ("value", "calc", "derive")
        counted += 0 if beside else 2 if step.do == "keep" else 1
        before = step.do
    return counted
