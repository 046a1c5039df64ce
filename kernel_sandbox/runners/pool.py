"""A pool for thousands of trajectories, with bounds on open ones, running cells and memory.

A trajectory that thinks costs only memory. If its memory is needed, it is kept as text and rebuilt
when its next cell comes. The number of cells that run at once depends on the cores, not on the
trajectories ("decoupled" resource peaks, DataMind, arXiv 2509.25084, §4).
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

    Enter it in the thread that lives longest: the system ends all workers with that thread, even
    if the process is killed.
    """

    def __init__(
        self,
        settings: PoolSettings | None = None,
        limits: Limits | None = None,
        *,
        options: WorkerOptions | None = None,
        installer: PackageInstaller | None = None,
    ) -> None:
        """Prepare a pool; entering the context starts it.

        Args:
            settings: capacity and profile of the pool.
            limits: what each trajectory may use.
            options: how workers are started.
            installer: installs, unasked, what cells import and the environment lacks; `None` to
                install nothing.

        Raises:
            ValueError: the options have an overlay, and the installer has its own.
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
        """Start the zygote and check which layers are active around a worker.

        Raises:
            KernelStartError: the zygote did not start.
            ContainmentError: the machine can't confine workers as the profile requires, or lets
                this process open too few files for so many trajectories.
            PackageError: the folder of the installer's packages can't be created.
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
                f"this machine can't restrict a worker's {'; '.join(missing)}. Use the profile "
                "`interactive` to run anyway."
            )

    async def close(self) -> None:
        """End every trajectory, and the zygote. Safe to call again."""
        self._is_open = False
        await run_shielded(self._close())

    async def _close(self) -> None:
        async with AsyncExitStack() as stack:  # if one can't be closed, the others still are
            stack.push_async_callback(self.zygote.close)
            for runner in tuple(self._runners):
                stack.push_async_callback(runner.close)

    @asynccontextmanager
    async def runner(self, inputs: Mapping[str, Path] | None = None) -> AsyncIterator[PooledRunner]:
        """Open a trajectory once the pool has room for it, and close it at the end.

        Args:
            inputs: the files that its code may read, by the names that it uses for them.

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
        """Count a trajectory that has reached its deadline; for `PooledRunner`."""
        self._kills["deadline"] += 1

    async def count_cell(self, result: CellResult) -> None:
        """Count a cell that has run, and make room for the next; for `PooledRunner`."""
        self._cells += 1
        if result.ended_by:
            self._kills[result.ended_by] += 1
        await self.budget.make_room()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until one more process may run a cell; for `PooledRunner`."""
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
        """Return the current metrics of the pool."""
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
        """Wrap a backend in a pool; called by `SandboxPool.runner`."""
        self._pool = pool
        self._backend = backend
        deadline_s = pool.settings.deadline_s
        self._ends_at = None if deadline_s is None else time.monotonic() + deadline_s
        self._is_over = False
        self._is_closed = False

    @property
    def backend(self) -> StateBackend:
        """The backend that keeps its state."""
        return self._backend

    @property
    def containment(self) -> Containment:
        """The layers around the last started process; none before the first cell."""
        return self._backend.containment

    async def run(self, source: str) -> CellResult:
        """Run one cell when its turn comes, after installing what it lacks if that is allowed.

        Args:
            source: the code.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            KernelStartError: no worker could be started.
            PackageError: the environment's interpreter can't be queried for its packages.
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
        """Copy the files that its code has created in the working folder, when its turn comes.

        They keep their paths relative to that folder; links and inputs are left out. A state that
        has no process is rebuilt first, even after the deadline.

        Args:
            folder: the target, created if missing; a file of the same name is replaced.

        Returns:
            The paths of the copies, sorted.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            KernelStartError: no worker could be started.
            WorkspaceError: a file can't be copied, or it takes the total above `disk_bytes`; the
                error names it, and nothing was copied.
        """
        if self._is_closed:
            raise SessionClosedError("the trajectory is closed")
        async with self._pool.turn():
            paths = await self._backend.collect(folder)
        await self._pool.budget.make_room()
        return paths

    @asynccontextmanager
    async def branch(self) -> AsyncIterator[PooledRunner]:
        """Open a trajectory that continues from here independently, without queueing."""
        async with self._backend.branch() as backend, self._pool._opened(backend) as runner:
            runner._ends_at = self._ends_at
            yield runner

    async def interrupt(self) -> None:
        """Interrupt the running cell, if any."""
        await self._backend.interrupt()

    async def restart(self) -> None:
        """Discard the state."""
        await self._backend.restart()

    async def close(self) -> None:
        """End the trajectory. Safe to call again."""
        self._is_closed = True
        await self._backend.close()
