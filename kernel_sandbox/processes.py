"""The processes of one kernel, seen from outside: find, measure, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import psutil

from kernel_sandbox.environment import RUN_DIR_VARIABLE
from kernel_sandbox.open_files import is_shortage

__all__ = [
    "Usage",
    "cpu_seconds",
    "end",
    "end_all",
    "exited",
    "find_kernel",
    "is_ended",
    "measure",
    "nameless_bytes",
    "private_bytes",
    "private_bytes_at_most",
    "resident_bytes",
    "sweep",
    "usage",
    "walk",
]

_POLL_S = 0.02
_SWEEPS = 20
_SWEEP_PAUSE_S = 0.01
_KNOWS_CHILDREN = Path("/proc/thread-self/children").exists()
"""Whether the system lists the children of a process, which most Linux systems do."""
_MINOR_FAULTS = 7
"""Their place in a process's `stat`, counted from after its name."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a kernel and all that it started use at one moment."""

    memory_bytes: int
    processes: int


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def walk(roots: Iterable[int], closed: Collection[int] = ()) -> Iterator[int]:
    """Yields the processes from these on down, each once.

    Args:
        roots: the tops of the trees.
        closed: processes that are left out, and with them what is below them.

    Raises:
        OSError: nothing more can be opened, so there may be more of them.
    """
    if not _KNOWS_CHILDREN:  # psutil looks at all of the machine, each time
        left_out = {process.pid for pid in closed for process in _tree(pid)}
        found = {process.pid for root in roots for process in _tree(root)}
        yield from found - left_out
        return
    waiting, seen = list(roots), set(closed)
    while waiting:
        pid = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        try:
            tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        except OSError as error:
            _refuse_shortage(error)
            continue  # it has ended
        yield pid
        for task in tasks:
            try:
                waiting += map(int, _read(f"/proc/{pid}/task/{task}/children").split())
            except OSError as error:
                _refuse_shortage(error)


def _refuse_shortage(error: OSError) -> None:
    if is_shortage(error):
        raise error


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 (many times a second)
        return file.read()


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
            _refuse_shortage(error)
    return sum(found.values())


def is_ended(pid: int) -> bool:
    """Returns whether a process is gone, or has ended and waits for its parent to notice."""
    try:
        return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError as error:
        _refuse_shortage(error)
        return True


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of one process in bytes; 0 when it is gone."""
    with contextlib.suppress(OSError):
        return _resident_bytes(pid)
    return 0


def _resident_bytes(pid: int) -> int:
    try:
        if _KNOWS_CHILDREN:
            return int(_read(f"/proc/{pid}/statm").split()[1]) * _PAGE_BYTES
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
    except OSError as error:
        _refuse_shortage(error)
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
        faults = int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[_MINOR_FAULTS])
    except OSError:
        return private_bytes(pid)
    copied = min(inherited, faults * _PAGE_BYTES)
    return max(0, _anonymous_bytes(pid) - inherited) + copied


def _anonymous_bytes(pid: int) -> int:
    try:
        resident, of_files = _read(f"/proc/{pid}/statm").split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(of_files)) * _PAGE_BYTES


def cpu_seconds(pid: int) -> float:
    """Returns the processor time of the process and its living descendants, seconds."""
    total = 0.0
    for process in _tree(pid):
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


def find_kernel(root: int, inner_pid: int) -> int | None:
    """Returns the kernel's process id as this machine numbers it, if it is alive.

    Args:
        root: the process that was started: a monitor, or the kernel itself.
        inner_pid: the kernel's own idea of its process id.
    """
    for process in _tree(root):
        # Three deep at most: the monitor, the first process of the namespace, the kernel.
        if _inner_pid(process.pid) == inner_pid and process.pid != root:
            return process.pid
    return root if root == inner_pid else None


def _inner_pid(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None


def end(root: int, is_monitor: bool) -> None:
    """Kills the descendants of the process, and the process itself unless it ends by itself.

    Args:
        root: the process that was started.
        is_monitor: whether it is one that returns once every member of its process namespace
            is gone: killed itself, it could not tell when that is.
    """
    descendants = _tree(root)[1:]
    for process in descendants:  # parents first: the first member of a namespace takes the rest
        with contextlib.suppress(psutil.Error):
            process.kill()
    if not (is_monitor and descendants):
        with contextlib.suppress(OSError):
            os.kill(root, signal.SIGKILL)


def end_all(find: Callable[[], Iterable[int]]) -> bool:
    """Kills processes of which some may start others meanwhile; returns whether there were any.

    All are stopped before the first is killed: what is stopped starts nothing.

    Args:
        find: returns them, as they are now.
    """
    found: set[int] = set()
    for _ in range(_SWEEPS):
        new = set(find()) - found
        if not new:
            break
        found |= new
        _signal_each(new, signal.SIGSTOP)
    _signal_each(found, signal.SIGKILL)
    return bool(found)


def _signal_each(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def sweep(run_dir: Path) -> int:
    """Kills every process that carries the mark of this run folder; returns how many it found.

    Needed where no process namespace ends them: a daemon leaves the tree, not its environment.
    """
    found: set[int] = set()
    for _ in range(_SWEEPS):
        marked = [process for process in psutil.process_iter() if _is_marked(process, run_dir)]
        if not marked:
            break
        for process in marked:
            found.add(process.pid)
            with contextlib.suppress(psutil.Error):
                process.kill()
        time.sleep(_SWEEP_PAUSE_S)
    return len(found)


def _is_marked(process: psutil.Process, run_dir: Path) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.environ().get(RUN_DIR_VARIABLE) == str(run_dir)
    except (psutil.Error, OSError):
        return False


async def exited(process: Popen[bytes]) -> None:
    """Returns when a process that this one started has ended, without polling on Linux.

    Args:
        process: it is not reaped here.
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or reaped already
        while process.poll() is None:  # noqa: ASYNC110 (nothing to wait on)
            await asyncio.sleep(_POLL_S)
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
