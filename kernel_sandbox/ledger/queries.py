"""Why a query of a SQLite database found nothing, and what the data contain instead.

Covered: a query is only run again if it gave no row, or a single row of figures that are missing
or 0. It then runs read-only and for a short time. Not covered: conditions other than comparisons of
a column with literals or with a subquery of such conditions; queries with a compound (`UNION`) or a
`WITH`.

Imported only when pandas is loaded.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from kernel_sandbox.ledger.coverage import coverage_of
from kernel_sandbox.ledger.facts import Coverage

__all__ = ["coverage_in_file", "file_of", "is_void"]

_LONGEST = 5_000
"""Most characters of a query that is parsed."""
_ASKING_S = 0.25
"""Seconds for everything that a database is asked about one query."""
_STEPS = 1_000
"""Instructions of SQLite's virtual machine between two checks of the clock."""
_SAMPLED = 20_000
_MOST_PARTS = 6
_NAME = r'(?:[A-Za-z_]\w*|"[^"]+"|`[^`]+`|\[[^\]]+\])'
_TEXT = r"'(?:[^']|'')*'"
_LITERAL = rf"(?:{_TEXT}|-?\d+(?:\.\d+)?)"
_COLUMN = rf"(?:(?P<table>{_NAME})\s*\.\s*)?(?P<column>{_NAME})"
_SIDE = (
    rf"(?P<opens>(?:strftime\s*\(\s*'[^']*'\s*,|(?:lower|upper|trim|date)\s*\()\s*)?{_COLUMN}\s*\)?"
)
_CONDITION = re.compile(
    rf"""(?isx)\A{_SIDE}\s*
    (?P<rest>(?:==?|<>|!=|<=|>=|<|>|LIKE\b|GLOB\b)\s*{_LITERAL}
      | BETWEEN\s+{_LITERAL}\s+AND\s+{_LITERAL}
      | IN\s*\(\s*{_LITERAL}(?:\s*,\s*{_LITERAL})*\s*\)
      | IS\s+(?:NOT\s+)?NULL)\Z"""
)
_SUBQUERY = re.compile(rf"(?is)\A{_SIDE}\s*(?:==?|IN)\s*\((?P<query>\s*SELECT\b.*)\)\Z")
_TABLE = re.compile(rf"(?i)\b(?:FROM|JOIN)\s+({_NAME})(?:\s+(?:AS\s+)?({_NAME}))?")
_PIECE = re.compile(rf"{_TEXT}|\(|\)|\b[A-Za-z]+\b|[^\s]", re.DOTALL)
_CLAUSES = ("select", "from", "where", "group", "having", "order", "limit")
_REFUSED = re.compile(r"(?i)\A\s*with\b|\b(?:union|intersect|except)\b")
_YEAR = re.compile(r"\d{4}")
_DATE = re.compile(r"\A\d{4}-\d{2}-\d{2}")
_WORDS = re.compile(r"(?i)\b(?:where|on|inner|left|right|full|cross|natural|join|group|order)\b")


@dataclass(frozen=True, slots=True)
class _Parts:
    """Source of the rows of a SELECT, and its conditions on rows and on groups."""

    source: str
    where: str
    having: str = ""


def is_void(rows: pd.DataFrame) -> bool:
    """Return whether a query gave no row, or a single row of values that are missing or 0."""
    if len(rows) > 1:
        return False
    return all(pd.isna(one) or one == 0 for one in rows.to_numpy().ravel())


def coverage_in_file(database: str, query: str) -> tuple[Coverage, ...] | None:
    """Return what a database file contains instead, if a query selects no row.

    The result is `None` if it selects some, or if the query or the database can't be read.

    Args:
        database: the file.
        query: the query that found nothing.
    """
    try:
        address = Path(database).resolve(strict=True).as_uri() + "?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            return _coverage(connection, query)
    except (sqlite3.Error, OSError, ValueError):
        return None


def file_of(connection: sqlite3.Connection) -> str:
    """Return the file of a connection; empty if it has none, or a transaction is open."""
    if connection.in_transaction:
        return ""
    return next((file for _, name, file in connection.execute("PRAGMA database_list")
                 if name == "main"), "")  # fmt: skip


def _coverage(connection: sqlite3.Connection, query: str) -> tuple[Coverage, ...] | None:
    deadline = time.monotonic() + _ASKING_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    text = _bare_query(query)
    parts = _parts_of(text)
    if parts is None:
        return None
    if _selects_rows(connection, parts):
        whole = f"SELECT 1 FROM ({text}) LIMIT 1"  # noqa: S608 (the cell has run it)
        if not parts.having or _first(connection, whole) is not None:
            return None
        parts = _Parts(parts.source, parts.having)
    return tuple(_conditions(connection, parts))[:_MOST_PARTS]


def _conditions(connection: sqlite3.Connection, parts: _Parts) -> Iterator[Coverage]:
    """Yield what the data contain for each condition that can be parsed."""
    for text in _conjuncts(parts.where):
        if inner := _SUBQUERY.match(text):
            yield from _inside(connection, inner["query"])
        elif (found := _covered(connection, parts, text)) is not None:
            yield found


def _inside(connection: sqlite3.Connection, query: str) -> Iterator[Coverage]:
    """Yield the same for the conditions of a subquery that gives no row."""
    parts = _parts_of(_bare_query(query))
    with suppress(sqlite3.Error):  # it names a column of the query around it
        if parts is not None and not _selects_rows(connection, parts):
            yield from _conditions(connection, parts)


def _selects_rows(connection: sqlite3.Connection, parts: _Parts) -> bool:
    where = f" WHERE {parts.where}" if parts.where else ""
    query = f"SELECT 1 FROM {parts.source}{where} LIMIT 1"  # noqa: S608 (the cell has run it)
    return _first(connection, query) is not None


def _first(connection: sqlite3.Connection, query: str) -> Any:
    with closing(connection.execute(query)) as cursor:
        return cursor.fetchone()


def _bare_query(query: str) -> str:
    """Return a query without comments and the semicolon at its end."""
    return re.sub(r"--[^\n]*", " ", query).strip().rstrip(";")


def _parts_of(text: str) -> _Parts | None:
    """Return the clauses, or `None` if the text is not one SELECT of figures or rows."""
    if len(text) > _LONGEST or _REFUSED.search(re.sub(_TEXT, "''", text)):
        return None
    marks = list(_clauses(text))
    names = [name for name, _, _ in marks]
    if names[:2] != ["select", "from"] or len(set(names)) < len(names):
        return None
    ends = [*(start for _, start, _ in marks[1:]), len(text)]
    clauses = {
        name: text[after:end].strip() for (name, _, after), end in zip(marks, ends, strict=True)
    }
    return _Parts(clauses["from"], clauses.get("where", ""), clauses.get("having", ""))


def _clauses(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words that begin a clause outside of parentheses, with their start and end."""
    depth = 0
    for found in _PIECE.finditer(text):
        piece = found[0].casefold()
        depth += (piece == "(") - (piece == ")")
        if depth == 0 and piece in _CLAUSES:
            yield piece, found.start(), found.end()


def _conjuncts(where: str) -> Iterator[str]:
    """Yield the parts that must all be true; none if an OR joins them."""
    depth, begin, is_between, cuts = 0, 0, False, list[str]()
    for found in _PIECE.finditer(where):
        piece = found[0].casefold()
        depth += (piece == "(") - (piece == ")")
        if depth or piece not in ("and", "or", "between"):
            continue
        if piece == "or":
            return
        if piece == "between":
            is_between = True
        elif is_between:
            is_between = False
        else:
            cuts.append(where[begin : found.start()])
            begin = found.end()
    yield from (one.strip() for one in (*cuts, where[begin:]) if one.strip())


def _covered(connection: sqlite3.Connection, parts: _Parts, text: str) -> Coverage | None:
    """Return what the column of a condition contains, or `None` if it can't be parsed."""
    found = _CONDITION.match(text)
    if found is None:
        return None
    column = found["column"]
    named = _table_with(connection, parts.source, found["table"] or "", column)
    if named is None:
        return None
    opens = found["opens"] or ""
    side = f"{opens}{column})" if opens else column
    rest, name = found["rest"].strip(), _bare(column)
    count = f"SELECT COUNT(*) FROM {named} WHERE {side} {rest}"  # noqa: S608 (names and literals)
    (rows,) = _first(connection, count)
    part = f"{name} {' '.join(rest.split())}"
    if rows or rest.upper().startswith("IS "):
        return Coverage(part, int(rows), name)
    held = f"SELECT {side} FROM {named} WHERE {side} IS NOT NULL LIMIT {_SAMPLED}"  # noqa: S608
    with closing(connection.execute(held)) as cursor:
        values = pd.Series([value for (value,) in cursor], name=name)
    typed, wanted = _typed(values), _wanted(rest)
    if pd.api.types.is_integer_dtype(typed.dtype):
        wanted = [int(one) if str(one).isdigit() else one for one in wanted]
    return coverage_of(typed, wanted, part)


def _table_with(connection: sqlite3.Connection, source: str, alias: str, column: str) -> str | None:
    """Return the table of a query that has the column."""
    for table, short in _TABLE.findall(f"FROM {source.replace(',', ' JOIN ')}"):
        names = {_bare(table).casefold()}
        if short and not _WORDS.fullmatch(short):
            names = {_bare(short).casefold()}
        if alias and _bare(alias).casefold() not in names:
            continue
        query = "SELECT 1 FROM pragma_table_info(?) WHERE name = ? COLLATE NOCASE"
        with closing(connection.execute(query, (_bare(table), _bare(column)))) as cursor:
            if cursor.fetchone():
                return str(table)
    return None


def _bare(name: str) -> str:
    return name.strip('"`[]')


def _typed(values: Any) -> Any:
    """Return a column of dates or years as that type, for which a range is more informative."""
    texts = [one for one in values.head(100) if isinstance(one, str)]
    if texts and all(map(_YEAR.fullmatch, texts)):
        return pd.to_numeric(values, errors="coerce")
    if texts and all(_DATE.match(one) for one in texts):
        return pd.to_datetime(values, errors="coerce", format="mixed").rename(values.name)
    return values


def _wanted(rest: str) -> list[Any]:
    """Return the literals of a condition, without the `%` and `*` at the ends of a pattern."""
    found = []
    for literal in re.findall(_LITERAL, rest):
        if literal.startswith("'"):
            found.append(literal[1:-1].replace("''", "'").strip("%*"))
        else:
            found.append(float(literal) if "." in literal else int(literal))
    return found
