"""Execution of a question's steps in SQLite: the second, independent program.

Each table step creates a new table from the one before; each value step is a query. Figures that
SQL lacks are functions in plain Python, see `plain_measures`. The names in the queries come from
the data files of this package alone.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from training.suites.generated.programs.plain_measures import register
from training.suites.generated.programs.steps import ProgramAnswer, ProgramStep, Result, ResultRow

__all__ = ["SqlProgram"]

_BUILT_IN = {
    "rows": "COUNT(*)",
    "count": "COUNT({0})",
    "distinct": "COUNT(DISTINCT {0})",
    "mean": "AVG({0})",
    "sum": "SUM({0})",
    "min": "MIN({0})",
    "max": "MAX({0})",
    "range": "MAX({0}) - MIN({0})",
    "share_yes": "AVG({0} = 'yes') * 100",
}
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NAME = re.compile(r"[a-z_][a-z_0-9]*")


class SqlProgram:
    """Executor of steps on one database; each run drops the tables that it created."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Prepare a database, as `rows.database_of` returns it."""
        register(database)
        self._database = database
        self._table = "main"
        self._count = 0
        self._values: dict[str, ProgramAnswer] = {}

    def run(self, steps: Sequence[ProgramStep], shown: Sequence[str] = ()) -> Result:
        """Return the values and rows that the steps produce.

        Args:
            steps: the steps of the question.
            shown: the columns of the last table to return.
        """
        self._table, self._values = "main", {}
        made = self._count
        for step in steps:
            getattr(self, f"_{step.do}")(**step.args)
        rows: tuple[ResultRow, ...] = ()
        if shown:
            columns = ", ".join(map(_quoted, shown))
            rows = tuple(self._query(f"SELECT {columns} FROM {self._table} ORDER BY rowid"))
        for number in range(made + 1, self._count + 1):
            self._database.execute(f"DROP TABLE t{number}")
        return Result(dict(self._values), rows)

    def _query(self, text: str, given: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._database.execute(text, given).fetchall()

    def _make(self, text: str, given: Sequence[Any] = ()) -> None:
        """Create the next table from a query, in which `{t}` is the table before."""
        self._count += 1
        query = text.replace("{t}", self._table)
        self._database.execute(f"CREATE TEMP TABLE t{self._count} AS {query}", given)
        self._table = f"t{self._count}"

    def _one(self, expression: str, given: Sequence[Any] = (), where: str = "") -> Any:
        return self._query(f"SELECT {expression} FROM {self._table}{where}", given)[0][0]

    def _given(self, value: Any) -> Any:
        if isinstance(value, str) and value[:1] == "@":
            return self._values[value[1:]]
        return value

    # Steps of a table

    def _present(self, columns: Sequence[str]) -> None:
        tests = " AND ".join(f"{_quoted(name)} IS NOT NULL" for name in columns)
        self._make(f"SELECT * FROM {{t}} WHERE {tests}")

    def _where(self, column: str, test: str, value: Any, least: int = 0) -> None:  # noqa: ARG002
        condition, given = self._condition(column, test, value)
        self._make(f"SELECT * FROM {{t}} WHERE {condition}", given)

    def _condition(self, column: str, test: str, value: Any) -> tuple[str, list[Any]]:
        name = _quoted(column)
        if not isinstance(value, list):
            return f"{name} {'=' if test == '==' else test} ?", [self._given(value)]
        given = [self._given(one) for one in value]
        match test:
            case "in":
                return f"{name} IN ({', '.join('?' * len(given))})", given
            case "inside":
                return f"{name} BETWEEN ? AND ?", given
        return f"({name} < ? OR {name} > ?)", given

    def _derive(self, into: str, how: str, of: Any, **options: Any) -> None:
        if how == "calc":
            made = _NAME.sub(lambda found: _quoted(of[found[0]]), options["expr"])
            given: list[Any] = []
        else:
            known = {name: self._given(value) for name, value in options.items()}
            made, given = _derived(how, _quoted(of), known)
        self._make(f"SELECT *, {made} AS {_quoted(into)} FROM {{t}}", given)

    def _group(self, by: Sequence[str], make: Sequence[Mapping[str, Any]]) -> None:
        keys = ", ".join(map(_quoted, by))
        figures = ", ".join(
            f"{_figure(one['how'], one.get('of', []), one.get('q'))} AS {_quoted(one['into'])}"
            for one in make
        )
        known = " AND ".join(f"{_quoted(name)} IS NOT NULL" for name in by)
        self._make(
            f"SELECT {keys}, {figures} FROM {{t}} WHERE {known} GROUP BY {keys} ORDER BY {keys}"
        )

    def _top(self, by: str, order: str, k: int = 1, skip: int = 0) -> None:
        way = "ASC" if order == "lowest" else "DESC"
        self._make(f"SELECT * FROM {{t}} ORDER BY {_quoted(by)} {way} LIMIT {k} OFFSET {skip}")

    def _keep(
        self,
        by: str,
        how: str,
        of: Any,
        order: str,
        k: int = 1,
        least: int = 0,  # noqa: ARG002
    ) -> None:
        name, way = _quoted(by), "ASC" if order == "lowest" else "DESC"
        best = (
            f"SELECT {name} FROM {{t}} WHERE {name} IS NOT NULL GROUP BY {name} "
            f"ORDER BY {_figure(how, of, None)} {way} LIMIT {k}"
        )
        self._make(f"SELECT * FROM {{t}} WHERE {name} IN ({best})")

    def _sort(self, by: str, order: str = "lowest") -> None:
        way = "ASC" if order == "lowest" else "DESC"
        self._make(f"SELECT * FROM {{t}} ORDER BY {_quoted(by)} {way}")

    def _fill(self, column: str, how: str, by: str = "") -> None:
        name = _quoted(column)
        figure = (
            "0.0" if how == "zero" else f"(SELECT {_figure(how, column, None)} FROM {{t}}{{s}})"
        )
        same = f" AS s WHERE s.{_quoted(by)} = o.{_quoted(by)}" if by else ""
        filled = f"COALESCE({name}, {figure})".replace("{s}", same)
        columns = [row[1] for row in self._query(f"PRAGMA table_info({self._table})")]
        shown = ", ".join(
            f"{filled} AS {name}" if one == column else f"o.{_quoted(one)}" for one in columns
        )
        self._make(f"SELECT {shown} FROM {{t}} AS o")

    def _change(self, into: str, of: str, how: str, along: str) -> None:
        now, order = _quoted(of), _quoted(along)
        before = f"LAG({now}) OVER (ORDER BY {order})"
        made = f"({now} - {before}) / {before} * 100" if how == "percent" else f"{now} - {before}"
        self._make(f"SELECT *, {made} AS {_quoted(into)} FROM {{t}} ORDER BY {order}")
        self._make(f"SELECT * FROM {{t}} WHERE {_quoted(into)} IS NOT NULL ORDER BY {order}")

    def _running(self, into: str, of: str, how: str, along: str, window: int = 0) -> None:
        order = _quoted(along)
        back = f"{window - 1} PRECEDING" if window else "UNBOUNDED PRECEDING"
        frame = f"OVER (ORDER BY {order} ROWS BETWEEN {back} AND CURRENT ROW)"
        figure = _figure("mean" if how == "mean" else "sum", of, None)
        number = f"ROW_NUMBER() OVER (ORDER BY {order})"
        self._make(f"SELECT *, {figure} {frame} AS {_quoted(into)}, {number} AS place FROM {{t}}")
        self._make(f"SELECT * FROM {{t}} WHERE place >= {window} ORDER BY place")

    def _join(self, columns: Sequence[str]) -> None:
        key = _quoted(self._query("PRAGMA table_info(lookup)")[0][1])
        added = ", ".join(f"b.{_quoted(name)}" for name in columns)
        self._make(f"SELECT a.*, {added} FROM {{t}} AS a JOIN lookup AS b ON a.{key} = b.{key}")

    def _gaps(self, columns: Mapping[str, str]) -> None:
        parts = " UNION ALL ".join(
            f'SELECT ? AS "column", SUM({_quoted(name)} IS NULL) AS missing FROM {{t}}'
            for name in columns
        )
        self._make(parts, list(columns.values()))

    # Steps of a value

    def _value(self, into: str, how: str, of: Any = (), **options: Any) -> None:
        where = ""
        given: list[Any] = []
        if "only" in options:
            condition, given = self._condition(**options["only"])
            where = f" WHERE {condition}"
        self._values[into] = self._one(_figure(how, of, options.get("q")), given, where)

    def _at(self, into: str, column: str, row: int = 0) -> None:
        order = f" ORDER BY rowid LIMIT 1 OFFSET {row}"
        self._values[into] = self._one(_quoted(column), (), order)

    def _list(self, into: str, column: str) -> None:
        query = f"SELECT {_quoted(column)} FROM {self._table} ORDER BY rowid"
        self._values[into] = tuple(row[0] for row in self._query(query))

    def _calc(self, into: str, expr: str) -> None:
        names = _NAME.findall(expr)
        figures = _NAME.sub("CAST(? AS REAL)", expr)
        self._values[into] = self._query(f"SELECT {figures}", [self._values[one] for one in names])[
            0
        ][0]

    def _verdict(
        self, into: str, of: str, test: str, than: Any, yes: str = "yes", no: str = "no"
    ) -> None:
        holds = self._holds(of, test, than)
        self._values[into] = self._query("SELECT CASE WHEN ? THEN ? ELSE ? END", [holds, yes, no])[
            0
        ][0]

    def _holds(self, of: str, test: str, than: Any) -> bool:
        sign = "=" if test == "==" else test
        return bool(self._query(f"SELECT ? {sign} ?", [self._values[of], self._given(than)])[0][0])

    def _grade(
        self, into: str, of: str, edges: Sequence[float], words: Sequence[str], size: bool = False
    ) -> None:
        cases = " ".join("WHEN x <= ? THEN ?" for _ in edges)
        given = [one for pair in zip(edges, words, strict=False) for one in pair]
        number = "ABS(?)" if size else "?"
        query = f"SELECT CASE {cases} ELSE ? END FROM (SELECT {number} AS x)"
        self._values[into] = self._query(query, [*given, words[-1], self._values[of]])[0][0]

    def _letters(self, into: str, claims: Sequence[Mapping[str, Any]]) -> None:
        true = [letter for letter, one in zip("ABCDE", claims, strict=False) if self._holds(**one)]
        self._values[into] = tuple(true) if true else "none"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _figure(how: str, of: Any, q: float | None) -> str:
    """Return the SQL expression of a figure of some columns."""
    names = [_quoted(one) for one in ([of] if isinstance(of, str) else of)]
    if how in _BUILT_IN:
        return _BUILT_IN[how].format(*names)
    return f"f_{how}({', '.join([*names, *([] if q is None else [repr(q)])])})"


def _derived(how: str, of: str, options: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the SQL expression of a new column, and the values of its placeholders."""
    if how == "bin":
        return _bins(of, options["edges"], options["names"])
    expression = _DERIVED[how].format(of, _quoted(str(options.get("by"))))
    return expression, [options[name] for name in _GIVEN.get(how, ())]


def _bins(of: str, edges: Sequence[float], names: Sequence[str]) -> tuple[str, list[Any]]:
    cases = " ".join(f"WHEN {of} < ? THEN ?" for _ in edges)
    given = [one for pair in zip(edges, names, strict=False) for one in pair]
    return f"CASE WHEN {of} IS NULL THEN NULL {cases} ELSE ? END", [*given, names[-1]]


_DAYS = " ".join(f"WHEN '{day}' THEN '{name}'" for day, name in enumerate(_WEEKDAYS))
_DERIVED = {
    "year": "substr({0}, 1, 4)",
    "month": "substr({0}, 1, 7)",
    "quarter": "substr({0}, 1, 4) || '-Q' || ((substr({0}, 6, 2) + 2) / 3)",
    "weekday": f"CASE strftime('%w', {{0}}) {_DAYS} END",
    "is": "({0} = ?)",
    "since": "({0} >= ?)",
    "above": "({0} > ?)",
    "clip": "MIN(MAX({0}, ?), ?)",
    "group_mean": "AVG({0}) OVER (PARTITION BY {1})",
    "zscore": "({0} - (SELECT AVG({0}) FROM {{t}})) / (SELECT f_std({0}) FROM {{t}})",
    "minmax": "({0} - (SELECT MIN({0}) FROM {{t}})) / (SELECT MAX({0}) - MIN({0}) FROM {{t}})",
    "deviation": "ABS({0} - (SELECT AVG({0}) FROM {{t}}))",
}
"""SQL expressions on the column {0}; `{t}` is filled in later with the table before."""
_GIVEN = {"is": ["value"], "since": ["value"], "above": ["limit"], "clip": ["low", "high"]}
"""Options that fill the placeholders of an expression."""
