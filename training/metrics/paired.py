"""Two runs at the same questions: which verdicts belong together, and whether one run is better."""

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
"""Match all tries at a question together, or each try with the other run's of the same number."""
Key = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Pair:
    """What two runs made of the same question, or of the same try at it."""

    id: str
    trial: int | None
    """From 0; `None` where it stands for all tries at the question."""
    first: tuple[EvalRecord, ...]
    second: tuple[EvalRecord, ...]
    rules: Rules

    @property
    def shares(self) -> tuple[float, float]:
        """The share of tries that are right, in the first run and in the second."""
        return self._share(self.first), self._share(self.second)

    @property
    def change(self) -> float:
        """By how much the second run's share is larger."""
        first, second = self.shares
        return second - first

    def _share(self, tries: tuple[EvalRecord, ...]) -> float:
        return sum(is_right(record, self.rules) for record in tries) / len(tries)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two runs, matched."""

    pairs: tuple[Pair, ...]
    """In the order of the first run."""
    only_first: tuple[EvalRecord, ...]
    """The records that have no partner in the second run."""
    only_second: tuple[EvalRecord, ...]

    @property
    def is_balanced(self) -> bool:
        """Whether both runs tried every question of a pair equally often.

        Else a run with more tries differs from one with few even where both are as good.
        """
        return all(len(pair.first) == len(pair.second) for pair in self.pairs)


def match(
    first: Sequence[EvalRecord], second: Sequence[EvalRecord], rules: Rules, by: By = "question"
) -> Pairing:
    """Returns two runs matched by `id`, or by `id` and `trial`; nothing of either is lost."""
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
    """Returns what a record is matched by."""
    return record.id, record.trial if by == "try" else None


def _by_key(records: Sequence[EvalRecord], by: By) -> dict[Key, list[EvalRecord]]:
    found: dict[Key, list[EvalRecord]] = defaultdict(list)
    for record in records:
        found[key_of(record, by)].append(record)
    return dict(found)


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
