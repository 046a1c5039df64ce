"""Graded scores, such as a judge's 1 to 5 or a relative performance gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from training.metrics.intervals import Interval, bootstrap
from training.metrics.questions import question_means
from training.records.records import EvalRecord

__all__ = ["Grade", "grades_of"]


@dataclass(frozen=True, slots=True)
class Grade:
    """The mean of a graded score."""

    questions: int
    """Those with a run that has the grade."""
    ungraded: int
    """Runs that have none: no number stands for them, so they are told instead."""
    mean: float
    """Over questions, the tries of each averaged."""
    interval: Interval | None
    """95 %, by bootstrap over questions; `None` where all have the same grade."""


def grades_of(records: Sequence[EvalRecord]) -> dict[str, Grade]:
    """Returns the mean of each graded score by name. Test: `test_grades_by_hand`."""
    names = dict.fromkeys(name for record in records for name in record.grades)
    return {name: _grade(records, name) for name in names}


def _grade(records: Sequence[EvalRecord], name: str) -> Grade:
    graded = [record for record in records if name in record.grades]
    means = question_means(graded, lambda record: record.grades[name])
    return Grade(
        questions=len(means),
        ungraded=len(records) - len(graded),
        mean=sum(means) / len(means),
        interval=bootstrap(means),
    )
