"""Two runs on the same questions: their verdicts matched, and whether one run is better."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from training.metrics.accuracy import Rules, is_right
from training.metrics.intervals import Interval, bootstrap
from training.records.records import EvalRecord

__all__ = [
    "By",
    "Difference",
    "McNemar",
    "Pair",
    "Pairing",
    "difference_of",
    "key_of",
    "match",
    "mcnemar",
    "mcnemar_of",
]

By = Literal["question", "try"]
"""Match all attempts at a question together, or each with the other run's of the same number."""
Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Pair:
    """Records of two runs on the same question, or on the same attempt at it."""

    id: str
    trial: int | None
    """Number of the attempt, from 0; `None` for all attempts at the question."""
    first: tuple[EvalRecord, ...]
    second: tuple[EvalRecord, ...]
    rules: Rules

    @property
    def shares(self) -> tuple[float, float]:
        """Share of correct attempts, in the first run and in the second."""
        return self._share(self.first), self._share(self.second)

    @property
    def change(self) -> float:
        """The second run's share minus the first's."""
        first, second = self.shares
        return second - first

    def _share(self, tries: tuple[EvalRecord, ...]) -> float:
        return sum(is_right(record, self.rules) for record in tries) / len(tries)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two runs, matched."""

    pairs: tuple[Pair, ...]
    """Pairs in the order of the first run."""
    only_first: tuple[EvalRecord, ...]
    """Records without a partner in the second run."""
    only_second: tuple[EvalRecord, ...]

    @property
    def is_balanced(self) -> bool:
        """Whether both runs have equally many attempts in every pair.

        Otherwise a run with more attempts differs from one with few even if both are equally good.
        """
        return all(len(pair.first) == len(pair.second) for pair in self.pairs)


def match(
    first: Sequence[EvalRecord], second: Sequence[EvalRecord], rules: Rules, by: By = "question"
) -> Pairing:
    """Return two runs matched by `id`, or by `id` and `trial`, with every record of both."""
    ours, theirs = _by_key(first, by), _by_key(second, by)
    return Pairing(
        pairs=tuple(
            Pair(*key, tuple(tries), tuple(theirs[key]), rules)
            for key, tries in ours.items()
            if key in theirs
        ),
        only_first=tuple(r for key, tries in ours.items() if key not in theirs for r in tries),
        only_second=tuple(r for key, tries in theirs.items() if key not in ours for r in tries),
    )


def key_of(record: EvalRecord, by: By) -> Key:
    """Return the key by which a record is matched."""
    return record.id, record.trial if by == "try" else None


def _by_key(records: Sequence[EvalRecord], by: By) -> dict[Key, list[EvalRecord]]:
    found: dict[Key, list[EvalRecord]] = defaultdict(list)
    for record in records:
        found[key_of(record, by)].append(record)
    return dict(found)


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's test on the pairs that changed."""

    b: int
    """Pairs in which the first run is better."""
    c: int
    """Pairs in which the second run is better."""
    p_exact: float
    p_mid: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The second run's share minus the first's, in percentage points."""

    points: float
    interval: Interval | None
    """95 % interval; `None` if all questions changed by the same amount, as when none did."""


def mcnemar(b: int, c: int) -> McNemar:
    """Return the two-sided p-values of b changes in one direction and c in the other.

    McNemar 1947 (Psychometrika 12), conditional on n = b + c changes; the count of the rarer
    direction is binomial with 1/2. Exact: twice the chance of min(b, c) or fewer; 1 if b = c.
    Mid-p, which is less cautious (Fagerland, Lydersen, Laake 2013, BMC Medical Research Methodology
    13:91): the exact value minus the chance f of min(b, c); 1 - f / 2 if b = c. Deviates: without
    any change both are 1. Test: `test_mcnemar_by_hand`.

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
    """Return McNemar's test on pairs; a pair counts for the run with the larger share.

    With one attempt at each question, this is McNemar's own table. With several, matched by
    question, it is the sign test over questions, which attempts that resemble each other don't
    distort. Matched by attempt, it treats attempts at one question as independent, and its p-values
    are too small.
    """
    return mcnemar(sum(pair.change < 0 for pair in pairs), sum(pair.change > 0 for pair in pairs))


def difference_of(pairs: Sequence[Pair], seed: int = 0) -> Difference:
    """Return the difference, with a paired bootstrap that draws questions with both runs' results.

    Efron 1979, as `bootstrap`. With fewer than `FEW_QUESTIONS`, the interval is too narrow.
    Test: `test_difference_by_hand`.

    Args:
        pairs: the pairs of two runs.
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
