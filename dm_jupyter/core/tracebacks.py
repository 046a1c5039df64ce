"""The code of a cell: its syntax tree, and the line that raised, as its traceback tells."""

from __future__ import annotations

import ast
import re

from kernel_sandbox.types import CellError

__all__ = ["failing_line", "parsed", "without_colours"]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OWN_LINE = re.compile(r"^-+>\s*\d+ (.*)$", re.MULTILINE)


def parsed(source: str) -> ast.Module | None:
    """Returns the tree of a cell, or nothing where it is no plain Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def without_colours(text: str) -> str:
    """Returns the text without terminal codes."""
    return _ANSI.sub("", text)


def failing_line(error: CellError) -> str:
    """Returns the line of the cell in which the exception came up, or nothing when none is marked.

    The marked lines of libraries, above or below it, are not meant.
    """
    trace = without_colours("\n".join(error.traceback))
    own_line = _OWN_LINE.search(trace, max(0, trace.rfind("Cell In[")))
    return own_line.group(1).strip() if own_line else ""
