"""The `Notebook` protocol, through which the loop writes and runs its cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dm_jupyter.core.trajectory import RunCell
from kernel_sandbox.types import CellResult

__all__ = ["ExecutedCell", "Notebook"]


@dataclass(frozen=True, slots=True)
class ExecutedCell:
    """A cell as it ran, and its result."""

    cell: RunCell
    """The cell that ran, which differs from the requested one if a person changed it before."""
    result: CellResult


class Notebook(Protocol):
    """A place to write and run cells. Called by `step`, one call at a time.

    An implementation may not assume that a cell ends by itself: its limits end it. Nor may it
    assume that the caller waits: cancelling `run` interrupts the cell, keeps its output so far and
    re-raises.
    """

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        """Write the thought and the cell, run it, keep its result and return it."""
        ...
