"""One reading of a written number, and the policies under which suites compare values.

Closed forms, short answers and table cells use one grammar; what each makes of it is a
`ReadingPolicy`. Dates are read in `moments`, lists in `lists`, and `values` compares all of them. A
table turns each cell into a value first, so that it can be counted: there every leading zero makes
a code, also `007`.

- *Identifiers.* `02139` is a postal code and not 2139. A label with a leading zero equals only
  the same digits. An answer with a leading zero and at least `IDENTIFIER_DIGITS` digits doesn't
  answer a label without one; a shorter one, `007` for 7, is padding.
- *Grouping.* Spaces (plain, no-break, narrow, thin), apostrophes, commas (also Indian, `12,34,567`)
  and, with a decimal comma behind them, points. `34,65` alone is not read as 34.65: it may be two
  items. A line break groups nothing.
- *Currency* signs are set aside where one side has none; `$5` is not `€5`. A unit in letters is
  text: `34.65 USD` is not 34.65.
- *Percent* sign and word say the same. Where one side has none, the figures must agree: 12.5 % is
  12.5 where a suite says so, and never 0.125.
- *Precision.* A tolerance lets off what a longer number loses where it is rounded or cut, and no
  more: 34.65 is never 34.66, and 12345678.90 never 12345678.91.
- *Float dust* is relative, `DUST`: about what a sum of a million floats loses. The last place of
  a number with `FLOAT_DIGITS` digits says nothing. Whole numbers are equal or not.

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
"""A longer text is no scalar: no float has more places before the point."""
IDENTIFIER_DIGITS = 4
"""From this many digits on, a leading zero in an answer makes a code and not a padded count."""
DUST = 1e-13
"""Relative; see the module's docstring."""
FLOAT_DIGITS = 15
"""A number with this many digits is the result of a computation; its last ones are dust."""
COMPUTED_DUST = Decimal("1e-11")
"""Relative; what a computed number may be off where its policy grants more than `DUST`. Without it
one whose last digits happen to be zeros would count as short."""
MAX_EXACT = 2**53
"""Beyond this a float has no room for a fraction, and a whole one may be rounding dust."""

_STRAIGHT = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212\ufe63"), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"'),
    **dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad"), ""),
}
"""Wide signs, dashes and quotes as a keyboard writes them; what can't be seen goes."""
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
    """How close two numbers must be, which marks beside them count, and what is free in a list."""

    absolute: float
    """Two numbers with a fraction less than this apart are equal, within their last place."""
    relative: float
    """The same as a share of the larger number."""
    is_percent_free: bool
    """Whether `12.5%` and 12.5 are equal; 0.125 never is."""
    is_currency_free: bool
    """Whether `$5` and 5 are equal; `€5` never is."""
    largest_miss: float = math.inf
    """A non-zero label may be missed by this share of itself at most, however small it is."""
    is_order_free: bool = False
    """Whether the items of a list may come in any order; the keys of a dict always may."""


CLOSED_FORM = ReadingPolicy(
    1e-6, DUST, is_percent_free=True, is_currency_free=True, largest_miss=0.01
)
"""DABench: the benchmark's own 1e-6, and dust; lists in order, unless the format frees it."""
SHORT_ANSWER = ReadingPolicy(1e-12, 1e-6, is_percent_free=True, is_currency_free=True)
"""QRData's `exact`, xlsx and TableBench: labels print six figures or so of a longer number."""
TABLE_CELL = ReadingPolicy(1e-9, 1e-6, is_percent_free=False, is_currency_free=False)
"""A cell of a database, where a mark was put there. A list in a cell is text."""


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


class Figure(float):
    """A float that knows how it was written, zeros at the end included."""

    written: str

    def __new__(cls, written: str) -> Self:
        """Return the float of a plain number as `read_plain` takes it."""
        figure = super().__new__(cls, written)
        figure.written = written
        return figure


def straight(text: str) -> str:
    """Return the text with composed letters and plain dashes, quotes and widths."""
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_STRAIGHT)


def plain_text(text: str) -> str:
    """Return a short text without emphasis, wide digits, odd spaces, dashes and quotes.

    A text longer than `MAX_SCALAR_CHARS` comes back as it is, so that the cost is bounded.
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
    """Return the number that a text writes in the way of programs, or None: the quick path.

    Every number read here is read by `read_written` alike. A code such as `007` is read too.
    """
    if len(text) > MAX_SCALAR_CHARS or not _PLAIN.fullmatch(text):
        return None
    if text.lstrip("+-").isdecimal():
        return int(text)
    return Figure(text) if text[-1] == "0" and "." in text else float(text)


def exact_number(text: str) -> Number | None:
    """Return the number that the whole text writes, marks set aside, or None.

    A number without point and exponent comes back as an exact int, so that long identifiers keep
    every digit. `inf` and `nan` are floats.
    """
    plain = text.strip()
    number = read_plain(plain)
    if number is not None:
        return number
    found = read_written(plain)
    if found is not None:
        return int(found.value) if found.is_whole else _as_float(found.value)
    plain = _unquoted(plain_text(plain))
    return float(plain) if len(plain) <= MAX_SCALAR_CHARS and _SPECIAL.fullmatch(plain) else None


def read_written(text: str) -> WrittenNumber | None:
    """Return the number that the whole text writes, or None; a full stop at its end is none."""
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
    """Return a finite number with the places that it was written with, or prints."""
    if isinstance(number, int):
        return Decimal(number)
    return Decimal(number.written if isinstance(number, Figure) else repr(number))


def numbers_equal(label: Decimal, answer: Decimal, policy: ReadingPolicy) -> bool:
    """Return whether two numbers are equal; whole ones are so exactly.

    Others may be apart by what the policy grants, if the number with fewer places is the other one
    rounded or cut to them.
    """
    if label == answer:
        return True
    first, second = _as_float(label), _as_float(answer)
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
    """Whether the number with fewer places is the other one rounded or cut, or none is short."""
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
    """Return whether a number is whole, also where it is written `5.0`.

    Such numbers are counts or codes, for which no tolerance holds.
    """
    if number.as_tuple().exponent == 0:
        return True
    near = _as_float(number)
    return abs(near) < MAX_EXACT and near == math.floor(near)


def _last_place(number: Decimal) -> Decimal | None:
    """One unit of the last place; None where that is dust."""
    _, digits, exponent = number.as_tuple()
    is_tiny = 0 < abs(number) < sys.float_info.min  # such floats have few digits
    if len(digits) >= FLOAT_DIGITS or is_tiny or not isinstance(exponent, int):
        return None
    return Decimal((0, (1,), exponent))


def _as_float(number: Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
