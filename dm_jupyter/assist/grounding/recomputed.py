"""Derivations of a number from values: differences, percentages, shares, one function each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dm_jupyter.assist.grounding.pools import NumberPool, OutputValue
from dm_jupyter.assist.grounding.sizes import Window
from dm_jupyter.assist.grounding.statements import Statement

__all__ = [
    "CHANGE",
    "DOWN",
    "POINTS",
    "RATIO",
    "UP",
    "Claim",
    "Derivation",
    "added",
    "change",
    "complement",
    "difference",
    "fraction",
    "inverse",
    "mean",
    "per",
    "product",
    "ratio",
    "share",
    "square",
    "together",
    "two_parts",
    "whole",
]

UP = (
    r"more|higher|heavier|larger|greater|longer|older|bigger|taller|wider|faster|increas\w+|ros[ei]\w*|"
    r"ris[ei]\w*|gr[eo]w\w*|gain(?:ed)?|above|up|exceed(?:s|ed)?|ahead|climb\w*|premium|"
    r"better|expensive|outperform(?:s|ed)?|over|rais\w+|markup|additional|extra|later|warmer|hotter"
)
DOWN = (
    r"less|lower(?:s|ed)?|lighter|smaller|fewer|shorter|younger|slower|decreas\w+|declin\w+|drop(?:ped|s)?|"
    r"fell|fall\w*|loss|lost|below|down|cheaper|behind|reduc(?:ed|tion)|shrank|dipped|discount|"
    r"removed|saves?|cuts?|cutting|worse|short|narrower|earlier|colder|cooler|trail(?:s)?"
)
CHANGE = re.compile(
    rf"\b(?:{UP}|{DOWN}|chang(?:e|ed)|difference|differ|gap|\w+er than|jump(?:ed)?|spread|"
    r"improve(?:d|ment)?|doubl\w*|margin|lift|dropped|savings?|profit)\b|(?:^|\s)\+",
    re.IGNORECASE,
)
_EITHER = r"(?!better|worse|improv|outperform|slower|faster)"
_ONLY_UP = re.compile(rf"\b{_EITHER}(?:{UP})\b", re.I)
_ONLY_DOWN = re.compile(rf"\b{_EITHER}(?:{DOWN})\b", re.I)
_RISK = re.compile(r"\b(?:ratio|odds|risk|factor|index|lift)\b", re.I)
RATIO = re.compile(r"\A\W{0,3}(?:times|x\b|×|-?fold|to one)", re.I)
POINTS = re.compile(r"\s?(?:(?:percentage|percent|%)[\s-]points?|points?|pp)\b", re.I)
_PER_SO_MANY = re.compile(r"\bper (10(?:,?0)+)\b")
_THAN = re.compile(r"\bthan\b")
_REST = re.compile(
    r"\b(?:other|others|remain\w*|left|rest|not|without|non|missing|died|never|un\w+|fail(?:ed)?|other)\b",
    re.I,
)
_BEHIND_CHARS = 20
_FEW, _SEVERAL, _MOST = 4, 12, 40
"""Most values that are written out, that are tried if none is named, and that are considered."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """A derivation of a number from values."""

    formula: str
    source: int
    """The output of the first of the values."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A number with the words around it, and the results that it may represent."""

    statement: Statement
    context: str
    fits: Window
    factors: tuple[tuple[float, str], ...] = ()
    """Factors of a value: numbers of the sentence, and of the calendar."""

    @property
    def is_of_rest(self) -> bool:
        """Whether it is the remainder of others."""
        return bool(_REST.search(f"{self.context} {self.statement.behind[:_BEHIND_CHARS]}"))


def change(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive a percentage by which one value is above or below another."""
    statement, fits = claim.statement, claim.fits
    words = claim.context if CHANGE.search(claim.context) else statement.sentence
    ups, downs = bool(_ONLY_UP.search(words)), bool(_ONLY_DOWN.search(words))
    for one in pool.values[:_MOST] if _RISK.search(statement.sentence) else ():
        if abs(one.value - 1) < 1 and fits.holds(100 * (one.value - 1)):
            return Derivation(f"{one.text} - 1", one.source)
    for one, other in pool.pairs:
        low, high = sorted((one, other), key=lambda each: abs(each.value))
        if pool.is_ordered and ups != downs and (high is not other) == ups:
            continue
        if low.value and (ups or not downs) and fits.holds(100 * (high.value / low.value - 1)):
            return Derivation(f"{high.text} / {low.text} - 1", high.source)
        if high.value and (downs or not ups) and fits.holds(100 * (1 - low.value / high.value)):
            return Derivation(f"1 - {low.text} / {high.text}", high.source)
        if "point" in statement.after[:12] or "pp" in statement.after[:5]:
            for scale in (1.0, 100.0):
                if fits.holds(scale * (high.value - low.value)):
                    return Derivation(f"{high.text} - {low.text}", high.source)
    return None


def share(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive a percentage that one value is of others."""
    return _part(pool, claim, 100.0)


def fraction(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the same, stated as a fraction."""
    return _part(pool, claim, 1.0)


def _part(pool: NumberPool, claim: Claim, scale: float) -> Derivation | None:
    """Derive a value as a part of a total: of its column, of a shown total, of another value."""
    if pool.values and all(abs(one.value) <= 1 for one in pool.values):
        several = sum(one.value for one in pool.named)
        if len(pool.named) > 1 and claim.fits.holds(scale * several):
            return Derivation(_sum_of(pool.named), pool.named[0].source)
        return _rest(pool, claim, scale)
    parts = pool.told or pool.named or (pool.values if len(pool.values) <= _SEVERAL else ())
    totals = (_of_total(one, pool, claim.fits, scale) for one in parts)
    found = next(filter(None, totals), None) or _of_pairs(pool, claim, scale)
    return found or _of_several(pool, claim, scale)


def _of_pairs(pool: NumberPool, claim: Claim, scale: float) -> Derivation | None:
    """Derive a value as a part of another one, or of both together."""
    for one, other in pool.pairs:
        low, high = sorted((one, other), key=lambda each: abs(each.value))
        is_sibling = pool.is_column and not (one in pool.named and other in pool.named)
        if high.value and not is_sibling and claim.fits.holds(scale * low.value / high.value):
            return Derivation(f"{low.text} / {high.text}", low.source)
    for one, other in pool.pairs if pool.is_row or claim.is_of_rest else ():
        if found := _of_two(one, other, pool, claim, scale):
            return found
    return None


def _of_several(pool: NumberPool, claim: Claim, scale: float) -> Derivation | None:
    """Derive the values that the sentence names as a part of their column, or the remainder."""
    total = sum(one.value for one in pool.whole)
    several = sum(one.value for one in pool.named)
    if len(pool.named) > 1 and total and claim.fits.holds(scale * several / total):
        return Derivation(f"{_sum_of(pool.named)} / {_sum_of(pool.whole)}", pool.named[0].source)
    return _rest(pool, claim, scale)


def _of_two(
    one: OutputValue, other: OutputValue, pool: NumberPool, claim: Claim, scale: float
) -> Derivation | None:
    """Derive one of two parts of a row, or what one value leaves of another."""
    low, high = sorted((one, other), key=lambda each: abs(each.value))
    both = one.value + other.value
    if pool.is_row and both and not pool.is_mixed:
        for part in (one, other):
            is_meant = not pool.told or part in pool.told
            if is_meant and claim.fits.holds(scale * part.value / both):
                return Derivation(f"{part.text} / ({one.text} + {other.text})", part.source)
    if claim.is_of_rest and high.value and claim.fits.holds(scale * (1 - low.value / high.value)):
        return Derivation(f"1 - {low.text} / {high.text}", high.source)
    return None


def _of_total(one: OutputValue, pool: NumberPool, fits: Window, scale: float) -> Derivation | None:
    """Derive a value as a part of its entire column, or of a total that an output shows."""
    total = sum(each.value for each in pool.whole)
    if len(pool.whole) > 1 and total and fits.holds(scale * one.value / total):
        return Derivation(f"{one.text} / {_sum_of(pool.whole)}", one.source)
    for other in pool.totals:
        is_larger = other is not one and abs(other.value) >= abs(one.value) > 0
        if is_larger and fits.holds(scale * one.value / other.value):
            return Derivation(f"{one.text} / {other.text}", one.source)
    return None


def _rest(pool: NumberPool, claim: Claim, scale: float) -> Derivation | None:
    """Derive the remainder of a share."""
    if not claim.is_of_rest:
        return None
    fits = claim.fits
    total = sum(one.value for one in pool.whole)
    if scale > 1 and 1 < total < 100 and fits.holds(100 - total):
        return Derivation(f"100 - {_sum_of(pool.whole)}", pool.whole[0].source)
    for one in pool.values[:_MOST]:
        if 0 <= one.value <= 1 and fits.holds(scale * (1 - one.value)):
            return Derivation(f"1 - {one.text}", one.source)
        if 1 < one.value <= 100 and scale > 1 and fits.holds(100 - one.value):
            return Derivation(f"100 - {one.text}", one.source)
    return None


def ratio(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive a multiple of another value, or a rate per thousand of another."""
    match = _PER_SO_MANY.search(claim.statement.sentence)
    scales = (1.0, float(match[1].replace(",", ""))) if match else (1.0,)
    if pool.is_mixed and not RATIO.search(claim.statement.after):
        return None
    for one, other in pool.ratios or pool.pairs:
        for over, under in ((one, other), (other, one)):
            for scale in scales if under.value else ():
                if claim.fits.holds(scale * over.value / under.value):
                    return Derivation(f"{over.text} / {under.text}", over.source)
    return None


def per(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive a sum per item; values of one column are alike, and none counts the others."""
    if pool.is_column or (pool.is_mixed and not RATIO.search(claim.statement.after)):
        return None
    for one, other in pool.ratios or pool.pairs:
        for over, under in ((one, other), (other, one)):
            is_count = under.text.isdecimal() and under.value > 1
            if is_count and claim.fits.holds(over.value / under.value):
                return Derivation(f"{over.text} / {under.text}", over.source)
    return None


def difference(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive by how much one value is above another, or what a part leaves of the total."""
    scales = (1.0, 100.0) if POINTS.match(claim.statement.after) else (1.0,)
    for one, other in pool.pairs:
        gap = one.value - other.value
        if pool.is_ordered and _is_turned(-gap, claim):
            continue
        is_enough = _adds(one, other, claim.fits)
        if any(claim.fits.holds(scale * gap) for scale in scales if is_enough or scale > 1):
            high, low = (one, other) if one.value >= other.value else (other, one)
            return Derivation(f"{high.text} - {low.text}", one.source)
    for every in pool.totals if claim.is_of_rest else ():
        for one in pool.named or pool.values[:_SEVERAL]:
            is_part = every is not one and _adds(every, one, claim.fits)
            if is_part and claim.fits.holds(every.value - one.value):
                return Derivation(f"{every.text} - {one.text}", one.source)
    is_even = pool.is_column or all(one.text.isdecimal() for one in pool.whole)
    if is_even and len(pool.whole) > 2 and len(pool.named) == 1 and claim.is_of_rest:
        rest = sum(one.value for one in pool.whole) - pool.named[0].value
        if claim.fits.holds(rest):
            return Derivation(f"{_sum_of(pool.whole)} - {pool.named[0].text}", pool.named[0].source)
    return None


def _is_turned(step: float, claim: Claim) -> bool:
    """Whether words say that a value rose over time although it fell, or vice versa."""
    words = claim.context
    ups, downs = bool(_ONLY_UP.search(words)), bool(_ONLY_DOWN.search(words))
    return (
        ups != downs
        and (step < 0 if ups else step > 0)
        and not _THAN.search(claim.statement.sentence)
    )


def _adds(one: OutputValue, other: OutputValue, fits: Window) -> bool:
    """Whether each of two values is large enough to change the result."""
    return min(abs(one.value), abs(other.value)) > fits.high - fits.low


def added(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the sum of the named values, of all, or of two of them."""
    if pool.is_mixed:
        return None
    named = {id(one) for one in pool.named}
    pairs = (
        (one, other)
        for one, other in pool.pairs
        if _adds(one, other, claim.fits)
        and (not pool.is_column or not named or {id(one), id(other)} <= named)
    )
    for values in (pool.named, pool.whole, *pairs):
        if len(values) > 1 and claim.fits.holds(sum(one.value for one in values)):
            return Derivation(_sum_of(values), values[0].source)
    return None


def two_parts(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the sum of two stated parts, as `4 are missing, so 116 of the 120 remain`."""
    for one, other in pool.pairs if pool.is_stated else ():
        if claim.fits.holds(one.value + other.value):
            return Derivation(f"{one.text} + {other.text}", one.source)
    return None


def together(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the sum of two values of a row that `and` joins: `wind and sun`."""
    if not pool.is_row or pool.is_mixed or claim.statement.number.step >= claim.fits.high / 50:
        return None
    for one, other in pool.pairs:
        if _adds(one, other, claim.fits) and claim.fits.holds(one.value + other.value):
            return Derivation(f"{one.text} + {other.text}", one.source)
    return None


def square(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the share of the variance that a correlation explains."""
    scale = 100.0 if claim.statement.number.is_percentage else 1.0
    for one in pool.values[:_MOST]:
        if 0 < abs(one.value) <= 1 and claim.fits.holds(scale * one.value**2):
            return Derivation(f"{one.text}²", one.source)
    return None


def product(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive a product: `12 months at 450`, or a share of a total."""
    few = pool.named or (pool.values if len(pool.values) <= _SEVERAL else ())
    for one in few:
        is_share = 0 < abs(one.value) < 1 or one.text.endswith("%")
        totals = [(total.value, total.text) for total in pool.totals] if is_share else []
        for size, text in (*claim.factors, *totals):
            result = one.value * size / (100.0 if one.text.endswith("%") else 1.0)
            is_other = min(abs(one.value), abs(size)) not in (0.0, 1.0)
            if is_other and claim.fits.holds(result):
                return Derivation(f"{one.text} × {text}", one.source)
    for one, other in () if pool.is_column else (pool.ratios or pool.pairs):
        is_other = min(abs(one.value), abs(other.value)) not in (0.0, 1.0)
        if is_other and claim.fits.holds(one.value * other.value):
            return Derivation(f"{one.text} × {other.text}", one.source)
    return None


def complement(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive what a part leaves of a total that the sentence names: `652 of its 3,105 trains`."""
    sizes = [size for size, _ in claim.factors]
    for one, other in pool.pairs:
        low, high = sorted((one, other), key=lambda each: abs(each.value))
        if high.value in sizes and claim.fits.holds(high.value - low.value):
            return Derivation(f"{high.text} - {low.text}", high.source)
    return None


def inverse(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the inverse of a rate: `1 in 12`."""
    for one in pool.values[:_MOST]:
        if 0 < one.value < 1 and claim.fits.holds(1 / one.value):
            return Derivation(f"1 / {one.text}", one.source)
    return ratio(pool, claim)


def whole(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the sum of an entire column or row, even if no word says so."""
    total = sum(one.value for one in pool.whole)
    is_all = len(pool.named) in (0, 1, len(pool.whole))
    if len(pool.whole) > 1 and is_all and not pool.is_told and claim.fits.holds(total):
        return Derivation(_sum_of(pool.whole), pool.whole[0].source)
    return None


def mean(pool: NumberPool, claim: Claim) -> Derivation | None:
    """Derive the mean of the named values, or of all."""
    for values in (
        () if pool.is_mixed or pool.are_averages else (pool.named, pool.whole, *pool.pairs)
    ):
        if len(values) > 1 and claim.fits.holds(sum(one.value for one in values) / len(values)):
            return Derivation(f"{_sum_of(values)} / {len(values)}", values[0].source)
    return None


def _sum_of(values: Sequence[OutputValue]) -> str:
    if len(values) > _FEW:
        return f"({values[0].text} + … + {values[-1].text})"
    return f"({' + '.join(one.text for one in values)})"
