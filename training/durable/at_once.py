"""Work on many items, several at a time, and on one key by one task at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from dm_jupyter.core.errors import first_fault

__all__ = ["KeyLocks", "SharedWork", "each_at_once"]

T = TypeVar("T")


async def each_at_once(
    items: Iterable[T], at_once: int, work: Callable[[T], Awaitable[None]]
) -> None:
    """Work on each item, and begin in their order. The first fault ends all work and is raised.

    Args:
        items: to work on; each is taken when its work begins.
        at_once: items under way at the same time, at most.
        work: on one item.

    Raises:
        ValueError: `at_once` is below 1, so nothing would be done.
    """
    if at_once < 1:
        raise ValueError(f"ask for 1 item or more at a time, not for {at_once}")
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(worker())
    except* Exception as faults:
        raise first_fault(faults) from faults


class SharedWork:
    """What the tasks share that hold one key after the other."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.holders = 0
        self.fault: Exception | None = None
        """For the holders to set: why the work failed, for those that wait."""


class KeyLocks:
    """Locks by key, in one event loop; a key without holders takes no memory."""

    def __init__(self) -> None:
        self._works: dict[str, SharedWork] = {}

    @asynccontextmanager
    async def holding(self, key: str) -> AsyncIterator[SharedWork]:
        """Admit one task per key at a time; the next one finds what the first has done."""
        work = self._works.setdefault(key, SharedWork())
        work.holders += 1
        try:
            async with work.lock:
                yield work
        finally:
            work.holders -= 1
            if not work.holders:
                del self._works[key]
