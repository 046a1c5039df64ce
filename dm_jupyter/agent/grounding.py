"""Which numbers a text states, and whether each stands in an output, or is one, rounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

__all__ = ["stated_numbers", "unsupported_numbers"]

_NUMBER = re.compile(
    r"(?<![\w.])(?P<number>[-−+]?(?:\d{1,3}(?:[,\u202f\u00a0]\d{3})+|\d+)(?:\.\d+)?"
    r"(?:[eE][-+]?\d{1,2}(?!\d))?)"
    r"(?P<unit>\s?%|\sper\s?cent\b|\s(?:thousand|million|billion|trillion)\b"
    r"|\s?(?:bn|mn)\b|[kKmMB]\b)?"
)
_SCALES = {
    "thousand": 3, "k": 3, "K": 3, "million": 6, "mn": 6, "m": 6, "M": 6, "billion": 9, "bn": 9,
    "B": 9, "trillion": 12,
}  # fmt: skip
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_MARKER = re.compile(r"^[ \t>#*(]*(?P<number>\d{1,3})[.)](?=[*\s]+\S)", re.MULTILINE)
"""What may number an entry of a list."""
_LEVELS = frozenset(map(Decimal, ("0.01", "0.05", "0.1")))
_LEVELS_PERCENT = frozenset(map(Decimal, (1, 5, 10, 90, 95, 99)))
"""Usual levels of significance and of confidence."""
_BEFORE_LEVEL = re.compile(
    r"(?:\b(?:levels?|significance|confidence|alpha|below|threshold)|[α<])"
    r"(?:\s+(?:of|the|usual|conventional))*[\s=:(]*$",
    re.IGNORECASE,
)
_AFTER_LEVEL = re.compile(
    r"[\s-]*(?:levels?|significance|confidence|alpha|threshold|CI)\b", re.IGNORECASE
)
_NEAR_CHARS = 40
"""Characters before a number among which the words of a level stand."""

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
    start: int
    end: int
    """Where it stands in the text."""


def unsupported_numbers(answer: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Returns the numbers of `answer` that stand in none of the `sources`, each once, as written.

    A number counts as standing there when rounding a number of the sources to as many decimals
    gives it; a percentage also when the source holds the fraction, a scaled one (`1.2 million`)
    when the source holds the full number. What numbers a list, an ordinal (`1st`) and a usual
    level (`at the 95 % level`) claim nothing.

    Args:
        answer: what the model states.
        sources: outputs of cells, and the question itself.
    """
    known = [value for source in sources for value in _held(source)]
    missing = [
        stated.text
        for stated in _claimed(answer)
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


def _claimed(answer: str) -> Iterator[_Stated]:
    """The numbers of an answer that say something of the data."""
    markers = _list_markers(answer)
    for stated in _numbers(answer):
        is_ordinal = _ORDINAL.match(answer, stated.end)
        if not (is_ordinal or stated.start in markers or _is_level(answer, stated)):
            yield stated


def _list_markers(text: str) -> frozenset[int]:
    """Where the numbers stand that count the entries of lists: 1, and 2 where 1 came before."""
    places, next_one = set(), 1
    for match in _MARKER.finditer(text):
        number = int(match["number"])
        if number in (1, next_one):
            places.add(match.start("number"))
            next_one = number + 1
    return frozenset(places)


def _is_level(text: str, stated: _Stated) -> bool:
    """Whether it is a usual level of significance, with words that say so beside it."""
    usual = _LEVELS_PERCENT if stated.exponent == -2 else _LEVELS
    before = text[max(0, stated.start - _NEAR_CHARS) : stated.start]
    return stated.value in usual and bool(
        _BEFORE_LEVEL.search(before) or _AFTER_LEVEL.match(text, stated.end)
    )


def _held(source: str) -> Iterator[Decimal]:
    """The numbers of an output; `100,200` may be one, or two of a line of a csv file."""
    for stated in _numbers(source):
        yield stated.value
        if "," in stated.text:
            yield from (part.value for part in _numbers(stated.text.replace(",", " ")))


def _numbers(text: str) -> Iterator[_Stated]:
    for match in _NUMBER.finditer(text):
        if len(match["number"]) > _LONGEST:
            continue
        digits = re.sub("[,\u202f\u00a0]", "", match["number"]).replace("−", "-")
        value = Decimal(digits)
        exponent = int(value.as_tuple().exponent)
        unit = (match["unit"] or "").strip()
        is_percentage = unit == "%" or unit.startswith("per")
        scale = -2 if is_percentage else _SCALES.get(unit, 0)
        yield _Stated(
            match.group(0).strip(), value, max(0, -exponent), scale, match.start(), match.end()
        )


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
