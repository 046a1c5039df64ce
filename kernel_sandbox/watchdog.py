"""Watches the memory and the number of processes of a kernel, and ends it at the limit.

Covered: the resident memory of the kernel and all its descendants together, and how many they
are. Not covered: memory that no process maps (files in a memory file system, which the view
limits in size), and what is allocated and freed between two looks.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Literal

from kernel_sandbox import processes
from kernel_sandbox.types import MIB, Limits

__all__ = ["Breach", "Watchdog"]

BUSY_INTERVAL_S = 0.1
IDLE_INTERVAL_S = 1.0
COST_FACTOR = 20
"""A look costs a walk over all processes of the machine: it may take a twentieth of the time."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that the kernel went over, and with it its life."""

    kind: Literal["memory", "processes"]
    message: str


class Watchdog:
    """Looks at the processes of one kernel, often while a cell runs, seldom otherwise."""

    def __init__(self, root: int, kernel: int, limits: Limits) -> None:
        """Watches nothing until `guard` runs.

        Args:
            root: the process that was started.
            kernel: the kernel's own process.
            limits: what they may use.
        """
        self._root = root
        self._kernel = kernel
        self._limits = limits
        self._wake = asyncio.Event()
        self._is_busy = False
        self._peak_bytes = 0

    def begin(self) -> None:
        """Starts the count of a cell's peak, and the frequent looks."""
        self._peak_bytes = processes.resident_bytes(self._kernel)
        self._is_busy = True
        self._wake.set()

    def finish(self) -> int | None:
        """Ends the frequent looks; returns the cell's peak in bytes, `None` if never seen."""
        self._is_busy = False
        self._peak_bytes = max(self._peak_bytes, processes.resident_bytes(self._kernel))
        return self._peak_bytes or None

    async def guard(self) -> Breach:
        """Returns once a limit has been passed; until then it runs."""
        while True:
            started = time.perf_counter()
            breach = self._look()
            if breach is not None:
                return breach
            await self._pause(COST_FACTOR * (time.perf_counter() - started))

    def _look(self) -> Breach | None:
        limits = self._limits
        usage = processes.measure(self._root, limits.memory_bytes)
        self._peak_bytes = max(self._peak_bytes, usage.memory_bytes)
        if usage.memory_bytes > limits.memory_bytes:
            return Breach(
                "memory",
                f"the kernel used {usage.memory_bytes // MIB} MiB and was ended: the limit is "
                f"{limits.memory_bytes // MIB} MiB. Work on fewer rows or columns at a time "
                "(usecols, chunksize, smaller dtypes), or raise the limit.",
            )
        if usage.processes > limits.processes:
            return Breach(
                "processes",
                f"the kernel started {usage.processes} processes and was ended: the limit is "
                f"{limits.processes}. Use fewer workers (n_jobs=1).",
            )
        return None

    async def _pause(self, least_s: float) -> None:
        wanted = BUSY_INTERVAL_S if self._is_busy else IDLE_INTERVAL_S
        self._wake.clear()
        if self._is_busy:
            await asyncio.sleep(max(wanted, least_s))
            return
        try:
            async with asyncio.timeout(max(wanted, least_s)):
                await self._wake.wait()
        except TimeoutError:
            return
        # A cell has begun: the next look comes one interval later, out of the way of short ones.
        await asyncio.sleep(BUSY_INTERVAL_S)
