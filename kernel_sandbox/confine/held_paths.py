"""Paths in the working folder that its kernel can neither change nor replace.

Covered: each path is a read-only mount of its own. Each folder between it and the working folder
is a mount that stays writable, because the system never renames or removes a mount point. No link
is followed on the way and nothing is created, whoever changes the folder meanwhile.
Not covered: a path that is gone, or a link by now. It is left as it is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from kernel_sandbox.confine import system
from kernel_sandbox.files.beneath import opened

__all__ = ["hold"]

_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors on opening a path that existed and is gone by now, or has a link in it."""


def hold(folder: str, paths: Iterable[Path], optional: Iterable[Path] = ()) -> None:
    """Make the paths read-only, and them and the folders above them immovable.

    Args:
        folder: the working folder, as this process sees it; nobody else can have moved it.
        paths: paths below the folder, relative to it; each must exist.
        optional: paths like these that may be gone.

    Raises:
        OSError: a mount was refused, or one of `paths` is gone or has a link in it.
    """
    needed = set(paths)
    read_only = needed.union(optional)
    above = {parent for path in read_only for parent in path.parents if parent.parts}
    root = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The upper ones first: a mount hides what was mounted below its path before.
        for path in sorted(read_only | above, key=lambda path: len(path.parts)):
            try:
                with opened(path, root) as place:
                    system.bind(place, place, read_only=path in read_only)
            except OSError as error:
                if error.errno not in _CHANGED or path in needed:
                    raise
    finally:
        os.close(root)
