"""What the columns of a database table hold, by a few queries that a time limit may end.

Ranges, frequent values and the index of short texts come from whole tables, or are left out: a
range of the first rows would read as the range of all.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from dm_jupyter.core.sql_names import always_quoted
from dm_jupyter.data.profile.model import ColumnProfile, Scalar
from dm_jupyter.data.profile.values import MOST_VALUES, VALUE_CHARS, indexed

__all__ = ["profile_values", "sample", "with_frequent", "with_ranges"]

_ROWS = 100_000
"""Values are looked up in this many rows at most."""
_COLUMNS_A_QUERY = 50
_FEW = 6
_TEXT_CHARS = 80
_DATE_CHARS = 30
_DATE = re.compile(r"\d{4}-[01]\d-[0-3]\d")
_GLOB = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]*"


def sample(
    connection: sqlite3.Connection, table: str, names: Sequence[str]
) -> tuple[tuple[Scalar, ...], ...]:
    """Returns the first two rows; long text is cut by the database, blobs only measured.

    Raises:
        sqlite3.Error: the table can't be read.
    """
    shown = ", ".join(_shown(name) for name in names)
    rows = connection.execute(f"SELECT {shown} FROM {table} LIMIT 2")  # noqa: S608 - quoted names
    return tuple(tuple(row) for row in rows)


def profile_values(
    connection: sqlite3.Connection, table: str, columns: Sequence[ColumnProfile], row_count: int
) -> tuple[ColumnProfile, ...]:
    """Returns the columns with examples, and with missing and distinct counts unless it is large.

    Raises:
        sqlite3.Error: the table can't be read, or time is up.
    """
    counted = [
        column
        for start in range(0, len(columns), _COLUMNS_A_QUERY)
        for column in _counted(connection, table, columns[start : start + _COLUMNS_A_QUERY])
    ]
    # Counts from a part of a large table would read as counts of the whole.
    if row_count > _ROWS:
        counted = [replace(column, missing=None, unique=None) for column in counted]
    return tuple(_with_examples(connection, table, column) for column in counted)


def _counted(
    connection: sqlite3.Connection, table: str, columns: Sequence[ColumnProfile]
) -> list[ColumnProfile]:
    names = [always_quoted(column.name) for column in columns]
    words = [f"count(*) - count({name}), count(DISTINCT {name})" for name in names]
    query = f"SELECT {', '.join(words)} FROM (SELECT * FROM {table} LIMIT {_ROWS})"  # noqa: S608
    found = connection.execute(query).fetchone()
    return [
        replace(column, missing=found[2 * position], unique=found[2 * position + 1])
        for position, column in enumerate(columns)
    ]


def _with_examples(
    connection: sqlite3.Connection, table: str, column: ColumnProfile
) -> ColumnProfile:
    name = always_quoted(column.name)
    query = (
        f"SELECT DISTINCT {_shown(column.name)} FROM (SELECT * FROM {table} LIMIT {_ROWS}) "  # noqa: S608
        f"WHERE {name} IS NOT NULL LIMIT {_FEW + 1}"
    )
    values = [row[0] for row in connection.execute(query)]
    return replace(column, examples=tuple(values if len(values) <= _FEW else values[:3]))


def with_ranges(
    connection: sqlite3.Connection, table: str, columns: Sequence[ColumnProfile]
) -> tuple[ColumnProfile, ...]:
    """Returns the columns with the extremes of all their numbers and ISO dates.

    Raises:
        sqlite3.Error: the table can't be read, or time is up.
    """
    return tuple(
        ranged
        for start in range(0, len(columns), _COLUMNS_A_QUERY)
        for ranged in _ranged(connection, table, columns[start : start + _COLUMNS_A_QUERY])
    )


def _ranged(
    connection: sqlite3.Connection, table: str, columns: Sequence[ColumnProfile]
) -> list[ColumnProfile]:
    words = [_extremes(column) for column in columns]
    found = connection.execute(f"SELECT {', '.join(words)} FROM {table}").fetchone()  # noqa: S608
    return [
        replace(column, minimum=found[2 * position], maximum=found[2 * position + 1])
        for position, column in enumerate(columns)
    ]


def _extremes(column: ColumnProfile) -> str:
    """Returns SQL for the least and greatest of a column's numbers, or of its ISO dates."""
    name = always_quoted(column.name)
    # One value of another kind leaves the column without a range.
    are_alike = f"count({name}) = sum(typeof({name}) IN ('integer', 'real'))"
    if any(isinstance(one, str) and _DATE.match(one) for one in column.examples):
        size = f"length({name})"  # dates of one length sort as text
        are_alike = (
            f"count({name}) = sum({name} GLOB '{_GLOB}') "
            f"AND min({size}) = max({size}) AND max({size}) < {_DATE_CHARS}"
        )
    cases = (f"CASE WHEN {are_alike} THEN {end}({name}) END" for end in ("min", "max"))
    return ", ".join(cases)


def with_frequent(
    connection: sqlite3.Connection, table: str, column: ColumnProfile
) -> ColumnProfile:
    """Returns a column with its most frequent short texts and the index of them.

    Raises:
        sqlite3.Error: the table can't be read, or time is up.
    """
    name = always_quoted(column.name)
    query = (
        f"SELECT {name}, count(*) FROM {table} "  # noqa: S608 - quoted names
        f"WHERE typeof({name}) = 'text' AND length({name}) <= {VALUE_CHARS} "
        f"GROUP BY {name} ORDER BY 2 DESC LIMIT {MOST_VALUES}"
    )
    counts = connection.execute(query).fetchall()
    return replace(column, frequent=tuple(counts[:_FEW]), values=indexed(counts))


def _shown(name: str) -> str:
    """Returns SQL for a value as a prompt can hold it."""
    column = always_quoted(name)
    return (
        f"CASE typeof({column}) WHEN 'blob' THEN '<' || length({column}) || ' bytes>' "
        f"WHEN 'text' THEN substr({column}, 1, {_TEXT_CHARS}) ELSE {column} END"
    )
