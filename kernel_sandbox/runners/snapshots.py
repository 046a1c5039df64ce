"""A tree of states: each cell runs in a fork of the state before it, which stays as it was.

Branching runs nothing again. A node of a search tree is a waiting process that shares its memory
with its neighbours until one of them writes (copy on write). A state that can't be forked, or that
was evicted to save memory, is rebuilt from the text of its cells.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from kernel_sandbox.aio import AsyncResource, run_shielded
from kernel_sandbox.cells.cell import CellRun
from kernel_sandbox.cells.screen import screen
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import KernelStartError, SessionClosedError
from kernel_sandbox.files.workspace import Workspace, copy_files, regular_files
from kernel_sandbox.forkserver.forking import BRANCHES
from kernel_sandbox.forkserver.snapshot_process import SnapshotContext, SnapshotProcess
from kernel_sandbox.forkserver.worker_process import WorkerOptions, WorkerProcess
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.replay import CellHistory, Past, digest
from kernel_sandbox.types import MIB, CellResult, CellStatus, Limits
from kernel_sandbox.watch.state_budget import StateBudget

__all__ = ["Snapshot", "SnapshotTree"]

STATES = 1024
"""Processes that a tree may have, on top of those of one state."""
SWEEP_S = 1.0
"""Seconds at least between two searches for what a cell may have hidden among the states."""
DEFAULT_BUDGET_BYTES = 4096 * MIB
_STOPPED = (CellStatus.TIMEOUT, CellStatus.INTERRUPTED)
_DROPPED = "What it did is not kept: the state is the one before this cell."


@dataclass(eq=False, slots=True)
class Snapshot:
    """State that the cells on the path from the root have produced."""

    parent: Snapshot | None
    past: Past | None
    """The cell that produced it; `None` for the root."""
    number: int
    """A number unique in its tree; a younger node has a higher one."""
    state: SnapshotProcess | None = field(default=None, repr=False)
    """Its process; `None` if there is only the text."""
    tree: SnapshotTree | None = field(default=None, repr=False)
    """The tree that owns it, once it has a process."""

    def path(self) -> Iterator[Snapshot]:
        """Yield this node and its ancestors, the root last."""
        node: Snapshot | None = self
        while node is not None:
            yield node
            node = node.parent

    async def evict(self) -> None:
        """End the process; the text stays."""
        if self.tree is not None:
            await self.tree.end(self)

    @property
    def depth(self) -> int:
        """The number of cells on the path from the root."""
        return sum(1 for _ in self.path()) - 1


class SnapshotTree(AsyncResource):
    """The states of one search; an async context manager.

    Not covered: a state costs a process and the memory that it has written. The budget bounds the
    sum by evicting the least recently used states.
    """

    def __init__(
        self,
        zygote: Zygote,
        limits: Limits | None = None,
        inputs: Mapping[str, Path] | None = None,
        *,
        budget: StateBudget | None = None,
        options: WorkerOptions | None = None,
    ) -> None:
        """Prepare a tree; entering the context starts it.

        Args:
            zygote: the zygote that forks the first state; the caller keeps ownership.
            limits: what each state may use.
            inputs: the files that the code may read, by the names that it uses for them.
            budget: the memory budget for idle states; `None` for 4 GiB of its own.
            options: how workers are started.
        """
        self._zygote = zygote
        self._limits = limits or Limits()
        self._inputs = dict(inputs or {})
        self._budget = budget or StateBudget(DEFAULT_BUDGET_BYTES)
        self._options = options or WorkerOptions()
        self._workspace: Workspace | None = None
        self._first: WorkerProcess | None = None
        self._context: SnapshotContext | None = None
        self._at_work = 0
        self._sweep: asyncio.TimerHandle | None = None
        self._live: set[Snapshot] = set()
        self._numbers = 0
        self.root = Snapshot(None, None, 0)
        """The empty state."""
        self.containment = Containment()
        """The layers around every state."""
        self.replayed_cells = 0
        """Cells that were run again to rebuild a state."""

    async def _open(self) -> None:
        """Start the first state.

        Raises:
            KernelStartError: it did not start.
            WorkspaceError: an input or the working folder can't be used.
        """
        self._workspace = Workspace(self._inputs)
        roomy = replace(self._limits, processes=self._limits.processes + STATES)
        # At most one state per processor may run a cell at once; the others wait.
        at_work = self._limits.memory_bytes * (os.cpu_count() or 1)
        unwatched = replace(
            self._options, watched=False, group_bytes=self._budget.limit_bytes + at_work
        )
        self._first = WorkerProcess(self._zygote, roomy, self._workspace, unwatched)
        await self._first.start()
        self._context = SnapshotContext(self._first.roots, self._first.home)
        self.containment = self._first.containment

    async def close(self) -> None:
        """End all states and remove their folders. Safe to call again."""
        await run_shielded(self._close())

    async def _close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        first, self._first = self._first, None
        if first is not None:
            await first.stop()
        for node in tuple(self._live):
            await self.end(node)
        if self._workspace is not None:
            self._workspace.remove()

    async def run(
        self, node: Snapshot, source: str, on_cell: Callable[[CellRun], None] = lambda _: None
    ) -> tuple[CellResult, Snapshot]:
        """Run a cell from a state, which stays as it was.

        Args:
            node: the state; several cells may run from it, even at the same time.
            source: the code.
            on_cell: called with the cell when it begins, so that it can be interrupted.

        Returns:
            The cell's result and the state after it, which is `node` itself if the cell was
            refused, was stopped or ended its process.

        Raises:
            SessionClosedError: the tree is closed.
            KernelStartError: no process could be created for it.
            asyncio.CancelledError: the caller was cancelled; the cell's process is gone.
        """
        refusal = screen(source)
        if refusal is not None:
            return CellResult(CellStatus.DENIED, message=refusal.message), node
        self._numbers += 1
        made = Snapshot(node, None, self._numbers)
        async with self.working(node, made):
            state, notice = await self._successor(node, made)
            result = await self._run_in(state, source, on_cell)
            if result.state_lost or result.status in _STOPPED:
                await self._dropped(state)
                message = f"{notice} {result.message} {_DROPPED}".strip()
                return replace(result, message=message, state_lost=False), node
            made.past = Past(source, digest(result))
            if state.has_programs or self._first is None:  # the tree was closed meanwhile
                await state.stop()
            else:
                self._keep(made, state)
        await self._budget.make_room()
        return replace(result, message=f"{notice} {result.message}".strip()), made

    @asynccontextmanager
    async def working(self, *nodes: Snapshot) -> AsyncIterator[None]:
        """Protect nodes, and what is forked from them, from eviction meanwhile.

        The last caller to finish ends what cells have left behind.

        Args:
            nodes: the nodes from which something runs.
        """
        self._at_work += 1
        try:
            with self._budget.using(*nodes):
                yield
        finally:
            self._at_work -= 1
            await run_shielded(self._reap_orphans())

    async def _reap_orphans(self) -> None:
        if self._context is None or not self._is_at_rest:
            return
        if self._sweep is None:  # not after each cell, because it searches the whole tree
            loop = asyncio.get_running_loop()
            self._sweep = loop.call_later(SWEEP_S, self._kill_reparented, self._context)
        await self._context.reap_orphans()

    def _kill_reparented(self, context: SnapshotContext) -> None:
        self._sweep = None
        if self._is_at_rest:
            context.kill_reparented()

    @property
    def _is_at_rest(self) -> bool:
        """Whether its processes exist and all wait."""
        return self._first is not None and self._first.is_alive and not self._at_work

    async def _dropped(self, state: SnapshotProcess) -> None:
        """End a state that is not kept, and free disk space if its cell had left none."""
        await state.stop()
        if state.violation is not None and state.violation.kind == "disk":
            await asyncio.to_thread(state.context.tidy_home, self._limits.disk_bytes)

    async def collect(self, node: Snapshot, folder: Path) -> tuple[Path, ...]:
        """Copy the files of a state; return the paths of the copies.

        A state that has no process is rebuilt for this, and ended afterwards.

        Args:
            node: the state.
            folder: the target, created if missing.

        Raises:
            SessionClosedError: the tree is closed.
            KernelStartError: the state could not be rebuilt.
            WorkspaceError: a file can't be copied, or it takes the total above `disk_bytes`.
        """
        if node.parent is None:
            return ()
        async with self.working(node):
            if node.state is not None:
                return await self._collected(node.state, folder)
            self._numbers += 1
            state, _ = await self._rebuilt(node, Snapshot(node, None, self._numbers))
            try:
                return await self._collected(state, folder)
            finally:
                await run_shielded(state.stop())

    async def _collected(self, state: SnapshotProcess, folder: Path) -> tuple[Path, ...]:
        made = await asyncio.to_thread(regular_files, state.folder, apart=BRANCHES)
        return await copy_files(made, state.folder, folder, self._limits.disk_bytes)

    async def _run_in(
        self,
        state: SnapshotProcess,
        source: str,
        on_cell: Callable[[CellRun], None] = lambda _: None,
    ) -> CellResult:
        cell = CellRun(state, self._limits, keeps_ledger=self._options.keeps_ledger)
        on_cell(cell)
        try:
            return await cell.run(source)
        except BaseException:
            await run_shielded(state.stop())
            raise

    async def _successor(self, node: Snapshot, made: Snapshot) -> tuple[SnapshotProcess, str]:
        """Return a process for the state after the node, and a notice about it."""
        state = await self._fork(node, made)
        if state is not None:
            return state, ""
        if node.state is not None and node.state.is_alive:
            # It can't be forked, so it continues itself, and the next caller rebuilds the node.
            state, node.state = node.state, None
            self._live.discard(node)
            self._budget.forget(node)
            return state, ""
        return await self._rebuilt(node, made)

    async def _rebuilt(self, node: Snapshot, made: Snapshot) -> tuple[SnapshotProcess, str]:
        """Return a process that has rerun the node's cells from the nearest state, and a notice."""
        missing: list[Past] = []
        for ancestor in node.path():
            state = await self._fork(ancestor, made)
            if state is not None:
                history = CellHistory(missing[::-1])
                self.replayed_cells += len(missing)
                notice = await history.replay(partial(self._run_in, state))
                if not state.is_alive:
                    raise KernelStartError(f"a state could not be rebuilt. {notice}")
                return state, notice
            if ancestor.past is not None:
                missing.append(ancestor.past)
        raise KernelStartError("the first state of the tree has ended")

    async def _fork(self, node: Snapshot, made: Snapshot) -> SnapshotProcess | None:
        if self._first is None or self._context is None:
            raise SessionClosedError("the tree is closed, or was not started")
        parent = self._first if node.parent is None else node.state
        if parent is None:
            return None
        folder = self._folder(node) / BRANCHES / str(made.number)
        with self._budget.using(node):  # it may be an ancestor of those that are in use
            return await SnapshotProcess.fork(parent, folder, self._limits, self._context)

    def _folder(self, node: Snapshot) -> Path:
        if self._workspace is None:
            raise SessionClosedError("the tree is closed, or was not started")
        return self._workspace.path if node.state is None else node.state.folder

    def _keep(self, node: Snapshot, state: SnapshotProcess) -> None:
        node.state, node.tree = state, self
        self._live.add(node)
        self._budget.keep(node, state.kernel_pid, self._zygote.pid)

    async def end(self, node: Snapshot) -> None:
        """End the process of a state; the next cell from there rebuilds it.

        Args:
            node: the state.
        """
        state, node.state = node.state, None
        self._live.discard(node)
        self._budget.forget(node)
        if state is not None:
            await state.stop()
