"""The driver's handle on one node of a `RayPool`: starts its actor, calls it, notices its end."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import (
    NodeLostError,
    RayMissingError,
    SandboxError,
    SessionClosedError,
)
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.packages.commands import install_extra
from kernel_sandbox.packages.packages import PackageInstaller
from kernel_sandbox.ray.ray_host import RayHost
from kernel_sandbox.runners.pool import PoolSettings
from kernel_sandbox.types import Limits

__all__ = ["RayNode", "load_ray"]

_CALLS_AT_ONCE = 100_000
"""Calls that an actor handles at a time; its pool bounds the work."""
_CANCEL_WAIT_S = 30.0
_END_WAIT_S = 30.0


def load_ray() -> Any:
    """Return the module `ray`.

    Raises:
        RayMissingError: it is not installed.
    """
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise RayMissingError(
            f"a pool over several machines needs Ray: {install_extra('ray')}"
        ) from error


class RayNode:
    """A node and the pool on it; once lost it stays lost."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        """Start nothing yet.

        Args:
            entry: the entry of the node in `ray.nodes()`.
        """
        self.id: str = entry["NodeID"]
        self.cores: float = entry["Resources"]["CPU"]
        """The cores as Ray counts them: a container's share, or what Ray was started with."""
        self.name = f"{entry['NodeManagerAddress']} ({self.id[:8]})"
        """The address and short id, for a person."""
        self.open = 0
        """The number of open trajectories on it."""
        self.lost = ""
        """Why it no longer accepts calls; empty while it does."""
        self.lost_at = 0.0
        """When it was lost, by `time.monotonic()`."""
        self.limits = Limits()
        """What each trajectory may use there."""
        self.containment = Containment()
        """The layers around the workers there, as they were when their pool was started."""
        self._ray = load_ray()
        self._actor: Any = None
        self._is_closed = False
        self._numbers = itertools.count()
        self._staged: dict[str, asyncio.Task[Any]] = {}

    async def start(
        self,
        settings: PoolSettings,
        limits: Limits,
        options: WorkerOptions,
        make_installer: Callable[[], PackageInstaller] | None = None,
    ) -> None:
        """Start the actor; return when its zygote is warm.

        Args:
            settings: how much the node takes on.
            limits: what each trajectory may use.
            options: how workers are started.
            make_installer: as for `RayPool`.

        Raises:
            NodeLostError: the actor did not start, or died.
            KernelStartError: its zygote did not start.
            ContainmentError: the node can't confine workers as the profile asks.
            PackageError: the installer can't be created there.
        """
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        placement = {
            "num_cpus": 0,  # the pool bounds itself; Ray's own share stays with the training
            "max_concurrency": _CALLS_AT_ONCE,
            "max_restarts": 0,  # it would come back without the states
            "scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(self.id, soft=False),
        }
        actor = self._ray.remote(RayHost).options(**placement)
        self._actor = actor.remote(settings, limits, options, make_installer)
        self.limits = limits
        try:
            self.containment = await self.call("start")
        except BaseException:
            await self.end()
            raise

    def number(self) -> int:
        """Return a number for a new trajectory."""
        return next(self._numbers)

    async def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of `RayHost`.

        Args:
            method: its name.
            arguments: its arguments, by position.

        Raises:
            SessionClosedError: the pool is closed.
            NodeLostError: the node is gone.
            SandboxError: what the method raised; an error of another kind is its cause.
            asyncio.CancelledError: the caller was cancelled, and so was the method: it has ended.
        """
        if self._is_closed:
            raise SessionClosedError("the pool is closed")
        if self.lost:
            raise NodeLostError(self.lost)
        reference = getattr(self._actor, method).remote(*arguments)
        try:
            return await reference
        except asyncio.CancelledError:
            await run_shielded(self._cancelled(reference))
            raise
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, SandboxError):
                raise error.cause from None
            text = f"{method!r} failed on node {self.name}: {error.cause!r}"
            raise SandboxError(text) from error
        except self._ray.exceptions.RayError as error:
            raise self._gone(error) from error

    async def _cancelled(self, reference: Any) -> None:
        """Cancel a call and wait for its end, so that the next one finds an idle state."""
        self._ray.cancel(reference)
        await _settled(reference, _CANCEL_WAIT_S)

    def _gone(self, error: Exception) -> SandboxError:
        if self._is_closed:
            return SessionClosedError("the pool is closed")
        reason = str(error).strip().partition("\n")[0]
        self.lost = (
            f"node {self.name} is lost, and so is the state of its trajectories. Open them "
            f"again: the pool continues on the other nodes. Ray reports: {reason}"
        )
        self.lost_at = time.monotonic()
        self._kill()  # an actor that is only unreachable for now would keep its workers
        return NodeLostError(self.lost)

    async def stage(self, digest: str, reference: Any) -> None:
        """Transfer a content to the node, once.

        Args:
            digest: the digest of the content.
            reference: the reference of the object that contains it.

        Raises:
            SessionClosedError: the pool is closed.
            NodeLostError: the node is gone.
            SandboxError: it could not be written there.
        """
        task = self._staged.get(digest)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = asyncio.create_task(self.call("stage", digest, reference))
            self._staged[digest] = task
        await asyncio.shield(task)  # others may wait for it too

    async def end(self) -> None:
        """End the pool on the node, and the actor. Safe to call again."""
        if self._is_closed:
            return
        self._is_closed = True
        await run_shielded(self._end())

    async def _end(self) -> None:
        if self._actor is not None and not self.lost and self._ray.is_initialized():
            await _settled(self._actor.end.remote(), _END_WAIT_S)
            self._kill()
        if self._staged:
            await asyncio.wait(self._staged.values())

    def _kill(self) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor)


async def _settled(reference: Any, seconds: float) -> None:
    """Wait until a call has ended, whatever its outcome, for this time at most."""
    future: asyncio.Future[Any] = asyncio.ensure_future(reference)
    done, _ = await asyncio.wait((future,), timeout=seconds)
    if done and not future.cancelled():
        future.exception()  # mark it as retrieved
