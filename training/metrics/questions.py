"""The records of a run by question: every question counts once, however often it was tried."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.metrics.intervals import Interval, share_interval
from training.records.records import EvalRecord

__all__ = ["Share", "by_question", "question_means", "share_of"]


@dataclass(frozen=True, slots=True)
class Share:
    """How much of something is so."""

    questions: int
    runs: int
    """The tries at these questions together."""
    right: float
    """Of how many runs it is so."""
    share: float
    """The mean over questions of the share of tries; 0 where there are no questions."""
    interval: Interval
    """95 %, over questions."""


def by_question(records: Sequence[EvalRecord]) -> dict[str, list[EvalRecord]]:
    """Returns the tries at each question, in the order of the records."""
    tries: dict[str, list[EvalRecord]] = defaultdict(list)
    for record in records:
        tries[record.id].append(record)
    return dict(tries)


def question_means(
    records: Sequence[EvalRecord], value: Callable[[EvalRecord], float]
) -> list[float]:
    """Returns one number a question: the mean of a value over its tries."""
    return [sum(map(value, tries)) / len(tries) for tries in by_question(records).values()]


def share_of(records: Sequence[EvalRecord], value: Callable[[EvalRecord], float]) -> Share:
    """Returns the share of what is so.

    With the same number of tries at every question it is the mean of the tries' shares, which is
    pass@1. Test: `test_every_question_counts_once_however_often_it_was_tried`.

    Args:
        records: what to count; a run without an answer is one of them.
        value: whether it is so of a record, or a share between 0 and 1.
    """
    means = question_means(records, value)
    return Share(
        questions=len(means),
        runs=len(records),
        right=sum(map(value, records)),
        share=sum(means) / len(means) if means else 0.0,
        interval=share_interval(means),
    )
