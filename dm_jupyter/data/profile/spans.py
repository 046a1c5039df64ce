"""Years and numbers of a question that lie outside of what the data covers."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dm_jupyter.data.profile.lexicon import Word, located, name_words, singular
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile
from dm_jupyter.data.profile.render_table import value_text

__all__ = ["ranges_missed"]

_YEAR = re.compile(r"(?<![\w.,:/-])(1[5-9]\d\d|20\d\d)(?![\w%€$]|[.,]\d)")
_NUMBER = re.compile(r"(?<![\w.,:/-])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w:/])|"
                     r"(?<![\w.,:/-])-?\d+(?:\.\d+)?(?![\w:/%]|[.,]\d)")  # fmt: skip
_ISO_YEAR = re.compile(r"(\d{4})-\d\d")
_YEARS = range(1500, 2101)
_IN_YEARS = re.compile(r"year|jahr|\baño|\banno\b|\bannée|\bjaar\b|season", re.IGNORECASE)
_NEAR_CHARS = 40
"""Farthest from a column's name to a number that is compared with it."""
_COMPARED = re.compile(
    r"[^.;?!]*(?:[<>=≤≥]|\b(?:above|over|under|below|than|least|most|equals?|equal to|exceeds?"
    r"|is|of|über|unter|als|mindestens|höchstens|gleich)\b)[^.;?!]*",
    re.IGNORECASE,
)
_SCALED = re.compile(
    r"\s*(?:%|hundred|thousand|million|billion|trillion|percent|mio|mrd|k\b|m\b)", re.I
)
_MOST = 3


@dataclass(frozen=True, slots=True)
class _Span:
    """What a column covers."""

    low: float
    high: float
    text: str
    """The column with its range, for a person or a model."""
    names: tuple[str, ...]
    """Plain words that stand for the column."""


def ranges_missed(
    question: str,
    words: Sequence[Word],
    profiles: Sequence[FileProfile],
    taken: Collection[int] = (),
) -> list[tuple[int, str]]:
    """Returns ranked lines on the years and numbers of a question that its data does not reach.

    A year is compared with every column of dates or years, and named only where it is outside of
    all of them. A number is compared with the column named before it, as in `age above 120`; not
    with its unit, as in `5 million`. Columns of which a part of the rows was read are left out:
    nobody knows their range.

    Args:
        question: as the person wrote it.
        words: of the question.
        profiles: of all files that it is about.
        taken: places in `words` that are explained already, as a column called `2012` is.
    """
    explained = {words[place].start for place in taken}
    years, numbers = _spans(profiles)
    lines = []
    for match in _YEAR.finditer(question):
        year = int(match[1])
        if years and match.start() not in explained and all(_misses(one, year) for one in years):
            lines.append((1, _line(match[0], years)))
            explained.add(match.start())
    for match in _NUMBER.finditer(question):
        if match.start() not in explained and not _SCALED.match(question, match.end()):
            number = float(match[0].replace(",", ""))
            meant = _named_before(question, words, match.start(), numbers)
            if meant and all(_misses(one, number) for one in meant):
                lines.append((1, _line(match[0], meant)))
    return lines


def _misses(span: _Span, number: float) -> bool:
    return not span.low <= number <= span.high


def _line(number: str, spans: Sequence[_Span]) -> str:
    rest = len(spans) - _MOST
    more = f" and of {rest} more" if rest > 0 else ""
    return f"{number} lies outside of {', '.join(one.text for one in spans[:_MOST])}{more}"


def _spans(profiles: Sequence[FileProfile]) -> tuple[list[_Span], list[_Span]]:
    """Returns what the columns of dates and years cover, in years, and what those of numbers do."""
    years: list[_Span] = []
    numbers: list[_Span] = []
    for profile in profiles:
        for table in profile.tables:
            if table.sampled_rows is not None:
                continue
            for column in table.columns:
                place, _ = located(profile, table, column, has_several=len(profiles) > 1)
                ends = f"({value_text(column.minimum)} … {value_text(column.maximum)})"
                text = f"{place.removeprefix('column ')} {ends.replace(chr(39), '')}"
                if span := _year_span(column, text):
                    years.append(span)
                elif _is_number(column.minimum) and _is_number(column.maximum):
                    low, high = float(str(column.minimum)), float(str(column.maximum))
                    numbers.append(_Span(low, high, text, _names(column)))
    return years, numbers


def _year_span(column: ColumnProfile, text: str) -> _Span | None:
    low, high = column.minimum, column.maximum
    if isinstance(low, str) and isinstance(high, str):
        first, last = _ISO_YEAR.match(low), _ISO_YEAR.match(high)
        if first and last:
            return _Span(int(first[1]), int(last[1]), text, _names(column))
    # A count of such a size is no year; a column of years says so.
    is_of_years = low in _YEARS and high in _YEARS and _IN_YEARS.search(column.name)
    if isinstance(low, int) and isinstance(high, int) and is_of_years:
        return _Span(low, high, text, _names(column))
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _names(column: ColumnProfile) -> tuple[str, ...]:
    name = name_words(column.name[:120])
    return (singular(name),) if name else ()


def _named_before(
    question: str, words: Sequence[Word], at: int, spans: Sequence[_Span]
) -> list[_Span]:
    """Returns the columns whose name comes last before a number, in the same sentence and near."""
    near = [word for word in words if at - _NEAR_CHARS <= word.start < word.end <= at]
    for last in range(len(near), 0, -1):
        for first in range(last):  # the longest name first
            name = singular(" ".join(word.plain for word in near[first:last]))
            if found := [span for span in spans if name in span.names]:
                return found if _COMPARED.fullmatch(question, near[last - 1].end, at) else []
    return []
