"""Names that a table or a database has, for a cell that failed on an unknown name.

Covered: columns and labels that pandas did not find, and columns and tables that SQLite did not.
Not covered: names that other libraries look up. Imported only after a cell has failed.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from kernel_sandbox.ledger.facts import Fact

__all__ = ["unknown_name"]

_MOST_NAMES, _MOST_NEAR, _MOST_LISTED = 5_000, 4, 12
_NAME_CHARS = 60
_QUOTED = re.compile(r"'([^'\n]{1,80})'")
_NO_NAMES = ("columns", "index", "values", "str", "object")
"""Words that pandas quotes besides the names."""
_NO_COLUMN = re.compile(r"no such column: (.{1,160}?)(?: - should this be .*)?$", re.MULTILINE)
_NO_TABLE = re.compile(r"no such table: (?:main\.)?(.{1,160})$", re.MULTILINE)
_TABLE = re.compile(
    r"""\b(?:FROM|JOIN)\s+("[^"]{1,80}"|`[^`]{1,80}`|\[[^\]]{1,80}\]|\w+)(?:\s+(?:AS\s+)?(\w+))?""",
    re.IGNORECASE,
)
_NO_ALIAS = re.compile(
    r"on|where|join|inner|left|right|full|outer|cross|natural|group|order|having|limit|using|union"
    r"|except|intersect|window",
    re.IGNORECASE,
)
"""Words of SQL that may follow the name of a table."""
_QUERY_CHARS = 20_000
_SCHEMA = """
SELECT m.name, p.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p
WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' LIMIT 5000
"""


def unknown_name(error: BaseException) -> Fact | None:
    """Return a fact with names like the one that a cell failed on, or those that exist.

    Args:
        error: the exception that ended the cell.
    """
    message = str(error)
    if _NO_COLUMN.search(message) or _NO_TABLE.search(message):
        return _of_database(error, message)
    if isinstance(error, AttributeError):
        table, name = getattr(error, "obj", None), str(getattr(error, "name", ""))
        near = _near(name, _labels(table))
        return _told("attribute", name, near, near=len(near), there=len(near)) if near else None
    if not isinstance(error, KeyError | NameError) or not error.args:  # `query` raises NameError
        return None
    key = error.args[0]
    there = next(filter(None, map(_labels, _looked_into(error.__traceback__))), [])
    if not isinstance(key, str) or not there:
        return None
    missed = [one for one in _QUOTED.findall(key) if one not in {*there, *_NO_NAMES}]
    missed = missed if "'" in key else [key.removeprefix("Column not found: ")]
    return _fact("[]", missed[0], there) if missed else None


def _looked_into(trace: TracebackType | None) -> Iterator[Any]:
    """Yield the objects of the pandas functions that led to an exception, the last one first."""
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    for frame in reversed(frames):
        if str(frame.f_globals.get("__name__", "")).split(".")[0] == "pandas":
            own = frame.f_locals.get("self")
            yield from (own, frame.f_locals.get("obj"), getattr(own, "obj", None))


def _labels(thing: Any) -> list[str]:
    """Return the names of a table's columns or of an index; empty if it has no text names."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return []
    if isinstance(thing, pandas.DataFrame):
        thing = thing.columns
    if not isinstance(thing, pandas.Index) or isinstance(thing, pandas.MultiIndex):
        return []
    return [one for one in thing[:_MOST_NAMES].tolist() if isinstance(one, str)]


def _of_database(error: BaseException, message: str) -> Fact | None:
    schema, query = _asked(error.__traceback__)
    if not schema:
        return None
    if unknown := _NO_TABLE.search(message):
        return _fact("query", unknown[1], list(dict.fromkeys(table for table, _ in schema)))
    unknown = _NO_COLUMN.search(message)
    asked = unknown[1] if unknown else ""
    name = asked.rpartition(".")[2].strip("\"'`[]")
    own, others = _of_query(query, schema)
    names = [*_called(name, own), *_like(name, own), *_called(name, others)]
    names = list(dict.fromkeys(names or _like(name, schema)))
    return _told("query", asked, names, near=len(names), there=len(schema)) if names else None


def _called(name: str, columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the columns of this name, each with its table."""
    return [f"{table}.{own}" for table, own in columns if own.casefold() == name.casefold()]


def _like(name: str, columns: Sequence[tuple[str, str]]) -> list[str]:
    """Return the columns with similar names, each with its table."""
    near = _near(name, list(dict.fromkeys(own for _, own in columns)))
    return [f"{table}.{own}" for one in near for table, own in columns if own == one]


def _of_query(
    query: str, schema: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the columns of a query's tables, called as in the query, and those of other tables."""
    found: list[tuple[str, str]] = []
    tables: set[str] = set()
    for match in _TABLE.finditer(query):
        table, alias = match[1].strip('"`[]'), match[2]
        called = alias if alias and not _NO_ALIAS.fullmatch(alias) else table
        found += [(called, own) for one, own in schema if one.casefold() == table.casefold()]
        tables.add(table.casefold())
    return found, [(table, own) for table, own in schema if table.casefold() not in tables]


def _asked(trace: TracebackType | None) -> tuple[list[tuple[str, str]], str]:
    """Return table and column of all columns in the queried database, and the query."""
    schema: list[tuple[str, str]] = []
    query = ""
    while trace is not None:
        names = trace.tb_frame.f_locals
        for name in ("con", "connection", "conn", "database"):
            with suppress(sqlite3.Error, OSError, ValueError):
                schema = schema or _columns(names.get(name))
        texts = (one for name in ("query", "sql") if isinstance(one := names.get(name), str))
        query = query or next(texts, "")[:_QUERY_CHARS]
        trace = trace.tb_next
    return schema, query


def _columns(database: Any) -> list[tuple[str, str]]:
    if isinstance(database, sqlite3.Connection):
        return [(str(table), str(own)) for table, own in database.execute(_SCHEMA)]
    if isinstance(database, str | Path) and Path(database).is_file():
        address = f"{Path(database).resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=0.2)) as connection:
            return _columns(connection)
    return []


def _fact(operation: str, name: str, there: Sequence[str]) -> Fact:
    near = _near(name, there)
    return _told(operation, name, near or there, near=len(near), there=len(there))


def _told(operation: str, name: str, names: Sequence[str], *, near: int, there: int) -> Fact:
    listed = [f"'{one[:_NAME_CHARS]}'" for one in names]
    most = _MOST_NEAR if near else _MOST_LISTED
    more = ", …" if len(listed) > most else ""
    return Fact(
        "unknown",
        operation,
        before=there,
        after=near,
        condition=f"'{name[:_NAME_CHARS]}'",
        result=", ".join(listed[:most]) + more,
    )


def _near(name: str, names: Sequence[str]) -> list[str]:
    """Return the names that are similar to one or contain it, the most similar first."""
    known = {_bare(one): one for one in names}  # cut: comparing is quadratic in their length
    asked = _bare(name)
    matches = difflib.get_close_matches(asked, known, n=3, cutoff=0.6)
    containing = [one for bare, one in known.items() if asked and asked in bare]
    return list(dict.fromkeys([*(known[match] for match in matches), *containing]))[:_MOST_NEAR]


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name[:_NAME_CHARS]).lower()
