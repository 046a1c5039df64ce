"""Numbers that may be missed by a share, for benchmarks that grant one.

A benchmark's own share is used for its own questions and nowhere else: see `closed_form` and
`short_answer` for the rules without one.
"""

from __future__ import annotations

import math
import re

from training.scoring.reader import MAX_CHARS, parse_number, read_written

__all__ = ["first_number", "is_within", "read_number"]

_FIRST = re.compile(r"-?[0-9]+\.?[0-9]*%?")


def read_number(text: str) -> float | None:
    """Returns the number that the whole text writes; a percent sign divides by 100."""
    number = parse_number(text)
    if number is None:
        return None
    value, found = _as_float(number), read_written(text)
    return value / 100 if found is not None and found.is_percent else value


def first_number(text: str) -> float | None:
    """Returns the first plain number anywhere in a text; a percent sign divides by 100."""
    match = _FIRST.search(text)
    if match is None or len(match[0]) > MAX_CHARS:
        return None
    value = _as_float(float(match[0].rstrip("%")))
    return value / 100 if match[0].endswith("%") else value


def is_within(label: float, answer: float, share: float) -> bool:
    """Returns whether the answer misses the label by at most that share of the label.

    A label of 0 has no share: it needs 0. Nothing is within anything infinite or undefined.
    """
    if not (math.isfinite(label) and math.isfinite(answer)):
        return False
    return abs(label - answer) <= share * abs(label) * (1 + 1e-9)


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an int beyond every float
        return math.inf
