"""The code of a cell: its syntax tree, and the line that its traceback marks as raising."""

from __future__ import annotations

import ast
import re

from kernel_sandbox.types import CellError

__all__ = ["failing_line", "parsed", "without_colours"]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OWN_LINE = re.compile(r"^-+>\s*\d+ (.*)$", re.MULTILINE)


def parsed(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell, or `None` if it is not plain Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def without_colours(text: str) -> str:
    """Return the text without terminal codes."""
    return _ANSI.sub("", text)


def failing_line(error: CellError) -> str:
    """Return the line of the cell that raised the exception, or "" if none is marked.

    The marked lines of libraries, above or below it, do not count.
    """
    trace = without_colours("\n".join(error.traceback))
    own_line = _OWN_LINE.search(trace, max(0, trace.rfind("Cell In[")))
    return own_line.group(1).strip() if own_line else ""
