"""Teardown that runs at the end of a context and that a cancelled caller can't cut short."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

__all__ = ["AsyncResource", "run_shielded"]

T = TypeVar("T")


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile.

    Args:
        work: the coroutine to finish; it must bound its own time.

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
            task.exception()  # mark it as retrieved: the cancellation takes precedence
        raise cancelled
    return task.result()


class AsyncResource(ABC):
    """An async context manager that calls `close` on exit, and also if opening fails."""

    async def __aenter__(self) -> Self:
        """Open the resource; if that fails, close it and raise the error."""
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the resource, whatever happened."""
        await self.close()

    async def _open(self) -> None:  # noqa: B027 (many have nothing to open)
        """Start what must exist from the beginning; by default, nothing."""

    @abstractmethod
    async def close(self) -> None:
        """End what was started; must be safe to call again."""
