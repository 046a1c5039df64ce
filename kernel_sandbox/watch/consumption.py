"""Resource use of a kernel's processes, seen from outside: memory, processor, removed files."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from kernel_sandbox.watch.process_tree import KNOWS_CHILDREN, read_at_once, refuse_shortage, walk
from kernel_sandbox.watch.processes import tree_below

__all__ = [
    "Usage",
    "available_bytes",
    "cpu_seconds",
    "measure_usage",
    "memory_file_bytes",
    "nameless_bytes",
    "private_bytes",
    "private_bytes_at_most",
    "resident_bytes",
    "resident_sum",
    "shared_once",
    "socket_bytes",
    "usage",
]

_MINOR_FAULTS = 7
"""Their index in a process's `stat`, counted from after its name."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_USUAL_BUFFER_BYTES = 212_992


_FEW_FILES = 64
"""A process with no more open files is not searched for sockets."""
_FEW_SOCKETS = 64
_MEMORY_FILES = ("tmp", "dev/shm")
"""Folders of a kernel's view whose files are in memory and belong to no process."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of a kernel and of all that it started, at one moment."""

    memory_bytes: int
    processes: int


def measure_usage(roots: Iterable[int], limit_bytes: int) -> Usage:
    """Return what the processes and their descendants use; see `usage`.

    Args:
        roots: the tops of the trees.
        limit_bytes: the sum above which the exact figure matters.
    """
    return usage(walk(roots), limit_bytes)


def usage(pids: Iterable[int], limit_bytes: int) -> Usage:
    """Return what these processes use together.

    Resident sizes are summed. Only if that sum exceeds the limit are pages that several processes
    share counted once, since that takes the system far longer.

    Args:
        pids: the processes.
        limit_bytes: the sum above which the exact figure matters.

    Raises:
        OSError: nothing more can be opened, so they may use more.
    """
    tree = list(pids)
    total = resident_sum(tree)
    if total > limit_bytes and len(tree) > 1:
        total = shared_once(tree)
    return Usage(total, len(tree))


def resident_sum(pids: Iterable[int]) -> int:
    """Return the sum of the processes' resident sizes, bytes; wait for none of them.

    Args:
        pids: the processes.

    Raises:
        OSError: nothing more can be opened, so they may use more.
    """
    return sum(map(_resident_bytes, pids))


def shared_once(pids: Iterable[int]) -> int:
    """Return the memory of processes together, bytes, with shared pages counted once.

    It blocks for as long as a process forks or maps without end: the system reads none meanwhile.

    Args:
        pids: the processes.
    """
    return sum(map(_own_share, pids))


def socket_bytes(pids: Iterable[int]) -> int:
    """Return what may wait in the sockets of these processes, bytes; a few are not counted.

    The system does not report what really waits there.

    Args:
        pids: the processes.

    Raises:
        OSError: nothing more can be opened, so there may be more of them.
    """
    found: set[str] = set()
    for pid in pids:
        listing = f"/proc/{pid}/fd"
        try:
            # The number of open files, since Linux 6.2; 0 before.
            if 0 < os.stat(listing).st_size <= _FEW_FILES:  # noqa: PTH116
                continue
            for entry in os.scandir(listing):
                with contextlib.suppress(OSError):
                    target = os.readlink(entry.path)  # noqa: PTH115
                    if target.startswith("socket:"):
                        found.add(target)
        except OSError as error:
            refuse_shortage(error)
    return max(0, len(found) - _FEW_SOCKETS) * _buffer_bytes()


@functools.cache
def _buffer_bytes() -> int:
    """Return the bytes that a socket accepts before its sender has to wait."""
    try:
        return int(Path("/proc/sys/net/core/wmem_default").read_text(encoding="ascii"))
    except OSError:
        return _USUAL_BUFFER_BYTES


def memory_file_bytes(pid: int) -> int:
    """Return the size of the files that a kernel has in memory, bytes.

    Args:
        pid: a process in its view; one that sees the machine's own files has none.
    """
    total = 0
    for name in _MEMORY_FILES:
        with contextlib.suppress(OSError):
            inside = f"/proc/{pid}/root/{name}"
            if os.stat(inside).st_dev != os.stat(f"/{name}").st_dev:  # noqa: PTH116
                found = os.statvfs(inside)
                total += (found.f_blocks - found.f_bfree) * found.f_bsize
    return total


def available_bytes() -> int | None:
    """Return the machine's available memory, bytes, or `None` if it is not reported."""
    try:
        lines = read_at_once("/proc/meminfo").split(b"\n", 4)
        return next(int(x.split()[1]) * 1024 for x in lines if x.startswith(b"MemAvailable"))
    except (OSError, StopIteration):
        return None


def nameless_bytes(pids: Iterable[int]) -> int:
    """Return the bytes of removed files that these processes keep open.

    Args:
        pids: the processes.

    Raises:
        OSError: nothing more can be opened, so there may be more of them.
    """
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
        except OSError as error:
            refuse_shortage(error)
    return sum(found.values())


def resident_bytes(pid: int) -> int:
    """Return the resident memory of one process in bytes, or 0 if it is gone."""
    with contextlib.suppress(OSError):
        return _resident_bytes(pid)
    return 0


def _resident_bytes(pid: int) -> int:
    try:
        if KNOWS_CHILDREN:
            return int(read_at_once(f"/proc/{pid}/statm").split()[1]) * _PAGE_BYTES
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
    except OSError as error:
        refuse_shortage(error)
        return 0


def private_bytes(pid: int | None) -> int:
    """Return the memory that a process shares with no other, bytes, or 0 if it is gone.

    Args:
        pid: the process; `None` for one that was never there.
    """
    if pid is None:
        return 0
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return resident_bytes(pid)
    private = [line.split()[1] for line in lines if line.startswith("Private_")]
    return sum(map(int, private)) * 1024


def private_bytes_at_most(pid: int | None, ancestor: int | None) -> int:
    """Return an upper bound of `private_bytes` in a hundredth of its time.

    What the process has beyond its ancestor may be private. Of the memory that it inherited, it
    has copied no more pages than it faulted in. Not covered: files that it alone has mapped, and
    the few pages that the system counts late.

    Args:
        pid: the process; `None` for one that was never there.
        ancestor: the process, several forks before, whose memory all others inherited.
    """
    if pid is None:
        return 0
    inherited = _anonymous_bytes(ancestor) if ancestor is not None else 0
    try:
        faults = int(read_at_once(f"/proc/{pid}/stat").rpartition(b")")[2].split()[_MINOR_FAULTS])
    except OSError:
        return private_bytes(pid)
    copied = min(inherited, faults * _PAGE_BYTES)
    return max(0, _anonymous_bytes(pid) - inherited) + copied


def _anonymous_bytes(pid: int) -> int:
    try:
        resident, of_files = read_at_once(f"/proc/{pid}/statm").split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(of_files)) * _PAGE_BYTES


def cpu_seconds(pid: int) -> float:
    """Return the processor time of the process and its living descendants, seconds."""
    total = 0.0
    for process in tree_below(pid):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _own_share(pid: int) -> int:
    try:
        full = psutil.Process(pid).memory_full_info()
    except psutil.Error:
        return resident_bytes(pid)
    return int(getattr(full, "pss", full.rss))
