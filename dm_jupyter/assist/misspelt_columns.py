"""Columns that a cell spells with other blanks, signs or capitals than the file does.

`df["league_goals"]` for `league goals`: a small model writes the name that such a column usually
has, is told the right one and writes the wrong one again. Corrected is only a name that has just
raised, where the code shows that a loaded table was asked for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dm_jupyter.assist.loaded_tables import (
    EarlierCell,
    TableColumns,
    columns_of,
    statements_with_tables,
)
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.schema import LoadedTable, bare_name
from dm_jupyter.core.tracebacks import parsed
from kernel_sandbox.types import CellError

__all__ = ["misspelt_column"]

_METHODS = re.compile(
    "drop|drop_duplicates|dropna|groupby|melt|nlargest|nsmallest|pivot|pivot_table|set_index"
    "|sort_values"
)
"""Those whose texts are names of columns, but for keywords such as `how`."""
_KEYWORDS = re.compile("by|subset|columns|index|values|id_vars|value_vars")
_RENAME = re.compile("add_prefix|add_suffix|rename|set_axis")
_NAMING = re.compile("insert|rename_axis|reset_index|to_frame")
"""Methods whose texts are names that they give."""
_NAMING_KEYWORDS = re.compile("indicator|margins_name|name|names|value_name|var_name")
_LABELLING_KEYWORDS = re.compile("columns|index")
"""Of calls that make a table or a series, such as `pd.DataFrame`."""


class _Asked(NamedTuple):
    """A place in the cell that asks a loaded table for a column."""

    node: ast.Constant | ast.Attribute
    name: str
    columns: frozenset[str]


def misspelt_column(
    source: str,
    error: CellError,
    line: int,
    earlier: Sequence[EarlierCell],
    tables: Sequence[LoadedTable],
) -> Finding | None:
    """Returns the cell with the column that it failed for as its file spells it, or nothing.

    Args:
        source: the cell, which raised.
        error: what it raised.
        line: of the cell, in which it did; counted from 1.
        earlier: the cells that ran before it in the same kernel.
        tables: what the loading code makes.
    """
    tree = parsed(source)
    if tree is None or error.name not in ("KeyError", "AttributeError"):
        return None
    own = _nodes_beside_loads([*(cell.source for cell in earlier), source], tables)
    if any(map(_renames, own)):
        return None
    made = {text.value for node in own for text in _made(node)}
    wanted = ast.Attribute if error.name == "AttributeError" else ast.Constant
    asked = [
        one
        for statement, held in statements_with_tables(tree, earlier, tables)
        for one in _asked(statement, held)
        if isinstance(one.node, wanted) and one.name not in made and _meant(one)
    ]
    failed = _failed(tree, asked, error, line)
    right = [(one.node, _meant(one)) for one in asked if one.name in failed]
    if not right:
        return None
    told = ", ".join(dict.fromkeys(repr(name) for _, name in right))
    return Finding(
        "columns",
        f"{error.name}: {error.message[:200]}",
        "certain",
        f"Column spelt as in the file: {told}",
        _replaced(source, right),
    )


def _meant(asked: _Asked) -> str:
    """The one column that a name is but for blanks, signs and capitals; empty for none."""
    meant = [one for one in asked.columns if bare_name(one) == bare_name(asked.name) != ""]
    return meant[0] if len(meant) == 1 and asked.name not in asked.columns else ""


def _failed(
    tree: ast.Module, asked: Sequence[_Asked], error: CellError, line: int
) -> frozenset[str]:
    """The names that the error is about, where nothing else in its statement could have raised."""
    statement = _statement_at(tree, line)
    if statement is None:
        return frozenset()
    inside = list(ast.walk(statement))
    known = {id(one.node): one.name for one in asked}
    names = {known[id(node)] for node in inside if id(node) in known}
    others = {_name_of(node) for node in inside if id(node) not in known}
    return frozenset(
        name
        for name in names - others
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error.message)
    )


def _name_of(node: ast.AST) -> object:
    """What a node could ask for by itself."""
    match node:
        case ast.Constant(value=name) | ast.Attribute(attr=name):
            return name
    return None


def _nodes_beside_loads(
    sources: Iterable[str], tables: Sequence[LoadedTable]
) -> tuple[ast.AST, ...]:
    """All nodes of some cells but those of the statements that load the tables."""
    loads = [tree for table in tables if (tree := parsed(table.load)) is not None]
    known = {ast.dump(statement) for tree in loads for statement in tree.body}
    trees = filter(None, map(parsed, sources))
    kept = (one for tree in trees for one in tree.body if ast.dump(one) not in known)
    return tuple(node for statement in kept for node in ast.walk(statement))


def _statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The innermost statement that a line belongs to."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(found, key=lambda node: (node.lineno, node.col_offset), default=None)


def _replaced(source: str, found: Sequence[tuple[ast.Constant | ast.Attribute, str]]) -> str:
    """The source with the names in place of what asked for them."""
    lines = source.encode().splitlines(keepends=True)
    for node, name in sorted(found, key=lambda one: _start(one[0]), reverse=True):
        row, start = _start(node)
        if node.end_lineno is None or node.end_lineno - 1 != row:
            continue
        written = repr(name) if isinstance(node, ast.Constant) else f"[{name!r}]"
        line = lines[row]
        lines[row] = line[:start] + written.encode() + line[node.end_col_offset :]
    return b"".join(lines).decode()


def _start(node: ast.Constant | ast.Attribute) -> tuple[int, int]:
    """Row and byte, from 0, at which the name begins: of `df.age`, the dot."""
    if isinstance(node, ast.Constant):
        return node.lineno - 1, node.col_offset
    return (node.value.end_lineno or 1) - 1, node.value.end_col_offset or 0


def _asked(statement: ast.stmt, held: TableColumns) -> Iterator[_Asked]:
    """The places at which a statement asks a loaded table for columns.

    Left out is what is in functions, whose names may mean anything, and in f-strings, in which the
    places are not known.
    """
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.FunctionDef | ast.ClassDef | ast.Lambda):
            continue
        waiting += ast.iter_child_nodes(node)
        yield from _asked_by(node, held)


def _asked_by(node: ast.AST, held: TableColumns) -> Iterator[_Asked]:
    match node:
        case ast.Subscript(value=value, slice=key, ctx=ast.Load()):
            found, columns = _texts(key), columns_of(value, held) or _grouped(value, held)
            match value, key:
                case ast.Attribute(value=table, attr="loc"), ast.Tuple(elts=[_, chosen]):
                    found, columns = _texts(chosen), columns_of(table, held)
            for text in found if columns else ():
                yield _Asked(text, str(text.value), columns or frozenset())
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()):
            if columns := columns_of(value, held):
                yield _Asked(node, name, columns)
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=given, keywords=words):
            columns = columns_of(value, held)
            if columns and _METHODS.fullmatch(name):
                named = [word.value for word in words if _KEYWORDS.fullmatch(word.arg or "")]
                for argument in [*given, *named]:
                    for text in _texts(argument):
                        yield _Asked(text, str(text.value), columns)


def _grouped(node: ast.expr, held: TableColumns) -> frozenset[str] | None:
    """The columns of a loaded table that is grouped, which its groups have too."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="groupby")):
            return columns_of(value, held)
    return None


def _renames(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return _RENAME.fullmatch(name) is not None
        case ast.Attribute(attr="columns", ctx=ast.Store()):
            return True
    return False


def _made(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts by which a node gives something a name."""
    match node:
        case ast.Subscript(slice=key, ctx=ast.Store()):
            yield from _texts(key)
        case ast.Call():
            yield from _made_by_call(node)
        case ast.Dict(keys=names):
            for name in filter(None, names):
                yield from _texts(name)


def _made_by_call(call: ast.Call) -> Iterator[ast.Constant]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if _NAMING.fullmatch(called):
        for value in call.args:
            yield from _texts(value)
    for word in call.keywords:
        name = word.arg or ""
        yield ast.Constant(name)
        is_label = _LABELLING_KEYWORDS.fullmatch(name) and not _METHODS.fullmatch(called)
        if is_label or _NAMING_KEYWORDS.fullmatch(name):
            yield from _texts(word.value)


def _texts(node: ast.expr) -> Iterator[ast.Constant]:
    """A text, or the texts of a list or tuple and of those in it."""
    match node:
        case ast.Constant(value=str()):
            yield node
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _texts(part)
