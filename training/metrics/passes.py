"""pass@k: how often at least one of k tries is right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from training.metrics.accuracy import Rules, is_right
from training.metrics.questions import by_question
from training.records.records import EvalRecord

__all__ = ["any_of_each", "pass_at", "pass_of_each", "reported_ks"]


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
