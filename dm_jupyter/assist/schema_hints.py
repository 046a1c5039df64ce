"""Hints after a query for a column or a table that is not there, or for one of several columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dm_jupyter.core.schema import (
    RESERVED_WORDS,
    DatabaseTable,
    Join,
    join_path,
    nearest,
    quoted_name,
)

__all__ = ["schema_hint"]

_COLUMN = re.compile(r"no such column: (.+?)(?: - should this be .*)?$", re.MULTILINE)
_AMBIGUOUS = re.compile(r"ambiguous column name: (.+)$", re.MULTILINE)
_TABLE = re.compile(r"no such table: (?:main\.)?(.+)$", re.MULTILINE)
_NAME = r"\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|\w+"
_ALIAS = rf"(?!(?:{'|'.join(RESERVED_WORDS)})\b)(?:{_NAME})"
_READ = re.compile(rf"(?:\bFROM|\bJOIN|,)\s+({_NAME})(?:\s+(?:AS\s+)?({_ALIAS}))?", re.IGNORECASE)
"""A table that a query reads, and what it may be called there."""
_ADDED_UP = re.compile(r"\b(SUM|TOTAL|AVG)\s*\(([^()]*)\)", re.IGNORECASE)
"""A figure of which rows that come twice change the value, and what it is computed from."""
_LISTED = 30


def schema_hint(message: str, query: str, tables: Sequence[DatabaseTable]) -> str:
    """Returns where a name that a query got wrong stands, or nothing.

    Args:
        message: SQLite's words.
        query: what was run; a Python cell that holds the query will do.
        tables: of the database.
    """
    if unknown := _TABLE.search(message):
        near = nearest(unknown[1], [table.name for table in tables])
        return f"Tables with a similar name: {_listed(near)}." if near else ""
    if several := _AMBIGUOUS.search(message):
        return _told_apart(_bare(several[1].rpartition(".")[2]), _tables_read(query, tables))
    unknown = _COLUMN.search(message)
    if unknown is None or not tables:
        return ""
    qualifier, _, column = (_bare(part) for part in unknown[1].rpartition("."))
    read = _tables_read(query, tables)
    asked = read.get(qualifier.casefold())
    told = ""
    if asked is not None:
        told = f"{quoted_name(asked.name)} has only the columns {_listed(asked.columns)}. "
    elif qualifier and read:
        names = _listed(dict.fromkeys(table.name for table in read.values()))
        told = f"The query calls no table {qualifier}; it reads {names}. "
    owners = [table for table in tables if _has(table, column)]
    if not owners:
        joined = list(dict.fromkeys(read.values()))
        return told + (_similar(column, joined) or _similar(column, tables))
    start = asked or next(iter(read.values()), None)
    return told + _owned(column, owners, start, tables, query)


def _has(table: DatabaseTable, column: str) -> bool:
    return column.casefold() in map(str.casefold, table.columns)


def _told_apart(column: str, read: Mapping[str, DatabaseTable]) -> str:
    """The names that a column may be asked by, where several tables of a query have it."""
    # An alias comes after its table's name, and is the only one that holds.
    tables = {table.name: name for name, table in read.items() if _has(table, column)}
    names = [f"{quoted_name(name)}.{quoted_name(column)}" for name in tables.values()]
    if len(names) < 2:
        return ""
    return (
        f"{quoted_name(column)} stands in {len(names)} of the tables in the query. Put the table "
        f"before it each time: {' or '.join(names)}."
    )


def _tables_read(query: str, tables: Sequence[DatabaseTable]) -> dict[str, DatabaseTable]:
    """The tables in a query, by the names that it has for them."""
    known = {table.name.casefold(): table for table in tables}
    read: dict[str, DatabaseTable] = {}
    for name, alias in _READ.findall(query):
        if table := known.get(_bare(name).casefold()):
            read[table.name.casefold()] = table
            read.setdefault(_bare(alias).casefold() or table.name.casefold(), table)
    return read


def _owned(
    column: str,
    owners: Sequence[DatabaseTable],
    start: DatabaseTable | None,
    tables: Sequence[DatabaseTable],
    query: str,
) -> str:
    """Which tables have the column, and how the nearest of them is joined to another one.

    Where the join would repeat the rows whose amounts the query adds up, that is said instead.
    """
    told = f"{quoted_name(column)} is a column of {_listed(table.name for table in owners)}"
    paths = [join_path(tables, start.name, owner.name) for owner in owners] if start else []
    path = min(filter(None, paths), key=len, default=())
    if start is None or not path:
        return f"{told}."
    if repeated := _repeated(start.name, path, tables, query):
        return f"{told}. {repeated}"
    return f"{told}: {quoted_name(start.name)} {' '.join(map(_sql, path))}."


def _repeated(start: str, path: Sequence[Join], tables: Sequence[DatabaseTable], query: str) -> str:
    """What a join along a path does to amounts that the query adds up; empty where nothing.

    A row comes once for each row of another table that points at it, with its amount each time.
    """
    named = {table.name: table for table in tables}
    chain = [start, *(join.table for join in path)]
    holders = [join.on[0][0] for join in path]
    for call, columns in _ADDED_UP.findall(query):
        words = {word.casefold() for word in re.findall(r"\w+", columns)}
        for place, name in enumerate(chain):
            table = named.get(name)
            added = [one for one in table.columns if one.casefold() in words] if table else []
            others = _pointing_at(place, chain, holders)
            if added and others:
                return (
                    f"A join of {quoted_name(name)} with {quoted_name(others[0])} repeats each row "
                    f"of {quoted_name(name)}, so that {call.upper()} of its "
                    f"{quoted_name(added[0])} counts it several times: add up what a row of "
                    f"{quoted_name(others[-1])} holds instead."
                )
    return ""


def _pointing_at(place: int, chain: Sequence[str], holders: Sequence[str]) -> list[str]:
    """The tables on a path that hold several rows for one row of the table at a place."""
    after = [chain[at + 1] for at in range(place, len(holders)) if holders[at] == chain[at + 1]]
    before = [chain[at] for at in range(place - 1, -1, -1) if holders[at] == chain[at]]
    return [*after, *before]


def _sql(join: Join) -> str:
    on = " AND ".join(
        f"{quoted_name(left)}.{quoted_name(own)} = {quoted_name(right)}.{quoted_name(other)}"
        for left, own, right, other in join.on
    )
    return f"JOIN {quoted_name(join.table)} ON {on}"


def _similar(column: str, tables: Sequence[DatabaseTable]) -> str:
    near = nearest(column, [name for table in tables for name in table.columns])
    found = [
        f"{quoted_name(name)} of {quoted_name(table.name)}"
        for name in near
        for table in tables
        if name in table.columns
    ]
    return f"Columns with a similar name: {', '.join(found[:5])}." if found else ""


def _bare(name: str) -> str:
    return name.strip().strip('"`[]')


def _listed(names: Iterable[str]) -> str:
    return ", ".join([quoted_name(name) for name in names][:_LISTED])
