"""Whether one of two runs at the same questions is better."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from training.metrics.intervals import Interval, bootstrap
from training.metrics.matching import Pair

__all__ = ["Difference", "McNemar", "difference_of", "mcnemar", "mcnemar_of"]


@dataclass(frozen=True, slots=True)
class McNemar:
    """The test of McNemar on the pairs that changed."""

    b: int
    """Pairs in which the first run is better."""
    c: int
    """Pairs in which the second run is better."""
    p_exact: float
    p_mid: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The second run's share less the first's, in percentage points."""

    points: float
    interval: Interval | None
    """95 %; `None` where all questions changed alike, as when none did."""


def mcnemar(b: int, c: int) -> McNemar:
    """Returns the two-sided p-values of b changes one way and c the other.

    McNemar 1947 (Psychometrika 12), conditional on n = b + c changes, of which the rarer
    way's number is binomial with 1/2. Exact: twice its chance of min(b, c) or fewer, 1 where b = c.
    Mid-p, which is less cautious (Fagerland, Lydersen, Laake 2013, BMC Medical Research Methodology
    13:91): the exact value less the chance f of min(b, c), and 1 - f / 2 where b = c. Deviates:
    without any change both are 1. Test: `test_mcnemar_by_hand`.

    Raises:
        ValueError: a count is below zero.
    """
    if b < 0 or c < 0:
        raise ValueError(f"counts of changes can't be below zero: {b}, {c}")
    changes, rarer = b + c, min(b, c)
    if changes == 0:
        return McNemar(b, c, 1.0, 1.0)
    ways = 2**changes
    chance = math.comb(changes, rarer) / ways
    if b == c:
        return McNemar(b, c, 1.0, 1 - chance / 2)
    tail = sum(math.comb(changes, count) for count in range(rarer + 1))
    exact = 2 * tail / ways
    return McNemar(b, c, exact, exact - chance)


def mcnemar_of(pairs: Sequence[Pair]) -> McNemar:
    """Returns McNemar's test on pairs; a pair counts for the run with the larger share.

    With one try at each question that is McNemar's own table. With several, matched by question, it
    is the sign test over questions, which tries that resemble each other don't mislead; matched by
    try it takes tries at one question for independent, and its p-values are too small.
    """
    return mcnemar(sum(pair.change < 0 for pair in pairs), sum(pair.change > 0 for pair in pairs))


def difference_of(pairs: Sequence[Pair], seed: int = 0) -> Difference:
    """Returns the difference, with a paired bootstrap: whole questions are drawn, both runs alike.

    Efron 1979, as `bootstrap`; with fewer than `FEW_QUESTIONS` the interval is too narrow.
    Test: `test_difference_by_hand`.

    Args:
        pairs: of one run and another.
        seed: of the draws.

    Raises:
        ValueError: there are no pairs.
    """
    if not pairs:
        raise ValueError("there is no difference between runs without a common question")
    changes: dict[str, list[float]] = defaultdict(list)
    for pair in pairs:
        changes[pair.id].append(100 * pair.change)
    means = [sum(one) / len(one) for one in changes.values()]
    return Difference(sum(means) / len(means), bootstrap(means, seed))
