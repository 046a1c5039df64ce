"""Another way to understand a question, run by the first program to see whether it matters."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Reading"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How a question is understood where its words leave a choice; the default is what they say."""

    keeps_repeats: bool = False
    """Repeated rows count as often as they stand in the file."""
    skips_gaps: bool = False
    """Rows with a missing value stay: each figure leaves out its own gaps only."""
    zero_gaps: bool = False
    """A missing number counts as 0, and a missing label is a label like another."""
    raw_labels: bool = False
    """Labels that differ in case or spaces are different."""
    population: bool = False
    """The other of sample and population standard deviation and variance."""
    nearest_quantile: bool = False
    """A quantile is the next lower value of the data, instead of a point between two of them."""
