"""What the columns of a database table hold, by a few bounded queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from dm_jupyter.agent.profile.model import ColumnProfile, Scalar
from dm_jupyter.core.sql_names import always_quoted

__all__ = ["profile_values", "sample"]

_ROWS = 100_000
"""Values are looked up in this many rows at most."""
_COLUMNS_A_QUERY = 50
_FEW = 6
_TEXT_CHARS = 80


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
    """Returns the columns with missing and distinct counts, ranges and examples.

    Raises:
        sqlite3.Error: the table can't be read.
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
    words = [
        f"count(*) - count({name}), count(DISTINCT {name}), {_number(name, 'min')}, "
        f"{_number(name, 'max')}"
        for name in names
    ]
    query = f"SELECT {', '.join(words)} FROM (SELECT * FROM {table} LIMIT {_ROWS})"  # noqa: S608
    found = connection.execute(query).fetchone()
    return [
        replace(
            column,
            missing=found[4 * position],
            unique=found[4 * position + 1],
            minimum=found[4 * position + 2],
            maximum=found[4 * position + 3],
        )
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


def _number(name: str, function: str) -> str:
    """Returns SQL for the extreme of a column's numbers; NULL for a column of text."""
    return f"{function}(CASE WHEN typeof({name}) IN ('integer', 'real') THEN {name} END)"


def _shown(name: str) -> str:
    """Returns SQL for a value as a prompt can hold it."""
    column = always_quoted(name)
    return (
        f"CASE typeof({column}) WHEN 'blob' THEN '<' || length({column}) || ' bytes>' "
        f"WHEN 'text' THEN substr({column}, 1, {_TEXT_CHARS}) ELSE {column} END"
    )
