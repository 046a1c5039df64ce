"""What every kernel that takes cells shares: how it ended, and the watchdog over it."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod

from kernel_sandbox.watch.watchdog import LimitViolation, Watchdog

__all__ = ["WatchedKernel"]


class WatchedKernel(ABC):
    """The part of `RunningKernel` that is the same whatever the process is."""

    def __init__(self) -> None:
        """Watches nothing yet."""
        self._tasks: list[asyncio.Task[None]] = []
        self._watchdog: Watchdog | None = None
        self.dead = asyncio.Event()
        """Set when the process has ended, for whatever reason."""
        self.violation: LimitViolation | None = None
        """The limit that it was ended for."""

    def begin_cell(self) -> None:
        """A cell is about to run: the watchdog looks often."""
        if self._watchdog is not None:
            self._watchdog.begin()

    def finish_cell(self) -> int | None:
        """The cell has ended; returns its peak of memory in bytes."""
        return self._watchdog.finish() if self._watchdog is not None else None

    @abstractmethod
    async def kill(self) -> None:
        """Ends the process with all that it started; returns when they are gone."""

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
