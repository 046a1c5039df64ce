"""How much is right: by question and by sub-answer, as InfiAgent-DABench counts it.

The three formulas are those of InfiAgent-DABench (arXiv 2401.05507) and of the scorer published
with it. Deviates: that one leaves the sub-answers of unanswered questions out; here a run without
an answer is wrong in all its parts, and one whose parts are not known counts as one wrong part.
Test: `test_the_three_accuracies_by_hand`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from training.metrics.intervals import Interval, ratio_bootstrap
from training.metrics.questions import Share, by_question, share_of
from training.records.records import EvalRecord

__all__ = ["Rules", "abq", "has_sub_answers", "is_right", "parts_of", "pasq", "uasq",
           "uasq_interval"]  # fmt: skip

Rules = Literal["strict", "ours"]
"""By whose rules: the benchmark's own, or ours."""


def is_right(record: EvalRecord, rules: Rules) -> bool:
    """Returns whether the answer is right by these rules."""
    return record.strict if rules == "strict" else record.right


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
        return record.right == _all_right(record.parts)
    return record.has_sub_answers


def _all_right(parts: Mapping[str, bool]) -> bool:
    return bool(parts) and all(parts.values())


def _share_right(parts: Mapping[str, bool]) -> float:
    return sum(parts.values()) / len(parts) if parts else 0.0
