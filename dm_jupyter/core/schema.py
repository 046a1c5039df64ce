"""Tables as code sees them: their joins, and names, quoted for SQL or nearest to a wrong one."""

from __future__ import annotations

import difflib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = [
    "RESERVED_WORDS",
    "DatabaseTable",
    "Join",
    "Link",
    "LoadedTable",
    "always_quoted",
    "bare_name",
    "join_path",
    "nearest",
    "quoted_name",
]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that SQLite refuses, or reads as something else, when they stand as a bare name.
_WORDS = """
abort action add after all alter always analyze and as asc attach autoincrement before begin
between by cascade case cast check collate column commit conflict constraint create cross
current current_date current_time current_timestamp database default deferrable deferred delete
desc detach distinct do drop each else end escape except exclude exclusive exists explain fail
filter first following for foreign from full generated glob group groups having if ignore
immediate in index indexed initially inner insert instead intersect into is isnull join key last
left like limit match materialized natural no not nothing notnull null nulls of offset on or
order others outer over partition plan pragma preceding primary query raise range recursive
references regexp reindex release rename replace restrict returning right rollback row rows
savepoint select set table temp temporary then ties to transaction trigger unbounded union
unique update using vacuum values view virtual when where window with without
"""
RESERVED_WORDS: Final = tuple(_WORDS.split())
_RESERVED = frozenset(RESERVED_WORDS)


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key."""

    table: str
    """The table it points at."""
    pairs: tuple[tuple[str, str], ...]
    """Own column and the column it points at; several where the key has."""


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or a view."""

    name: str
    columns: tuple[str, ...]
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table of a data file in the variable that the loading code puts it in."""

    variable: str
    load: str
    """The code."""
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Join:
    """A table that is joined."""

    table: str
    on: tuple[tuple[str, str, str, str], ...]
    """What has to be equal: table and column, table and column."""


def join_path(tables: Sequence[DatabaseTable], start: str, end: str) -> tuple[Join, ...]:
    """Returns the fewest joins along foreign keys that lead from one table to another.

    Args:
        tables: of the database.
        start: name of the first table.
        end: name of the last.

    Returns:
        The joins in order; nothing where no way leads there.
    """
    paths: dict[str, tuple[Join, ...]] = {start: ()}
    waiting = deque([start])
    while waiting and end not in paths:
        here = waiting.popleft()
        for join in _joins(tables, here):
            if join.table not in paths:
                paths[join.table] = (*paths[here], join)
                waiting.append(join.table)
    return paths.get(end, ())


def _joins(tables: Sequence[DatabaseTable], name: str) -> Iterator[Join]:
    """Yields the tables that a key ties to this one, whichever of the two holds the key."""
    for table in tables:
        for link in table.links:
            if name in {table.name, link.table}:
                on = tuple((table.name, own, link.table, other) for own, other in link.pairs)
                yield Join(link.table if table.name == name else table.name, on)


def quoted_name(name: str) -> str:
    """Returns the name as a query has to spell it, without quotes where none are needed."""
    if _PLAIN.fullmatch(name) and name.casefold() not in _RESERVED:
        return name
    return always_quoted(name)


def always_quoted(name: str) -> str:
    """Returns the name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Returns the names that look like the given one or contain it, the most similar first.

    Args:
        name: as it was written; blanks, signs and capitals do not count.
        names: those that there are.
    """
    known_by = {bare_name(known): known for known in names}
    asked = bare_name(name)
    matches = difflib.get_close_matches(asked, known_by, n=3, cutoff=0.6)
    containing = [known for fold, known in known_by.items() if asked and asked in fold]
    return list(dict.fromkeys([*(known_by[match] for match in matches), *containing]))


def bare_name(name: str) -> str:
    """Returns a name without blanks, signs and capitals."""
    return re.sub(r"[\W_]+", "", name).lower()
