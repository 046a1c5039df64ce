"""What runs took: turns, tokens, cells, time and money."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from training.records.records import EvalRecord

__all__ = ["Price", "Spread", "costs_of"]

_COUNTED = ("turns", "cells", "sampled_cells", "prompt_tokens", "tokens", "seconds")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost; tokens that an endpoint has cached cost as much as others."""

    input_per_million: float
    """Dollars per million tokens read."""
    output_per_million: float
    """Dollars per million tokens sampled."""

    def __post_init__(self) -> None:
        for value in (self.input_per_million, self.output_per_million):
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"a price must be 0 dollars or more, not {value}")

    def of(self, record: EvalRecord) -> float:
        """Returns what a run cost, in dollars, its candidates together.

        Prompt tokens x input + sampled tokens x output, over a million. Test:
        `test_a_price_by_hand`.
        """
        read = record.prompt_tokens * self.input_per_million
        return (read + record.tokens * self.output_per_million) / 1_000_000


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity is spread over runs."""

    mean: float
    median: float
    total: float


def costs_of(records: Sequence[EvalRecord], price: Price | None = None) -> dict[str, Spread]:
    """Returns what each run took, by name; `dollars` among it where there is a price.

    Without records there is nothing in it.
    """
    if not records:
        return {}
    found = {name: _spread([getattr(one, name) for one in records]) for name in _COUNTED}
    if price is not None:
        found["dollars"] = _spread([price.of(record) for record in records])
    return found


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.fmean(values), statistics.median(values), math.fsum(values))
