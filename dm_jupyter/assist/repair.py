"""A cell that failed for a slip, corrected, where running it once more changes nothing twice.

A cell always runs as it was written first. Only when the failure has happened that a rule predicts
is the corrected cell run in its place, with a comment that says what was corrected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from dm_jupyter.assist.cell_effects import CHANGES, WRITES
from dm_jupyter.assist.cell_names import HARMLESS, loaded_names, stored_names
from dm_jupyter.assist.forgotten_imports import missing_import
from dm_jupyter.assist.loaded_tables import EarlierCell
from dm_jupyter.assist.misspelt_columns import misspelt_column
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.limits_met import limit_met
from dm_jupyter.core.parsed import parsed
from dm_jupyter.core.tracebacks import lines_in_cell
from dm_jupyter.core.trajectory import RunCell, Trajectory
from kernel_sandbox.types import CellResult

__all__ = ["repair_of"]


def repair_of(cell: RunCell, result: CellResult, trajectory: Trajectory) -> Finding | None:
    """Returns the correction of a cell that failed, to be run in its place, or nothing.

    Args:
        cell: as it ran.
        result: what became of it.
        trajectory: the run before it.
    """
    error, tree = result.error, parsed(cell.source)
    if error is None or tree is None or cell.language != "python":
        return None
    lines = lines_in_cell(error)
    if lines is None or result.state_lost or limit_met(result) or not _runs_again(tree, lines.last):
        return None
    assists, earlier, brief = trajectory.assists, _earlier(trajectory), trajectory.brief
    found = None
    if assists.imports:
        sources = [one.source for one in earlier]
        found = missing_import(cell.source, error, sources, brief.variables)
    if found is None and assists.columns:
        found = misspelt_column(cell.source, error, lines.innermost, earlier, brief.frames)
    if found is None:
        return None
    return replace(found, edit=f"# {found.suggestion}\n{found.edit}")


def _earlier(trajectory: Trajectory) -> list[EarlierCell]:
    """The python cells that have run since the kernel was empty."""
    cells: list[EarlierCell] = []
    for step in trajectory.steps:
        if step.result is None:
            continue
        if step.result.state_lost:
            cells.clear()
            continue
        match step.turn.action:
            case RunCell(source, language="python"):
                cells.append(EarlierCell(source, step.result.ok))
    return cells


def _runs_again(tree: ast.Module, last: int) -> bool:
    """Whether the statements up to a line may run twice and come to the same.

    They may change what the cell itself has made, and nothing else.
    """
    again = _Again()
    begun = [statement for statement in tree.body if statement.lineno <= last]
    return all(again.takes(statement, is_last=statement is begun[-1]) for statement in begun)


class _Again:
    """Which names the cell has made by itself, and which older ones it has read."""

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._read: set[str] = set()

    def takes(self, statement: ast.stmt, *, is_last: bool = False) -> bool:
        """Whether the statement may run twice.

        Args:
            statement: the next one of the cell.
            is_last: whether it raised: a plain assignment has then not happened.
        """
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._own |= stored_names(statement)
            return True
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return self._defines(statement)
        inner = [one for one in _children(statement) if isinstance(one, ast.stmt)]
        outer = [one for one in _children(statement) if not isinstance(one, ast.stmt)]
        stored = set().union(*map(stored_names, outer))
        is_loop = bool(inner)  # or another block: what its head binds is bound before it is read
        self._own |= stored if is_loop else set()
        self._read |= set().union(*map(loaded_names, outer)) - self._own
        parts = [node for one in outer for node in ast.walk(one)]
        if not all(map(self._is_harmless, [*parts, *([] if inner else [statement])])):
            return False
        if inner:
            return all(map(self.takes, inner))
        is_undone = is_last and isinstance(statement, ast.Assign | ast.Expr | ast.AnnAssign)
        if not is_undone and stored & self._read:  # it would start from what it has left
            return False
        if isinstance(statement, ast.Assign) and not self._is_own(statement.value):
            self._own -= stored  # another name for what was there before
        else:
            self._own |= stored
        return True

    def _defines(self, made: ast.FunctionDef | ast.ClassDef) -> bool:
        """Takes a function or class whose code changes nothing but its own names."""
        inside = _Again()
        inside._own = self._own | stored_names(made)
        self._own.add(made.name)
        return all(map(inside._is_harmless, ast.walk(made)))

    def _is_harmless(self, node: ast.AST) -> bool:
        match node:
            case ast.Global() | ast.Nonlocal() | ast.Delete() | ast.Await() | ast.Yield():
                return False
            case ast.AugAssign(target=ast.Name(id=name)):
                return name in self._own
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                return self._is_own(node)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
                return self._is_own(value) or self._is_known_module(value)
            case ast.Call():
                return self._is_harmless_call(node)
        return True

    def _is_harmless_call(self, call: ast.Call) -> bool:
        is_inplace = any(word.arg == "inplace" for word in call.keywords)
        match call.func:
            case ast.Name(id=name):
                return name in HARMLESS or name in self._own or name[:1].isupper()
            case ast.Attribute(value=value, attr=name):
                if WRITES.fullmatch(name):
                    return False
                return self._is_own(value) or not (is_inplace or CHANGES.fullmatch(name))
        return False

    def _is_own(self, node: ast.expr) -> bool:
        """Whether an expression gives what the cell has made, or something new."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        return node.id in self._own if isinstance(node, ast.Name) else True

    def _is_known_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in {"plt", "sns", "np", "pd"}


def _children(statement: ast.AST) -> Iterator[ast.AST]:
    """What a statement consists of; of a handler or a case, what that consists of."""
    for node in ast.iter_child_nodes(statement):
        if isinstance(node, ast.ExceptHandler | ast.match_case):
            yield from _children(node)
        else:
            yield node
