"""Find out which ways to understand a question change its answer, and so have to be ruled out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from training.suites.generated.programs.reading import Reading
from training.suites.generated.programs.steps import Step, UnfitError
from training.suites.generated.questions.compose import Draft
from training.suites.generated.tables.dirt import DirtyTable

__all__ = ["FACTS", "differing_readings"]

FACTS = {
    "keeps_repeats": "repeats",
    "skips_gaps": "gaps",
    "zero_gaps": "gaps",
    "raw_labels": "labels",
}
"""The sentence that decides a reading; the others are decided by a template's own words."""
_SPREADS = frozenset(f"{name}{kind}" for name in ("", "p") for kind in ("std", "var", "sem", "cv"))
_QUANTILES = frozenset({"quantile", "iqr"})

Solve = Callable[[Reading], tuple[str, ...]]


def differing_readings(draft: Draft, dirty: DirtyTable, solve: Solve) -> list[str]:
    """Return the fields of `Reading` by which the answer would be another one.

    Args:
        draft: the question.
        dirty: its table.
        solve: gives the answer as written under a reading, or raises `UnfitError`.
    """
    expected = solve(Reading())
    differing = []
    for name in _possible(draft, dirty):
        try:
            if solve(Reading(**{name: True})) != expected:
                differing.append(name)
        except UnfitError:  # under this reading there is no answer at all
            differing.append(name)
    return differing


def _possible(draft: Draft, dirty: DirtyTable) -> Iterator[str]:
    """The readings that may change anything, of all that there are."""
    figures = {name for step in draft.steps for name in _figures(step)}
    varied = any(dirty.forms[name].is_varied for name in draft.columns if name in dirty.forms)
    for field in fields(Reading):
        match field.name:
            case "keeps_repeats":
                is_possible = dirty.repeats > 0
            case "skips_gaps" | "zero_gaps":
                is_possible = draft.has_gaps
            case "raw_labels":
                is_possible = varied
            case "population":
                is_possible = bool(figures & (_SPREADS | {"zscore"}))
            case _:
                is_possible = bool(figures & _QUANTILES)
        if is_possible:
            yield field.name


def _figures(step: Step) -> Iterator[str]:
    if "how" in step.args:
        yield str(step.args["how"])
    for one in step.args.get("make", ()):
        yield str(one["how"])
