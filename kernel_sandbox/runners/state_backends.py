"""Backends that keep a pooled trajectory's state: a process, a tree of processes, or text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from kernel_sandbox.aio import AsyncResource
from kernel_sandbox.cells.cell import CellRun
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import SessionClosedError
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.replay import CellHistory, ReplayRunner
from kernel_sandbox.runners.snapshots import Snapshot, SnapshotTree
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import CellResult, CellRunner, Limits
from kernel_sandbox.watch.state_budget import StateBudget

__all__ = [
    "BackendContext",
    "PersistentBackend",
    "ReplayBackend",
    "SnapshotBackend",
    "SnapshotRunner",
    "StateBackend",
]


class BackendContext(Protocol):
    """What a backend needs from its pool."""

    zygote: Zygote
    limits: Limits
    options: WorkerOptions
    budget: StateBudget
    replayed_cells: int


class StateBackend(CellRunner, Protocol):
    """The state of one trajectory; called by one `PooledRunner`, one cell at a time."""

    @property
    def containment(self) -> Containment:
        """The layers around the last started process."""
        ...

    async def __aenter__(self) -> Self:
        """Start what must exist before the first cell."""
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the backend."""
        ...

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copy the files that its cells have created; return the paths of the copies."""
        ...

    def branch(self) -> StateBackend:
        """Return a backend, not entered yet, that starts from this backend's state."""
        ...


class PersistentBackend(AsyncResource):
    """One worker that is kept, evicted when others need its memory, and then rebuilt."""

    def __init__(self, host: BackendContext, inputs: Mapping[str, Path]) -> None:
        """Prepare the backend; the first cell starts the worker.

        Args:
            host: the pool.
            inputs: the files that the code may read.
        """
        self._host = host
        self._inputs = dict(inputs)
        self._worker: CellWorker | None = None
        self._history = CellHistory()
        self._notice = ""
        self._is_closed = False
        self.containment = Containment()
        """The layers around the last started worker."""

    async def run(self, source: str) -> CellResult:
        """Run a cell, after the earlier cells if the worker was ended meanwhile."""
        if self._is_closed:
            raise SessionClosedError("the trajectory is closed")
        with self._host.budget.using(self):
            worker = await self._ready()
            try:
                result = await worker.run(source)
            except BaseException:  # what it had done by then can't be repeated
                self._history.has_gap = True
                raise
            finally:
                self._keep(worker)
            self._history.record(source, result)
        notice, self._notice = self._notice, ""
        return replace(result, message=f"{notice} {result.message}".strip()) if notice else result

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copy the files, after running the cells again if the worker was ended meanwhile."""
        if self._is_closed:
            raise SessionClosedError("the trajectory is closed")
        if self._worker is None and not self._history.cells:
            return ()
        with self._host.budget.using(self):
            worker = await self._ready()
            try:
                return await worker.collect(folder)
            finally:
                self._keep(worker)

    def _keep(self, worker: CellWorker) -> None:
        """Count the memory of the worker, unless it was ended meanwhile."""
        if self._worker is worker:
            self._host.budget.keep(self, worker.pid, self._host.zygote.pid)

    async def _ready(self) -> CellWorker:
        """Return the worker, in the state after the earlier cells; create it if there is none."""
        if self._worker is not None and self._worker.pid is None and self._history.cells:
            await self._end()  # it has died since, and an empty one would continue without state
        return self._worker or await self._built()

    async def _built(self) -> CellWorker:
        host = self._host
        options = host.options
        worker = CellWorker(
            host.zygote,
            host.limits,
            self._inputs,
            isolate=options.isolate,
            overlay=options.overlay,
            keeps_ledger=options.keeps_ledger,
        )
        self._worker = worker  # from here on, ending the backend ends it too
        try:
            await worker.__aenter__()
            self.containment = worker.containment
            host.replayed_cells += len(self._history.cells)
            self._notice = await self._history.replay(worker.run)
        except BaseException:  # half a state is of no use
            await self._end()
            raise
        return worker

    async def evict(self) -> None:
        """End the worker; the text stays."""
        await self._end()

    def branch(self) -> PersistentBackend:
        """Return a backend that rebuilds this state with its first cell."""
        other = PersistentBackend(self._host, self._inputs)
        other._history = self._history.copy()
        return other

    async def interrupt(self) -> None:
        """Interrupt the running cell."""
        if self._worker is not None:
            await self._worker.interrupt()

    async def restart(self) -> None:
        """Discard the state."""
        self._history = CellHistory()
        await self._end()

    async def close(self) -> None:
        """End the worker."""
        self._is_closed = True
        await self._end()

    async def _end(self) -> None:
        worker, self._worker = self._worker, None
        self._host.budget.forget(self)
        if worker is not None:
            await worker.close()


class SnapshotRunner:
    """One path through a tree; a `CellRunner` whose state can be branched at any time."""

    def __init__(self, tree: SnapshotTree, node: Snapshot | None = None) -> None:
        """Start a path; no cell runs yet.

        Args:
            tree: the tree; the caller keeps ownership.
            node: the node where the path begins; `None` for the root.
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
        """Run a cell after the earlier ones; see `SnapshotTree.run`."""
        async with self._lock:
            if self._is_closed:
                raise SessionClosedError("the runner is closed")
            try:
                result, self.node = await self.tree.run(self.node, source, self._note)
            finally:
                self._cell = None
            return result

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copy the files of the state after the last cell; see `SnapshotTree.collect`."""
        async with self._lock:
            if self._is_closed:
                raise SessionClosedError("the runner is closed")
            return await self.tree.collect(self.node, folder)

    def _note(self, cell: CellRun) -> None:
        self._cell = cell

    def branch(self) -> SnapshotRunner:
        """Return a runner that continues from here independently; nothing is copied or run."""
        return SnapshotRunner(self.tree, self.node)

    async def interrupt(self) -> None:
        """Interrupt the running cell, if any."""
        if self._cell is not None:
            await self._cell.interrupt()

    async def restart(self) -> None:
        """Return to the empty state."""
        async with self._lock:
            self.node = self.tree.root

    async def close(self) -> None:
        """Refuse further cells; the states stay until the tree is closed."""
        self._is_closed = True


class SnapshotBackend(SnapshotRunner, AsyncResource):
    """A path through a tree of states; its branches share the tree."""

    def __init__(
        self,
        host: BackendContext,
        inputs: Mapping[str, Path],
        branch_of: SnapshotRunner | None = None,
    ) -> None:
        """Prepare the backend; entering it starts its own tree, if it has one.

        Args:
            host: the pool.
            inputs: the files that the code may read.
            branch_of: the runner to continue from, in its tree; `None` for a tree of its own.
        """
        tree = (
            branch_of.tree
            if branch_of
            else SnapshotTree(
                host.zygote, host.limits, inputs, budget=host.budget, options=host.options
            )
        )
        super().__init__(tree, branch_of.node if branch_of else None)
        self._host = host
        self._inputs = dict(inputs)
        self._owns_tree = branch_of is None

    async def _open(self) -> None:
        """Start the tree, unless another backend owns it."""
        if self._owns_tree:
            await self.tree.__aenter__()

    async def run(self, source: str) -> CellResult:
        """Run a cell in a fork of the state."""
        with self._counting():
            return await super().run(source)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        before = self.tree.replayed_cells
        try:
            yield
        finally:
            self._host.replayed_cells += self.tree.replayed_cells - before

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copy the files of the state."""
        with self._counting():
            return await super().collect(folder)

    def branch(self) -> SnapshotBackend:
        """Return a backend that continues from the same node."""
        return SnapshotBackend(self._host, self._inputs, self)

    async def close(self) -> None:
        """End the tree with all its states, if this backend owns it."""
        await super().close()
        if self._owns_tree:
            await self.tree.close()


class ReplayBackend(ReplayRunner):
    """Backend that keeps only the text of the cells."""

    def __init__(self, host: BackendContext, inputs: Mapping[str, Path]) -> None:
        """Prepare the backend; each cell starts its own worker.

        Args:
            host: the pool.
            inputs: the files that the code may read.
        """
        super().__init__(host.zygote, host.limits, inputs, options=host.options)
        self._host = host

    async def run(self, source: str) -> CellResult:
        """Run the earlier cells, silently, and then this one."""
        self._host.replayed_cells += len(self.history.cells)
        return await super().run(source)

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Run all cells once more and copy the files that they create."""
        self._host.replayed_cells += len(self.history.cells)
        return await super().collect(folder)

    def branch(self) -> ReplayBackend:
        """Return a backend with a copy of the text."""
        other = ReplayBackend(self._host, self._inputs)
        other.history = self.history.copy()
        return other
