"""One trajectory of a `RayPool`: what the driver holds of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import NodeLostError, SessionClosedError
from kernel_sandbox.files.collection import write_files
from kernel_sandbox.ray.ray_node import RayNode
from kernel_sandbox.types import CellResult

__all__ = ["RayRunner"]


class RayRunner:
    """One trajectory on some node; a `CellRunner`."""

    def __init__(self, node: RayNode, number: int) -> None:
        """Made by `RayPool.runner` and by `branch`."""
        self.node = node
        """Where its state is."""
        self._number = number

    @classmethod
    async def opened(cls, node: RayNode, method: str, argument: Any) -> Self:
        """Returns a new trajectory; for `RayPool`.

        Args:
            node: where.
            method: of the actor, `open` or `branch`.
            argument: what that takes besides the number.

        Raises:
            NodeLostError: the node is gone.
            SandboxError: what the method raised.
        """
        runner = cls(node, node.number())
        try:
            await node.call(method, runner._number, argument)
        except BaseException:
            await runner.close()  # it may have been opened just before the caller was cancelled
            raise
        return runner

    @property
    def containment(self) -> Containment:
        """The layers around the workers of its node."""
        return self.node.containment

    async def run(self, source: str) -> CellResult:
        """Runs one cell when its turn comes on the node.

        Args:
            source: the code.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone, and the state with it.
            KernelStartError: no worker could be started.
            asyncio.CancelledError: the caller was cancelled; the cell has been stopped.
        """
        return CellResult.from_json(await self.node.call("run", self._number, source))

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Brings the files that its code has made to this machine; see `PooledRunner.collect`.

        Not covered: they pass through this process's memory, all at once.

        Args:
            folder: where they go, made if missing; a file of the same name is replaced.

        Returns:
            Where they lie, sorted.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone, and the files with it.
            KernelStartError: no worker could be started.
            WorkspaceError: a file can't be copied, or with it they are above `disk_bytes`; it is
                named, and nothing was copied.
        """
        contents = await self.node.call("collect", self._number)
        return await write_files(contents, folder, self.node.limits.disk_bytes)

    @asynccontextmanager
    async def branch(self) -> AsyncIterator[RayRunner]:
        """Opens a trajectory that goes on from here by itself, on the same node.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone.
        """
        runner = await self.opened(self.node, "branch", self._number)
        try:
            yield runner
        finally:
            await runner.close()

    async def interrupt(self) -> None:
        """Interrupts the running cell; does nothing when none runs.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone.
        """
        await self.node.call("interrupt", self._number)

    async def restart(self) -> None:
        """Forgets the state.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone.
        """
        await self.node.call("restart", self._number)

    async def close(self) -> None:
        """Ends the trajectory. Safe to call again, and when the node or the pool is gone."""
        with suppress(NodeLostError, SessionClosedError):
            await self.node.call("close", self._number)
