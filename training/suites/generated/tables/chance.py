"""Random draws that are identical on every machine and in every Python version.

Draws come only from `random.random` of the seeded Mersenne twister, which Python promises to keep.
Arithmetic is limited to operations that IEEE 754 rounds exactly: `exp`, `log` and `cos` differ
between libraries in their last bit.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

__all__ = ["Chance", "grown"]

T = TypeVar("T")
_TERMS = 12
"""Number of uniform draws in one normal draw: their sum has variance 1."""
_SQUARINGS = 6


class Chance:
    """One stream of draws, named by its parts; streams with different names are independent."""

    def __init__(self, *name: object) -> None:
        """Start the stream of a name, such as `Chance(seed, "table", 3)`."""
        digest = sha256("\x1f".join(map(str, name)).encode()).digest()
        self._next = random.Random(int.from_bytes(digest[:8], "big")).random  # noqa: S311

    def happens(self, share: float) -> bool:
        """Return true in a given share of the draws."""
        return self._next() < share

    def between(self, low: float, high: float) -> float:
        """Return a uniform number from `low` to `high`."""
        return low + (high - low) * self._next()

    def whole(self, low: int, high: int) -> int:
        """Return a uniform integer from `low` to `high`, both ends included."""
        return low + int(self._next() * (high - low + 1))

    def normal(self) -> float:
        """Return a nearly normal number with mean 0 and variance 1, at most 6 from 0."""
        total = 0.0
        for _ in range(_TERMS):  # `sum` adds floats differently from Python 3.12 on
            total += self._next()
        return total - _TERMS / 2

    def choose(self, items: Sequence[T]) -> T:
        """Return one of the items.

        Raises:
            IndexError: there are no items.
        """
        return items[int(self._next() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """Return one of the items, each with a chance in proportion to its weight."""
        total = 0.0
        for weight in weights:
            total += weight
        left = self._next() * total
        for item, weight in zip(items, weights, strict=True):
            left -= weight
            if left < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in a random order."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.whole(0, last)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed


def grown(deviation: float, spread: float) -> float:
    """Return a positive factor around 1: an approximation of `exp(spread * deviation)`.

    Args:
        deviation: a deviation, such as `Chance.normal` returns.
        spread: about the standard deviation of the factor's logarithm, below 1.
    """
    factor: float = 1 + spread * deviation / 2**_SQUARINGS
    for _ in range(_SQUARINGS):
        factor *= factor
    return factor
