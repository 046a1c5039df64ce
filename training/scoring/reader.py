"""One reading of a written scalar, and the policies under which suites compare two.

Closed forms, short answers and table cells use one grammar; what each makes of it is a
`ReadingPolicy`. A table turns each cell into a value first, so that it can be counted: there every
leading zero makes a code, also `007`.

- *Identifiers.* `02139` is a postal code and not 2139. A label with a leading zero equals only
  the same digits. An answer with a leading zero and at least `IDENTIFIER_DIGITS` digits doesn't
  answer a label without one; a shorter one, `007` for 7, is padding.
- *Grouping.* Spaces (plain, no-break, narrow, thin), apostrophes, commas (also Indian, `12,34,567`)
  and, with a decimal comma behind them, points. `34,65` alone is not read as 34.65: it may be two
  items.
- *Currency* signs are set aside where one side has none; `$5` is not `€5`. A unit in letters is
  text: `34.65 USD` is not 34.65.
- *Percent* sign and word say the same. Where one side has none, the figures must agree: 12.5 % is
  12.5 where a suite says so, and never 0.125.
- *Float dust* is relative, `DUST`: about what a sum of a million floats loses. It is not for whole
  numbers, and is small enough that cents count up to 1e11.

Not covered: units, fractions, expressions, day-first dates. Nothing is ever evaluated.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal

__all__ = [
    "CLOSED_FORM",
    "SHORT_ANSWER",
    "TABLE_CELL",
    "ReadingPolicy",
    "WrittenNumber",
    "is_identifier",
    "numbers_equal",
    "parse_time",
    "plain_text",
    "read_written",
    "scalars_equal",
]

MAX_CHARS = 320
"""A longer text is no scalar: no float has more places before the point."""
IDENTIFIER_DIGITS = 4
"""From this many digits on, a leading zero in an answer makes a code and not a padded count."""
DUST = 1e-13
"""Relative; see the module's docstring."""
MAX_EXACT = 2**53
"""Beyond this a float has no room for a fraction, and a whole one may be rounding dust."""

_MINUS = dict.fromkeys(map(ord, "\u2212\u2013\ufe63\uff0d"), "-")
_WIDE = {0xFF0E: ".", 0xFF0C: ",", 0xFF05: "%", 0xFF0B: "+"}
_SIGNS = "$€£¥₹"
_EMPHASIS = re.compile(r"(\*\*|__|\*|`)(?=\S)([^*`]{1,320}?)(?<=\S)\1")
_SHAPE = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<before>[{_SIGNS}]?)\s?(?P<inner>[+-]?)(?P<digits>[\d.,' \u2019]*\d\.?)"
    rf"(?P<exponent>[eE][+-]?\d{{1,6}})?\s*(?P<after>[{_SIGNS}]?)\s*"
    r"(?P<percent>%|per ?cent|pct\.?|prozent)?",
    re.IGNORECASE | re.ASCII,
)
_FORMS = tuple(
    (re.compile(pattern, re.ASCII), group, decimal)
    for pattern, group, decimal in (
        (r"\d+(?:\.\d*)?|\.\d+", "", "."),
        (r"\d{1,3}(?:,\d{3})+(?:\.\d*)?", ",", "."),
        (r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d*)?", ",", "."),
        (r"[1-9]\d{0,2}(?: \d{3})+(?:\.\d*)?", " ", "."),
        (r"[1-9]\d{0,2}(?:'\d{3})+(?:\.\d*)?", "'", "."),
        (r"[1-9]\d{0,2}(?:\.\d{3})+,\d+", ".", ","),
        (r"[1-9]\d{0,2}(?: \d{3})+,\d+", " ", ","),
    )
)
_CODE = re.compile(r"0\d+", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.0*)?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ReadingPolicy:
    """How close two numbers must be, and which marks beside them count."""

    absolute: float
    """Two numbers with a fraction less than this apart are equal."""
    relative: float
    """The same as a share of the larger number."""
    is_percent_free: bool
    """Whether `12.5%` and 12.5 are equal; 0.125 never is."""
    is_currency_free: bool
    """Whether `$5` and 5 are equal; `€5` never is."""


CLOSED_FORM = ReadingPolicy(1e-6, DUST, is_percent_free=True, is_currency_free=True)
"""DABench: the benchmark's own 1e-6, and dust."""
SHORT_ANSWER = ReadingPolicy(1e-12, 1e-6, is_percent_free=True, is_currency_free=True)
"""QRData's `exact`, xlsx and TableBench: labels print six figures or so of a longer number."""
TABLE_CELL = ReadingPolicy(1e-9, 1e-6, is_percent_free=False, is_currency_free=False)
"""A cell of a database, where a mark was put there. `tables` does not use it yet."""


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number with the marks beside it."""

    value: Decimal
    """Exact as written."""
    is_percent: bool
    currency: str
    """The sign as written, or nothing."""
    is_code: bool
    """Whether it is whole, has a leading zero and no mark."""
    code: str
    """The digits as written."""

    @property
    def is_whole(self) -> bool:
        """Whether it is written without point and exponent."""
        return self.value.as_tuple().exponent == 0


def plain_text(text: str) -> str:
    """Return a short text without emphasis, wide digits, odd spaces and minus signs.

    A text longer than `MAX_CHARS` comes back as it is, so that the cost is bounded.
    """
    if len(text) > MAX_CHARS:
        return text
    digits = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
    plain = " ".join(digits.translate(_MINUS).translate(_WIDE).split())
    found = _EMPHASIS.fullmatch(plain)
    return found[2].strip() if found else plain


def read_written(text: str) -> WrittenNumber | None:
    """Return the number that the whole text writes, or None; a full stop at its end is none."""
    if len(text) > MAX_CHARS:
        return None
    plain = plain_text(text)
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "'\"`":
        plain = plain[1:-1].strip()
    shape = _SHAPE.fullmatch(plain) or _SHAPE.fullmatch(plain.removesuffix("."))
    if shape is None or (shape["sign"] and shape["inner"]):
        return None
    if shape["before"] and shape["after"]:
        return None
    digits = _plain_digits(shape["digits"].replace("\u2019", "'").strip())
    if digits is None:
        return None
    currency = shape["before"] or shape["after"]
    value = Decimal(f"{shape['sign'] or shape['inner']}{digits}{shape['exponent'] or ''}")
    is_code = bool(_CODE.fullmatch(plain))
    return WrittenNumber(value, bool(shape["percent"]), currency, is_code, plain)


def _plain_digits(digits: str) -> str | None:
    """The digits without grouping and with a point, or None where no form fits them whole."""
    for candidate in (digits, digits.removesuffix(".")):
        for form, group, decimal in _FORMS:
            if form.fullmatch(candidate):
                bare = candidate.replace(group, "") if group else candidate
                return bare.replace(decimal, ".").removesuffix(".")
    return None


def is_identifier(label: str, answer: str) -> bool:
    """Return whether a leading zero makes one of two texts a code that the other is not."""
    first, second = read_written(label), read_written(answer)
    if first is None or second is None or not (first.is_code or second.is_code):
        return False
    if first.is_code:
        return first.code != second.code
    return len(second.code) >= IDENTIFIER_DIGITS


def scalars_equal(label: str, answer: str, policy: ReadingPolicy) -> bool:
    """Return whether two texts write the same number or time of day under a policy."""
    time = parse_time(label)
    if time is not None and time == parse_time(answer):
        return True
    first, second = read_written(label), read_written(answer)
    if first is None or second is None or is_identifier(label, answer):
        return False
    if first.is_percent != second.is_percent and not policy.is_percent_free:
        return False
    if first.currency != second.currency and not (
        policy.is_currency_free and not (first.currency and second.currency)
    ):
        return False
    return numbers_equal(first.value, second.value, policy)


def numbers_equal(label: Decimal, answer: Decimal, policy: ReadingPolicy) -> bool:
    """Return whether two numbers are equal; whole ones are so exactly.

    A non-zero label may be missed by 1 % of itself at most, however small it is.
    """
    if label == answer:
        return True
    first, second = _as_float(label), _as_float(answer)
    if not (math.isfinite(first) and math.isfinite(second)):
        return False
    if _is_whole(label, first) and _is_whole(answer, second):
        return False
    limit = policy.absolute
    if first:
        limit = min(limit, abs(first) / 100)
    return abs(first - second) < max(limit, policy.relative * max(abs(first), abs(second)))


def _as_float(number: Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _is_whole(number: Decimal, near: float) -> bool:
    is_written_whole = number.as_tuple().exponent == 0
    return is_written_whole or (abs(near) < MAX_EXACT and near == math.floor(near))


def parse_time(text: str) -> tuple[int, int, int] | None:
    """Return (hour, minute, second) of a time of day in 24 hours, or None."""
    if len(text) > MAX_CHARS:
        return None
    found = _TIME.fullmatch(plain_text(text))
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups())
    return (hour, minute, second) if hour < 24 and minute < 60 and second < 60 else None
