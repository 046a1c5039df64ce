"""How much of a run is right: by question, sub-answer, part and try.

Every question counts once, however often it was tried.

The formulas of sub-answers are those of InfiAgent-DABench (arXiv 2401.05507) and of the scorer
published with it. Deviates: that one leaves the sub-answers of unanswered questions out; here a run
without an answer is wrong in all its parts, and one whose parts are not known counts as one wrong
part. Test: `test_the_three_accuracies_by_hand`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from training.metrics.intervals import Interval, ratio_bootstrap, share_interval
from training.records.records import EvalRecord

__all__ = [
    "Rules",
    "Share",
    "abq",
    "any_of_each",
    "by_question",
    "has_sub_answers",
    "is_right",
    "part_shares",
    "parts_of",
    "pasq",
    "pass_at",
    "pass_of_each",
    "question_means",
    "reported_ks",
    "share_of",
    "uasq",
    "uasq_interval",
]

Rules = Literal["strict", "ours"]
"""By whose rules: the benchmark's own, or ours."""


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


def is_right(record: EvalRecord, rules: Rules) -> bool:
    """Returns whether the answer is right by these rules."""
    return record.strict_correct if rules == "strict" else record.correct


def parts_of(record: EvalRecord, rules: Rules) -> Mapping[str, bool]:
    """Returns the verdict on each part; ours where the suite has no strict one of its own."""
    return record.strict_parts or record.parts if rules == "strict" else record.parts


def has_sub_answers(records: Sequence[EvalRecord]) -> bool:
    """Returns whether parts are sub-answers, all of which must be right, and some have several.

    Where parts are ways to be right instead, shares of them say nothing.
    """
    judged = [record for record in records if record.parts]
    return any(len(record.parts) > 1 for record in judged) and all(map(_are_answers, judged))


def abq(records: Sequence[EvalRecord], rules: Rules) -> Share:
    """Returns the accuracy by question: the share of questions whose every sub-answer is right."""
    return share_of(records, lambda record: _all_right(parts_of(record, rules)))


def pasq(records: Sequence[EvalRecord], rules: Rules) -> Share:
    """Returns the proportional accuracy by sub-question.

    It is the mean over questions of the share of their sub-answers that are right.
    """
    return share_of(records, lambda record: _share_right(parts_of(record, rules)))


def uasq(records: Sequence[EvalRecord], rules: Rules) -> float:
    """Returns the uniform accuracy by sub-question: right sub-answers among all sub-answers.

    A question counts as often as it has sub-answers.
    """
    counts = _counts_of_each(records, rules)
    total = sum(asked for _, asked in counts)
    return sum(right for right, _ in counts) / total if total else 0.0


def uasq_interval(records: Sequence[EvalRecord], rules: Rules) -> Interval | None:
    """Returns the 95 % interval of `uasq`: questions are drawn, each with all its sub-answers."""
    counts = _counts_of_each(records, rules)
    return ratio_bootstrap([right for right, _ in counts], [asked for _, asked in counts])


def _counts_of_each(records: Sequence[EvalRecord], rules: Rules) -> list[tuple[int, int]]:
    """Of each question, the sub-answers that are right and those there are, all tries together."""
    counts = []
    for tries in by_question(records).values():
        parts = [parts_of(record, rules) for record in tries]
        right = sum(sum(one.values()) for one in parts)
        counts.append((right, sum(max(1, len(one)) for one in parts)))
    return counts


def _are_answers(record: EvalRecord) -> bool:
    if record.has_sub_answers is None:  # an older record
        return record.correct == _all_right(record.parts)
    return record.has_sub_answers


def _all_right(parts: Mapping[str, bool]) -> bool:
    return bool(parts) and all(parts.values())


def _share_right(parts: Mapping[str, bool]) -> float:
    return sum(parts.values()) / len(parts) if parts else 0.0


def pass_at(k: int, tries: int, right: int) -> float:
    """Returns the chance that k tries, drawn from all without replacement, hold a right one.

    The unbiased estimator 1 - C(n - c, k) / C(n, k) for n tries, c of them right: Chen et al. 2021
    (arXiv 2107.03374) §2.1. It is computed as 1 - product of (1 - k / i) for i from n - c + 1 to n,
    which overflows nowhere. Test: `test_pass_at_by_hand`.

    Raises:
        ValueError: k is not between 1 and the tries, or more are right than there are.
    """
    if not 1 <= k <= tries:
        raise ValueError(f"pass@{k} needs 1 <= k <= {tries}, the tries at the question")
    if not 0 <= right <= tries:
        raise ValueError(f"{right} of {tries} tries can't be right")
    if tries - right < k:
        return 1.0
    return 1.0 - math.prod(1 - k / count for count in range(tries - right + 1, tries + 1))


def pass_of_each(k: int, records: Sequence[EvalRecord], rules: Rules) -> list[float]:
    """Returns pass@k of each question; with k = 1, the share of its tries that are right.

    Raises:
        ValueError: a question has fewer than k tries.
    """
    return [
        pass_at(k, len(tries), sum(is_right(one, rules) for one in tries))
        for tries in by_question(records).values()
    ]


def any_of_each(records: Sequence[EvalRecord], rules: Rules) -> list[float]:
    """Returns 1 for each question that any of its tries solved, else 0: the union is their mean.

    It equals pass@k where every question has k tries.
    """
    return [
        float(any(is_right(one, rules) for one in tries)) for tries in by_question(records).values()
    ]


def reported_ks(records: Sequence[EvalRecord]) -> list[int]:
    """Returns the k to report: the powers of two, and the fewest tries that a question has."""
    fewest = min(map(len, by_question(records).values()), default=0)
    return sorted({2**power for power in range(fewest.bit_length())} | {fewest} - {0})


def part_shares(records: Sequence[EvalRecord]) -> dict[str, Share]:
    """Returns of how many runs each part is so, such as a published rule beside ours.

    Parts that only some questions have are left out; a run without any verdict counts as wrong.
    """
    judged = [list(record.parts) for record in records if record.parts]
    common = [name for name in judged[0] if all(name in one for one in judged)] if judged else []
    return {name: share_of(records, partial(_is_so, name)) for name in common}


def _is_so(name: str, record: EvalRecord) -> bool:
    return record.parts.get(name, False)
