"""Serves thousands of trajectories: so many at once, so many cells at once, so much memory.

A trajectory that thinks costs only memory; one whose memory is needed is kept as text and built
again when its next cell comes. What runs at once is bounded by the cores, not by the trajectories
("decoupled" resource peaks, DataMind, arXiv 2509.25084, §4).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from kernel_sandbox.aio import AsyncResource, run_shielded
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.strictness import shortcomings
from kernel_sandbox.errors import ContainmentError, SessionClosedError
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.packages.packages import PackageInstaller
from kernel_sandbox.runners.pool_packages import PoolPackages, with_refusals
from kernel_sandbox.runners.pool_settings import PoolMetrics, PoolSettings, StateRetention
from kernel_sandbox.runners.state_backends import (
    PersistentBackend,
    ReplayBackend,
    SnapshotBackend,
    StateBackend,
)
from kernel_sandbox.types import CellResult, CellStatus, Limits
from kernel_sandbox.watch.state_budget import StateBudget

__all__ = ["PoolMetrics", "PoolSettings", "PooledRunner", "SandboxPool", "StateRetention"]


class SandboxPool(AsyncResource):
    """A zygote and the trajectories that run on it; an async context manager.

    Enter it in the thread that lives longest: the system ends all workers with that thread, also
    when the process is killed.
    """

    def __init__(
        self,
        settings: PoolSettings | None = None,
        limits: Limits | None = None,
        *,
        options: WorkerOptions | None = None,
        installer: PackageInstaller | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            settings: how much to take on.
            limits: what each trajectory may use.
            options: how workers are started.
            installer: gets, unasked, what cells import and the environment lacks; `None` for
                nothing.

        Raises:
            ValueError: there is an overlay in the options, and an installer with its own.
        """
        self.settings = settings or PoolSettings()
        self.limits = limits or Limits()
        self.options = options or WorkerOptions()
        self.packages: PoolPackages | None = None
        if installer is not None:
            if self.options.overlay is not None:
                raise ValueError("give SandboxPool an overlay or an installer, not both")
            self.options = replace(self.options, overlay=installer.site)
            self.packages = PoolPackages(installer)
        self.zygote = Zygote(self.settings.modules, isolate=self.options.isolate)
        self.budget = StateBudget(self.settings.live_bytes)
        self.replayed_cells = 0
        self.containment = Containment()
        """The layers around a worker, as they were when the pool was opened."""
        self._places = asyncio.Semaphore(self.settings.trajectories_at_once)
        self._turns = asyncio.Semaphore(self.settings.cells_at_once)
        self._runners: set[PooledRunner] = set()
        self._queued = self._waiting = self._running = self._cells = 0
        self._kills: Counter[str] = Counter()
        self._opened_at = time.monotonic()
        self._is_open = False

    async def _open(self) -> None:
        """Warms the zygote and, for the profile `rollout`, looks what holds around a worker.

        Raises:
            KernelStartError: the zygote did not come up.
            ContainmentError: the machine can't confine workers as the profile asks, or lets this
                process open too few files for so many trajectories.
            PackageError: the folder of the installer's packages can't be made.
        """
        self.settings.allow_open_files()
        if self.packages is not None:
            await self.packages.open()
        await self.zygote.__aenter__()
        self._is_open = True
        await self._refuse_degraded()
        self._opened_at = time.monotonic()

    async def _refuse_degraded(self) -> None:
        async with PersistentBackend(self, {}) as backend:
            await backend.run("pass")
            self.containment = backend.containment
            missing = shortcomings(self.settings.profile, backend.containment)
        if missing:
            raise ContainmentError(
                f"this machine does not hold a worker's {'; '.join(missing)}. Ask for the profile "
                "`interactive` to run all the same."
            )

    async def close(self) -> None:
        """Ends every trajectory, and the zygote. Safe to call again."""
        self._is_open = False
        await run_shielded(self._close())

    async def _close(self) -> None:
        async with AsyncExitStack() as stack:  # one that can't be closed leaves none of the others
            stack.push_async_callback(self.zygote.close)
            for runner in tuple(self._runners):
                stack.push_async_callback(runner.close)

    @asynccontextmanager
    async def runner(self, inputs: Mapping[str, Path] | None = None) -> AsyncIterator[PooledRunner]:
        """Opens a trajectory once there is a place for it, and closes it at the end.

        Args:
            inputs: the files that its code may read, by the names under which it does.

        Raises:
            SessionClosedError: the pool is closed.
            WorkspaceError: an input can't be used.
        """
        self._queued += 1
        try:
            await self._places.acquire()
        finally:
            self._queued -= 1
        try:
            async with AsyncExitStack() as stack:
                backend = await stack.enter_async_context(self._backend(dict(inputs or {})))
                yield await stack.enter_async_context(self._opened(backend))
        finally:
            self._places.release()

    def _backend(self, inputs: dict[str, Path]) -> StateBackend:
        if not self._is_open:
            raise SessionClosedError("the pool is closed, or was not started")
        match self.settings.strategy:
            case StateRetention.PERSISTENT:
                return PersistentBackend(self, inputs)
            case StateRetention.SNAPSHOT:
                return SnapshotBackend(self, inputs)
            case StateRetention.REPLAY:
                return ReplayBackend(self, inputs)

    @asynccontextmanager
    async def _opened(self, backend: StateBackend) -> AsyncIterator[PooledRunner]:
        runner = PooledRunner(self, backend)
        self._runners.add(runner)
        try:
            yield runner
        finally:
            self._runners.discard(runner)
            await runner.close()

    def count_deadline(self) -> None:
        """Counts a trajectory that has come to its deadline; for `PooledRunner`."""
        self._kills["deadline"] += 1

    async def count_cell(self, result: CellResult) -> None:
        """Counts a cell that has run, and makes room for the next; for `PooledRunner`."""
        self._cells += 1
        if result.ended_by:
            self._kills[result.ended_by] += 1
        await self.budget.make_room()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits until one more process may be at work; for `PooledRunner`."""
        self._waiting += 1
        try:
            await self._turns.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._turns.release()

    def metrics(self) -> PoolMetrics:
        """Returns what the pool does now."""
        elapsed_s = max(time.monotonic() - self._opened_at, 1e-9)
        return PoolMetrics(
            active=len(self._runners),
            queued=self._queued,
            running=self._running,
            waiting=self._waiting,
            cells=self._cells,
            cells_per_s=self._cells / elapsed_s,
            live_bytes=self.budget.used_bytes,
            evictions=self.budget.evictions,
            replayed_cells=self.replayed_cells,
            kills=dict(self._kills),
        )


class PooledRunner:
    """One trajectory; a `CellRunner`."""

    def __init__(self, pool: SandboxPool, backend: StateBackend) -> None:
        """Takes a backend in a pool; made by `SandboxPool.runner`."""
        self._pool = pool
        self._backend = backend
        deadline_s = pool.settings.deadline_s
        self._ends_at = None if deadline_s is None else time.monotonic() + deadline_s
        self._is_over = False
        self._is_closed = False

    @property
    def backend(self) -> StateBackend:
        """What holds its state."""
        return self._backend

    @property
    def containment(self) -> Containment:
        """The layers around the process that was started last; none before the first cell."""
        return self._backend.containment

    async def run(self, source: str) -> CellResult:
        """Runs one cell when its turn comes, after what it lacks was installed if that may be.

        Args:
            source: the code.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            KernelStartError: no worker could be started.
            PackageError: the environment's interpreter can't be asked what it has.
            asyncio.CancelledError: the caller was cancelled; the cell has been stopped.
        """
        if self._is_closed:
            raise SessionClosedError("the trajectory is closed")
        if self._ends_at is None:
            return await self._run(source)
        left_s = self._ends_at - time.monotonic()
        if left_s > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    return await self._run(source)
        if not self._is_over:
            self._is_over = True
            self._pool.count_deadline()
        message = (
            f"the trajectory took longer than its {self._pool.settings.deadline_s:g} s; "
            "no further cell runs in it"
        )
        return CellResult(CellStatus.TIMEOUT, message=message, ended_by="deadline")

    async def _run(self, source: str) -> CellResult:
        pool = self._pool
        prepared = await pool.packages.prepare(source) if pool.packages else None
        async with pool.turn():
            result = await self._backend.run(source)
        await pool.count_cell(result)
        return with_refusals(result, prepared) if prepared else result

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copies the files that its code has made in the working folder, when its turn comes.

        They keep their places relative to that folder; links and inputs are left out. A state
        that has no process is built again first, also after the deadline.

        Args:
            folder: where the copies go, made if missing; a file of the same name is replaced.

        Returns:
            Where the copies lie, sorted.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            KernelStartError: no worker could be started.
            WorkspaceError: a file can't be copied, or with it they are above `disk_bytes`; it is
                named, and nothing was copied.
        """
        if self._is_closed:
            raise SessionClosedError("the trajectory is closed")
        async with self._pool.turn():
            paths = await self._backend.collect(folder)
        await self._pool.budget.make_room()
        return paths

    @asynccontextmanager
    async def branch(self) -> AsyncIterator[PooledRunner]:
        """Opens a trajectory that goes on from here by itself; it takes no place in the queue."""
        async with self._backend.branch() as backend, self._pool._opened(backend) as runner:
            runner._ends_at = self._ends_at
            yield runner

    async def interrupt(self) -> None:
        """Interrupts the running cell; does nothing when none runs."""
        await self._backend.interrupt()

    async def restart(self) -> None:
        """Forgets the state."""
        await self._backend.restart()

    async def close(self) -> None:
        """Ends the trajectory. Safe to call again."""
        self._is_closed = True
        await self._backend.close()
