"""Watchdog over a kernel's memory, processes and files, which ends the kernel at a limit.

Covered: the resident memory of the kernel and all its descendants together, with their files in
memory and what may wait in their sockets. So are their number, and the growth of the kernel's
folders since it started. If the machine runs out of memory, the watched kernel that uses most is
ended.
Not covered: what appears and disappears between two checks. The next kernel in the same folder
gets the full allowance again.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from kernel_sandbox.types import MIB, Limits
from kernel_sandbox.watch import consumption, process_tree
from kernel_sandbox.watch.open_files import is_shortage

__all__ = ["DiskUse", "LimitViolation", "Watchdog", "disk_use", "out_of_memory"]

BUSY_INTERVAL_S = 0.1
IDLE_INTERVAL_S = 1.0
DISK_INTERVAL_S = 1.0
COST_FACTOR = 20
"""A check walks over processes or files: it may take a twentieth of the time."""
LONGEST_PAUSE_S = 1.0
"""However long a check takes: a machine slowed by its processes needs it most."""
BLIND_S = 1.0
"""How long checks may fail because no descriptor is free, before the kernel is ended."""
LEAST_ENTRY_BYTES = 4096
"""An empty file has no block but uses space; with this size, a million of them end too."""
FLOOR_BYTES = 256 * MIB
"""Memory left for the machine: below it, the system would end a program of its choice."""
WORTH_ENDING_BYTES = 64 * MIB
_BLOCK_BYTES = 512
_LESS_MEMORY = (
    "Work on fewer rows or columns at a time (usecols, chunksize, smaller dtypes), or raise the "
    "limit."
)


@dataclass(frozen=True, slots=True)
class LimitViolation:
    """A limit that the kernel exceeded, and that it was ended for."""

    kind: Literal["memory", "processes", "disk", "connection", "unwatched"]
    message: str
    needed_bytes: int = 0
    """The least memory that it had if the system ended it between two checks; else 0."""


class Watchdog:
    """A watchdog over the processes of one kernel: checks are frequent only while a cell runs.

    A thread checks its folders, at most every second.
    """

    def __init__(
        self,
        roots: int | tuple[int | None, ...] | Callable[[], Iterable[int]],
        kernel: int,
        limits: Limits,
        folders: tuple[Path, ...] = (),
        ran_out: Callable[[], bool] = lambda: False,
        before: DiskUse | None = None,
    ) -> None:
        """Watch nothing until `guard` runs.

        Args:
            roots: the process that was started, with the process, if any, that becomes the parent
                of what it leaves behind. Or a function that finds all processes that count.
            kernel: the kernel's own process.
            limits: what they may use.
            folders: the folders that they may write; what is in two of them counts once.
            ran_out: whether the system has ended one of them because memory ran out.
            before: the disk use of the folders when the count of their growth began; `None` for
                their use when `guard` starts.
        """
        if callable(roots):
            self._find = roots
        else:
            given = (roots,) if isinstance(roots, int) else roots
            tops = tuple(root for root in given if root is not None)
            self._find = partial(process_tree.walk, tops)
        self._kernel = kernel
        self._limits = limits
        self._folders = tuple(one for one in folders if not set(one.parents) & set(folders))
        self._ran_out = ran_out
        self._before = before
        self._wake = asyncio.Event()
        self._is_busy = False
        self._peak_bytes = self._used_bytes = 0

    def begin(self) -> None:
        """Start the measurement of a cell's peak, and the frequent checks."""
        self._peak_bytes = consumption.resident_bytes(self._kernel)
        self._is_busy = True
        self._wake.set()

    def finish(self) -> int | None:
        """End the frequent checks; return the cell's peak in bytes, or `None` if never seen."""
        self._is_busy = False
        self._peak_bytes = max(self._peak_bytes, consumption.resident_bytes(self._kernel))
        return self._peak_bytes or None

    async def guard(self) -> LimitViolation:
        """Watch until a limit is exceeded, and return that violation.

        Raises:
            asyncio.CancelledError: the caller was cancelled; all watching has ended.
        """
        self._thread = ThreadPoolExecutor(1)  # a kernel that delays it delays no other
        watches = [asyncio.create_task(self._guard_processes())]
        if self._folders:
            watches.append(asyncio.create_task(self._guard_folders()))
        _watching.add(self)
        try:
            done, _ = await asyncio.wait(watches, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            self._thread.shutdown(wait=False)
            _watching.discard(self)
            for watch in watches:
                watch.cancel()

    async def _guard_processes(self) -> LimitViolation:
        sight = _Sight()
        while True:
            started = time.perf_counter()
            try:
                violation = await self._look()
                sight.clear()
            except OSError as error:
                violation = sight.lost(error)
            if violation is not None:
                return violation
            cost_s = COST_FACTOR * (time.perf_counter() - started)
            await self._pause(min(cost_s, LONGEST_PAUSE_S))

    async def _look(self) -> LimitViolation | None:
        limits = self._limits
        found = self._counted()
        if len(found) > limits.processes:
            return _too_many(limits)
        if self._ran_out():
            return out_of_memory(limits)
        used = consumption.resident_sum(found)
        if used > limits.memory_bytes and len(found) > 1:
            exact = asyncio.get_running_loop().run_in_executor(
                self._thread, consumption.shared_once, found
            )
            while not (await asyncio.wait((exact,), timeout=BUSY_INTERVAL_S))[0]:
                # Processes that fork without end delay the sum, but not this.
                if len(self._counted()) > limits.processes:
                    return _too_many(limits)
            used = exact.result()
        used += consumption.memory_file_bytes(self._kernel) + consumption.socket_bytes(found)
        self._used_bytes = used
        self._peak_bytes = max(self._peak_bytes, used)
        if used > limits.memory_bytes:
            return LimitViolation(
                "memory",
                f"the kernel used {used // MIB} MiB and was ended: the limit is "
                f"{limits.memory_bytes // MIB} MiB. {_LESS_MEMORY}",
            )
        return self._victim()

    def _counted(self) -> list[int]:
        """Return the processes, at most one more than are allowed."""
        return list(islice(self._find(), self._limits.processes + 1))

    def _victim(self) -> LimitViolation | None:
        """Return a violation if the machine has no memory left and no other kernel uses more."""
        available = consumption.available_bytes()
        if available is None or available >= FLOOR_BYTES:
            return None
        heaviest = max(_watching, key=lambda one: one._used_bytes, default=self)
        if heaviest is not self or self._used_bytes < WORTH_ENDING_BYTES:
            return None
        return LimitViolation(
            "memory",
            f"the machine had {available // MIB} MiB of memory left, and the kernel, which used "
            f"{self._used_bytes // MIB} MiB, was ended. {_LESS_MEMORY}",
            self._used_bytes,
        )

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
        # A cell has begun: the next check comes one interval later, so as not to slow short cells.
        await asyncio.sleep(BUSY_INTERVAL_S)

    async def _guard_folders(self) -> LimitViolation:
        stop, sight, before = threading.Event(), _Sight(), self._before
        try:
            while True:
                started = time.perf_counter()
                try:
                    if before is None:
                        before = await asyncio.to_thread(disk_use, self._folders, stop)
                    violation = await self._look_at_folders(before, stop)
                    sight.clear()
                except OSError as error:
                    violation = sight.lost(error)
                if violation is not None:
                    return violation
                cost_s = time.perf_counter() - started
                await asyncio.sleep(max(DISK_INTERVAL_S, COST_FACTOR * cost_s))
        finally:
            stop.set()  # a thread can't be cancelled

    async def _look_at_folders(
        self, before: DiskUse, stop: threading.Event
    ) -> LimitViolation | None:
        limit = self._limits.disk_bytes
        enough = before.size_bytes + limit
        used = await asyncio.to_thread(disk_use, self._folders, stop, enough)
        nameless = await asyncio.to_thread(consumption.nameless_bytes, self._find())
        if used.size_bytes + nameless > enough:
            return _full(limit)
        return _closed() if used.closed > before.closed else None


_watching: set[Watchdog] = set()
"""The active watchdogs of this process; one of their kernels is the heaviest."""


class _Sight:
    """The time for which a watch could not check, because no descriptor was free."""

    def __init__(self) -> None:
        self._lost_at: float | None = None

    def clear(self) -> None:
        self._lost_at = None

    def lost(self, error: OSError) -> LimitViolation | None:
        """Record a failed check, which proves nothing; return a violation after too long."""
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        if now - self._lost_at < BLIND_S:
            return None
        return LimitViolation(
            "unwatched",
            f"the kernel could not be watched any more and was ended: {error}. Run fewer at once, "
            "or raise that limit.",
        )


def _too_many(limits: Limits) -> LimitViolation:
    return LimitViolation(
        "processes",
        f"the kernel started more than {limits.processes} processes and was ended: that is the "
        "limit. Use fewer workers (n_jobs=1).",
    )


def out_of_memory(limits: Limits) -> LimitViolation:
    """Return the violation of a kernel that the system itself ended at its memory limit.

    Args:
        limits: the limits of the kernel.
    """
    return LimitViolation(
        "memory",
        f"the kernel needed more than {limits.memory_bytes // MIB} MiB and the system ended it. "
        + _LESS_MEMORY,
        limits.memory_bytes + 1,
    )


def _full(limit_bytes: int) -> LimitViolation:
    size = f"{limit_bytes // MIB} MiB" if limit_bytes >= MIB else f"{limit_bytes} bytes"
    return LimitViolation(
        "disk",
        f"the kernel's files grew by more than {size} and it was ended: that is the limit on "
        "disk. Write fewer or smaller files (parquet, fewer columns), remove those that are not "
        "needed, or raise the limit.",
    )


def _closed() -> LimitViolation:
    return LimitViolation(
        "disk",
        "the kernel made a folder whose files can't be counted and was ended: disk use is "
        "limited. Leave new folders readable, and their paths short.",
    )


@dataclass(frozen=True, slots=True)
class DiskUse:
    """The disk use of the files in some folders."""

    size_bytes: int
    closed: int
    """Entries that can't be read: a folder without the right to read, a path too long."""

    def plus(self, other: DiskUse) -> DiskUse:
        """Return the sum of both, whose folders must not overlap."""
        return DiskUse(self.size_bytes + other.size_bytes, self.closed + other.closed)


def disk_use(
    folders: tuple[Path, ...], stop: threading.Event, enough_bytes: int | None = None
) -> DiskUse:
    """Return the disk use of the folders' files, with at least 4 KiB for each entry.

    No link is followed, a file with several names counts once, and what vanishes meanwhile does
    not count.

    Args:
        folders: where to count.
        stop: ends the count early when set.
        enough_bytes: above it, the count ends: a kernel that fills a disk causes no long walk.

    Raises:
        OSError: nothing more can be opened.
    """
    size_bytes = closed = 0
    seen: set[tuple[int, int]] = set()
    waiting = [str(folder) for folder in folders]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if stop.is_set() or (enough_bytes is not None and size_bytes > enough_bytes):
                        return DiskUse(size_bytes, closed)
                    size_bytes += _room(entry, seen)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if is_shortage(error):
                raise
            closed += 1
    return DiskUse(size_bytes, closed)


def _room(entry: os.DirEntry[str], seen: set[tuple[int, int]]) -> int:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
        if (status.st_dev, status.st_ino) in seen:
            return 0
        seen.add((status.st_dev, status.st_ino))
    return max(status.st_blocks * _BLOCK_BYTES, LEAST_ENTRY_BYTES)
