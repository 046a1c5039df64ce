"""The descendants of a process: found in the system's lists, and ended all at once.

Each process namespace numbers its processes by itself. The module imports little: a monitor uses
it when the machine has no time to spare.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from kernel_sandbox.watch.open_files import is_shortage

__all__ = [
    "KNOWS_CHILDREN",
    "children",
    "children_here",
    "end_all",
    "is_ended",
    "number_inside",
    "number_outside",
    "read_at_once",
    "refuse_shortage",
    "signal_each",
    "walk",
]

KNOWS_CHILDREN = Path("/proc/thread-self/children").exists()
"""Whether the system lists the children of a process, which most Linux systems do."""
_SWEEPS = 20


def walk(roots: Iterable[int], closed: Collection[int] = ()) -> Iterator[int]:
    """Yield these processes and their descendants, each once.

    Args:
        roots: the tops of the trees.
        closed: processes that are left out, with their descendants.

    Raises:
        OSError: nothing more can be opened, so there may be more of them.
    """
    waiting, seen = list(roots), set(closed)
    while waiting:
        pid = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        below = children(pid)
        if below is not None:
            yield pid
            waiting += below


def children(pid: int) -> list[int] | None:
    """Return the children of a process, or `None` if it is gone.

    Args:
        pid: the process.

    Raises:
        OSError: nothing more can be opened, so there may be more of them.
    """
    if not KNOWS_CHILDREN:
        return _children_by_psutil(pid)
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError as error:
        refuse_shortage(error)
        return None
    found: list[int] = []
    for task in tasks:
        try:
            found += map(int, read_at_once(f"/proc/{pid}/task/{task}/children").split())
        except OSError as error:
            refuse_shortage(error)
    return found


def _children_by_psutil(pid: int) -> list[int] | None:
    import psutil  # noqa: PLC0415 (looks at all of the machine, each time)

    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.NoSuchProcess:
        return None


def refuse_shortage(error: OSError) -> None:
    """Raise the error if nothing more can be opened: what was not seen may exist."""
    if is_shortage(error):
        raise error


def read_at_once(path: str) -> bytes:
    """Return the content of a file of `/proc`.

    Raises:
        OSError: the process is gone, or nothing more can be opened.
    """
    with open(path, "rb") as file:  # noqa: PTH123 (many times a second)
        return file.read()


def is_ended(pid: int) -> bool:
    """Return whether a process is gone, or has ended and waits for its parent to notice."""
    try:
        return read_at_once(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError as error:
        refuse_shortage(error)
        return True


def end_all(find: Callable[[], Iterable[int]]) -> bool:
    """Kill processes of which some may start others meanwhile; return whether there were any.

    All are stopped before the first is killed: a stopped process starts nothing.

    Args:
        find: returns the processes that exist now.
    """
    found: set[int] = set()
    for _ in range(_SWEEPS):
        new = set(find()) - found
        if not new:
            break
        found |= new
        signal_each(new, signal.SIGSTOP)
    signal_each(found, signal.SIGKILL)
    return bool(found)


def signal_each(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that still exists.

    Args:
        pids: the processes.
        number: the signal.
    """
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def number_inside(pid: int) -> int | None:
    """Return the number of a process in its own namespace, or `None` if it does not exist.

    Args:
        pid: its number here.
    """
    try:
        return _numbers(Path(f"/proc/{pid}/status"), "NSpid")[-1]
    except OSError:
        return None


def number_outside(handle: int) -> int:
    """Return the number of a process in the namespace that mounted `/proc`.

    Args:
        handle: a descriptor of the process.

    Raises:
        OSError: the system does not say.
    """
    return _numbers(Path(f"/proc/self/fdinfo/{handle}"), "Pid")[0]


def children_here() -> set[int]:
    """Return the children of this thread, as numbers of its own namespace."""
    level = len(_numbers(Path("/proc/self/status"), "NSpid"))
    found = set()
    for outside in Path("/proc/thread-self/children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):
            found.add(_numbers(Path(f"/proc/{outside}/status"), "NSpid")[level - 1])
    return found


def _numbers(path: Path, name: str) -> list[int]:
    """Return the numbers on a line of a system file, that of the outermost namespace first."""
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return [int(number) for number in line.split()[1:]]
    raise OSError(f"{path} has no {name}")
