"""Which variables hold a loaded table, as far as the code of the run's own cells shows it.

A variable holds one after the very code that loads the file, or as a copy or a choice of rows or
columns of one that does. Whatever else it is given takes that away: another file's table, a
query's rows, a group's figures, a dict. Code in functions shows nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dm_jupyter.core.schema import LoadedTable
from dm_jupyter.core.tracebacks import parsed

__all__ = ["EarlierCell", "TableColumns", "columns_of", "statements_with_tables"]

TableColumns = Mapping[str, frozenset[str]]
"""Each variable that holds a loaded table, to the table's columns."""

_SAME_COLUMNS = re.compile(
    "copy|head|tail|sample|dropna|drop_duplicates|fillna|ffill|bfill|sort_values|sort_index|query"
    "|astype|convert_dtypes|infer_objects|replace|nlargest|nsmallest|round|clip"
)
_MASKS = re.compile(
    "isin|between|isna|notna|isnull|notnull|duplicated|contains|startswith|endswith|fullmatch"
    "|match|eq|ne|lt|le|gt|ge"
)
"""Methods that give a yes or no for each row."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class EarlierCell:
    """A Python cell that ran before in the same kernel."""

    source: str
    is_whole: bool = True
    """Whether it ran to its end; of another, nobody knows which names it has bound."""


def statements_with_tables(
    tree: ast.Module, earlier: Iterable[EarlierCell], tables: Sequence[LoadedTable]
) -> Iterator[tuple[ast.stmt, TableColumns]]:
    """Yields each top-level statement of a cell with the tables that are held when it begins.

    Names that the statement itself binds on its way are left out.

    Args:
        tree: of the cell.
        earlier: the cells that ran before it, in order.
        tables: what the loading code makes.
    """
    flow = _Flow(tables)
    for cell in earlier:
        before = parsed(cell.source)
        if before is None:
            flow.held.clear()
        elif cell.is_whole:
            flow.run(before)
        else:
            flow.forget(before)
    yield from flow.run(tree)


def columns_of(node: ast.expr, held: TableColumns) -> frozenset[str] | None:
    """Returns the columns of the loaded table that an expression gives; `None` for what is none.

    Args:
        node: the expression.
        held: the variables that hold one.
    """
    match node:
        case ast.Name(id=name):
            return held.get(name)
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            return columns_of(value, held) if _SAME_COLUMNS.fullmatch(name) else None
        case ast.Subscript(value=ast.Attribute(value=value, attr="loc" | "iloc"), slice=rows):
            return columns_of(value, held) if _chooses_rows(rows) else None
        case ast.Subscript(value=value, slice=key):
            columns = columns_of(value, held)
            if columns is None or _chooses_rows(key):
                return columns
            chosen = _listed(key)
            return frozenset(chosen) if chosen and columns.issuperset(chosen) else None
    return None


def _chooses_rows(key: ast.expr) -> bool:
    match key:
        case ast.Compare() | ast.Slice():
            return True
        case ast.UnaryOp(op=ast.Invert(), operand=one):
            return _chooses_rows(one)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _chooses_rows(left) and _chooses_rows(right)
        case ast.Call(func=ast.Attribute(attr=name)):
            return _MASKS.fullmatch(name) is not None
    return False


def _listed(key: ast.expr) -> list[str]:
    parts = key.elts if isinstance(key, ast.List) else []
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    is_plain = len(texts) == len(parts) and all(isinstance(text, str) for text in texts)
    return [str(text) for text in texts] if is_plain else []


class _Flow:
    """What the variables hold, statement by statement."""

    def __init__(self, tables: Sequence[LoadedTable]) -> None:
        self.held: dict[str, frozenset[str]] = {}
        self._loads: list[tuple[list[str], str | None, LoadedTable]] = []
        for table in tables:
            tree = parsed(table.load)
            if tree is not None and tree.body:
                self._loads.append(([ast.dump(one) for one in tree.body], _value(tree), table))

    def run(self, tree: ast.Module) -> list[tuple[ast.stmt, TableColumns]]:
        """The statements, each with what is held before it; what the last leaves stays."""
        seen: list[tuple[ast.stmt, TableColumns]] = []
        dumps = [ast.dump(one) for one in tree.body]
        waiting: dict[int, LoadedTable] = {}
        for place, statement in enumerate(tree.body):
            given = statement.value if isinstance(statement, ast.Assign) else statement
            bound = _bound(given)
            seen.append((statement, {n: c for n, c in self.held.items() if n not in bound}))
            for lines, _, table in self._loads:
                if dumps[place : place + len(lines)] == lines:
                    waiting[place + len(lines) - 1] = table
            self._take(statement)
            if place in waiting:
                self.held[waiting[place].variable] = frozenset(waiting[place].columns)
        return seen

    def forget(self, tree: ast.Module) -> None:
        """Takes the tables away from all names that a cell may have bound."""
        for name in _bound(tree):
            self.held.pop(name, None)

    def _take(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                columns = self._loaded(value) or columns_of(value, self.held)
                self.held.pop(name, None)
                if columns is not None:
                    self.held[name] = columns
            case _:
                for name in _bound(statement):
                    self.held.pop(name, None)

    def _loaded(self, value: ast.expr) -> frozenset[str] | None:
        """The columns, where a value is a table loaded by the one expression that loads it."""
        written = ast.dump(value)
        found = [table for _, load, table in self._loads if load == written]
        return frozenset(found[0].columns) if found else None


def _value(tree: ast.Module) -> str | None:
    """The expression that loads a table, where one is all that it takes."""
    match tree.body:
        case [ast.Assign(targets=[ast.Name()], value=value)]:
            return ast.dump(value)
    return None


def _bound(tree: ast.AST) -> set[str]:
    """Every name that the code binds, at whatever depth."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name.split(".")[0])
    return names
