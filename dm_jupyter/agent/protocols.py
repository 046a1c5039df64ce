"""Where the loop's cells are written and run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dm_jupyter.core.trajectory import RunCell
from kernel_sandbox.types import CellResult

__all__ = ["ExecutedCell", "Notebook"]


@dataclass(frozen=True, slots=True)
class ExecutedCell:
    """A cell as it ran, and what became of it."""

    cell: RunCell
    """Another one than was asked for where a person changed it before it ran."""
    result: CellResult


class Notebook(Protocol):
    """Where cells are written and run. Called by `step`, one call at a time.

    An implementation may not assume that a cell ends by itself (its limits see to that), nor that
    the caller waits: cancelling `run` interrupts the cell, keeps its output so far and re-raises.
    """

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        """Writes the thought and the cell, runs it, keeps and returns what became of it."""
        ...
