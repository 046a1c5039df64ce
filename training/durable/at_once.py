"""Work on many items, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from dm_jupyter.core.errors import first_fault

__all__ = ["each_at_once"]

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
