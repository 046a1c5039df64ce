"""What the tabs of a notebook are told of its kernel: how much it uses, and that it has ended."""

from __future__ import annotations

import asyncio
import contextlib

from dm_jupyter.server.background import Tasks
from dm_jupyter.server.kernels.registry import KernelRegistry, NoKernelError
from dm_jupyter.server.notebooks.open_notebooks import OpenNotebook, OpenNotebooks
from dm_jupyter.server.protocol import KernelEnded

__all__ = ["KernelMonitor"]

_METER_S = 2.0


class KernelMonitor:
    """Of all open notebooks."""

    def __init__(self, desks: OpenNotebooks, kernels: KernelRegistry) -> None:
        """Begins to hear of kernels that end.

        Args:
            desks: the open notebooks.
            kernels: their kernels.
        """
        self._desks = desks
        self._kernels = kernels
        self._tasks = Tasks()
        self._watched: set[str] = set()
        """Paths of the notebooks whose kernels' meters are published."""
        kernels.on_death = self._died

    def watch(self, desk: OpenNotebook) -> None:
        """Publishes the meter of the notebook's kernel for as long as a tab is there."""
        if desk.notebook_path not in self._watched:
            self._watched.add(desk.notebook_path)
            self._tasks.spawn(self._watch(desk))

    async def close(self) -> None:
        """Ends it."""
        await self._tasks.close()

    async def _watch(self, desk: OpenNotebook) -> None:
        try:
            while desk.tabs:
                meter = await self._kernels.meter(desk.notebook_path)
                if meter is not None:
                    desk.publish(meter)
                await asyncio.sleep(_METER_S)
        finally:
            self._watched.discard(desk.notebook_path)

    def _died(self, kernel_id: str, why: str) -> None:
        self._tasks.spawn(self._tell_death(kernel_id, why))

    async def _tell_death(self, kernel_id: str, why: str) -> None:
        for desk in list(self._desks):
            with contextlib.suppress(NoKernelError):
                if await self._kernels.kernel_of(desk.notebook_path) == kernel_id:
                    desk.publish(KernelEnded(desk.notebook_path, kernel_id, why))
