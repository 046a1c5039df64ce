"""One written value against another: numbers, dates, text, lists and dicts.

What a value *is* is read here, once, for every scorer; how close two numbers must be is the
caller's business and comes in as a function. Nothing is ever evaluated: the readers are regular
expressions and one bracket-aware splitter, linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from training.scoring.reader import CLOSED_FORM, is_identifier, plain_text, scalars_equal

__all__ = [
    "Close",
    "Group",
    "Number",
    "both_whole",
    "equal",
    "fold",
    "kind_of",
    "parse_date",
    "parse_group",
    "parse_number",
]

Number = int | float
Close = Callable[[Number, Number], bool]
"""Says of two read numbers, the label's first, whether the second is right."""

MAX_DEPTH = 8
"""Lists in lists deeper than this equal only the same text."""
MAX_EXACT = 2**53
"""Beyond this a float has no room for a fraction, and a whole one may be rounding dust."""
MAX_NUMBER_CHARS = 320
"""Longer digit strings are text: no float has more places before the point."""

_MINUS = str.maketrans({"\u2212": "-", "\u2013": "-", "\ufe63": "-", "\uff0d": "-"})
_NUMBER = re.compile(
    r"([+-]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?)"
    r"(?:\s*%)?"
)
_SPECIAL = re.compile(r"[+-]?(?:inf(?:inity)?|nan)", re.IGNORECASE)
_DATE = re.compile(
    r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.0*)?)?)?"
)
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_AFTER_QUOTE = re.compile(r"\s*(?:[,:\])}]|\Z)")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_OPENERS = frozenset(_BRACKETS)
_CLOSERS = frozenset(_BRACKETS.values())


@dataclass(frozen=True, slots=True)
class Group:
    """A list, tuple, set or half-open interval as written."""

    items: tuple[str, ...]
    kind: str
    """`list` for a bare comma list and for matching brackets, else both brackets, as in `(]`."""
    bracketed: bool

    @property
    def is_plain(self) -> bool:
        """Whether this is one bare value, written without brackets and commas."""
        return not self.bracketed and len(self.items) == 1


def fold(text: str) -> str:
    """Returns the text as compared: case, outer quotes, runs of spaces and escapes set aside.

    Letters keep their accents: `naive` is not `naïve`.
    """
    plain = unicodedata.normalize("NFC", text).translate(_MINUS).replace("\\_", "_")
    return " ".join(_unquote(plain.strip()).split()).casefold()


def _unquote(text: str) -> str:
    if len(text) >= 2 and _QUOTES.get(text[0]) == text[-1]:
        return text[1:-1]
    return text


def parse_number(text: str) -> Number | None:
    """Returns the number that the whole text writes, or None.

    Read: signs, `1,234.5`, `.5`, exponents, `inf`, `nan`, leading zeros and a final percent sign
    (12.5% reads as 12.5). Not read: units, fractions, hexadecimal, underscores. A text without
    point and exponent comes back as an exact int, so that long identifiers keep every digit.
    """
    plain = _unquote(text.strip()).strip().translate(_MINUS)
    if len(plain) > MAX_NUMBER_CHARS:
        return None
    if _SPECIAL.fullmatch(plain):
        return float(plain)
    match = _NUMBER.fullmatch(plain)
    if match is None:
        return None
    digits = match[1].replace(",", "")
    return int(digits) if re.fullmatch(r"[+-]?[0-9]+", digits) else float(digits)


def both_whole(one: Number, other: Number) -> bool:
    """Returns whether two numbers are whole, also where one is a float such as 5.0.

    Such numbers are counts or codes, for which no tolerance holds: they are equal or not.
    """
    if isinstance(one, int) and isinstance(other, int):
        return True
    return all(abs(number) < MAX_EXACT and number == number // 1 for number in (one, other))


def parse_date(text: str) -> tuple[int, ...] | None:
    """Returns (year, month, day, hour, minute, second) of a year-first date, or None.

    A missing time is midnight. Day-first and month-first forms are not guessed at.
    """
    match = _DATE.fullmatch(_unquote(text.strip()).strip())
    if match is None:
        return None
    year, month, day, *time = (int(part or 0) for part in match.group(1, 3, 4, 5, 6, 7))
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return (year, month, day, *time)


def parse_group(text: str) -> Group:
    """Returns the items of a list, in order; a bare value is a group of one item."""
    plain = text.strip()
    kind, bracketed = "list", False
    if len(plain) >= 2 and plain[0] in _OPENERS and plain[-1] in _CLOSERS and _is_enclosed(plain):
        bracketed = True
        if _BRACKETS[plain[0]] != plain[-1]:
            kind = plain[0] + plain[-1]
        plain = plain[1:-1].strip()
    items = tuple(_split(plain, ",")) if plain else ()
    if len(items) > 1 and not items[-1].strip():
        items = items[:-1]  # the comma of a one-element tuple, `(3,)`
    return Group(items, kind, bracketed)


def _is_enclosed(text: str) -> bool:
    """Whether the last bracket is the one that closes the first."""
    depth = 0
    for position, char in enumerate(text):
        depth += (char in _OPENERS) - (char in _CLOSERS)
        if depth == 0:
            return position == len(text) - 1
    return False


def _split(text: str, separator: str) -> list[str]:
    """Splits at separators outside brackets and outside quoted items."""
    parts, start, depth, quote, previous = [], 0, 0, "", separator
    for position, char in enumerate(text):
        if quote:
            if char == quote and _AFTER_QUOTE.match(text, position + 1):
                quote = ""
        elif char in _QUOTES and (previous in ",:" or previous in _OPENERS):
            quote = _QUOTES[char]
        elif char == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        else:
            depth = max(0, depth + (char in _OPENERS) - (char in _CLOSERS))
        if not char.isspace():
            previous = char
    return [*parts, text[start:]]


def kind_of(value: str) -> Literal["number", "list", "text"]:
    """Returns what a written value is; a dict and anything in brackets is a list."""
    if parse_number(value) is not None:
        return "number"
    group = parse_group(value)
    return "list" if group.bracketed or len(group.items) > 1 else "text"


def _parse_dict(group: Group, text: str) -> dict[str, str] | None:
    """The entries of `{key: value, …}` by folded key, or None where that is not what it is."""
    if not (text.strip().startswith("{") and group.bracketed and group.kind == "list"):
        return None
    entries: dict[str, str] = {}
    for item in group.items:
        key, *rest = _split(item, ":")
        if not rest or fold(key) in entries:
            return None
        entries[fold(key)] = ":".join(rest)
    return entries or None


def equal(label: str, answer: str, close: Close, depth: int = 0) -> bool:
    """Returns whether two written values are the same value.

    Tried in order: the same folded text, two numbers that `close` accepts, two dates, two dicts
    (any key order), two lists (item by item, in order; brackets and quotes are free).

    Args:
        label: the expected value.
        answer: the value to judge.
        close: the rule for numbers; it gets the label's number first.
        depth: how many lists the two values lie in.
    """
    if fold(label) == fold(answer) or _bare(label) == _bare(answer):
        return True
    if is_identifier(label, answer):
        return False
    if scalars_equal(label, answer, CLOSED_FORM):
        return True
    first, second = parse_number(label), parse_number(answer)
    if first is not None and second is not None and close(first, second):
        return True
    date = parse_date(label)
    if date is not None and date == parse_date(answer):
        return True
    return depth < MAX_DEPTH and _equal_groups(label, answer, close, depth)


def _bare(text: str) -> str:
    """The folded text without emphasis around it and one full stop behind it."""
    plain = fold(plain_text(text))
    return plain.removesuffix(".") if not plain.endswith("..") and len(plain) > 1 else plain


def _listed(group: Group, text: str, count: int) -> Group:
    """The items where `;` or a final `and` parts them, if that gives the count wanted.

    A semicolon parts words alone: between numbers it is no list of the format's. An `and` parts
    items only behind a comma: `Trinidad and Tobago` is one country.
    """
    if group.bracketed or not group.items:
        return group
    items = list(group.items)
    if len(items) == 1 and ";" in text:
        items = _split(text, ";")
        if any(parse_number(item) is not None for item in items):
            return group
    if len(items) == count and items[-1].strip().startswith("and "):
        items[-1] = items[-1].strip()[4:]
    elif len(items) == count - 1 > 1:
        *items, last = items
        items += re.split(r"\s+(?:and|und|&)\s+", last, maxsplit=1)
    return Group(tuple(items), "list", bracketed=False) if len(items) == count else group


def _equal_groups(label: str, answer: str, close: Close, depth: int) -> bool:
    left, right = parse_group(label), parse_group(answer)
    if left.is_plain and right.is_plain:
        return False
    entries, others = _parse_dict(left, label), _parse_dict(right, answer)
    if entries is not None and others is not None:
        return entries.keys() == others.keys() and all(
            equal(value, others[key], close, depth + 1) for key, value in entries.items()
        )
    if depth == 0:
        right = _listed(right, answer.strip(), len(left.items))
        left = _listed(left, label.strip(), len(right.items))
    if left.kind != right.kind or len(left.items) != len(right.items) or not left.items:
        return False
    return all(
        equal(one, other, close, depth + 1)
        for one, other in zip(left.items, right.items, strict=True)
    )
