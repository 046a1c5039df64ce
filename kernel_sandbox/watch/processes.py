"""The processes of one kernel, seen from outside: find, await and end them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from subprocess import Popen

import psutil

from kernel_sandbox.environment import RUN_DIR_VARIABLE
from kernel_sandbox.watch.process_tree import children, number_inside, signal_each

__all__ = ["end", "exited", "find_kernel", "sweep", "tree_below"]

_POLL_S = 0.02
_SWEEPS = 20
_SWEEP_PAUSE_S = 0.01


def tree_below(pid: int) -> list[psutil.Process]:
    """Return the process and its descendants, itself first, or nothing if it is gone."""
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def find_kernel(root: int, inner_pid: int) -> int | None:
    """Return the kernel's process id as this machine numbers it, if it is alive.

    Args:
        root: the process that was started: a monitor, or the kernel itself.
        inner_pid: the kernel's process id in its own namespace.
    """
    for process in tree_below(root):
        # Three deep at most: the monitor, the first process of the namespace, the kernel.
        if number_inside(process.pid) == inner_pid and process.pid != root:
            return process.pid
    return root if root == inner_pid else None


def end(root: int, is_monitor: bool) -> None:
    """Kill the process and its descendants, or make a monitor do it.

    Args:
        root: the process that was started.
        is_monitor: whether it exits by itself once all below it is gone, and ends what its
            children leave behind. If it were killed, it could do neither.

    Raises:
        OSError: nothing more can be opened.
    """
    if is_monitor and (below := children(root)):
        signal_each(below, signal.SIGKILL)
    else:
        signal_each([*(one.pid for one in tree_below(root)[1:]), root], signal.SIGKILL)


def sweep(run_dir: Path) -> int:
    """Kill every process that carries the mark of this run folder; return how many it found.

    Needed if no process namespace ends them: a daemon leaves the tree, but not its environment.
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
    """Wait until a process that this one started has ended, without polling on Linux.

    Args:
        process: the process, which is not reaped here.
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
