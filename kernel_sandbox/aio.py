"""Teardown: at the end of a context, and such that a cancelled caller can't cut it short."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

__all__ = ["AsyncResource", "run_shielded"]

T = TypeVar("T")


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
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


class AsyncResource(ABC):
    """An async context manager that is left by closing, also when it could not be opened."""

    async def __aenter__(self) -> Self:
        """Opens; raises what that raises."""
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
        """Closes, whatever happened."""
        await self.close()

    async def _open(self) -> None:  # noqa: B027 (many have nothing to open)
        """Starts what has to be there from the beginning: here, nothing."""

    @abstractmethod
    async def close(self) -> None:
        """Ends what was started; must be safe to call again."""
