"""The processes of one kernel, seen from outside: find and end them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from subprocess import Popen

import psutil

from kernel_sandbox.environment import RUN_DIR_VARIABLE
from kernel_sandbox.open_files import is_shortage
from kernel_sandbox.process_numbers import number_inside

__all__ = [
    "KNOWS_CHILDREN",
    "end",
    "end_all",
    "exited",
    "find_kernel",
    "is_ended",
    "read_at_once",
    "refuse_shortage",
    "sweep",
    "tree_below",
    "walk",
]

_POLL_S = 0.02
_SWEEPS = 20
_SWEEP_PAUSE_S = 0.01
KNOWS_CHILDREN = Path("/proc/thread-self/children").exists()
"""Whether the system lists the children of a process, which most Linux systems do."""


def tree_below(pid: int) -> list[psutil.Process]:
    """Returns the process and its descendants, itself first; none when it is gone."""
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
    if not KNOWS_CHILDREN:  # psutil looks at all of the machine, each time
        left_out = {process.pid for pid in closed for process in tree_below(pid)}
        found = {process.pid for root in roots for process in tree_below(root)}
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
            refuse_shortage(error)
            continue  # it has ended
        yield pid
        for task in tasks:
            try:
                waiting += map(int, read_at_once(f"/proc/{pid}/task/{task}/children").split())
            except OSError as error:
                refuse_shortage(error)


def refuse_shortage(error: OSError) -> None:
    """Raises the error where nothing more can be opened: what was not seen may be there."""
    if is_shortage(error):
        raise error


def read_at_once(path: str) -> bytes:
    """Returns what the system tells in a file of `/proc`.

    Raises:
        OSError: the process is gone, or nothing more can be opened.
    """
    with open(path, "rb") as file:  # noqa: PTH123 (many times a second)
        return file.read()


def is_ended(pid: int) -> bool:
    """Returns whether a process is gone, or has ended and waits for its parent to notice."""
    try:
        return read_at_once(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError as error:
        refuse_shortage(error)
        return True


def find_kernel(root: int, inner_pid: int) -> int | None:
    """Returns the kernel's process id as this machine numbers it, if it is alive.

    Args:
        root: the process that was started: a monitor, or the kernel itself.
        inner_pid: the kernel's own idea of its process id.
    """
    for process in tree_below(root):
        # Three deep at most: the monitor, the first process of the namespace, the kernel.
        if number_inside(process.pid) == inner_pid and process.pid != root:
            return process.pid
    return root if root == inner_pid else None


def end(root: int, is_monitor: bool) -> None:
    """Kills the descendants of the process, and the process itself unless it ends by itself.

    Args:
        root: the process that was started.
        is_monitor: whether it is one that returns once every member of its process namespace
            is gone: killed itself, it could not tell when that is.
    """
    descendants = tree_below(root)[1:]
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
