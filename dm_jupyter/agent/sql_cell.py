"""Conversion of a `sql` block to a Python cell that runs in any Jupyter."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from importlib.resources import files

from dm_jupyter.core.tracebacks import parsed
from dm_jupyter.core.trajectory import RunCell

__all__ = ["SqlCells", "runtime_source", "sql_as_python"]

_DATABASE = re.compile(r"^\s*--\s*database:\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
_SHOWN_ROWS = 20


class SqlCells:
    """A converter of one run's cells to Python; the first `sql` cell needs a definition before."""

    def __init__(self, databases: tuple[str, ...], queries: int = 0) -> None:
        """Start with a kernel without definitions.

        Args:
            databases: names of the database files that `sql` cells query.
            queries: the highest number of a result that is already in use.
        """
        self._databases = databases
        self._queries = queries
        self.knows_function = False
        """Whether the kernel has `run_sql`; set it when the definition ran or was lost."""

    def definition(self, cell: RunCell) -> str | None:
        """Return the source to run before the cell, or `None` if the cell needs none."""
        return None if cell.language != "sql" or self.knows_function else runtime_source()

    def python(self, cell: RunCell) -> str:
        """Return the cell as Python; called once for each cell, since it numbers the queries."""
        if cell.language != "sql":
            return cell.source
        self._queries += 1
        return sql_as_python(cell.source, self._databases, self._queries)

    def changed(self, cell: RunCell, source: str) -> RunCell:
        """Return the last cell as a person changed it: a query, if only its text changed.

        Args:
            cell: the last cell that was passed to `python`.
            source: the Python that ran instead of it.
        """
        query = _first_query(source) if cell.language == "sql" else None
        if query and sql_as_python(query, self._databases, self._queries) == source:
            return replace(cell, source=query)
        return RunCell(source)


def _first_query(source: str) -> str | None:
    """Return the query of a cell that `sql_as_python` may have written, or `None`."""
    tree = parsed(source)
    match tree.body[:1] if tree else []:
        case [ast.Assign(value=ast.Call(args=[_, ast.Constant(value=str(query))]))]:
            return query.strip()
    return None


def runtime_source() -> str:
    """Return the source of the cell that defines `run_sql`, which needs only pandas."""
    return files(__package__).joinpath("sql_runtime.py").read_text("utf-8").strip()


def sql_as_python(query: str, databases: tuple[str, ...], number: int) -> str:
    """Return the Python cell that runs `query` read-only and shows the head of its result.

    Args:
        query: one SELECT; a line `-- database: NAME` in it selects one of several databases.
        databases: names of the database files, as the code opens them.
        number: number of the result, which names the variable and the csv file.
    """
    named = _DATABASE.search(query)
    database = named.group(1).strip("\"'`") if named else ""
    if database not in databases:
        database = databases[0] if databases else database
    body = (
        query.strip()
        .replace("\\", "\\\\")
        .replace("\r", "\\r")
        .replace("\0", "\\x00")
        .replace('"""', '\\"\\"\\"')
    )
    return (
        f'result_{number} = run_sql({database!r}, """\n{body}\n""", '
        f"save_as='result_{number}.csv')\n"
        f"result_{number}.head({_SHOWN_ROWS})"
    )
