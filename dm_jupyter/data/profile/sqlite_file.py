"""SQLite databases: schema, keys, counts, contents of columns, and a few rows, read only.

Values come from a few queries that a time limit may end. Ranges, frequent values and the index of
short texts come from entire tables, or are left out: a range of the first rows would read as the
range of all.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from dm_jupyter.data.profile.faults import attempted, reading
from dm_jupyter.data.profile.model import (
    ColumnProfile,
    FileProfile,
    ForeignKey,
    Scalar,
    TableProfile,
)
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.sql_names import always_quoted, quoted_name
from dm_jupyter.data.profile.text_columns import other_spellings
from dm_jupyter.data.profile.values import MOST_VALUES, VALUE_CHARS, indexed

__all__ = ["profile_sqlite"]

_MAX_TABLES = 300
_BUDGET_S = 1.0
"""Seconds for the first facts of a table: counts and examples."""
_SCAN_S = 4.0
"""Seconds for the ranges and frequent values of all tables together."""
_STEPS_BETWEEN_CHECKS = 20_000
_WAY_OUT = "The database is damaged, locked or incomplete: copy it again, or run .recover on it."
_ROWS = 100_000
"""Most rows in which values are looked up."""
_COLUMNS_A_QUERY = 50
_FEW = 6
_TEXT_CHARS = 80
_DATE_CHARS = 30
_DATE = re.compile(r"\d{4}-[01]\d-[0-3]\d")
_GLOB = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]*"


def profile_sqlite(source: Source) -> FileProfile:
    """Return the profile of a database; nothing is ever written to it and no trigger fires.

    Raises:
        DataFileError: the database is damaged or can't be opened.
        OSError: the file can't be read.
    """
    size = source.path.stat().st_size
    if size == 0:
        empty = "the database is empty (0 bytes): it has no tables"
        return FileProfile(source.name, "sqlite", 0, warnings=(empty,))
    with (
        reading(source.name, "the database", _WAY_OUT),
        closing(_connected(source.path)) as connection,
    ):
        listed = _listed_tables(connection)
        tables = tuple(
            _profile_table(connection, name, is_view=is_view)
            for name, is_view in listed[:_MAX_TABLES]
        )
        tables = _scanned(connection, tables)
    warnings = [] if listed else ["the database has no tables"]
    if len(listed) > _MAX_TABLES:
        warnings.append(f"{len(listed) - _MAX_TABLES:,} more tables are not described")
    note = (
        f"query with SQL: sqlite3.connect({source.name!r}), then pd.read_sql_query(sql, connection)"
    )
    return FileProfile(source.name, "sqlite", size, tables, tuple(warnings), (note,))


def _connected(path: Path) -> sqlite3.Connection:
    """Return a connection that can't write, and leaves no file beside the database.

    `immutable` skips locks and the -wal file; it is safe only if neither a write-ahead log nor a
    rollback journal exists.
    """
    is_quiet = not any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if is_quiet else ''}"
    connection = sqlite3.connect(uri, uri=True, timeout=2)
    # The views of an untrusted schema may call functions with side effects.
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    # Text that is not UTF-8 must not end the profile.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


@contextmanager
def _budget(connection: sqlite3.Connection, seconds: float = _BUDGET_S) -> Iterator[None]:
    """Interrupt statements that run longer than `seconds`."""
    ends = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS_BETWEEN_CHECKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def _listed_tables(connection: sqlite3.Connection) -> list[tuple[str, bool]]:
    """Return names and whether they are views: tables first, each in the order of creation."""
    rows = connection.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, rowid"
    )
    return [(name, kind == "view") for name, kind in rows]


def _profile_table(connection: sqlite3.Connection, name: str, *, is_view: bool) -> TableProfile:
    table = always_quoted(name)
    try:
        # xinfo lists generated columns as well; hidden ones of virtual tables are left out.
        info = [row for row in connection.execute(f"PRAGMA table_xinfo({table})") if row[6] != 1]
    except sqlite3.OperationalError as error:
        # A view of a table that is gone, or a module that is not loaded: the rest is still good.
        return TableProfile(name, None, is_view=is_view, warnings=(f"can't be read: {error}",))
    key = [(row[5], row[1]) for row in info if row[5]]
    bare = [ColumnProfile(row[1], row[2]) for row in info]
    profile = TableProfile(
        name,
        None,
        tuple(bare),
        is_view=is_view,
        primary_key=tuple(column for _, column in sorted(key)),
        foreign_keys=_foreign_keys(connection, table),
    )
    with attempted() as attempt:
        return _with_values(connection, profile, bare)
    if isinstance(attempt.fault, sqlite3.Error):
        raise attempt.fault
    return replace(profile, warnings=("its values could not be described: query them",))


def _with_values(
    connection: sqlite3.Connection, profile: TableProfile, bare: list[ColumnProfile]
) -> TableProfile:
    """Return the profile with rows, counts and ranges, as far as time allows.

    Raises:
        sqlite3.DatabaseError: the database is damaged.
    """
    table, names = always_quoted(profile.name), [column.name for column in bare]
    try:
        with _budget(connection):
            profile = replace(profile, sample_rows=_sample(connection, table, names))
            count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            profile = replace(profile, row_count=count)
            if not profile.is_view:
                columns = _profile_values(connection, table, bare, count)
                profile = replace(profile, columns=columns)
    except sqlite3.OperationalError as error:
        profile = replace(profile, warnings=_told(error))
    return profile


def _scanned(
    connection: sqlite3.Connection, tables: tuple[TableProfile, ...]
) -> tuple[TableProfile, ...]:
    """Return the tables with ranges and frequent values, the smallest first while time lasts."""
    ends = time.monotonic() + _SCAN_S
    done = {table.name: table for table in tables}
    stored = [table for table in tables if not table.is_view and table.columns]
    for table in sorted(stored, key=lambda one: (one.row_count is None, one.row_count)):
        done[table.name] = _with_scan(connection, table, ends)
    return tuple(done[table.name] for table in tables)


def _with_scan(connection: sqlite3.Connection, table: TableProfile, ends: float) -> TableProfile:
    """Return the table as far as it was scanned, with a warning if the scan is incomplete."""
    name = always_quoted(table.name)
    columns = list(table.columns)
    try:
        with _budget(connection, ends - time.monotonic()):
            columns[:] = _with_ranges(connection, name, columns)
            for place, column in enumerate(columns):
                if any(isinstance(value, str) for value in column.examples):
                    columns[place] = _with_frequent(connection, name, column)
    except sqlite3.OperationalError:  # time is up, or a sort did not fit onto the disk
        told = "too large to scan in time: ranges and frequent values are missing"
        return replace(table, columns=tuple(columns), warnings=(*table.warnings, told))
    spelt = tuple(filter(None, map(_spellings, columns)))
    return replace(table, columns=tuple(columns), warnings=(*table.warnings, *spelt))


def _spellings(column: ColumnProfile) -> str:
    """Return the warning about labels that differ in case or blanks alone; "" if none do."""
    changes = other_spellings(column.values) if column.unique == len(column.values) else {}
    if not changes:
        return ""
    other, rule = next(iter(changes.items()))
    name = quoted_name(column.name)
    return (
        f"{name} spells labels in several ways, such as {rule!r} and {other!r}: "
        f"compare lower(trim({name}))"
    )


def _told(error: sqlite3.OperationalError) -> tuple[str, ...]:
    """Return the warning about a statement that failed; running out of time is not damage."""
    return () if "interrupted" in str(error) else (f"can't be read: {error}",)


def _foreign_keys(connection: sqlite3.Connection, table: str) -> tuple[ForeignKey, ...]:
    keys: dict[int, list[tuple[str, str, str | None]]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({table})"):
        keys.setdefault(row[0], []).append((row[3], row[2], row[4]))
    return tuple(
        ForeignKey(
            tuple(own for own, _, _ in parts),
            parts[0][1],
            tuple(target for _, _, target in parts if target is not None),
        )
        for _, parts in sorted(keys.items())
    )


def _sample(
    connection: sqlite3.Connection, table: str, names: Sequence[str]
) -> tuple[tuple[Scalar, ...], ...]:
    """Return the first two rows; long text is cut by the database, blobs only measured.

    Raises:
        sqlite3.Error: the table can't be read.
    """
    shown = ", ".join(_shown(name) for name in names)
    rows = connection.execute(f"SELECT {shown} FROM {table} LIMIT 2")  # noqa: S608 - quoted names
    return tuple(tuple(row) for row in rows)


def _profile_values(
    connection: sqlite3.Connection, table: str, columns: Sequence[ColumnProfile], row_count: int
) -> tuple[ColumnProfile, ...]:
    """Return the columns with examples, and with missing and distinct counts unless it is large.

    Raises:
        sqlite3.Error: the table can't be read, or time is up.
    """
    counted = [
        column
        for start in range(0, len(columns), _COLUMNS_A_QUERY)
        for column in _counted(connection, table, columns[start : start + _COLUMNS_A_QUERY])
    ]
    # Counts from a part of a large table would read as counts of all of it.
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


def _with_ranges(
    connection: sqlite3.Connection, table: str, columns: Sequence[ColumnProfile]
) -> tuple[ColumnProfile, ...]:
    """Return the columns with the extremes of all their numbers and ISO dates.

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
    """Return SQL for the least and greatest of a column's numbers, or of its ISO dates."""
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


def _with_frequent(
    connection: sqlite3.Connection, table: str, column: ColumnProfile
) -> ColumnProfile:
    """Return a column with its most frequent short texts and the index of them.

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
    """Return SQL for a value in a form that fits a prompt."""
    column = always_quoted(name)
    return (
        f"CASE typeof({column}) WHEN 'blob' THEN '<' || length({column}) || ' bytes>' "
        f"WHEN 'text' THEN substr({column}, 1, {_TEXT_CHARS}) ELSE {column} END"
    )
