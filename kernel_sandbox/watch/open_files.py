"""The limit on open files: each watched process costs some descriptors here."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernel_sandbox.errors import ContainmentError

__all__ = ["BETWEEN_CELLS", "CellFiles", "allow_open_files", "is_shortage"]

BETWEEN_CELLS = 64
"""Descriptors that a kernel has between cells but not during a cell."""

_SPARE = 128
"""Reserve for short uses: checks of processes and folders, starts and copies."""


def allow_open_files(least: int, wanted: int) -> None:
    """Raise this process's soft limit on open files, as far as the hard limit allows.

    What a kernel may open stays the same: it sets lower limits of its own.

    Args:
        least: descriptors that must be available besides those that are open.
        wanted: how many would be useful.

    Raises:
        ContainmentError: the hard limit is too low for `least`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = _SPARE
    with suppress(OSError):
        used += sum(1 for _ in Path("/dev/fd").iterdir())
    if hard != resource.RLIM_INFINITY and used + least > hard:
        raise ContainmentError(
            f"{used + least} open files are needed for this many concurrent trajectories; the "
            f"limit of this process is {hard}. Run fewer (trajectories_at_once) or raise the limit "
            "(ulimit -Hn)."
        )
    target = used + max(least, wanted)
    if hard != resource.RLIM_INFINITY:
        target = min(target, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def is_shortage(error: OSError) -> bool:
    """Return whether nothing more can be opened, so that what was not seen may still exist.

    Args:
        error: the error of an attempt to open something.
    """
    return error.errno in (errno.EMFILE, errno.ENFILE)


class CellFiles:
    """Descriptors reserved for clients that connect after a cell; cells can't use them.

    libzmq 4.3.5 ends the process when a client connects to a socket file and no descriptor is
    free (`ipc_listener.cpp`). So a cell that leaves files open and a reload of its page would end
    the kernel with all its variables. Not covered: a client that connects during such a cell.
    """

    def __init__(self) -> None:
        """Use the current soft limit as the limit of cells."""
        self._soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    @contextmanager
    def of_a_cell(self) -> Iterator[None]:
        """Apply the limit of cells, which they may change; allow some more files afterwards."""
        _set_soft(self._soft)
        try:
            yield
        finally:
            self._soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            if self._soft != resource.RLIM_INFINITY:
                _set_soft(self._soft + BETWEEN_CELLS)


def _set_soft(limit: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
