"""What can be named of data files: their columns and short texts, by their plain words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.data.profile.render_table import value_text
from dm_jupyter.data.profile.values import is_complete
from dm_jupyter.data.profile.wording import are_alike, name_words, plain_words, singular

__all__ = ["Lexicon", "Named", "holds_text", "lexicon_of", "located"]

_MOST_COLUMNS = 5_000
_NAME_CHARS = 120
"""Longer names and values are prose: no question repeats them."""
_MOST_COMPARED = 20_000
_NO_TEXT = ("int", "uint", "float", "bool", "date", "time", "real", "num", "double", "decimal")


@dataclass(frozen=True, slots=True)
class Named:
    """A column, or a value in one."""

    literal: str
    """The name or value, as code would write it; cut where it is long."""
    text: str
    """The same as it is."""
    place: str
    """Of a value its column, of a column its table; with file and table where there are several."""
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
    """Plain words without a plural ending, to those that have it."""
    sizes: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    """First letter and length, to plain words."""
    parts: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """A word, to the plain words of several with it among them."""
    containers: frozenset[str] = frozenset()
    """Plain names of files and tables."""
    has_all_texts: bool = True
    """Whether every text of every column is here, so that one that is not does not exist."""

    def inflected(self, words: str) -> list[Named]:
        """Returns what differs from plain words in number only: `cats` for `cat`."""
        keys = self.singulars.get(singular(words), ())
        return [one for key in keys if key != words for one in self.named[key]]

    def similar(self, words: str) -> list[Named]:
        """Returns what plain words may be a slip of the pen for."""
        if not words:
            return []
        keys = [
            key
            for length in range(len(words) - 2, len(words) + 3)
            for key in self.sizes.get((words[0], length), ())[:_MOST_COMPARED]
            if are_alike(words, key)
        ]
        return [one for key in keys for one in self.named[key]]

    def containing(self, words: str) -> list[Named]:
        """Returns what has plain words among others: `Toyota Corolla` for `toyota`."""
        keys = self.parts.get(words.split(" ", 1)[0], ())[:_MOST_COMPARED]
        found = [key for key in keys if key != words and f" {words} " in f" {key} "]
        return [one for key in found for one in self.named[key]]


def lexicon_of(profiles: Sequence[FileProfile]) -> Lexicon:
    """Returns what can be named of the files.

    Args:
        profiles: with the index of their values (see `values`).
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
    """Returns whether a column may hold text that a question names."""
    if column.values:
        return True
    return column.minimum is None and not column.dtype.lower().startswith(_NO_TEXT)


def located(
    profile: FileProfile, table: TableProfile, column: ColumnProfile, *, has_several: bool
) -> tuple[str, str]:
    """Returns a column in words, and the table that it is in; the latter is empty for the only one.

    Args:
        profile: of the file.
        table: of the file.
        column: of the table.
        has_several: whether the question is about more files.
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
