"""Dates kept as text: one clear format, an ambiguous one, or several mixed.

People write them with names of months, without separators, or far from all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from enum import Enum

__all__ = [
    "MONTH_NUMBERS",
    "DateKind",
    "compact_form",
    "far_dates",
    "iso_range",
    "kind_of_dates",
    "texts_among_dates",
    "written_date",
]

_ISO = re.compile(r"\d{4}([-/])\d{1,2}\1\d{1,2}([T ]\d.*)?")
_PARTS = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})([T ,]+\d.*)?")
_SERIAL = re.compile(r"[2-6]\d{4}(\.\d+)?")
_NAMED = re.compile(
    r"\d{1,2}[ .-]+[^\W\d]{3,9}\.?[ .,-]+\d{2,4}([T ,]+\d.*)?"
    r"|[^\W\d]{3,9}\.?[ -]\d{1,2}(st|nd|rd|th)?,?[ -]\d{4}.*"
)
_SORTABLE = re.compile(r"\d{4}-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d)?)?")
"""ISO dates whose order as text is that in time, if all are of one length."""
_ENOUGH = 0.8
_HALF = 0.5
_LANGUAGES = (
    "january jan | february feb | march mar | april apr | may | june jun | july jul | august aug"
    "| september sept sep | october oct | november nov | december dec",
    "januar jan jänner jän | februar feb | märz mär mrz maerz | april apr | mai | juni jun"
    "| juli jul | august aug | september sept sep | oktober okt | november nov | dezember dez",
    "janvier janv jan | février fevrier févr fév fevr fev | mars mar | avril avr | mai | juin"
    "| juillet juil | août aout | septembre sept sep | octobre oct | novembre nov"
    "| décembre decembre déc dec",
    "enero ene | febrero feb | marzo mar | abril abr | mayo may | junio jun | julio jul"
    "| agosto ago | septiembre setiembre sept sep set | octubre oct | noviembre nov"
    "| diciembre dic",
    "gennaio gen genn | febbraio feb febbr | marzo mar | aprile apr | maggio mag magg"
    "| giugno giu | luglio lug | agosto ago | settembre set sett | ottobre ott | novembre nov"
    "| dicembre dic",
    "januari jan | februari feb febr | maart mrt | april apr | mei | juni jun | juli jul"
    "| augustus aug | september sept sep | oktober okt | november nov | december dec",
    "janeiro jan | fevereiro fev | março marco mar | abril abr | maio mai | junho jun"
    "| julho jul | agosto ago | setembro set | outubro out | novembro nov | dezembro dez",
    "stycznia styczeń sty | lutego luty lut | marca marzec mar | kwietnia kwiecień kwi"
    "| maja maj | czerwca czerwiec cze | lipca lipiec lip | sierpnia sierpień sie"
    "| września wrzesień wrz | października październik paź | listopada listopad lis"
    "| grudnia grudzień gru",
    "januari jan | februari feb | mars mar | april apr | maj | juni jun | juli jul"
    "| augusti aug | september sept sep | oktober okt | november nov | december dec",
)
"""English, German, French, Spanish, Italian, Dutch, Portuguese, Polish, Swedish."""
MONTH_NUMBERS = {
    word: number
    for language in _LANGUAGES
    for number, words in enumerate(language.split("|"), 1)
    for word in words.split()
}
"""Number of a month by its name in lower case; no name means two months."""
_WRITTEN = re.compile(
    r"(?:[^\W\d_]{2,12}[.,]{0,2}\s+)?"  # a day of the week
    r"(?P<day>\d{1,2})(?:\.|er|ère|º|°|o|ª|st|nd|rd|th|e)?"
    r"[\s.-]{1,3}(?:de\s+|of\s+|d['’])?"
    r"(?P<month>[^\W\d_]{3,12})\.?,?"
    r"[\s,-]{1,3}(?:de\s+|del\s+)?"
    r"(?P<year>\d{4})(?:\s*r\.?|\.)?"
)
_LONGEST = 60
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:[T _-]?(\d\d)(\d\d)(\d\d)?(?:\.\d+)?Z?)?")
_YEARS = range(1850, 2101)
_LEAST_MONTHS = 5
_FAR_YEARS = 25
_YEARS_TO_COME = 30
"""Two digits from here on are a day: as a year they are in the future."""
_FIRST_DAYS = frozenset(
    [date(1, 1, 1), date(1753, 1, 1), date(1899, 12, 30), date(1899, 12, 31), date(1900, 1, 1),
     date(1900, 12, 31), date(1901, 1, 1), date(1970, 1, 1), date(2099, 12, 31)]
)  # fmt: skip
"""First days of the calendars of programs, and what forms accept as the last day."""
_LAST_YEARS = 2500
_FIGURES = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})|(\d{1,2})[./-](\d{1,2})[./-](\d{4})")


class DateKind(Enum):
    """Kind of a column of dates in text; the value's `note` is for the column's line."""

    ISO = "ISO dates as text; pd.to_datetime reads them"
    DAY_FIRST = "day-first dates as text"
    MONTH_FIRST = "month-first dates as text; pd.to_datetime reads them"
    NAMED = "dates as text"
    COMPACT = "dates as text without signs between (YYYYMMDD)"
    AMBIGUOUS = "ambiguous dates as text"
    SHORT_YEAR = "dates as text with the year in two digits, first or last"
    MIXED = "mixed date formats as text"

    @property
    def note(self) -> str:
        """Note beside the column's type."""
        return self.value


def iso_range(texts: Iterable[object]) -> tuple[str, str] | None:
    """Return the earliest and latest of ISO dates of one form; `None` if one is not such a date.

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
    """Return the kind of dates of a column's distinct texts; `None` if they are not dates."""
    if not texts:
        return None
    forms = [_form(text) for text in texts]
    known = [form for form in forms if form is not None]
    # Five-digit numbers are dates only together with written dates.
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
    """Return the texts that are not dates, if half or more, and at least two, are.

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
    if _is_compact(text):
        return "compact"
    return "named" if written_date(text) or _NAMED.fullmatch(text) else None


def _order(matches: list[re.Match[str]]) -> DateKind:
    firsts, seconds, lasts = ({int(match[at]) for match in matches} for at in (1, 3, 4))
    is_day_first, is_month_first = max(firsts) > 12, max(seconds) > 12
    if is_day_first and is_month_first:
        return DateKind.MIXED
    # A series of months is dated on one day: the part that never changes is the day.
    # Within one year it may be the month of a series of days; with points only a day is first.
    is_long = len(lasts) > 1
    has_points = all(match[2] == "." for match in matches)
    are_first_days = firsts == {1} and len(seconds) > 2 and (is_long or has_points)
    are_second_days = seconds == {1} and len(firsts) > 2 and is_long
    is_clear = is_month_first or has_points or are_first_days or are_second_days
    if not is_clear and _may_lead(firsts, lasts):
        return DateKind.SHORT_YEAR
    if not is_day_first and not is_month_first:
        is_day_first, is_month_first = are_first_days, are_second_days
    if is_day_first:
        return DateKind.DAY_FIRST
    return DateKind.MONTH_FIRST if is_month_first else DateKind.AMBIGUOUS


def _may_lead(firsts: set[int], lasts: set[int]) -> bool:
    """Return whether the first part may be the year: few years, and last parts as of days."""
    are_days = min(lasts) > 0 and max(lasts) <= 31
    return are_days and max(firsts) < _YEARS_TO_COME and len(firsts) < len(lasts)


def written_date(text: str) -> date | None:
    """Return the date of a text with day, name of the month and a year of four digits."""
    match = _WRITTEN.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or match["month"].lower() not in MONTH_NUMBERS:
        return None
    try:
        return date(int(match["year"]), MONTH_NUMBERS[match["month"].lower()], int(match["day"]))
    except ValueError:
        return None


def _is_compact(text: str) -> bool:
    """Return whether a text is a date without separators between year, month and day."""
    match = _COMPACT.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    if year not in _YEARS or hour > 24 or minute > 59 or second > 60:
        return False
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def compact_form(numbers: Iterable[float]) -> str:
    """Return the format of dates as whole numbers, such as `YYYYMMDD`; empty if they are not dates.

    Args:
        numbers: the distinct values of a column; a single one proves nothing.
    """
    texts = [str(int(number)) for number in numbers if number >= 0 and number == int(number)]
    sizes = {len(text) for text in texts}
    if len(texts) < 2 or len(sizes) > 1:
        return ""
    size = sizes.pop()
    if size in {8, 12, 14} and all(map(_is_compact, texts)):
        return "YYYYMMDDhhmmss"[:size]
    is_months = size == 6 and all(_is_compact(f"{text}01") for text in texts)
    return "YYYYMM" if is_months and len(texts) >= _LEAST_MONTHS else ""


def far_dates(texts: Iterable[str]) -> list[str]:
    """Return dates that mean "no date": 9999-12-31 or 1900-01-01, far from all others.

    Args:
        texts: distinct values of a column; those that are not dates in figures are skipped.
    """
    far: list[tuple[str, int]] = []
    years: list[int] = []
    for text in texts:
        match = _FIGURES.match(text)
        if match is None:
            continue
        is_iso = match[1] is not None
        year = int(match[1] if is_iso else match[6])
        days = [int(match[at]) for at in ((2, 3) if is_iso else (4, 5))]
        if year > _LAST_YEARS or year == 0 or _is_first_day(year, days):
            far.append((text, year))
        else:
            years.append(year)
    if not years:
        return []
    low, high = min(years) - _FAR_YEARS, max(years) + _FAR_YEARS
    return [text for text, year in far if not low <= year <= high]


def _is_first_day(year: int, days: list[int]) -> bool:
    return any(day.year == year and {day.month, day.day} == set(days) for day in _FIRST_DAYS)
