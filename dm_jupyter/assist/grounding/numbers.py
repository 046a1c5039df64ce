"""The numbers of a text: their values, their precision, and which of them claim nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal

__all__ = [
    "StatedNumber",
    "claimed",
    "dates_in",
    "magnitude",
    "numbers_in",
    "plain_numbers",
    "plain_value",
    "stated_numbers",
    "with_points",
]

_NUMBER = re.compile(
    r"(?<![\w.])(?P<number>[-−+]?(?:\d{1,3}(?:[,\u202f\u00a0]\d{3})+(?!\d)|\d+)(?:\.\d+)?"
    r"(?:[eE][-+]?\d{1,2}(?!\d)|\s?[×x·*]\s?10(?:\^|\*\*)?\{?[-−⁻]?[\d⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}\}?)?)"
    r"(?P<unit>\s?%|\sper\s?cent\b|\s(?:thousand|million|billion|trillion)\b"
    r"|\s?(?:bn|mn|[Mm]io|mln|Mrd|M)\b|[kKmMB]\b)?"
)
_PLAIN = re.compile(
    r"(?<![\w.])[-−+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,2}(?!\d))?"
)
_SCALES = {
    "thousand": 3, "k": 3, "K": 3, "million": 6, "mn": 6, "mio": 6, "Mio": 6, "mln": 6, "m": 6,
    "M": 6, "billion": 9, "bn": 9, "Mrd": 9, "B": 9, "trillion": 12,
}  # fmt: skip
_POWER = re.compile(r"\s?[×x·*]\s?10(?:\^|\*\*)?\{?")
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b")
_MARKER = re.compile(r"^[ \t>#*(]*(?P<number>\d{1,3})[.)](?=[*\s]+\S)", re.MULTILINE)
"""Number of a list entry."""
_REFERENCE = re.compile(r"\b(?:step|cell|figure|fig\.?|section|note|part)\s+$", re.IGNORECASE)
"""Text before the number of something that is not data."""
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DATE = re.compile(
    r"\b\d{4}([-/.])\d{1,2}\1\d{1,2}\b|\b\d{1,2}\.\d{1,2}\.(?:19|20)\d{2}\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2})?\b|\b\d{1,2}/\d{1,2}/\d{2,4}\b"
    rf"|\b\d{{4}}-\d{{2}}\b(?!-)|\b{_DAY}\.?\s(?:{_MONTHS})\b\.?(?:,?\s\d{{4}}\b)?"
    rf"|\b(?:{_MONTHS})\.?\s{_DAY}\b(?![.,]?\d),?\s\d{{4}}\b(?![.,]\d)"
    r"|\b(?:[FtzrHUQ]|χ²?|chi2?)\s?\(\d+(?:,\s?(?:N\s?=\s?)?\d+)?\)(?=\s?[=<>])"
    r"|\b\d{1,2}/\d{1,2}(?=\s(?:ratio|split|rule)\b)"
    r"|\b\d+\s?(?:h|hrs?|hours?)\s(?:and\s)?\d+\s?(?:m|min|minutes?)\b"
    r"|\b\d+\s?(?:m|min|minutes?)\s(?:and\s)?\d+\s?(?:s|sec|seconds?)\b"
    rf"|\b(?:on|by|since|until|from|to)\s(?:{_MONTHS})\.?\s{_DAY}\b(?![.,]?\d)",
    re.IGNORECASE,
)
_LEVELS = frozenset(map(Decimal, ("0.0001", "0.001", "0.01", "0.05", "0.1")))
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
_ONE_IN = re.compile(r"\s(?:in|out of)\s(?:every\s)?\d")
_BASE = re.compile(r"(?:\bper|/)\s?$", re.IGNORECASE)
"""Text before a power of ten that is the base of a rate: `per 100,000 people`."""
_NEAR_CHARS = 40
"""Characters before a number that are searched for the words of a level."""

_COMMA = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?:\.\d{3})+|\d+),\d{1,2}(?![\d,]|\.\d)|(?<![\w.,])0,\d+(?![\d,])"
)
"""A number with a decimal comma."""
_POINT = re.compile(r"(?<![\w.,])(?:\d[\d,]*\.(?:\d{1,2}|\d{4,})|0\.\d+)(?![\d.])|\d,\d{3},\d")
"""A number in English notation."""
_ENGLISH = re.compile(r"\b(?:the|is|are|of|and|has|have|was|were|with|by)\b", re.IGNORECASE)
_NO_ENGLISH = re.compile(
    r"\b(?:der|die|das|und|ist|sind|mit|von|für|le|les|des|est|sont|et|el|los|las|y|con|il|di|het|een)\b",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?: \d{3}){2,}(?!\d)")
_GROUPED_ONCE = re.compile(r"(?<![\w.,])[1-9]\d{0,2} \d{3}(?![\d ]\d)")
_SWAPPED = str.maketrans(",.", ".,")
_LONGEST = 300
"""Most characters of a number; nobody states a longer quantity."""
_WIDE = Context(prec=1_000)
"""Decimal context with enough digits to round any such number."""


@dataclass(frozen=True, slots=True)
class StatedNumber:
    """A number as it is written in a text."""

    text: str
    digits: str
    """The number without separators, unit and scale, as `float` and `Decimal` read it."""
    decimals: int
    exponent: int
    """Power of ten by which the words after the number scale it; -2 for a percentage."""
    start: int
    end: int
    """Position in the text at which it ends."""

    @property
    def value(self) -> float:
        """The written value, not scaled."""
        return float(self.digits)

    @property
    def step(self) -> float:
        """One unit of the last digit."""
        mantissa, _, power = self.digits.lower().partition("e")
        return 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))

    @property
    def is_percentage(self) -> bool:
        """Whether `%` or `percent` follows."""
        return self.exponent == -2

    @property
    def is_whole(self) -> bool:
        """Whether it may count something."""
        return self.decimals == 0 and self.exponent == 0 and "e" not in self.digits.lower()

    @property
    def is_year(self) -> bool:
        """Whether it is written like a year."""
        return self.text.isdecimal() and len(self.text) == 4 and 1500 <= int(self.text) <= 2100


def stated_numbers(text: str) -> frozenset[Decimal]:
    """Return the numbers of a text, each once, by their values.

    `1,200.0` and `1.2 thousand` are 1200; `45 %` and `45 percent` are 0.45.

    Args:
        text: the text.
    """
    return frozenset(
        Decimal(number.digits).scaleb(number.exponent, context=_WIDE) for number in numbers_in(text)
    )


def with_points(answer: str) -> str:
    """Return an answer with its numbers in English notation, all characters at their positions.

    `35.440,27` becomes `35,440.27` if no number of the answer has a decimal point. A space between
    thousands becomes a narrow one.

    Args:
        answer: in any language.
    """
    answer = _GROUPED.sub(lambda match: match[0].replace(" ", "\u202f"), answer)
    if _POINT.search(answer) or not (_COMMA.search(answer) or _is_foreign(answer)):
        return answer
    answer = _GROUPED_ONCE.sub(lambda match: match[0].replace(" ", "\u202f"), answer)
    return re.sub(r"\d[\d.,]*\d", lambda match: match[0].translate(_SWAPPED), answer)


def _is_foreign(answer: str) -> bool:
    words = {match[0].lower() for match in _NO_ENGLISH.finditer(answer)}
    return len(words) > 1 and not _ENGLISH.search(answer)


def claimed(answer: str) -> Iterator[StatedNumber]:
    """Yield the numbers of an answer that claim something about the data, without dates."""
    markers = _list_markers(answer)
    dates = dates_in(answer)
    for number in numbers_in(answer):
        before = answer[max(0, number.start - _NEAR_CHARS) : number.start]
        is_ordinal = _ORDINAL.match(answer, number.end)
        if is_ordinal or number.start in markers or _REFERENCE.search(before):
            continue
        if any(start <= number.start < end for start, end in dates):
            continue
        if number.digits == "1" and _ONE_IN.match(answer, number.end):
            continue
        if _BASE.search(before) and re.fullmatch("10+", number.digits):
            continue
        if not _is_level(answer, number, before):
            yield number


def dates_in(text: str) -> list[tuple[int, int]]:
    """Return the positions of dates and times of day in a text."""
    return [match.span() for match in _DATE.finditer(text)]


def numbers_in(text: str) -> Iterator[StatedNumber]:
    """Yield every number of a text, in order."""
    for match in _NUMBER.finditer(text):
        if len(match["number"]) > _LONGEST:
            continue
        digits = re.sub("[,\u202f\u00a0]", "", match["number"]).replace("−", "-")
        digits = _POWER.sub("e", digits).translate(_RAISED).strip("}")
        unit = (match["unit"] or "").strip()
        is_percentage = unit == "%" or unit.startswith("per")
        scale = -2 if is_percentage else _SCALES.get(unit, 0)
        yield StatedNumber(
            match.group(0).strip(), digits, _decimals(digits), scale, match.start(), match.end()
        )


def _decimals(digits: str) -> int:
    """Return the number of digits after the point, including those that `e-3` adds."""
    mantissa, _, power = digits.lower().partition("e")
    behind = len(mantissa.partition(".")[2])
    return max(0, behind - int(power or 0))


def plain_numbers(text: str) -> list[str]:
    """Return each number of a text as written, without its unit; faster than `numbers_in`."""
    return _PLAIN.findall(text)


def plain_value(written: str) -> float:
    """Return the value of a number from `plain_numbers`; 0 if it is too long."""
    return float(written.replace(",", "").replace("−", "-")) if len(written) <= _LONGEST else 0.0


def magnitude(number: StatedNumber) -> float:
    """Return the size of one unit of the last digit that is not a trailing zero: 100 for 5,100."""
    if number.decimals or not number.digits.lstrip("+-").isdecimal():
        return number.step
    digits = number.digits.lstrip("+-")
    zeros = len(digits) - len(digits.rstrip("0"))
    return 10.0 ** min(zeros, max(0, len(digits) - 1))


def _list_markers(text: str) -> frozenset[int]:
    """Return the positions of the numbers of list entries: 1, and 2 if 1 came before."""
    places, next_one = set(), 1
    for match in _MARKER.finditer(text):
        number = int(match["number"])
        if number in (1, next_one):
            places.add(match.start("number"))
            next_one = number + 1
    return frozenset(places)


def _is_level(text: str, number: StatedNumber, before: str) -> bool:
    """Whether it is a usual level of significance, next to words that say so."""
    usual = _LEVELS_PERCENT if number.is_percentage else _LEVELS
    return Decimal(number.digits) in usual and bool(
        _BEFORE_LEVEL.search(before) or _AFTER_LEVEL.match(text, number.end)
    )
