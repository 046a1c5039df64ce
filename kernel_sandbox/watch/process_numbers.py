"""The numbers of processes, which each process namespace counts anew."""

from __future__ import annotations

import contextlib
from pathlib import Path

__all__ = ["children_here", "number_inside", "number_outside"]


def number_inside(pid: int) -> int | None:
    """Returns a process's own idea of its number; `None` if there is no such process.

    Args:
        pid: its number here.
    """
    try:
        return _numbers(Path(f"/proc/{pid}/status"), "NSpid")[-1]
    except OSError:
        return None


def number_outside(handle: int) -> int:
    """Returns the number of a process for whoever mounted `/proc`.

    Args:
        handle: a descriptor of the process.

    Raises:
        OSError: the system does not say.
    """
    return _numbers(Path(f"/proc/self/fdinfo/{handle}"), "Pid")[0]


def children_here() -> set[int]:
    """Returns the children of this thread, by the numbers that it uses itself."""
    level = len(_numbers(Path("/proc/self/status"), "NSpid"))
    found = set()
    for outside in Path("/proc/thread-self/children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):
            found.add(_numbers(Path(f"/proc/{outside}/status"), "NSpid")[level - 1])
    return found


def _numbers(path: Path, name: str) -> list[int]:
    """What a line of a file of the system says, of the outermost namespace first."""
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return [int(number) for number in line.split()[1:]]
    raise OSError(f"{path} has no {name}")
