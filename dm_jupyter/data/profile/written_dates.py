"""Dates as people write them: with names of months, without signs between, or far away."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

__all__ = ["MONTHS", "compact_form", "far_dates", "is_compact", "written_date"]

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
MONTHS = {
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
_FIRST_DAYS = frozenset(
    [date(1, 1, 1), date(1753, 1, 1), date(1899, 12, 30), date(1899, 12, 31), date(1900, 1, 1),
     date(1900, 12, 31), date(1901, 1, 1), date(1970, 1, 1), date(2099, 12, 31)]
)  # fmt: skip
"""Where calendars of programs begin, and what forms accept as the last day."""
_LAST_YEARS = 2500
_FIGURES = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})|(\d{1,2})[./-](\d{1,2})[./-](\d{4})")


def written_date(text: str) -> date | None:
    """Returns the date of a text with day, name of the month and a year of four digits."""
    match = _WRITTEN.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None or match["month"].lower() not in MONTHS:
        return None
    try:
        return date(int(match["year"]), MONTHS[match["month"].lower()], int(match["day"]))
    except ValueError:
        return None


def is_compact(text: str) -> bool:
    """Says whether a text is a date without signs between year, month and day."""
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
    """Returns how whole numbers write dates, such as `YYYYMMDD`; empty where they are none.

    Args:
        numbers: the distinct values of a column; a single one tells nothing.
    """
    texts = [str(int(number)) for number in numbers if number >= 0 and number == int(number)]
    sizes = {len(text) for text in texts}
    if len(texts) < 2 or len(sizes) > 1:
        return ""
    size = sizes.pop()
    if size in {8, 12, 14} and all(map(is_compact, texts)):
        return "YYYYMMDDhhmmss"[:size]
    is_months = size == 6 and all(is_compact(f"{text}01") for text in texts)
    return "YYYYMM" if is_months and len(texts) >= _LEAST_MONTHS else ""


def far_dates(texts: Iterable[str]) -> list[str]:
    """Returns dates that stand for "no date": 9999-12-31 or 1900-01-01, far from all others.

    Args:
        texts: distinct values of a column; those that are no dates in figures are passed over.
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
