"""Opening paths of which no name is a link: so nobody can lead a path that was checked elsewhere.

Whoever may write a folder, another kernel for one, may lay a link into it between the moment when
a policy is worked out and the moment when the system is told of its paths. Hence paths are freed
of links once, and opened name by name afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["opened"]


@contextlib.contextmanager
def opened(path: Path, folder: int | None = None) -> Iterator[int]:
    """Opens a file or folder as a place, with `O_PATH`, and closes it in the end.

    Args:
        path: absolute; or below the folder, relative to it.
        folder: a descriptor of one, where the path starts; `None` is the root of the files.

    Raises:
        OSError: a name is missing, or is a link (`ELOOP`).
    """
    place = os.open("/", os.O_PATH | os.O_CLOEXEC) if folder is None else os.dup(folder)
    try:
        for name in path.parts[path.is_absolute() :]:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                above, place = place, os.open(name, flags, dir_fd=place)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from error
            os.close(above)
            if stat.S_ISLNK(os.fstat(place).st_mode):
                raise OSError(errno.ELOOP, f"{name} is a link by now", str(path))
        yield place
    finally:
        os.close(place)
