"""Which modules a cell imports as it runs, read from its text.

Not covered: imports inside functions or by `importlib`, which are left to fail.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence

from kernel_sandbox.cells.screen import PYTHON_MAGICS, parse_cell

__all__ = ["missing_imports"]

_CATCHES_IMPORT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_RUN_MAGIC = frozenset({"run_line_magic", "run_cell_magic"})
_MAX_DEPTH = 4


def missing_imports(source: str, known: Callable[[str], bool]) -> tuple[str, ...]:
    """Returns the top-level modules that a cell needs and nobody knows, in order; never raises.

    Needed is what the cell imports as it runs: not inside a function, and not where it catches
    the failure of the import itself. Code that is no Python needs nothing.

    Args:
        source: the cell, with the magics of IPython or without.
        known: whether the kernel can import the module already.
    """
    names = dict.fromkeys(_wanted(source, 0))
    return tuple(name for name in names if name not in sys.stdlib_module_names and not known(name))


def _wanted(source: str, depth: int) -> Iterator[str]:
    tree = parse_cell(source) if depth < _MAX_DEPTH else None
    for statement in _executed(tree.body if tree else []):
        if isinstance(statement, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.partition(".")[0]
        elif isinstance(statement, ast.Expr):
            yield from _wanted(_code_of_magic(statement.value), depth + 1)


def _executed(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements that may run with the module, however deep, in order."""
    waiting = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        branches = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
        if any(_catches_import(branch) for branch in branches):
            blocks, branches = blocks[1:], []
        for block in reversed([blocks[0], *(branch.body for branch in branches), *blocks[1:]]):
            waiting.extend(reversed(block))


def _catches_import(branch: ast.AST) -> bool:
    if not isinstance(branch, ast.ExceptHandler):
        return False
    if branch.type is None:
        return True
    names = (node.id for node in ast.walk(branch.type) if isinstance(node, ast.Name))
    return not _CATCHES_IMPORT.isdisjoint(names)


def _code_of_magic(value: ast.expr) -> str:
    """The Python that a magic such as `%%time` runs; empty for anything else."""
    match value:
        case ast.Call(
            func=ast.Attribute(attr=attr),
            args=[ast.Constant(value=name), *_, ast.Constant(value=code)],
        ) if attr in _RUN_MAGIC and name in PYTHON_MAGICS and isinstance(code, str):
            return code
    return ""
