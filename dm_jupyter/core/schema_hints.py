"""Hints after a query for a column or a table that is not there: where it is to be found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dm_jupyter.core.schema import DatabaseTable, Join, join_path
from dm_jupyter.core.spelling import nearest
from dm_jupyter.core.sql_names import quoted_name

__all__ = ["schema_hint"]

_COLUMN = re.compile(r"no such column: (.+?)(?: - should this be .*)?$", re.MULTILINE)
_TABLE = re.compile(r"no such table: (?:main\.)?(.+)$", re.MULTILINE)
_NAME = r"\"[^\"]+\"|`[^`]+`|\[[^\]]+\]|\w+"
_READ = re.compile(rf"(?:\bFROM|\bJOIN|,)\s+({_NAME})(?:\s+(?:AS\s+)?({_NAME}))?", re.IGNORECASE)
"""A table that a query reads, and what it may be called there."""
_LISTED = 30


def schema_hint(message: str, query: str, tables: Sequence[DatabaseTable]) -> str:
    """Returns where a column or table that a query did not find stands, or nothing.

    Args:
        message: SQLite's words.
        query: what was run; a Python cell that holds the query will do.
        tables: of the database.
    """
    if unknown := _TABLE.search(message):
        near = nearest(unknown[1], [table.name for table in tables])
        return f"Tables with a similar name: {_listed(near)}." if near else ""
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
    owners = [t for t in tables if column.casefold() in map(str.casefold, t.columns)]
    if not owners:
        return told + _similar(column, tables)
    return told + _owned(column, owners, asked or next(iter(read.values()), None), tables)


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
) -> str:
    """Which tables have the column, and how the nearest of them is joined to another one."""
    told = f"{quoted_name(column)} is a column of {_listed(table.name for table in owners)}"
    paths = [join_path(tables, start.name, owner.name) for owner in owners] if start else []
    path = min(filter(None, paths), key=len, default=())
    if start is None or not path:
        return f"{told}."
    return f"{told}: {quoted_name(start.name)} {' '.join(map(_sql, path))}."


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
