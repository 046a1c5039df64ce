"""One way through a tree of states, run as a kernel is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kernel_sandbox.cells.cell import CellRun
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import SessionClosedError
from kernel_sandbox.runners.snapshots import Snapshot, SnapshotTree
from kernel_sandbox.types import CellResult

__all__ = ["SnapshotRunner"]


class SnapshotRunner:
    """One way through a tree; a `CellRunner` whose state can be branched at any time."""

    def __init__(self, tree: SnapshotTree, node: Snapshot | None = None) -> None:
        """Runs nothing.

        Args:
            tree: stays the caller's.
            node: where the way begins; `None` for the root.
        """
        self.tree = tree
        self.node = node or tree.root
        """The state after the last cell."""
        self._cell: CellRun | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False

    @property
    def containment(self) -> Containment:
        """The layers around every state of the tree."""
        return self.tree.containment

    async def run(self, source: str) -> CellResult:
        """Runs a cell after those before it; see `SnapshotTree.run`."""
        async with self._lock:
            if self._is_closed:
                raise SessionClosedError("the runner is closed")
            try:
                result, self.node = await self.tree.run(self.node, source, self._note)
            finally:
                self._cell = None
            return result

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copies the files of the state after the last cell; see `SnapshotTree.collect`."""
        async with self._lock:
            if self._is_closed:
                raise SessionClosedError("the runner is closed")
            return await self.tree.collect(self.node, folder)

    def _note(self, cell: CellRun) -> None:
        self._cell = cell

    def branch(self) -> SnapshotRunner:
        """Returns a runner that goes on from here by itself; nothing is copied or run."""
        return SnapshotRunner(self.tree, self.node)

    async def interrupt(self) -> None:
        """Interrupts the running cell; does nothing when none runs."""
        if self._cell is not None:
            await self._cell.interrupt()

    async def restart(self) -> None:
        """Goes back to the empty state."""
        async with self._lock:
            self.node = self.tree.root

    async def close(self) -> None:
        """Lets no further cell run; the states stay until the tree is closed."""
        self._is_closed = True
