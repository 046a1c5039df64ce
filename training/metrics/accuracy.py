"""Accuracy of a run: by question, sub-answer, part and attempt.

Every question counts once, regardless of its number of attempts.

The sub-answer formulas are those of InfiAgent-DABench (arXiv 2401.05507) and of its published
scorer. Deviates: that scorer omits the sub-answers of unanswered questions. Here, a run without an
answer is wrong in all its parts, and one whose parts are unknown counts as one wrong part. Test:
`test_the_three_accuracies_by_hand`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from training.metrics.intervals import FEW_QUESTIONS, Interval, ratio_bootstrap, share_interval
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
"""Rules of scoring: the benchmark's own, or ours."""


@dataclass(frozen=True, slots=True)
class Share:
    """Share of runs for which a condition is true."""

    questions: int
    runs: int
    """Attempts at these questions, all together."""
    right: float
    """Number of runs for which the condition is true."""
    share: float
    """Mean over questions of the share of attempts; 0 without questions."""
    interval: Interval
    """95 % interval, over questions."""


def by_question(records: Sequence[EvalRecord]) -> dict[str, list[EvalRecord]]:
    """Return the attempts at each question, in the order of the records."""
    tries: dict[str, list[EvalRecord]] = defaultdict(list)
    for record in records:
        tries[record.id].append(record)
    return dict(tries)


def question_means(
    records: Sequence[EvalRecord], value: Callable[[EvalRecord], float]
) -> list[float]:
    """Return one number per question: the mean of a value over its attempts."""
    return [sum(map(value, tries)) / len(tries) for tries in by_question(records).values()]


def share_of(records: Sequence[EvalRecord], value: Callable[[EvalRecord], float]) -> Share:
    """Return the share of records for which a condition is true.

    With the same number of attempts at every question, it is the mean share over attempts: pass@1.
    Test: `test_every_question_counts_once_however_often_it_was_tried`.

    Args:
        records: the records to count, those of runs without an answer included.
        value: whether the condition is true for a record, or a share between 0 and 1.
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
    """Return whether the answer is correct by these rules."""
    return record.strict_correct if rules == "strict" else record.correct


def parts_of(record: EvalRecord, rules: Rules) -> Mapping[str, bool]:
    """Return the verdict on each part; ours if the suite has no strict verdict of its own."""
    return record.strict_parts or record.parts if rules == "strict" else record.parts


def has_sub_answers(records: Sequence[EvalRecord]) -> bool:
    """Return whether parts are sub-answers that must all be correct, and some records have several.

    If parts are alternative ways to be correct instead, their shares mean nothing.
    """
    judged = [record for record in records if record.parts]
    return any(len(record.parts) > 1 for record in judged) and all(map(_are_answers, judged))


def abq(records: Sequence[EvalRecord], rules: Rules) -> Share:
    """Return the accuracy by question: the share of questions with all sub-answers correct."""
    return share_of(records, lambda record: _all_right(parts_of(record, rules)))


def pasq(records: Sequence[EvalRecord], rules: Rules) -> Share:
    """Return the proportional accuracy by sub-question.

    It is the mean over questions of the share of their correct sub-answers.
    """
    return share_of(records, lambda record: _share_right(parts_of(record, rules)))


def uasq(records: Sequence[EvalRecord], rules: Rules) -> float:
    """Return the uniform accuracy by sub-question: correct sub-answers among all sub-answers.

    A question counts as often as it has sub-answers.
    """
    counts = _counts_of_each(records, rules)
    total = sum(asked for _, asked in counts)
    return sum(right for right, _ in counts) / total if total else 0.0


def uasq_interval(records: Sequence[EvalRecord], rules: Rules) -> Interval | None:
    """Return the 95 % interval of `uasq`, drawing questions with all their sub-answers.

    `None` with fewer than `FEW_QUESTIONS`, of which it would be too narrow.
    """
    counts = _counts_of_each(records, rules)
    if len(counts) < FEW_QUESTIONS:
        return None
    return ratio_bootstrap([right for right, _ in counts], [asked for _, asked in counts])


def _counts_of_each(records: Sequence[EvalRecord], rules: Rules) -> list[tuple[int, int]]:
    """Return the correct and all sub-answers of each question, its attempts summed."""
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
    """Return the chance that k attempts, drawn without replacement, include a correct one.

    The unbiased estimator 1 - C(n - c, k) / C(n, k) for n attempts, c of them correct: Chen et al.
    2021 (arXiv 2107.03374) §2.1. It is computed as 1 - product of (1 - k / i) for i from n - c + 1
    to n, which never overflows. Test: `test_pass_at_by_hand`.

    Raises:
        ValueError: k is not between 1 and `tries`, or `right` is not between 0 and `tries`.
    """
    if not 1 <= k <= tries:
        raise ValueError(f"pass@{k} needs 1 <= k <= {tries}, the tries at the question")
    if not 0 <= right <= tries:
        raise ValueError(f"{right} of {tries} tries can't be right")
    if tries - right < k:
        return 1.0
    return 1.0 - math.prod(1 - k / count for count in range(tries - right + 1, tries + 1))


def pass_of_each(k: int, records: Sequence[EvalRecord], rules: Rules) -> list[float]:
    """Return pass@k of each question; with k = 1, the share of its correct attempts.

    Raises:
        ValueError: a question has fewer than k attempts.
    """
    return [
        pass_at(k, len(tries), sum(is_right(one, rules) for one in tries))
        for tries in by_question(records).values()
    ]


def any_of_each(records: Sequence[EvalRecord], rules: Rules) -> list[float]:
    """Return 1 for each question that any attempt solved, else 0; their mean is the union.

    The union equals pass@k if every question has k attempts.
    """
    return [
        float(any(is_right(one, rules) for one in tries)) for tries in by_question(records).values()
    ]


def reported_ks(records: Sequence[EvalRecord]) -> list[int]:
    """Return the k to report: powers of two, and the fewest attempts at any question."""
    fewest = min(map(len, by_question(records).values()), default=0)
    return sorted({2**power for power in range(fewest.bit_length())} | {fewest} - {0})


def part_shares(records: Sequence[EvalRecord]) -> dict[str, Share]:
    """Return the share of runs that meet each part, such as a published rule beside ours.

    Parts that only some questions have are omitted. A run without any verdict counts as wrong.
    """
    judged = [list(record.parts) for record in records if record.parts]
    common = [name for name in judged[0] if all(name in one for one in judged)] if judged else []
    return {name: share_of(records, partial(_is_so, name)) for name in common}


def _is_so(name: str, record: EvalRecord) -> bool:
    return record.parts.get(name, False)
