"""The reading of a written date or time of day, shared by all suites.

- *Year first*: `2015-01-01`, `2015/1/1`, `2015.1.1`, optionally followed by a time after `T` or a
  space. A missing time is midnight; missing seconds are zero.
- *Day or month first*: `25/12/2024` and `12/25/2024` have one reading each, and so has `5.5.2024`.
  `03/04/2024` has two, so it is not a date here and equals only its own text.
- *Names of months*, English and German, full or abbreviated: `5 January 2024`, `Jan 5th, 2024`,
  `5. Januar 2024`. A weekday before the date must match it. `January 2024` and `2024-01` are months
  without a day; `2011-12` may be a season and is not a month.
- *Times*: `10:30`, `10:30:00`, `9:05 pm`. `Z` and `+00:00` are ignored; any other offset is part
  of the value.

Years have four digits: `05.01.24` is text. So are days that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from training.scoring.reader import MAX_SCALAR_CHARS, plain_text

__all__ = ["Moment", "may_be_moment", "read_moment"]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jän jänner", "february feb februar", "march mar märz mär mrz",
            "april apr", "may mai", "june jun juni", "july jul juli", "august aug",
            "september sep sept", "october oct oktober okt", "november nov",
            "december dec dezember dez",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_STARTS = frozenset(name[:3] for name in _MONTHS) | frozenset(_WEEKDAYS)
_NAME = r"([^\W\d_]{3,9})"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_WEEKDAY = re.compile(rf"({'|'.join(_WEEKDAYS)})(?:s|nes|rs|ur)?(?:day)?\.?,? +")
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<part>\d{1,9}))?)?)?"
    r"(?: ?(?P<half>[ap])\.?m\.?)?(?: ?(?P<offset>z|utc|gmt|[+-]\d{2}:?\d{2}))?",
    re.ASCII,
)
_BETWEEN = re.compile(r",? +(?:at +|um +)?|t(?=\d)")
_SLASHED = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})", re.ASCII)
_NO_OFFSET = frozenset({"", "z", "utc", "gmt"})

_Day = tuple[int, int, int]
"""Year, month, day; the day is 0 if the text names only a month."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, a month, a time of day, or a day with a time."""

    day: _Day | None
    """`None` for a time of day alone."""
    time: tuple[int, int, int, int]
    """Hour, minute, second, nanosecond; midnight if there is none."""
    offset: str
    """Offset from UTC, as `+0200`; empty if there is none or it is zero."""


def read_moment(text: str) -> Moment | None:
    """Return the date or time that the entire text writes, or `None` without a single reading."""
    if not may_be_moment(text):
        return None
    plain = plain_text(text).strip("\"'` ").casefold()
    weekday = _WEEKDAY.match(plain)
    rest = plain[weekday.end() :] if weekday else plain
    found = _day_in_front(rest)
    if found is None:
        return None if weekday else _with_time(None, plain)
    day, rest = found
    if weekday and _weekday(day) != _WEEKDAYS.index(weekday[1]):
        return None
    if not rest:
        return Moment(day, (0, 0, 0, 0), "")
    between = _BETWEEN.match(rest)
    return _with_time(day, rest[between.end() :]) if between and day[2] else None


def may_be_moment(text: str) -> bool:
    """Return whether a text may be a date or time, by a quick check of its length and start."""
    if not 4 <= len(text) <= MAX_SCALAR_CHARS:
        return False
    if text[0].isalpha():
        return text[:3].casefold() in _STARTS and any(map(str.isdecimal, text))
    return True


def _day_in_front(text: str) -> tuple[_Day, str] | None:
    """Return the day that a text begins with, and the text after it."""
    for form, read in _DAYS:
        found = form.match(text)
        if found is not None:
            day = read(*found.groups())
            return None if day is None else (day, text[found.end() :])
    return None


def _with_time(day: _Day | None, text: str) -> Moment | None:
    found = _TIME.fullmatch(text)
    if found is None or not (found["minute"] or found["half"]):
        return None
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] == "p" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    offset = (found["offset"] or "").replace(":", "")
    offset = "" if offset in _NO_OFFSET or not offset.strip("+-0") else offset
    return Moment(day, (hour, minute, second, int((found["part"] or "0").ljust(9, "0"))), offset)


def _weekday(day: _Day) -> int | None:
    return date(*day).weekday() if day[2] else None


def _day(year: str, month: int | str, day: str) -> _Day | None:
    """Return the day, or `None` if it does not exist."""
    try:
        found = date(int(year), int(month), int(day))
    except ValueError:
        return None
    return found.year, found.month, found.day


def _named(year: str, name: str, day: str) -> _Day | None:
    month = _MONTHS.get(name)
    return _day(year, month, day) if month else None


def _slashed(first: str, _: str, second: str, year: str) -> _Day | None:
    """Return the day if only one order of day and month is possible, or both give the same day."""
    found = {one for one in (_day(year, first, second), _day(year, second, first)) if one}
    return found.pop() if len(found) == 1 else None


def _named_month(name: str, year: str) -> _Day | None:
    month = _MONTHS.get(name)
    return (int(year), month, 0) if month else None


def _numbered_month(year: str, month: str) -> _Day | None:
    """Return a month such as `2024-01`, but `None` for a season such as `2011-12`."""
    is_season = int(month) == (int(year) + 1) % 100
    return None if is_season or not 1 <= int(month) <= 12 else (int(year), int(month), 0)


_Reader = Callable[..., _Day | None]
_DAYS: tuple[tuple[re.Pattern[str], _Reader], ...] = tuple(
    (re.compile(form, re.ASCII if "\\W" not in form else 0), read)
    for form, read in (
        (r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)", lambda y, _, m, d: _day(y, m, d)),
        (_SLASHED.pattern + r"(?!\d)", _slashed),
        (
            rf"{_DAY}\.?(?: of)?[ -]+{_NAME}\.?,?[ -]+(\d{{4}})(?!\d)",
            lambda d, m, y: _named(y, m, d),
        ),
        (rf"{_NAME}\.?[ -]+{_DAY},?[ -]+(\d{{4}})(?!\d)", lambda m, d, y: _named(y, m, d)),
        (rf"(\d{{4}})[ -]+{_NAME}\.?[ -]+(\d{{1,2}})(?!\d)", _named),
        (rf"{_NAME}\.?,?[ -]+(\d{{4}})\Z", _named_month),
        (r"(\d{4})-(\d{2})\Z", _numbered_month),
    )
)
"""Forms in which a day or month is written, each with its reader."""
