"""Dates kept as text: one clear format, an ambiguous one, or several mixed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from dm_jupyter.data.profile.written_dates import is_compact, written_date

__all__ = ["DateKind", "iso_range", "kind_of_dates", "texts_among_dates"]

_ISO = re.compile(r"\d{4}([-/])\d{1,2}\1\d{1,2}([T ]\d.*)?")
_PARTS = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})([T ,]+\d.*)?")
_SERIAL = re.compile(r"[2-6]\d{4}(\.\d+)?")
_NAMED = re.compile(
    r"\d{1,2}[ .-]+[^\W\d]{3,9}\.?[ .,-]+\d{2,4}([T ,]+\d.*)?"
    r"|[^\W\d]{3,9}\.?[ -]\d{1,2}(st|nd|rd|th)?,?[ -]\d{4}.*"
)
_SORTABLE = re.compile(r"\d{4}-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d)?)?")
"""ISO dates whose order as text is that in time, where all are of one length."""
_ENOUGH = 0.8
_HALF = 0.5


class DateKind(Enum):
    """What a column of dates in text is; the value's `note` is for the column's line."""

    ISO = "ISO dates as text; pd.to_datetime reads them"
    DAY_FIRST = "day-first dates as text"
    MONTH_FIRST = "month-first dates as text; pd.to_datetime reads them"
    NAMED = "dates as text"
    COMPACT = "dates as text without signs between (YYYYMMDD)"
    AMBIGUOUS = "ambiguous dates as text"
    MIXED = "mixed date formats as text"

    @property
    def note(self) -> str:
        """What to say beside the column's type."""
        return self.value


def iso_range(texts: Iterable[object]) -> tuple[str, str] | None:
    """Returns the earliest and the latest of ISO dates of one form; None where one is no such date.

    Args:
        texts: all distinct values of a column.
    """
    low = high = None
    for text in texts:
        if not isinstance(text, str) or not _SORTABLE.fullmatch(text):
            return None
        if low is None or high is None:
            low = high = text
        elif len(text) != len(low):
            return None
        else:
            low, high = min(low, text), max(high, text)
    return None if low is None or high is None else (low, high)


def kind_of_dates(texts: list[str]) -> DateKind | None:
    """Returns what kind of dates the distinct texts of a column are; None when they are none."""
    if not texts:
        return None
    forms = [_form(text) for text in texts]
    known = [form for form in forms if form is not None]
    # Five-digit numbers are dates only in the company of written dates.
    written = {form for form in known if form != "serial"}
    if not written or len(known) < _ENOUGH * len(texts):
        return None
    if written == {"parts"} and "serial" not in known:
        return _order([match for text in texts if (match := _PARTS.fullmatch(text))])
    if len(set(known)) > 1:
        return DateKind.MIXED
    kinds = {"iso": DateKind.ISO, "compact": DateKind.COMPACT}
    return kinds.get(written.pop(), DateKind.NAMED)


def texts_among_dates(texts: list[str]) -> list[str]:
    """Returns what is no date among texts of which half or more are, and two at least.

    Args:
        texts: distinct texts of a column.
    """
    others = [text for text in texts if _form(text) in {None, "serial"}]
    dates = len(texts) - len(others)
    return others if dates > 1 and dates >= _HALF * len(texts) else []


def _form(text: str) -> str | None:
    if _ISO.fullmatch(text):
        return "iso"
    match = _PARTS.fullmatch(text)
    if match:
        first, second = int(match[1]), int(match[3])
        return "parts" if 0 < min(first, second) <= 12 and max(first, second) <= 31 else None
    if _SERIAL.fullmatch(text):
        return "serial"
    if is_compact(text):
        return "compact"
    return "named" if written_date(text) or _NAMED.fullmatch(text) else None


def _order(matches: list[re.Match[str]]) -> DateKind:
    firsts = {int(match[1]) for match in matches}
    seconds = {int(match[3]) for match in matches}
    is_day_first, is_month_first = max(firsts) > 12, max(seconds) > 12
    if is_day_first and is_month_first:
        return DateKind.MIXED
    if not is_day_first and not is_month_first:
        # A series of months is dated on one day: the part that never changes is the day.
        is_day_first = firsts == {1} and len(seconds) > 2
        is_month_first = seconds == {1} and len(firsts) > 2
    if is_day_first:
        return DateKind.DAY_FIRST
    return DateKind.MONTH_FIRST if is_month_first else DateKind.AMBIGUOUS
