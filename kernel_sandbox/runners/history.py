"""What was run in a state, kept as text: enough to build the state again by running it again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kernel_sandbox.types import (
    CellError,
    CellResult,
    CellStatus,
    Display,
    Output,
    Stream,
)

__all__ = ["CellHistory", "Past"]

_CHANGING = re.compile(
    r"\b0x[0-9a-fA-F]{6,}\b"  # memory addresses
    r"|\b(dm-work|dmj)-[0-9a-f]{8}\b(/\.branches/\d+)*"  # private folders
)
_KEPT = frozenset({CellStatus.OK, CellStatus.ERROR})
"""A cell that ended by itself left a state that running it again gives again."""


@dataclass(frozen=True, slots=True)
class Past:
    """One cell that ran."""

    source: str
    digest: str
    """Of its outputs; differs when the same code gives other outputs the next time."""


@dataclass(slots=True)
class CellHistory:
    """The cells that made a state, in order."""

    cells: list[Past] = field(default_factory=list)
    has_gap: bool = False
    """Whether a cell was stopped half-way: what it did can't be done again."""

    def record(self, source: str, result: CellResult) -> None:
        """Takes note of a cell that ran.

        One that was stopped or ended its kernel is left out: run again, it would take the same
        time and end the same way. A lost state begins again from nothing.

        Args:
            source: the cell.
            result: what became of it.
        """
        if result.state_lost:
            self.cells.clear()
            self.has_gap = False
        elif result.status in _KEPT:
            self.cells.append(Past(source, digest(result)))
        else:
            self.has_gap |= result.status is not CellStatus.DENIED

    async def replay(self, run: Callable[[str], Awaitable[CellResult]]) -> str:
        """Runs the cells in an empty state, silently; their text is not touched.

        Args:
            run: runs one cell in that state.

        Returns:
            What differed from the first time, for a person and a model; empty if nothing did.
        """
        differing = []
        for number, past in enumerate(self.cells, start=1):
            result = await run(past.source)
            if digest(result) != past.digest:
                differing.append(f"cell {number} ({_difference(result)})")
        news = []
        if differing:
            news.append(f"something came out differently: {', '.join(differing)}")
        if self.has_gap:
            news.append("what a cell had done that was stopped is gone")
        self.has_gap = False
        if not news:
            return ""
        told = "; ".join(news)
        return f"The state was built again by running the cells before. Check it: {told}."

    def copy(self) -> CellHistory:
        """Returns a history of its own that begins with these cells."""
        return CellHistory(list(self.cells), self.has_gap)


def _difference(result: CellResult) -> str:
    return "its output" if result.status in _KEPT else f"it ended with {result.status}"


def digest(result: CellResult) -> str:
    """Returns a digest of how a cell ended and what it put out.

    Memory addresses and the names of private folders do not count.

    Args:
        result: of the cell.
    """
    seen = [result.status.value, *map(_essence, result.outputs)]
    text = _CHANGING.sub("", json.dumps(seen, sort_keys=True, default=str))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _essence(output: Output) -> list[object]:
    """What of an output says something about the state: no traceback, no bytes of a picture."""
    match output:
        case Stream(name, text):
            return [name, text]
        case Display(data):
            return [
                [kind, None if kind.startswith("image/") else value]
                for kind, value in sorted(data.items())
            ]
        case CellError(name, message):
            return [name, message]
