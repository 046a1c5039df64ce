"""The code of a cell: its syntax tree, and the line that raised, as its traceback tells."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from kernel_sandbox.types import CellError

__all__ = ["CellLines", "failing_line", "lines_in_cell", "parsed", "without_colours"]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OWN_LINE = re.compile(r"^-+>\s*\d+ (.*)$", re.MULTILINE)
_FRAME = re.compile(r"\bCell In\[(\d{1,9})\], line (\d{1,9})")


def parsed(source: str) -> ast.Module | None:
    """Returns the tree of a cell, or nothing where it is no plain Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class CellLines(NamedTuple):
    """Lines of a cell that an exception came through, counted from 1."""

    innermost: int
    """The line that raised, or that called what did."""
    last: int
    """The last line of the cell that was begun."""


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


def lines_in_cell(error: CellError) -> CellLines | None:
    """Returns where in its own cell an exception came up; `None` where another cell raised it.

    A function of an earlier cell may have raised it, too: then the cell's own code is not at fault.
    """
    trace = without_colours("\n".join(error.traceback))
    frames = [(int(cell), int(line)) for cell, line in _FRAME.findall(trace)]
    if not frames or frames[-1][0] != max(cell for cell, _ in frames):
        return None
    cell = frames[-1][0]
    return CellLines(frames[-1][1], max(line for number, line in frames if number == cell))
