"""A pool over several machines: a `SandboxPool` on every node of a Ray cluster.

Ray starts actors on nodes and transfers data. This module decides what runs where, by the number
of open trajectories. The actors belong to the driver: they end with it, and their workers with
them. For each trajectory, the driver has a `RayRunner`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from kernel_sandbox.aio import AsyncResource
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import (
    NodeLostError,
    RayMissingError,
    SandboxError,
    SessionClosedError,
)
from kernel_sandbox.files.workspace import write_files
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.packages.packages import PackageInstaller
from kernel_sandbox.ray.ray_node import RayNode, load_ray
from kernel_sandbox.ray.staging import Contents
from kernel_sandbox.runners.pool import PoolMetrics, PoolSettings
from kernel_sandbox.types import CellResult, Limits

__all__ = ["NodeLostError", "RayMetrics", "RayMissingError", "RayPool", "RayRunner"]

AGAIN_S = 120.0
"""By then Ray has noticed a dead node; a live node gets a new pool for the lost one."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RayMetrics:
    """Metrics of the nodes at one moment, and of what they have done."""

    total: PoolMetrics
    """Their sum; `queued` counts trajectories that wait for a slot on any node."""
    nodes: Mapping[str, PoolMetrics]
    """The metrics of each node, by Ray's node id."""
    refused: Mapping[str, str]
    """Why a node accepts none, by Ray's node id: it was lost, or its pool did not start."""


class RayPool(AsyncResource):
    """A pool on every node, used like a `SandboxPool`; an async context manager.

    Covered: nodes that join and nodes that die; a killed driver leaves no worker. Not covered: a
    state does not outlive its node, and a trajectory does not move to another node. The inputs
    stay in Ray's object store until the pool is closed.
    """

    def __init__(
        self,
        settings: PoolSettings | None = None,
        limits: Limits | None = None,
        *,
        options: WorkerOptions | None = None,
        make_installer: Callable[[], PackageInstaller] | None = None,
        cells_by_cores: bool = False,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: how much each node takes on; `None` for as many cells at once as it has cores.
            limits: what each trajectory may use.
            options: how workers are started.
            make_installer: called on each node to create an installer, which installs what cells
                import and the environment lacks, without asking; `None` for none. Ray transfers
                the function.
            cells_by_cores: whether each node runs as many cells at once as it has cores, whatever
                the settings say.
        """
        self.settings = settings
        self.limits = limits or Limits()
        self.options = options or WorkerOptions()
        self._make_installer = make_installer
        self._cells_by_cores = cells_by_cores or settings is None
        self._places_each = (settings or PoolSettings()).trajectories_at_once
        self._places = asyncio.Semaphore(0)
        self._queued = 0
        self._nodes: dict[str, RayNode] = {}
        self._tried: set[str] = set()
        self._refused: dict[str, str] = {}
        self._contents = Contents(lambda data: load_ray().put(data))
        self._is_open = False

    async def _open(self) -> None:
        """Start a pool on every node that offers cores; end all of them if one fails.

        Raises:
            RayMissingError: Ray is not installed.
            SandboxError: Ray is not initialised.
            NodeLostError: no node offers cores, or all of them died.
            KernelStartError: a zygote did not start.
            ContainmentError: a node can't confine workers as the profile asks.
            PackageError: the installer can't be created on a node.
        """
        if not load_ray().is_initialized():
            raise SandboxError("Ray is not initialised: call ray.init(...) before the pool starts")
        self._is_open = True
        for error in await self._look():
            if not isinstance(error, NodeLostError):  # Ray lists dead nodes for a while
                raise error
        self._refuse()

    async def close(self) -> None:
        """End every trajectory and every actor. Safe to call again."""
        self._is_open = False
        self._places.release()  # wakes the first that waits, and that one the next
        async with asyncio.TaskGroup() as group:
            for node in self._nodes.values():
                group.create_task(node.end())

    async def _look(self) -> list[SandboxError]:
        """Start a pool on the nodes that have none yet; return the errors of those that failed."""
        entries = await asyncio.to_thread(load_ray().nodes)
        new = [entry for entry in entries if self._is_new(entry)]
        self._tried.update(entry["NodeID"] for entry in new)
        async with asyncio.TaskGroup() as group:
            starts = [group.create_task(self._start(RayNode(entry))) for entry in new]
        return [error for start in starts if (error := start.result()) is not None]

    def _is_new(self, entry: Mapping[str, Any]) -> bool:
        if not entry["Alive"] or entry["Resources"].get("CPU", 0) <= 0:
            return False
        node = self._nodes.get(entry["NodeID"])
        if node is not None and node.lost and time.monotonic() - node.lost_at > AGAIN_S:
            del self._nodes[node.id]
            return True
        return entry["NodeID"] not in self._tried

    async def _start(self, node: RayNode) -> SandboxError | None:
        settings = self.settings or PoolSettings()
        if self._cells_by_cores:
            settings = replace(settings, cells_at_once=max(1, int(node.cores)))
        try:
            await node.start(settings, self.limits, self.options, self._make_installer)
        except SandboxError as error:
            log.warning("no pool on node %s: %s", node.name, error)
            if isinstance(error, NodeLostError):
                self._nodes[node.id] = node
            else:
                self._refused[node.id] = str(error)
            return error
        except asyncio.CancelledError:
            self._tried.discard(node.id)  # the next caller starts it
            raise
        if not self._is_open:
            await node.end()
            return SessionClosedError("the pool is closed")
        self._nodes[node.id] = node
        for _ in range(self._places_each):
            self._places.release()
        return None

    @asynccontextmanager
    async def runner(self, inputs: Mapping[str, Path] | None = None) -> AsyncIterator[RayRunner]:
        """Open a trajectory on the node with the fewest per core, once one has a free slot.

        A pool on a node that joined since is started first.

        Args:
            inputs: the files that its code may read, by the names that it uses.

        Raises:
            SessionClosedError: the pool is closed.
            NodeLostError: no node is left.
            WorkspaceError: an input can't be used.
        """
        runner = await self._opened(dict(inputs or {}))
        try:
            yield runner
        finally:
            try:
                await runner.close()
            finally:
                self._leave(runner.node)

    async def _opened(self, inputs: dict[str, Path]) -> RayRunner:
        while True:
            node = await self._place()
            try:
                digests = {}
                for name, path in inputs.items():
                    digests[name] = digest = await self._contents.add(name, path)
                    await node.stage(digest, self._contents.reference(digest))
                return await RayRunner.opened(node, "open", digests)
            except NodeLostError:  # nothing has run yet, so another node will do
                self._leave(node)
            except BaseException:
                self._leave(node)
                raise

    async def _place(self) -> RayNode:
        """Wait for a free slot and take it."""
        self._queued += 1
        try:
            while True:
                if self._is_open:
                    await self._look()
                self._refuse()
                await self._places.acquire()
                if (node := self._best()) is not None:
                    node.open += 1
                    return node
                # the slot belonged to a lost node, and is lost with it
        finally:
            self._queued -= 1

    def _refuse(self) -> None:
        """Raise if waiting is of no use, and wake the next waiter to do the same."""
        if self._left():
            return
        self._places.release()
        if not self._is_open:
            raise SessionClosedError("the pool is closed, or was not started")
        reasons = " ".join((*self._refused.values(), *(x.lost for x in self._nodes.values())))
        raise NodeLostError(f"no node is left. {reasons or 'None of them has cores to give.'}")

    def _left(self) -> list[RayNode]:
        return [node for node in self._nodes.values() if not node.lost] if self._is_open else []

    def _best(self) -> RayNode | None:
        free = [node for node in self._left() if node.open < self._places_each]
        return min(free, key=lambda node: (node.open / node.cores, -node.cores), default=None)

    def _leave(self, node: RayNode) -> None:
        node.open -= 1
        self._places.release()

    async def metrics(self) -> RayMetrics:
        """Return the current metrics of the nodes; lost nodes no longer count.

        Raises:
            SessionClosedError: the pool is closed.
        """
        found = {}
        for node in self._left():
            with suppress(NodeLostError):  # it is listed with its reason
                found[node.id] = await node.call("metrics")
        lost = {node.id: node.lost for node in self._nodes.values() if node.lost}
        return RayMetrics(_sum(found.values(), self._queued), found, {**self._refused, **lost})


def _sum(nodes: Iterable[PoolMetrics], queued: int) -> PoolMetrics:
    parts = tuple(nodes)
    kills: Counter[str] = Counter()
    for part in parts:
        kills.update(part.kills)
    names = [item.name for item in fields(PoolMetrics) if item.name != "kills"]
    total: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in names}
    return PoolMetrics(**{**total, "queued": total["queued"] + queued, "kills": dict(kills)})


class RayRunner:
    """One trajectory on some node; a `CellRunner`."""

    def __init__(self, node: RayNode, number: int) -> None:
        """Create a runner; for `RayPool.runner` and `branch`."""
        self.node = node
        """The node of its state."""
        self._number = number

    @classmethod
    async def opened(cls, node: RayNode, method: str, argument: Any) -> Self:
        """Return a new trajectory; for `RayPool`.

        Args:
            node: the node of the trajectory.
            method: the method of the actor, `open` or `branch`.
            argument: the argument of that method besides the number.

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
        """Run one cell when its turn comes on the node.

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
        """Transfer the files that its code has created to this machine, as `PooledRunner.collect`.

        Not covered: they pass through this process's memory, all at once.

        Args:
            folder: where they go, created if missing; a file of the same name is replaced.

        Returns:
            Their paths, sorted.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone, and the files with it.
            KernelStartError: no worker could be started.
            WorkspaceError: a file can't be copied, or the files exceed `disk_bytes` with it; it is
                named, and nothing was copied.
        """
        contents = await self.node.call("collect", self._number)
        return await write_files(contents, folder, self.node.limits.disk_bytes)

    @asynccontextmanager
    async def branch(self) -> AsyncIterator[RayRunner]:
        """Open a trajectory that continues from here by itself, on the same node.

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
        """Interrupt the running cell; do nothing if none runs.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone.
        """
        await self.node.call("interrupt", self._number)

    async def restart(self) -> None:
        """Discard the state.

        Raises:
            SessionClosedError: the trajectory or the pool is closed.
            NodeLostError: the node is gone.
        """
        await self.node.call("restart", self._number)

    async def close(self) -> None:
        """End the trajectory. Safe to call again, and when the node or the pool is gone."""
        with suppress(NodeLostError, SessionClosedError):
            await self.node.call("close", self._number)
