"""Numbers of questions and labels as text: rounded as the question says, or not rounded."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal

from training.suites.generated.programs.steps import UnfitError

__all__ = ["fixed", "plain_amount", "rounded", "slug"]

_EDGE = Decimal("1e-6")
"""Distance from a rounding boundary, in units of the last place, that leaves rounding unclear."""
_DUST = Decimal("1e-10")
"""Relative error that the sum of a column may have."""


def rounded(value: float, figures: int, decimals: int) -> Decimal:
    """Return a number rounded to some significant figures, with at most `decimals` decimals."""
    number = Decimal(repr(value))
    if not number:
        return Decimal(0)
    places = min(decimals, figures - 1 - number.adjusted())
    return number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)


def plain_amount(number: Decimal) -> str:
    """Return a number as a person writes it in a question."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def fixed(value: float, decimals: int) -> str:
    """Return a number rounded to its decimals, as a label writes it.

    Raises:
        UnfitError: the number is so close to a rounding boundary that the result depends on how it
            was computed.
    """
    number = Decimal(repr(float(value)))
    unit = Decimal(1).scaleb(-decimals)
    near = number.quantize(unit, ROUND_HALF_EVEN)
    missed = abs(abs(number - near) / unit - Decimal("0.5"))
    if missed <= _EDGE + _DUST * abs(number) / unit:
        raise UnfitError("on the edge of rounding")
    return f"{near if near else abs(near):f}"


def slug(text: str) -> str:
    """Return a text as part of a name: lower-case letters, digits and underscores."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
