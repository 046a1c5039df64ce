"""The limit on open files: each process that is watched costs some descriptors here."""

from __future__ import annotations

import errno
import resource
from contextlib import suppress
from pathlib import Path

from kernel_sandbox.errors import ContainmentError

__all__ = ["allow_open_files", "is_shortage"]

_SPARE = 128
"""For all that opens a file for a moment: looks at processes and folders, starts, copies."""


def allow_open_files(least: int, wanted: int) -> None:
    """Raises this process's soft limit on open files, as far as the hard one lets it.

    What a kernel may open stays as it was: it sets lower limits of its own.

    Args:
        least: descriptors that must be there besides those that are open.
        wanted: how many would be good to have.

    Raises:
        ContainmentError: the hard limit does not leave the least.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = _SPARE
    with suppress(OSError):
        used += sum(1 for _ in Path("/dev/fd").iterdir())
    if hard != resource.RLIM_INFINITY and used + least > hard:
        raise ContainmentError(
            f"that many trajectories at once take {used + least} open files, and this process may "
            f"have {hard}: ask for fewer (trajectories_at_once), or raise the limit (ulimit -Hn)"
        )
    target = used + max(least, wanted)
    if hard != resource.RLIM_INFINITY:
        target = min(target, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def is_shortage(error: OSError) -> bool:
    """Returns whether nothing more can be opened: then what was not seen may well be there.

    Args:
        error: of an attempt to open something.
    """
    return error.errno in (errno.EMFILE, errno.ENFILE)
