"""What the processes of a kernel use, seen from outside: memory, processor, removed files."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from kernel_sandbox.processes import (
    KNOWS_CHILDREN,
    read_at_once,
    refuse_shortage,
    tree_below,
    walk,
)

__all__ = [
    "Usage",
    "cpu_seconds",
    "measure",
    "nameless_bytes",
    "private_bytes",
    "private_bytes_at_most",
    "resident_bytes",
    "usage",
]

_MINOR_FAULTS = 7
"""Their place in a process's `stat`, counted from after its name."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a kernel and all that it started use at one moment."""

    memory_bytes: int
    processes: int


def measure(roots: Iterable[int], limit_bytes: int) -> Usage:
    """Returns what the processes and their descendants use; see `usage`.

    Args:
        roots: the tops of the trees.
        limit_bytes: the sum above which the exact figure matters.
    """
    return usage(walk(roots), limit_bytes)


def usage(pids: Iterable[int], limit_bytes: int) -> Usage:
    """Returns what these processes use together.

    Resident sizes are summed; only when that sum passes the limit are pages that several
    processes share counted once, since that takes the system far longer to work out.

    Args:
        pids: the processes.
        limit_bytes: the sum above which the exact figure matters.

    Raises:
        OSError: nothing more can be opened, so they may use more.
    """
    tree = list(pids)
    total = sum(map(_resident_bytes, tree))
    if total > limit_bytes and len(tree) > 1:
        total = sum(map(_own_share, tree))
    return Usage(total, len(tree))


def nameless_bytes(pids: Iterable[int]) -> int:
    """Returns the room of files that these processes hold open, but removed.

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
    """Returns the resident memory of one process in bytes; 0 when it is gone."""
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
    """Returns the memory that a process shares with no other, bytes; 0 when it is gone.

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
    """Returns a bound of `private_bytes` that takes a hundredth of its time.

    What the process has above its ancestor it may share with no other; of what it inherited, it
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
    """Returns the processor time of the process and its living descendants, seconds."""
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
