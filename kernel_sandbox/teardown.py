"""Teardown that a cancelled caller can't cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["shielded"]

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` to its end even when the caller is cancelled meanwhile.

    Args:
        work: what has to be finished; it must bound its own time.

    Raises:
        asyncio.CancelledError: the caller was cancelled; `work` has ended nevertheless.
    """
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # seen: the cancellation outweighs it
        raise cancelled
    return task.result()
