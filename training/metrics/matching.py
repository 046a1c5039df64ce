"""Two runs side by side: which verdict on a question stands beside which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from training.metrics.accuracy import Rules, is_right
from training.records.records import EvalRecord

__all__ = ["By", "Pair", "Pairing", "key_of", "match"]

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
