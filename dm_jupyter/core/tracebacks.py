"""What a traceback tells: the line of the cell that raised."""

from __future__ import annotations

import re

from kernel_sandbox.types import CellError

__all__ = ["failing_line", "without_colours"]

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_OWN_LINE = re.compile(r"^-+>\s*\d+ (.*)$", re.MULTILINE)


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
