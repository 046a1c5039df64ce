"""Links from the words of a question to the columns and values that they may name.

Links are facts that the profile in the prompt does not show already: a value that the data spells
differently, a quoted one that it lacks, a year outside of its dates. The profile itself does not
depend on the question. A local model reads it while the person writes, so the links follow it.

Covered: text of the data and of the question is shown as a quoted literal of at most 41
characters, control characters escaped. The total is bounded. Not covered: synonyms, other
languages' plurals, scripts without spaces between words, and values that the index leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dm_jupyter.data.profile.lexicon import (
    Lexicon,
    Named,
    Word,
    lexicon_of,
    located,
    name_words,
    plain_words,
    singular,
    words_of,
)
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile
from dm_jupyter.data.profile.render_table import value_text

__all__ = ["links_text", "years_missed"]

_QUESTION_CHARS = 6_000
_MOST_WORDS = 400
_PHRASE_WORDS = 8
_GUESSED_WORDS = 4
"""Most words of a phrase that is searched in similar spellings and inside longer values."""
_MOST_PLACES = 3
_QUOTED = re.compile(
    r"""(?<!\w)(?:"([^"\n]{1,80})"|'([^'\n]{1,80})'|`([^`\n]{1,80})`"""
    r"""|[“„]([^“”„\n]{1,80})[”“]|‘([^‘’\n]{1,80})’|[«»]([^«»\n]{1,80})[«»])(?!\w)"""
)
_BETWEEN = re.compile(r"[\s\-_'’/&.,]{0,3}")
_ENGLISH = """
total name names number numbers average sum count amount value values data row rows column columns
a an and any all are as at be been both but by can data did do does each every false find for
from give had has have high how i if in into is it its just less list low many may me mean more
most much must my na nan no none not null of on one only or other our out over per show so some
such than that the their them then there these they this to true two under up was we were what
when where which while who whose will with within would yes you your
"""
_OTHERS = """
der die das den dem des ein eine und oder ist sind war im am an auf aus bei mit nach von vor zu
zum zur wie viele viel was wer wo welche welcher welches le la les un une des du de et ou est el
los las una y o es en
"""
_COMMON = frozenset((*_ENGLISH.split(), *_OTHERS.split()))
"""Words that questions consist of: a value or column of the same name is hardly meant."""
_YEAR = re.compile(r"(?<![\w.,:/-])(1[5-9]\d\d|20\d\d)(?![\w%€$]|[.,]\d)")
_NUMBER = re.compile(r"(?<![\w.,:/-])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w:/])|"
                     r"(?<![\w.,:/-])-?\d+(?:\.\d+)?(?![\w:/%]|[.,]\d)")  # fmt: skip
_YEAR_FIRST = re.compile(r"(\d{4})(?:-\d\d|[/.]\d\d?[/.]\d\d?(?!\d))")
"""A date that begins with its year; `2011/12` is a season."""
_YEARS = range(1500, 2101)
_IN_YEARS = re.compile(r"year|jahr|\baño|\banno\b|\bannée|\bjaar\b|season", re.IGNORECASE)
_NEAR_CHARS = 40
"""Largest distance from a column's name to a number that is compared with it."""
_COMPARED = re.compile(
    r"[^.;?!]*(?:[<>=≤≥]|\b(?:above|over|under|below|than|least|most|equals?|equal to|exceeds?"
    r"|is|of|über|unter|als|mindestens|höchstens|gleich)\b)[^.;?!]*",
    re.IGNORECASE,
)
_SCALED = re.compile(
    r"\s*(?:%|hundred|thousand|million|billion|trillion|percent|mio|mrd|k\b|m\b)", re.I
)
_MOST = 3


def links_text(
    question: str, profiles: Sequence[FileProfile], *, chars: int, shown: str = ""
) -> str:
    """Return one line for each fact, the most useful first; empty if there is nothing to say.

    Args:
        question: as the person wrote it.
        profiles: profiles of all files that the question is about.
        chars: most characters in total; a line that does not fit is left out.
        shown: the prompt's text on the files; a value spelt there as in the question needs no line.
    """
    if not question.strip() or chars <= 0:
        return ""
    question = question[:_QUESTION_CHARS]
    lexicon = lexicon_of(profiles)
    words = words_of(question, _MOST_WORDS)
    search = _Search(question, words, lexicon, shown)
    facts = [*search.quoted(), *search.named()]
    facts += [(1, line) for line in _ranges_missed(question, words, profiles, search.taken)]
    facts += search.guessed()
    lines: list[str] = []
    for _, line in sorted(facts, key=lambda fact: fact[0]):
        if len(line) + 3 <= chars and line not in lines:
            lines.append(line)
            chars -= len(line) + 3
    return "\n".join(f"- {line}" for line in lines)


def years_missed(question: str, profiles: Sequence[FileProfile]) -> tuple[str, ...]:
    """Return a line for each of the first years of a question that all dates of its data miss.

    Args:
        question: as the person wrote it.
        profiles: profiles of all files that the question is about.
    """
    question = question[:_QUESTION_CHARS]
    years, _ = _spans(profiles)
    if not years or not _YEAR.search(question):
        return ()
    words = words_of(question, _MOST_WORDS)
    search = _Search(question, words, lexicon_of(profiles), "")
    for _ in (*search.quoted(), *search.named()):
        pass  # each marks the words that it explains
    explained = {words[place].start for place in search.taken}
    return tuple(dict.fromkeys(_years_missed(question, years, explained)))[:_MOST]


_Fact = tuple[int, str]
"""Rank, lowest first, and the text."""


@dataclass
class _Search:
    """Search for one question's words in the data; the longest phrase explains a word, once."""

    question: str
    words: tuple[Word, ...]
    lexicon: Lexicon
    shown: str
    taken: set[int] = field(default_factory=set)
    """Indices in `words` that are explained."""

    def quoted(self) -> Iterator[_Fact]:
        """Yield facts about the phrases in quotation marks."""
        for match in _QUOTED.finditer(self.question):
            phrase = next(filter(None, match.groups()), "")
            key = plain_words(phrase)
            if not key:
                continue
            yield from self._quoted(phrase, key)
            self.taken.update(
                place
                for place, word in enumerate(self.words)
                if match.start() <= word.start and word.end <= match.end()
            )

    def _quoted(self, phrase: str, key: str) -> Iterator[_Fact]:
        lexicon, literal = self.lexicon, value_text(phrase)
        if found := lexicon.named.get(key):
            yield from self._told(phrase, found)
        elif key in lexicon.containers or set(key.split(" ")) <= _COMMON:
            return
        elif near := lexicon.inflected(key) or lexicon.similar(key):
            lacks = "no value or column" if lexicon.has_all_texts else "no frequent value or column"
            yield 0, f"{lacks} {literal}; nearest: {_listed(near)}"
        elif inside := lexicon.containing(key):
            yield 1, f"{literal} is part of {_example(inside)}"
        elif lexicon.has_all_texts and not key.isdigit():
            # Often the name of something to be created, so it comes last.
            yield 6, f"no value or column {literal}"

    def named(self) -> Iterator[_Fact]:
        """Yield links of phrases that are in the data except for case, accents and number."""
        for first, last, key in self._phrases(_PHRASE_WORDS):
            if first == last and (key in _COMMON or (key.isdigit() and len(key) < 4)):
                continue
            phrase = self._text(first, last)
            if found := self._meant(phrase, self.lexicon.named.get(key, ())):
                yield from self._told(phrase, found)
            elif other := self._meant(phrase, self.lexicon.inflected(key)):
                # A column of one word needs no help: the profile lists it.
                news = [
                    one
                    for one in other
                    if (" " in key if one.is_column else one.literal not in self.shown)
                ]
                if news:
                    words = "is the singular or plural of"
                    yield 3 + 2 * news[0].is_column, f"{value_text(phrase)} {words} {_listed(news)}"
            else:
                continue
            self.taken.update(range(first, last + 1))

    def guessed(self) -> Iterator[_Fact]:
        """Yield values that names in the question may misspell, or be a part of."""
        for first, last, key in self._phrases(_GUESSED_WORDS):
            phrase = self._text(first, last)
            is_name = self._is_name(first, last)
            if near := self._similar(key, is_name=is_name, is_one=first == last):
                yield 2, f"{value_text(phrase)} is spelt like {_listed(near)}"
            elif is_name and len(key) >= 4 and (inside := self._around(key)):
                yield 4, f"{value_text(phrase)} is part of {_example(inside)}"
            else:
                continue
            self.taken.update(range(first, last + 1))

    def _similar(self, key: str, *, is_name: bool, is_one: bool) -> list[Named]:
        """Return the values that a phrase may misspell; words that are not names need more."""
        found = [one for one in self.lexicon.similar(key) if not one.is_column]
        if is_name:
            return found
        if not is_one or len(key) < 6 or key in _COMMON:
            return []
        # A different ending is another form of the word, not a typo.
        return [
            one for one in found if " " not in one.text and not _is_ending(key, one.text.casefold())
        ]

    def _around(self, key: str) -> list[Named]:
        return [one for one in self.lexicon.containing(key) if not one.is_column]

    def _told(self, phrase: str, found: Iterable[Named]) -> Iterator[_Fact]:
        """Yield the values and columns that the data spells differently.

        If the spelling is the same, a line that names the value's table may make a small model
        count the rows of that table. Over 60 questions, such lines gained nothing.
        """
        values = [one for one in found if not one.is_column]
        columns = [one for one in found if one.is_column]
        if any(one.text != phrase for one in values):
            yield 2, f"{value_text(phrase)} → {_listed(values)}"
        if any(one.text.strip().casefold() != phrase.casefold() for one in columns):
            yield 5, f"{value_text(phrase)} → {_listed(columns)}"

    def _meant(self, phrase: str, found: Sequence[Named]) -> list[Named]:
        """Return those that a phrase may mean; one or two letters must be written alike."""
        if len(phrase) > 2:
            return list(found)
        return [one for one in found if one.text == phrase and not phrase.islower()]

    def _phrases(self, most: int) -> Iterator[tuple[int, int, str]]:
        """Yield phrases not explained yet as first and last word and plain words, longest first.

        The caller adds those that it explains to `taken`.
        """
        for length in range(min(most, len(self.words)), 0, -1):
            for first in range(len(self.words) - length + 1):
                last = first + length - 1
                if self._is_free(first, last):
                    plain = " ".join(word.plain for word in self.words[first : last + 1])
                    yield first, last, plain

    def _is_free(self, first: int, last: int) -> bool:
        if any(place in self.taken for place in range(first, last + 1)):
            return False
        return all(
            _BETWEEN.fullmatch(self.question[self.words[at].end : self.words[at + 1].start])
            for at in range(first, last)
        )

    def _is_name(self, first: int, last: int) -> bool:
        """Whether the first and last word are capitalised, and not just at a sentence's start."""
        ends = (self.words[first], self.words[last])
        if not all(self.question[word.start].isupper() for word in ends):
            return False
        before = self.question[: self.words[first].start].rstrip()
        return first != last or (bool(before) and before[-1] not in ".?!:")

    def _text(self, first: int, last: int) -> str:
        return self.question[self.words[first].start : self.words[last].end]


def _is_ending(one: str, other: str) -> bool:
    return one.startswith(other[:-1]) or other.startswith(one[:-1])


def _listed(found: Sequence[Named]) -> str:
    """Return the first few with their locations, and how many more there are."""
    found = list(dict.fromkeys(found))
    shown = "; ".join(_described(one) for one in found[:_MOST_PLACES])
    rest = len(found) - _MOST_PLACES
    return f"{shown}; {rest} more" if rest > 0 else shown


def _described(one: Named) -> str:
    if one.is_column:
        return f"column {one.literal} {one.place}".rstrip()
    rows = f"{one.count:,} row{'' if one.count == 1 else 's'}"
    return f"{one.literal} in {one.place} ({rows}{' of those read' if one.is_sample else ''})"


def _example(found: Sequence[Named]) -> str:
    """Return the most frequent of the values, and how many more of its column there are."""
    best = max(found, key=lambda one: (not one.is_column, one.count))
    rest = sum((one.place, one.is_column) == (best.place, best.is_column) for one in found) - 1
    noun = f"column{'' if rest == 1 else 's'}" if best.is_column else "of its values"
    return f"{_described(best)} and of {rest:,} more {noun}" if rest else _described(best)


@dataclass(frozen=True, slots=True)
class _Span:
    """Range of a column."""

    low: float
    high: float
    text: str
    """The column with its range, for a person or a model."""
    names: tuple[str, ...]
    """Plain words that mean the column."""


def _ranges_missed(
    question: str,
    words: Sequence[Word],
    profiles: Sequence[FileProfile],
    taken: Collection[int] = (),
) -> Iterator[str]:
    """Yield lines on a question's years and numbers outside the range of its data.

    A year is compared with every column of dates or years, and named only if it is outside of all
    of them. A number is compared with the column named before it, as in `age above 120`, unless it
    has a unit, as in `5 million`. Columns of which only a part of the rows was read are left out:
    their range is unknown.

    Args:
        question: as the person wrote it.
        words: words of the question.
        profiles: profiles of all files that the question is about.
        taken: indices in `words` that are explained already, such as a column called `2012`.
    """
    explained = {words[place].start for place in taken}
    years, numbers = _spans(profiles)
    yield from _years_missed(question, years, explained)
    for match in _NUMBER.finditer(question):
        if match.start() not in explained and not _SCALED.match(question, match.end()):
            number = float(match[0].replace(",", ""))
            meant = _named_before(question, words, match.start(), numbers)
            if meant and all(_misses(one, number) for one in meant):
                yield _line(match[0], meant)


def _years_missed(question: str, years: Sequence[_Span], explained: set[int]) -> Iterator[str]:
    """Yield the lines on years, and add where those begin to what is explained."""
    for match in _YEAR.finditer(question):
        year = int(match[1])
        if years and match.start() not in explained and all(_misses(one, year) for one in years):
            explained.add(match.start())
            yield _line(match[0], years)


def _misses(span: _Span, number: float) -> bool:
    return not span.low <= number <= span.high


def _line(number: str, spans: Sequence[_Span]) -> str:
    rest = len(spans) - _MOST
    more = f" and of {rest} more" if rest > 0 else ""
    return f"{number} lies outside of {', '.join(one.text for one in spans[:_MOST])}{more}"


def _spans(profiles: Sequence[FileProfile]) -> tuple[list[_Span], list[_Span]]:
    """Return the ranges of the columns of dates and years, in years, and of those of numbers."""
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
        first, last = _YEAR_FIRST.match(low), _YEAR_FIRST.match(high)
        if first and last:
            return _Span(int(first[1]), int(last[1]), text, _names(column))
    # A count of such a size is not a year; the name of a column of years says so.
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
    """Return the columns whose name comes last before a number, in the same sentence and near."""
    near = [word for word in words if at - _NEAR_CHARS <= word.start < word.end <= at]
    for last in range(len(near), 0, -1):
        for first in range(last):  # the longest name first
            name = singular(" ".join(word.plain for word in near[first:last]))
            if found := [span for span in spans if name in span.names]:
                return found if _COMPARED.fullmatch(question, near[last - 1].end, at) else []
    return []
