"""Processor time and memory of process trees, including processes that have ended.

Processor time is exact to a microsecond for living processes and for those this process has reaped.
For those that others have reaped, the system reports hundredths of a second, truncated in the sum.
Processes that end with their process namespace are counted nowhere, so read before a tree of states
is closed.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["MIB", "Cost", "Meter", "PeakMemory", "cpu_seconds", "descendants", "pss_bytes"]

MIB = 1024 * 1024
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a measured piece of work."""

    wall_s: float
    cpu_s: float
    """Processor time of this process and its descendants."""


class Meter:
    """Meter of processor and clock time since its creation."""

    def __init__(self) -> None:
        """Start the meter."""
        self._cpu_s = cpu_seconds()
        self._began = time.perf_counter()

    def read(self) -> Cost:
        """Return the cost so far."""
        wall_s = time.perf_counter() - self._began
        return Cost(wall_s, cpu_seconds() - self._cpu_s)


def cpu_seconds() -> float:
    """Return the processor seconds of this process and its descendants, living or dead."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    below = sum(map(_cpu_seconds, descendants(os.getpid())))
    return below + sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _cpu_seconds(pid: int) -> float:
    try:
        # The clock of another process: clock_getcpuclockid(3).
        own = time.clock_gettime((~pid << 3) | 2)
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return own + (int(fields[13]) + int(fields[14])) * _TICK_S


def descendants(pid: int) -> list[int]:
    """Return all descendants of a process, including zombies."""
    found, waiting = [], [pid]
    while waiting:
        below: list[int] = []
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{waiting.pop()}/task").iterdir():
                with contextlib.suppress(OSError):
                    below += map(int, (task / "children").read_text(encoding="ascii").split())
        found += below
        waiting += below
    return found


def pss_bytes(pid: int) -> int:
    """Return the bytes of a process and its descendants, with shared pages counted once."""
    return sum(map(_pss_bytes, (pid, *descendants(pid))))


def _pss_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:  # noqa: PTH123 (often)
            return next((int(x.split()[1]) * 1024 for x in lines if x.startswith("Pss:")), 0)
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return 0


class PeakMemory:
    """Continuous watch of a tree's memory; not for a pass whose time is measured."""

    def __init__(self, pid: int, *, without_root: bool = False) -> None:
        """Prepare the watch; entering starts it.

        Args:
            pid: the root of the tree.
            without_root: whether the root itself is excluded.
        """
        self.peak_bytes = 0
        self._pid = pid
        self._without_root = without_root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on)

    def __enter__(self) -> Self:
        """Start the watch."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the watch."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Update the peak with the current memory."""
        own = _pss_bytes(self._pid) if self._without_root else 0
        self.peak_bytes = max(self.peak_bytes, pss_bytes(self._pid) - own)

    def _look_on(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            self.look()
