"""95 % intervals: how far a sample's share may be from that of all such questions.

The unit is the question, never the attempt. Attempts at one question resemble each other, and
counting them as independent makes an interval too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["FEW_QUESTIONS", "Interval", "bootstrap", "ratio_bootstrap", "share_interval", "wilson"]

Interval = tuple[float, float]
"""Lower and upper end."""

FEW_QUESTIONS = 20
"""Below it, a bootstrap is too narrow (`test_a_bootstrap_of_few_questions_is_too_narrow`)."""
RESAMPLES = 10_000
BATCH = 1_000
"""Resamples drawn at once; bounds the memory for a large suite."""
Z_95 = 1.959964


def wilson(right: float, total: int) -> Interval:
    """Return the interval of a share, both ends between 0 and 1.

    Wilson 1927, "Probable inference, the law of succession, and statistical inference", JASA 22.
    Deviates: `right` may be a sum of shares, one per question. No variable between 0 and 1 spreads
    more than a yes or no of the same mean, so the interval is then too wide rather than too narrow.
    Test: `test_wilson_by_hand`.
    """
    if total == 0:
        return 0.0, 1.0
    share = right / total
    centre = share + Z_95**2 / (2 * total)
    spread = Z_95 * math.sqrt(share * (1 - share) / total + Z_95**2 / (4 * total**2))
    scale = 1 + Z_95**2 / total
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def bootstrap(values: Sequence[float], seed: int = 0) -> Interval | None:
    """Return the percentile interval of the mean of values, one value per question.

    Efron 1979, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7. n of the
    n questions are drawn with replacement, 10,000 times; the interval contains the middle 95 % of
    the means. `None` if all values are equal, because they don't show how such values spread. Test:
    `test_bootstrap_by_hand`.

    Args:
        values: one per question, its attempts averaged.
        seed: of the draws; the same seed gives the same interval.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("there is nothing to resample: give one value a question")
    return ratio_bootstrap(values, [1] * len(values), seed)


def ratio_bootstrap(
    values: Sequence[float], sizes: Sequence[int], seed: int = 0
) -> Interval | None:
    """Return the percentile interval of a ratio of sums, drawing each question with its size.

    `None` if the ratio is the same at every question. `bootstrap` is the case of all sizes 1.

    Args:
        values: the numerators, one per question.
        sizes: the denominators, each above zero.
        seed: of the draws; the same seed gives the same interval.
    """
    if len({value / size for value, size in zip(values, sizes, strict=True)}) < 2:
        return None
    # Sorted: the interval must not depend on the order in which questions finished.
    sample, weights = np.asarray(sorted(zip(values, sizes, strict=True)), dtype=float).T
    draws = np.random.default_rng(seed)
    ratios = []
    for _ in range(RESAMPLES // BATCH):
        drawn = draws.integers(0, len(sample), (BATCH, len(sample)))
        ratios.append(sample[drawn].sum(axis=1) / weights[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(ratios), [0.025, 0.975])
    return float(low), float(high)


def share_interval(shares: Sequence[float]) -> Interval:
    """Return the interval of the mean of shares, one per question, each between 0 and 1.

    Wilson if each share is 0 or 1, as with one attempt per question; otherwise a bootstrap over
    questions. Where that fails, with few questions or equal shares, Wilson again.
    """
    by_count = wilson(math.fsum(shares), len(shares))
    if set(shares) <= {0, 1} or len(shares) < FEW_QUESTIONS:
        return by_count
    return bootstrap(shares) or by_count
