"""Names of tables and columns as a query must spell them."""

from __future__ import annotations

import re

__all__ = ["always_quoted", "quoted_name"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that SQLite rejects, or reads as something else, when used as a bare name.
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
_RESERVED = frozenset(_WORDS.split())


def quoted_name(name: str) -> str:
    """Return the name as a query must spell it, without quotes where none are needed."""
    if _PLAIN.fullmatch(name) and name.casefold() not in _RESERVED:
        return name
    return always_quoted(name)


def always_quoted(name: str) -> str:
    """Return the name in double quotes."""
    return '"' + name.replace('"', '""') + '"'
