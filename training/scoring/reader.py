"""The reading of written numbers, and the policies under which suites compare values.

Closed forms, short answers and table cells use one grammar; a `ReadingPolicy` sets how each
compares. Dates are read in `moments`, lists in `lists`, and `values` compares all of them. A table
first turns each cell into a value, so that it can be counted: there, every leading zero makes a
code, even `007`.

- *Identifiers.* `02139` is a postal code and not 2139. A label with a leading zero equals only
  the same digits. An answer with a leading zero and at least `IDENTIFIER_DIGITS` digits doesn't
  answer a label without one. In a shorter answer, such as `007` for 7, the zeros are padding.
- *Grouping.* Spaces (plain, no-break, narrow, thin), apostrophes, commas (also Indian, `12,34,567`)
  and, if a decimal comma follows, points. `34,65` alone is not read as 34.65: it may be two items.
  A line break does not group digits.
- *Currency* signs are ignored if one side has none; `$5` is not `€5`. A unit in letters is text:
  `34.65 USD` is not 34.65.
- *Percent* sign and word mean the same. If one side has neither, the figures must agree: 12.5 % is
  12.5 if a suite says so, and never 0.125.
- *Precision.* A tolerance allows only what a longer number loses when it is rounded or cut: 34.65
  is never 34.66, and 12345678.90 never 12345678.91.
- *Rounding errors* are allowed up to the relative `DUST`, about what a sum of a million floats
  loses. The last digit of a number with `FLOAT_DIGITS` digits is ignored. Whole numbers must be
  equal.

Not covered: units, fractions, expressions. Nothing is ever evaluated.
"""

from __future__ import annotations

import math
import re
import sys
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

__all__ = [
    "CLOSED_FORM",
    "IDENTIFIER_DIGITS",
    "MAX_SCALAR_CHARS",
    "SHORT_ANSWER",
    "TABLE_CELL",
    "Figure",
    "Number",
    "ReadingPolicy",
    "WrittenNumber",
    "as_float",
    "as_written",
    "exact_number",
    "is_identifier",
    "is_whole",
    "numbers_equal",
    "plain_text",
    "read_plain",
    "read_written",
    "scalars_equal",
    "straight",
]

Number = int | float

MAX_SCALAR_CHARS = 320
"""A longer text is not a scalar: no float has more digits before the point."""
IDENTIFIER_DIGITS = 4
"""From this many digits on, a leading zero in an answer makes a code, not a padded count."""
DUST = 1e-13
"""Relative tolerance; see the module's docstring."""
FLOAT_DIGITS = 15
"""A number with this many digits is a computed one; its last digits are rounding errors."""
COMPUTED_DUST = Decimal("1e-11")
"""Relative error of a computed number if its policy allows more than `DUST`. Without it, a number
whose last digits happen to be zeros would count as short."""
MAX_EXACT = 2**53
"""Beyond this, a float can't represent a fraction, and a whole one may be a rounding error."""

_STRAIGHT = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe63"), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"'),
    **dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad"), ""),
}
"""Full-width signs, dashes and quotes as a keyboard writes them; invisible characters go."""
_SIGNS = "$€£¥₹"
_EMPHASIS = re.compile(r"(\*\*|__|\*|`)(?=\S)([^*`]{1,320}?)(?<=\S)\1")
_SHAPE = re.compile(
    rf"(?P<sign>[+-]?)\s?(?P<before>[{_SIGNS}]?)\s?(?P<inner>[+-]?)(?P<digits>[\d.,' ]*\d\.?)"
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
_PLAIN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
_SPECIAL = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadingPolicy:
    """How close two numbers must be, which marks count, and whether the order of a list matters."""

    absolute: float
    """Numbers with a fraction that are less than this apart are equal, within their last digit."""
    relative: float
    """The same, as a share of the larger number."""
    is_percent_free: bool
    """Whether `12.5%` and 12.5 are equal; 0.125 never is."""
    is_currency_free: bool
    """Whether `$5` and 5 are equal; `€5` never is."""
    largest_miss: float = math.inf
    """Largest allowed error for a non-zero label, as a share of it, however small it is."""
    is_order_free: bool = False
    """Whether the items of a list may come in any order; the keys of a dict always may."""


CLOSED_FORM = ReadingPolicy(
    1e-6, DUST, is_percent_free=True, is_currency_free=True, largest_miss=0.01
)
"""DABench: the benchmark's own 1e-6 and `DUST`; list order matters unless the format frees it."""
SHORT_ANSWER = ReadingPolicy(1e-12, 1e-6, is_percent_free=True, is_currency_free=True)
"""QRData's `exact`, xlsx and TableBench: labels show about six digits of a longer number."""
TABLE_CELL = ReadingPolicy(1e-9, 1e-6, is_percent_free=False, is_currency_free=False)
"""A cell of a database, where a mark is part of the value. A list in a cell is text."""


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number with the marks beside it."""

    value: Decimal
    """Exact value as written."""
    is_percent: bool
    currency: str
    """Currency sign as written, or empty."""
    is_code: bool
    """Whether it is whole, has a leading zero and no mark."""
    code: str
    """Digits as written."""

    @property
    def is_whole(self) -> bool:
        """Whether it is written without a point or exponent."""
        return self.value.as_tuple().exponent == 0


class Figure(float):
    """A float that keeps how it was written, including trailing zeros."""

    written: str

    def __new__(cls, written: str) -> Self:
        """Return the float of a plain number, as `read_plain` accepts it."""
        figure = super().__new__(cls, written)
        figure.written = written
        return figure


def straight(text: str) -> str:
    """Return the text with composed letters and plain dashes, quotes and widths."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_STRAIGHT)


def plain_text(text: str) -> str:
    """Return a short text without emphasis and with plain digits, spaces, dashes and quotes.

    A text longer than `MAX_SCALAR_CHARS` is returned unchanged, so that the cost is bounded.
    """
    if len(text) > MAX_SCALAR_CHARS:
        return text
    plain = straight(text)
    if not plain.isascii():
        plain = "".join(
            str(unicodedata.decimal(char)) if char.isdecimal() else char for char in plain
        )
    plain = " ".join(plain.split())
    found = _EMPHASIS.fullmatch(plain)
    return found[2].strip() if found else plain


def read_plain(text: str) -> Number | None:
    """Return the number that a text writes as programs do, or `None`: the fast path.

    `read_written` reads every such number the same way. A code such as `007` is read too.
    """
    if len(text) > MAX_SCALAR_CHARS or not _PLAIN.fullmatch(text):
        return None
    if text.lstrip("+-").isdecimal():
        return int(text)
    return Figure(text) if text[-1] == "0" and "." in text else float(text)


def exact_number(text: str) -> Number | None:
    """Return the number that the entire text writes, ignoring marks, or `None`.

    A number without a point or exponent is returned as an exact int, so that long identifiers keep
    every digit. `inf` and `nan` are floats.
    """
    plain = text.strip()
    number = read_plain(plain)
    if number is not None:
        return number
    found = read_written(plain)
    if found is not None:
        return int(found.value) if found.is_whole else as_float(found.value)
    plain = _unquoted(plain_text(plain))
    return float(plain) if len(plain) <= MAX_SCALAR_CHARS and _SPECIAL.fullmatch(plain) else None


def read_written(text: str) -> WrittenNumber | None:
    """Return the number that the entire text writes, or `None`; a final full stop is ignored."""
    if len(text) > MAX_SCALAR_CHARS or len(text.strip().splitlines()) > 1:
        return None
    plain = _unquoted(plain_text(text))
    shape = _SHAPE.fullmatch(plain) or _SHAPE.fullmatch(plain.removesuffix("."))
    if shape is None or (shape["sign"] and shape["inner"]):
        return None
    if shape["before"] and shape["after"]:
        return None
    digits = _plain_digits(shape["digits"].strip())
    if digits is None:
        return None
    currency = shape["before"] or shape["after"]
    value = Decimal(f"{shape['sign'] or shape['inner']}{digits}{shape['exponent'] or ''}")
    is_code = bool(_CODE.fullmatch(plain))
    return WrittenNumber(value, bool(shape["percent"]), currency, is_code, plain)


def _unquoted(plain: str) -> str:
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "'\"`":
        return plain[1:-1].strip()
    return plain


def _plain_digits(digits: str) -> str | None:
    """Return the digits without grouping and with a point, or `None` if no form matches."""
    for candidate in (digits, digits.removesuffix(".")):
        for form, group, decimal in _FORMS:
            if form.fullmatch(candidate):
                bare = candidate.replace(group, "") if group else candidate
                return bare.replace(decimal, ".").removesuffix(".")
    return None


def is_identifier(label: str, answer: str) -> bool:
    """Return whether a leading zero makes one of two texts a code that differs from the other."""
    first, second = read_written(label), read_written(answer)
    if first is None or second is None or not (first.is_code or second.is_code):
        return False
    if first.is_code:
        return first.code != second.code
    return len(second.code) >= IDENTIFIER_DIGITS


def scalars_equal(label: str, answer: str, policy: ReadingPolicy) -> bool:
    """Return whether two texts write the same number under a policy."""
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


def as_written(number: Number) -> Decimal:
    """Return a finite number with the digits that it was written with, or else prints."""
    if isinstance(number, int):
        return Decimal(number)
    return Decimal(number.written if isinstance(number, Figure) else repr(number))


def numbers_equal(label: Decimal, answer: Decimal, policy: ReadingPolicy) -> bool:
    """Return whether two numbers are equal; whole numbers must be exactly equal.

    Others may differ by what the policy allows, if the number with fewer places is the other one
    rounded or cut to them.
    """
    if label == answer:
        return True
    first, second = as_float(label), as_float(answer)
    if not (math.isfinite(first) and math.isfinite(second)):
        return False
    if is_whole(label) and is_whole(answer):
        return False
    absolute = min(policy.absolute, policy.largest_miss * abs(first)) if first else policy.absolute
    limit = max(absolute, policy.relative * max(abs(first), abs(second)))
    if not abs(first - second) < limit:
        return False
    return _is_shortened(label, answer)


def _is_shortened(one: Decimal, other: Decimal) -> bool:
    """Whether the number with fewer places is the other rounded or cut, or neither is short."""
    units = [_last_place(number) for number in (one, other)]
    known = [unit for unit in units if unit]
    is_dust = abs(one - other) < COMPUTED_DUST * max(abs(one), abs(other))
    if not known or (is_dust and len(known) == 1):
        return True
    unit = max(known)
    short, long = (one, other) if units[0] == unit else (other, one)
    is_cut = (long < 0) == (short < 0) and 0 <= abs(long) - abs(short) < unit
    return is_cut or 2 * abs(long - short) <= unit


def is_whole(number: Decimal) -> bool:
    """Return whether a number is whole, even if it is written `5.0`.

    Such numbers are counts or codes, which get no tolerance.
    """
    if number.as_tuple().exponent == 0:
        return True
    near = as_float(number)
    return abs(near) < MAX_EXACT and near == math.floor(near)


def _last_place(number: Decimal) -> Decimal | None:
    """Return one unit of the last place; `None` if that is below the rounding error."""
    _, digits, exponent = number.as_tuple()
    is_tiny = 0 < abs(number) < sys.float_info.min  # such floats have few digits
    if len(digits) >= FLOAT_DIGITS or is_tiny or not isinstance(exponent, int):
        return None
    return Decimal((0, (1,), exponent))


def as_float(number: Number | Decimal) -> float:
    """Return the float nearest to a number; an infinity if it is too large for one."""
    try:
        return float(number)
    except OverflowError:  # an int too large for a float
        return math.inf
