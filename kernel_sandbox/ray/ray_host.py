"""The part of a `RayPool` on a node: a local pool and its trajectories, by number."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import SessionClosedError
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.packages.packages import PackageInstaller
from kernel_sandbox.ray.staging import StagedFiles
from kernel_sandbox.runners.pool import PooledRunner, PoolMetrics, PoolSettings, SandboxPool
from kernel_sandbox.types import Limits

__all__ = ["RayHost"]


class RayHost:
    """The actor, called by one `RayNode`: many calls at a time, all in one event loop.

    The zygote is started from that loop's thread, which lives as long as the actor. The system
    ends the zygote and its workers with that thread, even if the actor is killed.
    """

    def __init__(
        self,
        settings: PoolSettings,
        limits: Limits,
        options: WorkerOptions,
        make_installer: Callable[[], PackageInstaller] | None = None,
    ) -> None:
        """Start nothing yet; `start` does, in the thread of the event loop.

        Args:
            settings: how much the node takes on.
            limits: what each trajectory may use.
            options: how workers are started.
            make_installer: as for `RayPool`.
        """
        self._settings, self._limits, self._options = settings, limits, options
        self._make_installer = make_installer
        self._started: SandboxPool | None = None
        self._files = StagedFiles()
        self._open: dict[int, tuple[PooledRunner, AsyncExitStack]] = {}

    async def start(self) -> Containment:
        """Open the local pool; return the layers around its workers.

        Raises:
            KernelStartError: its zygote did not start.
            ContainmentError: the machine can't confine workers as the profile asks.
            PackageError: the installer can't be created here.
        """
        installer = await asyncio.to_thread(self._make_installer) if self._make_installer else None
        options = self._options
        pool = SandboxPool(self._settings, self._limits, options=options, installer=installer)
        self._started = pool
        await pool.__aenter__()
        return pool.containment

    @property
    def _pool(self) -> SandboxPool:
        if self._started is None:
            raise SessionClosedError("the pool was not started")
        return self._started

    async def stage(self, digest: str, data: bytes) -> None:
        """Store the content of an input.

        Args:
            digest: the digest of the content.
            data: the content, which Ray transferred.

        Raises:
            OSError: it can't be written.
        """
        await asyncio.to_thread(self._files.write, digest, data)

    async def open(self, number: int, inputs: Mapping[str, str]) -> None:
        """Open a trajectory.

        Args:
            number: its number from now on.
            inputs: the digests of file contents, by the names under which its code reads them.

        Raises:
            SessionClosedError: the pool is closed.
            WorkspaceError: an input can't be used.
        """
        paths = {name: self._files.path(digest) for name, digest in inputs.items()}
        await self._enter(number, self._pool.runner(paths))

    async def branch(self, number: int, parent: int) -> None:
        """Open a trajectory that continues from the state of another.

        Args:
            number: its number from now on.
            parent: the number of the other.

        Raises:
            SessionClosedError: the other is closed.
        """
        await self._enter(number, self._runner(parent).branch())

    async def _enter(self, number: int, opening: AbstractAsyncContextManager[PooledRunner]) -> None:
        async with AsyncExitStack() as stack:
            runner = await stack.enter_async_context(opening)
            self._open[number] = (runner, stack.pop_all())

    def _runner(self, number: int) -> PooledRunner:
        if number not in self._open:
            raise SessionClosedError("the trajectory is closed")
        return self._open[number][0]

    async def run(self, number: int, source: str) -> dict[str, Any]:
        """Run a cell; return its `CellResult` as JSON.

        Args:
            number: the number of the trajectory.
            source: the code.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            KernelStartError: no worker could be started.
            asyncio.CancelledError: the call was cancelled; the cell has been stopped.
        """
        return (await self._runner(number).run(source)).to_json()

    async def collect(self, number: int) -> dict[str, bytes]:
        """Return the files that the trajectory's code has created, by relative path.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            KernelStartError: no worker could be started.
            WorkspaceError: a file can't be read, or the files exceed `disk_bytes` together.
        """
        runner = self._runner(number)
        folder = _temporary()
        try:
            paths = await runner.collect(folder.path)
            return await asyncio.to_thread(
                lambda: {str(path.relative_to(folder.path)): path.read_bytes() for path in paths}
            )
        finally:
            folder.remove()

    async def interrupt(self, number: int) -> None:
        """Interrupt the running cell.

        Raises:
            SessionClosedError: the trajectory is closed.
        """
        await self._runner(number).interrupt()

    async def restart(self, number: int) -> None:
        """Discard the state.

        Raises:
            SessionClosedError: the trajectory is closed.
        """
        await self._runner(number).restart()

    async def close(self, number: int) -> None:
        """Close a trajectory; do nothing if it is closed."""
        if number in self._open:
            await run_shielded(self._open.pop(number)[1].aclose())

    async def metrics(self) -> PoolMetrics:
        """Return the current metrics of the local pool."""
        return self._pool.metrics()

    async def end(self) -> None:
        """End every trajectory and the local pool, and remove the files."""
        for number in tuple(self._open):
            await self.close(number)
        if self._started is not None:
            await self._started.close()
        self._files.remove()


def _temporary() -> PrivateFolder:
    return PrivateFolder(Path(tempfile.gettempdir()).resolve(), "dm-made-")
