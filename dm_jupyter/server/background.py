"""Background work of the server extension: kept until it ends, its faults logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

__all__ = ["Tasks"]

_log = logging.getLogger(__name__)


class Tasks:
    """A set of background tasks that are closed together."""

    def __init__(self) -> None:
        """Start empty."""
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start work in the background."""
        return self.keep(asyncio.create_task(work))

    def keep(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Keep a task that was started elsewhere."""
        self._tasks.add(task)
        task.add_done_callback(self._drop)
        return task

    async def close(self) -> None:
        """Cancel tasks that still run, and return when they have ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _drop(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("background work broke", exc_info=error)
