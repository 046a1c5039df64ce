"""Columns and short texts of data files that can be named, by their plain words.

Words compare without case and accents, in the singular, and when misspelt.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.data.profile.render_table import value_text
from dm_jupyter.data.profile.values import is_complete

__all__ = [
    "Lexicon",
    "Named",
    "Word",
    "holds_text",
    "lexicon_of",
    "located",
    "name_words",
    "plain_words",
    "singular",
    "words_of",
]

_MOST_COLUMNS = 5_000
_NAME_CHARS = 120
"""Longer names and values are prose: no question repeats them."""
_MOST_COMPARED = 20_000
_NO_TEXT = ("int", "uint", "float", "bool", "date", "time", "real", "num", "double", "decimal")
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPLIT = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d"})
"""Letters with a stroke or in one piece, which Unicode does not decompose."""
_ES = ("sses", "ches", "shes", "xes", "zes")
_NO_PLURAL = ("ss", "us", "is")


@dataclass(frozen=True, slots=True)
class Named:
    """A column, or a value in one."""

    literal: str
    """The name or value, as code would write it; cut where it is long."""
    text: str
    """The same, not cut."""
    place: str
    """A value's column, or a column's table; with file and table if there are several."""
    count: int = 0
    """Rows with the value."""
    is_column: bool = False
    is_sample: bool = False
    """Whether `count` was taken from a part of the rows."""


@dataclass(frozen=True)
class Lexicon:
    """Columns and values by their plain words."""

    named: dict[str, list[Named]] = field(default_factory=lambda: defaultdict(list))
    singulars: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Plain words without a plural ending, mapped to those that have it."""
    sizes: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    """First letter and length, mapped to plain words."""
    parts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """A word, mapped to the phrases of plain words that contain it."""
    containers: frozenset[str] = frozenset()
    """Plain names of files and tables."""
    has_all_texts: bool = True
    """Whether it has every text of every column, so that a text it lacks does not exist."""

    def inflected(self, words: str) -> list[Named]:
        """Return entries that differ from plain words in number only: `cats` for `cat`."""
        keys = self.singulars.get(singular(words), ())
        return [one for key in keys if key != words for one in self.named[key]]

    def similar(self, words: str) -> list[Named]:
        """Return entries that plain words may misspell."""
        if not words:
            return []
        keys = [
            key
            for length in range(len(words) - 2, len(words) + 3)
            for key in self.sizes.get((words[0], length), ())[:_MOST_COMPARED]
            if _are_alike(words, key)
        ]
        return [one for key in keys for one in self.named[key]]

    def containing(self, words: str) -> list[Named]:
        """Return entries with plain words among others: `Toyota Corolla` for `toyota`."""
        keys = self.parts.get(words.split(" ", 1)[0], ())[:_MOST_COMPARED]
        found = [key for key in keys if key != words and f" {words} " in f" {key} "]
        return [one for key in found for one in self.named[key]]


def lexicon_of(profiles: Sequence[FileProfile]) -> Lexicon:
    """Return the lexicon of the files.

    Args:
        profiles: profiles with the index of their values (see `values`).
    """
    columns = list(_columns(profiles))
    containers = [profile.name for profile in profiles]
    containers += [table.name for profile in profiles for table in profile.tables]
    lexicon = Lexicon(
        containers=frozenset(plain_words(name[:_NAME_CHARS]) for name in containers),
        has_all_texts=len(columns) <= _MOST_COLUMNS
        and all(profile.tables for profile in profiles)
        and all(len(one.name) <= _NAME_CHARS for _, _, one in columns)
        and all(not holds_text(one) or is_complete(one, table) for _, table, one in columns),
    )
    for profile, table, column in columns[:_MOST_COLUMNS]:
        _add(lexicon, profile, table, column, has_several=len(profiles) > 1)
    return lexicon


def holds_text(column: ColumnProfile) -> bool:
    """Return whether a column may contain text that a question names."""
    if column.values:
        return True
    return column.minimum is None and not column.dtype.lower().startswith(_NO_TEXT)


def located(
    profile: FileProfile, table: TableProfile, column: ColumnProfile, *, has_several: bool
) -> tuple[str, str]:
    """Return a column in words, and the table that it is in; empty for the only table.

    Args:
        profile: profile of the file.
        table: table of the file.
        column: column of the table.
        has_several: whether the question is about several files.
    """
    parts = []
    if len(profile.tables) > 1:
        noun = "table" if profile.kind in {"sqlite", "duckdb"} else "sheet"
        parts.append(f"of {noun} {value_text(table.name)}")
    if has_several:
        parts.append(f"in {value_text(profile.name)}")
    where = " ".join(parts)
    return f"column {value_text(column.name)}{' ' if where else ''}{where}", where


def _columns(
    profiles: Sequence[FileProfile],
) -> Iterator[tuple[FileProfile, TableProfile, ColumnProfile]]:
    for profile in profiles:
        for table in profile.tables:
            for column in table.columns:
                yield profile, table, column


def _add(
    lexicon: Lexicon,
    profile: FileProfile,
    table: TableProfile,
    column: ColumnProfile,
    *,
    has_several: bool,
) -> None:
    place, where = located(profile, table, column, has_several=has_several)
    if len(column.name) <= _NAME_CHARS:
        named = Named(value_text(column.name), column.name, where, is_column=True)
        for key in dict.fromkeys((name_words(column.name), plain_words(column.name))):
            _enter(lexicon, key, named)
    is_sample = table.sampled_rows is not None
    for value, count in column.values:
        named = Named(value_text(value), value, place, count, is_sample=is_sample)
        _enter(lexicon, plain_words(value), named)


def _enter(lexicon: Lexicon, key: str, named: Named) -> None:
    if not key:
        return
    if key not in lexicon.named:
        lexicon.singulars[singular(key)].append(key)
        lexicon.sizes[key[0], len(key)].append(key)
    lexicon.named[key].append(named)
    words = set(key.split(" "))
    if len(words) > 1 and len(lexicon.named[key]) == 1:
        for word in words:
            lexicon.parts[word].append(key)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question."""

    plain: str
    """Without case and accents."""
    start: int
    """Index of its first character."""
    end: int
    """Index after its last one."""


def words_of(text: str, most: int) -> tuple[Word, ...]:
    """Return the first words of a text with their positions.

    Args:
        text: as a person wrote it.
        most: most words; the rest is ignored.
    """
    found: list[Word] = []
    for match in _WORD.finditer(text):
        if len(found) == most:
            break
        # A word of marks alone has nothing left without them.
        if plain := _plain(match[0]):
            found.append(Word(plain, match.start(), match.end()))
    return tuple(found)


def plain_words(text: str) -> str:
    """Return the words of a text without case and accents, one space between them."""
    return " ".join(filter(None, map(_plain, _WORD.findall(text))))


def name_words(name: str) -> str:
    """Return the words of a column's name, as `plain_words`; `GrossTotal` has two."""
    return plain_words(_HUMP.sub(" ", name))


def singular(words: str) -> str:
    """Return plain words with English plural endings removed from the last one.

    Both sides of a comparison go through it, so it need not give the true singular. Not covered:
    plurals of other languages, and irregular ones.
    """
    head, space, last = words.rpartition(" ")
    if len(last) > 4 and last.endswith("ies"):
        last = f"{last[:-3]}y"
    elif len(last) > 4 and last.endswith(_ES):
        last = last[:-2]
    elif len(last) > 3 and last.endswith("s") and not last.endswith(_NO_PLURAL):
        last = last[:-1]
    return f"{head}{space}{last}"


def _are_alike(one: str, other: str) -> bool:
    """Return whether two texts differ only by a typo.

    In a typo, one letter is left out, added, wrong or swapped with its neighbour. Nine letters or
    more may have two typos. The first letter and the number of words must be the same. Texts with
    digits are never alike: `A12` is not a misspelt `A13`.
    """
    shorter = min(len(one), len(other))
    slips = 0 if shorter < 5 else 1 if shorter < 9 else 2
    if not slips or one[0] != other[0] or abs(len(one) - len(other)) > slips:
        return False
    if one.count(" ") != other.count(" "):
        return False
    if any(letter.isdigit() for letter in one + other):
        return False
    return _slips(one, other) <= slips


def _plain(word: str) -> str:
    if word.isascii():
        return word.lower()
    split = unicodedata.normalize("NFKD", word.casefold().translate(_UNSPLIT))
    return "".join(letter for letter in split if not unicodedata.combining(letter)).casefold()


def _slips(one: str, other: str) -> int:
    """Return the restricted Damerau-Levenshtein distance."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
