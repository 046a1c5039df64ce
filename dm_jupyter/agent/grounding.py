"""Which numbers a text states, and whether each stands in an output, or is one, rounded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

__all__ = ["stated_numbers", "unsupported_numbers"]

_NUMBER = re.compile(
    r"(?<![\w.])(?P<number>[-−+]?(?:\d{1,3}(?:[,\u202f\u00a0]\d{3})+|\d+)(?:\.\d+)?"
    r"(?:[eE][-+]?\d{1,2}(?!\d))?)"
    r"(?P<unit>\s?%|\sper\s?cent\b|\s(?:thousand|million|billion|trillion)\b|[kKMB]\b)?"
)
_SCALES = {
    "thousand": 3, "k": 3, "K": 3, "million": 6, "M": 6, "billion": 9, "B": 9, "trillion": 12,
}  # fmt: skip


_LONGEST = 300
"""Characters of a number; what is longer is no quantity that anyone states."""
_WIDE = Context(prec=1_000)
"""Digits enough to round any such number."""


@dataclass(frozen=True, slots=True)
class _Stated:
    text: str
    value: Decimal
    decimals: int
    exponent: int
    """Power of ten by which the words after the number scale it; -2 for a percentage."""


def unsupported_numbers(answer: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Returns the numbers of `answer` that stand in none of the `sources`, each once, as written.

    A number counts as standing there when rounding a number of the sources to as many decimals
    gives it; a percentage also when the source holds the fraction, a scaled one (`1.2 million`)
    when the source holds the full number.

    Args:
        answer: what the model states.
        sources: outputs of cells, and the question itself.
    """
    known = [stated.value for source in sources for stated in _numbers(source)]
    missing = [
        stated.text
        for stated in _numbers(answer)
        if not any(_supports(value, stated) for value in known)
    ]
    return tuple(dict.fromkeys(missing))


def stated_numbers(text: str) -> frozenset[Decimal]:
    """Returns the numbers of a text, each once, by what they are worth.

    `1,200.0` is 1200, `1.2 thousand` as well; `45 %` and `45 percent` are 0.45.

    Args:
        text: what is stated.
    """
    return frozenset(
        stated.value.scaleb(stated.exponent, context=_WIDE) for stated in _numbers(text)
    )


def _numbers(text: str) -> list[_Stated]:
    found = []
    for match in _NUMBER.finditer(text):
        if len(match["number"]) > _LONGEST:
            continue
        digits = re.sub("[,\u202f\u00a0]", "", match["number"]).replace("−", "-")
        value = Decimal(digits)
        exponent = int(value.as_tuple().exponent)
        unit = (match["unit"] or "").strip()
        is_percentage = unit == "%" or unit.startswith("per")
        scale = -2 if is_percentage else _SCALES.get(unit, 0)
        found.append(_Stated(match.group(0).strip(), value, max(0, -exponent), scale))
    return found


def _supports(known: Decimal, stated: _Stated) -> bool:
    """Whether rounding `known`, as it is or in the unit stated, gives the stated number."""
    exponents = {0, stated.exponent}
    return any(_rounds_to(known.scaleb(-exponent), stated) for exponent in exponents)


def _rounds_to(known: Decimal, stated: _Stated) -> bool:
    step = Decimal(1).scaleb(-stated.decimals)
    if known == stated.value or abs(known) == abs(stated.value):
        return True  # a fall of 3 is stated as "fell by 3" when the output holds -3
    if abs(abs(known) - abs(stated.value)) > step:
        return False
    return any(
        abs(known).quantize(step, rounding=rounding, context=_WIDE) == abs(stated.value)
        for rounding in (ROUND_HALF_UP, ROUND_HALF_EVEN)
    )
