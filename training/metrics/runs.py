"""Costs, failures and grades of runs, and the groups that runs are counted in."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from training.durable.budget import Price
from training.metrics.accuracy import Share, question_means, share_of
from training.metrics.intervals import FEW_QUESTIONS, Interval, bootstrap
from training.records.records import EvalRecord

__all__ = [
    "UNGROUPED",
    "Grade",
    "Spread",
    "by_group",
    "costs_of",
    "failure_counts",
    "grades_of",
    "group_names",
    "self_debugging",
]

_COUNTED = ("turns", "cells", "sampled_cells", "prompt_tokens", "tokens", "seconds")
UNGROUPED = "(none)"
"""Name for the records that have no value of a group that others have."""
_LEVELS = ("easy", "simple", "medium", "moderate", "hard", "challenging")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, median and total of a quantity over runs."""

    mean: float
    median: float
    total: float


def costs_of(records: Sequence[EvalRecord], price: Price | None = None) -> dict[str, Spread]:
    """Return the spread of each cost by name, with `dollars` if there is a price.

    Empty without records.
    """
    if not records:
        return {}
    found = {name: _spread([getattr(one, name) for one in records]) for name in _COUNTED}
    if price is not None:
        found["dollars"] = _spread([price.of(one.prompt_tokens, one.tokens) for one in records])
    return found


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.fmean(values), statistics.median(values), math.fsum(values))


def group_names(records: Sequence[EvalRecord]) -> list[str]:
    """Return the names that records can be grouped by, in order of first appearance."""
    return list(dict.fromkeys(name for record in records for name in record.groups))


def by_group(records: Sequence[EvalRecord], name: str) -> dict[str, list[EvalRecord]]:
    """Return the records of each value of a group: levels from easy to hard, others by size.

    A record with several values, such as concepts, appears under each; one without a value, under
    `UNGROUPED`.
    """
    found: dict[str, list[EvalRecord]] = defaultdict(list)
    for record in records:
        for value in dict.fromkeys(record.groups.get(name, ())) or (UNGROUPED,):
            found[value].append(record)
    return {value: found[value] for value in sorted(found, key=lambda v: _place(v, found))}


@dataclass(frozen=True, slots=True)
class Grade:
    """Mean of a graded score."""

    questions: int
    """Questions with a run that has the grade."""
    ungraded: int
    """Runs without the grade; no number represents them, so they are counted here."""
    mean: float
    """Mean over questions, the attempts at each averaged."""
    interval: Interval | None
    """95 % interval, by bootstrap over questions; `None` if all have the same grade, or with fewer
    than `FEW_QUESTIONS`, of which it would be too narrow."""


def grades_of(records: Sequence[EvalRecord]) -> dict[str, Grade]:
    """Return the mean of each graded score by name. Test: `test_grades_by_hand`."""
    names = dict.fromkeys(name for record in records for name in record.grades)
    return {name: _grade(records, name) for name in names}


def _grade(records: Sequence[EvalRecord], name: str) -> Grade:
    graded = [record for record in records if name in record.grades]
    means = question_means(graded, lambda record: record.grades[name])
    return Grade(
        questions=len(means),
        ungraded=len(records) - len(graded),
        mean=sum(means) / len(means),
        interval=bootstrap(means) if len(means) >= FEW_QUESTIONS else None,
    )


def failure_counts(records: Sequence[EvalRecord]) -> dict[str, int]:
    """Return the number of runs by kind of failure, the most frequent first.

    The kinds are those of `training.records.failures`. Every run that is not correct by the strict
    rules has one.
    """
    return dict(Counter(record.failure for record in records if record.failure).most_common())


def self_debugging(records: Sequence[EvalRecord]) -> Share | None:
    """Return the success rate of self-debugging; `None` if no cell raised.

    Among runs with an error in a cell, the share whose last cell ran. Own definition: the final
    answer may still be wrong. Test: `test_self_debugging_by_hand`.
    """
    met = [record for record in records if record.self_corrected is not None]
    return share_of(met, lambda record: bool(record.self_corrected)) if met else None


def _place(value: str, found: dict[str, list[EvalRecord]]) -> tuple[bool, int, int, str]:
    level = _LEVELS.index(value.lower()) if value.lower() in _LEVELS else len(_LEVELS)
    return value == UNGROUPED, level, -len(found[value]), value
