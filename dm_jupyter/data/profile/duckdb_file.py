"""DuckDB databases: schema, keys, counts, ranges and a few rows, read only."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dm_jupyter.data.profile.columns import scalar
from dm_jupyter.data.profile.faults import reading
from dm_jupyter.data.profile.literals import text_literal
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, ForeignKey, TableProfile
from dm_jupyter.data.profile.source import Source
from dm_jupyter.data.profile.sql_names import always_quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["profile_duckdb"]

_MAX_TABLES = 300
_BUDGET_S = 8.0
_LOADED_CELLS = 5_000_000
"""Most cells of a table with code that loads all of it; larger ones are queried."""
_FEW = 6
_COLUMNS_A_QUERY = 50
_TEXT_CHARS = 80
_WAY_OUT = (
    "The database is damaged, open in another program, encrypted, or written by a newer DuckDB."
)
_CONFIG: dict[str, Any] = {
    # Views of an untrusted database may read files and load extensions.
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "memory_limit": "1GB",
    "threads": "2",
    "lock_configuration": "true",
}
_ORDERED = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(.*\)|FLOAT|DOUBLE|DATE|TIME.*")
"""Types whose smallest and largest values are meaningful."""
_LISTED = """
SELECT schema_name, table_name, false FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal
UNION ALL SELECT schema_name, view_name, true FROM duckdb_views()
WHERE database_name = current_database() AND NOT internal ORDER BY 3, 1, 2
"""
_COLUMNS = """
SELECT column_name, data_type FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = ? AND table_name = ?
ORDER BY column_index
"""
_KEYS = """
SELECT * FROM duckdb_constraints()
WHERE database_name = current_database() AND schema_name = ? AND table_name = ?
"""


def profile_duckdb(source: Source) -> FileProfile:
    """Return the profile of a database, opened read only; no other file is read.

    Raises:
        DataFileError: the database is damaged, in use, or of another version.
        OSError: the file can't be read.
    """
    import duckdb  # noqa: PLC0415 - a tenth of a second, and optional

    ends = time.monotonic() + _BUDGET_S
    with (
        reading(source.name, "the DuckDB database", _WAY_OUT),
        closing(duckdb.connect(str(source.path), read_only=True, config=_CONFIG)) as connection,
    ):
        listed = connection.execute(_LISTED).fetchall()
        tables = tuple(
            _profile_table(connection, source, row, ends) for row in listed[:_MAX_TABLES]
        )
    warnings = [] if listed else ["the database has no tables"]
    if len(listed) > _MAX_TABLES:
        warnings.append(f"{len(listed) - _MAX_TABLES:,} more tables are not described")
    note = (
        f"query with SQL: duckdb.connect({source.name!r}, read_only=True), "
        "then connection.sql(sql).df()"
    )
    size = source.path.stat().st_size
    return FileProfile(source.name, "duckdb", size, tables, tuple(warnings), (note,))


def _profile_table(
    connection: DuckDBPyConnection, source: Source, row: Sequence[Any], ends: float
) -> TableProfile:
    """Return a table's profile; a view's has no values, as its query is untrusted."""
    schema, name, is_view = row
    found = connection.execute(_COLUMNS, [schema, name]).fetchall()
    columns = tuple(ColumnProfile(column, kind) for column, kind in found)
    shown = name if schema == "main" else f"{schema}.{name}"
    profile = TableProfile(shown, None, columns, is_view=is_view)
    if is_view:
        return profile
    profile = _with_keys(connection, profile, schema, name)
    # DuckDB reserves other words than SQLite: every name is quoted.
    table = always_quoted(name) if schema == "main" else ".".join(map(always_quoted, row[:2]))
    if time.monotonic() > ends:
        return replace(profile, warnings=("not looked into: the tables before took too long",))
    count = _one(connection, f"SELECT count(*) FROM {table}")[0]  # noqa: S608 - quoted names
    profile = replace(
        profile,
        row_count=count,
        columns=_with_values(connection, table, columns),
        sample_rows=_rows(connection, table, columns),
    )
    if count * len(columns) > _LOADED_CELLS:
        return profile
    query = f"SELECT * FROM {table}"  # noqa: S608 - quoted names
    code = (
        "import duckdb\n"
        f"with duckdb.connect({text_literal(source.name)}, read_only=True) as database:\n"
        f"    df = database.sql({query!r}).df()"
    )
    return replace(profile, load_code=code)


def _with_keys(
    connection: DuckDBPyConnection, profile: TableProfile, schema: str, name: str
) -> TableProfile:
    """Return the table with its declared keys."""
    found = connection.execute(_KEYS, [schema, name])
    words = [column[0] for column in found.description or ()]
    foreign: list[ForeignKey] = []
    for row in found.fetchall():
        key = dict(zip(words, row, strict=True))
        columns = tuple(key["constraint_column_names"] or ())
        if key["constraint_type"] == "PRIMARY KEY":
            profile = replace(profile, primary_key=columns)
        elif key["constraint_type"] == "FOREIGN KEY" and key.get("referenced_table"):
            targets = tuple(key.get("referenced_column_names") or ())
            foreign.append(ForeignKey(columns, key["referenced_table"], targets))
    return replace(profile, foreign_keys=tuple(foreign))


def _with_values(
    connection: DuckDBPyConnection, table: str, columns: Sequence[ColumnProfile]
) -> tuple[ColumnProfile, ...]:
    """Return the columns with missing and distinct counts and extremes of all rows."""
    described: list[ColumnProfile] = []
    for start in range(0, len(columns), _COLUMNS_A_QUERY):
        part = columns[start : start + _COLUMNS_A_QUERY]
        words = ", ".join(
            f"count(*) - count({name}), count(DISTINCT {name}), "
            + (f"min({name}), max({name})" if _ORDERED.fullmatch(column.dtype) else "NULL, NULL")
            for column in part
            for name in [always_quoted(column.name)]
        )
        found = _one(connection, f"SELECT {words} FROM {table}")  # noqa: S608 - quoted names
        for position, column in enumerate(part):
            missing, unique, low, high = found[4 * position : 4 * position + 4]
            facts = replace(
                column, missing=missing, unique=unique, minimum=_plain(low), maximum=_plain(high)
            )
            described.append(replace(facts, examples=_examples(connection, table, facts)))
    return tuple(described)


def _examples(connection: DuckDBPyConnection, table: str, column: ColumnProfile) -> tuple[Any, ...]:
    name = always_quoted(column.name)
    query = f"SELECT DISTINCT {name} FROM {table} WHERE {name} IS NOT NULL"  # noqa: S608
    if column.unique is not None and column.unique <= _FEW:
        query += f" ORDER BY 1 LIMIT {_FEW}"
    else:
        query = f"SELECT {name} FROM {table} WHERE {name} IS NOT NULL LIMIT 3"  # noqa: S608
    return tuple(_plain(row[0]) for row in connection.execute(query).fetchall())


def _rows(
    connection: DuckDBPyConnection, table: str, columns: Sequence[ColumnProfile]
) -> tuple[tuple[Any, ...], ...]:
    names = ", ".join(
        f"left({name}, {_TEXT_CHARS})" if column.dtype == "VARCHAR" else name
        for column in columns
        for name in [always_quoted(column.name)]
    )
    found = connection.execute(f"SELECT {names} FROM {table} LIMIT 2").fetchall()  # noqa: S608
    return tuple(tuple(map(_plain, row)) for row in found)


def _plain(value: object) -> Any:
    """Return a value as JSON can represent it; a decimal as a number."""
    if type(value).__name__ == "Decimal":
        return float(value)  # type: ignore[arg-type]
    return scalar(value)


def _one(connection: DuckDBPyConnection, query: str) -> Sequence[Any]:
    return connection.execute(query).fetchone() or ()
