"""Several rows that an answer names together: `June to August`, `the first half`, `40 to 60`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from dm_jupyter.assist.grounding.blocks import TextBlock
from dm_jupyter.assist.grounding.statements import Statement
from dm_jupyter.assist.grounding.words import DAYS, MONTH_NAMES, content_words

__all__ = ["INTERVAL", "columns_spanned", "interval_edges", "interval_spellings", "rows_spanned"]

_SIZE = r"-?(?:\d+(?:\.\d+)?|inf)"
INTERVAL = re.compile(rf"[\[(](?P<low>{_SIZE}), (?P<high>{_SIZE})[\])](?=\s|\Z)")
"""A label as `pandas.cut` writes it."""
_RANGE = re.compile(r"(?P<low>\d+)(?:\s?[-–]\s?(?P<high>\d+)|\+)")
_FROM_TO = re.compile(r"\s(?:to|through|until|till|and)\s|\s?[-–—]\s?", re.IGNORECASE)
_FROM = re.compile(
    r"\b(?:over|above|exceed\w*|at least|(?:more|(?:old|high|larg|great|long)er) than|from)\s+"
    r"(?P<edge>\d+(?:\.\d+)?)(?!\s?(?:to|-|–|and)\s?\d)"
    r"|(?P<open>\d+)(?:\+|\s(?:and|or) (?:older|more|over|above))",
    re.IGNORECASE,
)
_UP_TO = re.compile(
    r"\b(?:under|below|up to|less than|at most|(?:young|low|small|short|light)er than|until)\s+"
    r"(?P<edge>\d+(?:\.\d+)?)|(?P<open>\d+)\s(?:and|or) (?:younger|less|under|below)",
    re.IGNORECASE,
)
_PERIOD = re.compile(
    r"\b(?:(?:(?P<half>first|second|1st|2nd) half|H(?P<h>[12])|Q(?P<quarter>[1-4])"
    r"|(?P<nth>first|second|third|fourth) quarter)(?:\s?(?:of|in|,)?\s?(?P<year>\d{4}))?"
    r"|(?P<whole>(?:19|20)\d{2}))\b"
)
_ROW_PERIOD = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d{2})(?:-\d{2})?|\s?-?Q(?P<quarter>[1-4]))|Q(?P<alone>[1-4])"
)
_KIND = re.compile(r"\b(?:first|second|third|fourth) (quarter|half)\b", re.IGNORECASE)
_ALONE = re.compile(r"\bthe (first|second|third|fourth)\b(?! (?:quarter|half))", re.IGNORECASE)
_HALF = re.compile(r"\b(?P<end>top|upper|bottom|lower) half\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
_NUMBERED = re.compile(r"([A-Za-z]*)\d{1,2}")
_NTH = ("first", "second", "third", "fourth")
_CLAUSES = re.compile(r"[;()]|[.,](?=\s)(?!\s(?:and|or)\b)|\bonly\b|\b(?:while|but|whereas)\b")
_JOINTS = re.compile(r"\s(?:and|or)\s(?:the\s)?|\s?[,&+]\s?")
_AROUND_CHARS, _MOST_ROWS = 30, 400
_WEEK = {"weekend": DAYS[5:], "weekday": DAYS[:5], "workday": DAYS[:5]}


@dataclass(frozen=True, slots=True)
class _Period:
    """Months of one year, or of any."""

    year: int | None
    first: int
    last: int

    def takes_in(self, other: _Period) -> bool:
        """Whether another one falls within it."""
        is_of_year = self.year is None or self.year == other.year
        return is_of_year and self.first <= other.first and other.last <= self.last


def interval_edges(label: str) -> list[str]:
    """Return the numbers at which an interval begins and ends; empty for another label."""
    match = INTERVAL.fullmatch(label) or _RANGE.fullmatch(label)
    edges = [edge for edge in match.group("low", "high") if edge] if match else []
    return [edge.removesuffix(".0") for edge in edges if not edge.endswith("inf")]


def interval_spellings(label: str) -> list[str]:
    """Return the spellings of an interval in an answer, lower case; empty for another label."""
    if len(edges := interval_edges(label)) != 2:
        return []
    low, high = edges
    return [f"{low}{joint}{high}" for joint in ("-", "–", " - ", " – ", " to ", " and ")]


def rows_spanned(block: TextBlock, statement: Statement) -> Iterator[list[int]]:
    """Yield groups of two or more rows of a block that a sentence names together.

    Args:
        block: a table, or lines.
        statement: a number with its words.
    """
    sentence, near = statement.sentence, statement.near
    before, behind = statement.since, statement.behind
    if not 2 < len(block.rows) <= _MOST_ROWS or not block.is_complete:
        return
    seen: set[tuple[int, ...]] = set()
    for rows in (
        *_between_intervals(block, sentence),
        *_between_names(block, sentence),
        *_within_periods(block.rows, sentence),
        *_of_week(block, sentence),
        *_half(block, sentence),
        *(list(_of_keys(block, near)) or _of_keys(block, statement.wide)),
        *_of_part(block, near),
        *_listed(block, behind),
        *_listed(block, before, is_before=True),
    ):
        if len(rows) > 1 and tuple(rows) not in seen:
            seen.add(tuple(rows))
            yield rows


def _between_names(block: TextBlock, sentence: str) -> Iterator[list[int]]:
    """Yield the rows from one named row to another, as `June to August`."""
    for match in _FROM_TO.finditer(sentence):
        before = content_words(sentence[max(0, match.start() - _AROUND_CHARS) : match.start()])
        after = content_words(sentence[match.end() : match.end() + _AROUND_CHARS])
        first = block.rows_named(frozenset(before[-1:])) or block.rows_named(frozenset(before[-2:]))
        last = block.rows_named(frozenset(after[:1])) or block.rows_named(frozenset(after[:2]))
        if len(first) == 1 and len(last) == 1 and first[0] < last[0]:
            yield list(range(first[0], last[0] + 1))


@lru_cache(maxsize=4_096)
def _ends_of(label: str) -> tuple[float, float] | None:
    match = INTERVAL.fullmatch(label) or _RANGE.fullmatch(label)
    return (float(match["low"]), float(match["high"] or "inf")) if match else None


def _between_intervals(block: TextBlock, sentence: str) -> Iterator[list[int]]:
    """Yield the rows of intervals within a named one, as `between 40 and 60`, or `over 60`."""
    edges = [(row, *found) for row, label in enumerate(block.rows) if (found := _ends_of(label))]
    if not edges:
        return
    for match in re.finditer(rf"({_SIZE})(?:{_FROM_TO.pattern})({_SIZE})", sentence):
        low, high = float(match[1]), float(match[2])
        yield [row for row, start, end in edges if low <= start and end <= high]
    for match in _FROM.finditer(sentence):
        edge = float(match["edge"] or match["open"])
        yield [row for row, start, _ in edges if edge <= start]
    for match in _UP_TO.finditer(sentence):
        edge = float(match["edge"] or match["open"])
        yield [row for row, _, end in edges if end <= edge]


def columns_spanned(block: TextBlock, sentence: str) -> Iterator[list[int]]:
    """Yield groups of columns of months or quarters within a longer period that is named.

    Args:
        block: a table, or lines.
        sentence: the sentence of a number.
    """
    for columns in _within_periods(block.columns, sentence) if block.is_table else ():
        if len(columns) > 1:
            yield columns


def _within_periods(labels: Sequence[str], sentence: str) -> Iterator[list[int]]:
    """Yield the indices of labels that are months or quarters within a longer named period."""
    periods = [(at, found) for at, label in enumerate(labels) if (found := _period_of(label))]
    if not periods:
        return
    for named in _named_periods(sentence):
        years = [int(year) for year in _YEAR.findall(sentence)] if named.year is None else []
        for one in (named, *(replace(named, year=year) for year in years)):
            yield [row for row, period in periods if one.takes_in(period)]


def _named_periods(sentence: str) -> Iterator[_Period]:
    """Yield the periods that a sentence names, including `the second` after `the first quarter`."""
    kinds = {match[1].lower() for match in _KIND.finditer(sentence)}
    for match in _PERIOD.finditer(sentence):
        yield _named_period(match)
    for match in _ALONE.finditer(sentence) if len(kinds) == 1 else ():
        if again := _PERIOD.fullmatch(f"{match[1].lower()} {min(kinds)}"):
            yield _named_period(again)


@lru_cache(maxsize=4_096)
def _period_of(label: str) -> _Period | None:
    """Return the months that a label of a row represents."""
    if match := _ROW_PERIOD.fullmatch(label):
        year = int(match["year"]) if match["year"] else None
        if match["month"]:
            month = int(match["month"])
            return _Period(year, month, month)
        quarter = int(match["quarter"] or match["alone"])
        return _Period(year, 3 * quarter - 2, 3 * quarter)
    words = content_words(label, is_label=True)
    if len(words) == 1 and words[0] in MONTH_NAMES:
        month = MONTH_NAMES.index(words[0]) + 1
        return _Period(None, month, month)
    return None


def _named_period(match: re.Match[str]) -> _Period:
    """Return the months that words of an answer represent."""
    if match["whole"]:
        return _Period(int(match["whole"]), 1, 12)
    year = int(match["year"]) if match["year"] else None
    if match["half"] or match["h"]:
        is_first = match["h"] == "1" or match["half"] in ("first", "1st")
        return _Period(year, 1, 6) if is_first else _Period(year, 7, 12)
    quarter = int(match["quarter"] or _NTH.index(match["nth"]) + 1)
    return _Period(year, 3 * quarter - 2, 3 * quarter)


def _half(block: TextBlock, sentence: str) -> Iterator[list[int]]:
    """Yield the rows of one half, if rows are quartiles or the like."""
    names = [match[1] for row in block.rows if (match := _NUMBERED.fullmatch(row))]
    if len(names) != len(block.rows) or len(names) % 2 or len(set(names)) > 1:
        return
    for match in _HALF.finditer(sentence):
        is_upper = match["end"].lower() in ("top", "upper")
        middle = len(names) // 2
        yield list(range(middle, len(names)) if is_upper else range(middle))


def _of_keys(block: TextBlock, near: frozenset[str]) -> Iterator[list[int]]:
    """Yield the rows of several numbers that are names: `grades 1 and 2`."""
    keys = {word for word in near if word[:1] == "#"}
    if len(keys) > 1:
        yield [row for row in range(len(block.rows)) if block.row_words(row) & keys]


def _of_week(block: TextBlock, sentence: str) -> Iterator[list[int]]:
    """Yield the rows of the weekend, or of the working days."""
    for word in content_words(sentence):
        if days := _WEEK.get(word):
            rows = [row for row in range(len(block.rows)) if block.row_words(row) & set(days)]
            yield rows if len(rows) == len(days) else []


def _listed(block: TextBlock, text: str, *, is_before: bool = False) -> Iterator[list[int]]:
    """Yield the rows that `and` or `or` joins, directly before or after a number."""
    parts = [part for part in _CLAUSES.split(text) if part.strip(" *")]
    if not parts:
        return
    pieces = _JOINTS.split(parts[-1] if is_before else parts[0])
    rows: list[int] = []
    for piece in pieces if len(pieces) > 1 else ():
        words = frozenset(content_words(piece, is_label=True))
        named = block.rows_named(words)
        most = max((len(block.row_words(row)) for row in named), default=0)
        rows += [row for row in named if len(block.row_words(row)) == most]
    if len(rows) >= len(pieces):
        yield sorted(set(rows))


def _of_part(block: TextBlock, near: frozenset[str]) -> Iterator[list[int]]:
    """Yield the rows that share a label of one level that a clause names, as all of `web`."""
    if block.levels < 2:
        return
    by_part: dict[str, list[int]] = {}
    for row in block.rows_named(near):
        for part in block.parts[row]:
            words = frozenset(content_words(part, is_label=True))
            if words and words <= near:
                by_part.setdefault(part, []).append(row)
    yield from by_part.values()
