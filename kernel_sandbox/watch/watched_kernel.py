"""The base of every kernel that accepts cells: how it ended, and its watchdog."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod

from kernel_sandbox.watch.watchdog import LimitViolation, Watchdog

__all__ = ["WatchedKernel"]


class WatchedKernel(ABC):
    """The part of `RunningKernel` that is the same whatever the process is."""

    def __init__(self) -> None:
        """Start without a watchdog."""
        self._tasks: list[asyncio.Task[None]] = []
        self._watchdog: Watchdog | None = None
        self.dead = asyncio.Event()
        """Set when the process has ended, for whatever reason."""
        self.violation: LimitViolation | None = None
        """The limit violation that it was ended for."""

    def begin_cell(self) -> None:
        """Start frequent checks, because a cell is about to run."""
        if self._watchdog is not None:
            self._watchdog.begin()

    def finish_cell(self) -> int | None:
        """End frequent checks; return the cell's peak memory in bytes."""
        return self._watchdog.finish() if self._watchdog is not None else None

    @abstractmethod
    async def kill(self) -> None:
        """End the process and all that it started; return when they are gone."""

    def _watch(self, watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        self._tasks.append(asyncio.create_task(self._guard(watchdog)))

    async def _guard(self, watchdog: Watchdog) -> None:
        self.violation = await watchdog.guard()
        await self.kill()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
