"""Paths in the working folder that its kernel can neither change nor put others in the place of.

Covered: each path is a read-only mount of its own, and each folder between it and the working
folder one that stays writable: the system renames and removes nothing that something is mounted
on. No link is followed on the way, and nothing is made, whoever changes the folder meanwhile.
Not covered: a path that is gone, or a link by now. It is left as it is.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from kernel_sandbox.contain import system

__all__ = ["hold"]

_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What opening says of a path that was there and is gone, or has a link in it by now."""


def hold(folder: str, paths: Iterable[Path], optional: Iterable[Path] = ()) -> None:
    """Makes the paths read-only, and them and the folders above them immovable.

    Args:
        folder: the working folder, as this process finds it.
        paths: below the folder, relative to it; each must be there.
        optional: the same, for those that may have gone.

    Raises:
        OSError: a mount was refused, or one of `paths` is gone or has a link in it.
    """
    needed = set(paths)
    read_only = needed.union(optional)
    above = {parent for path in read_only for parent in path.parents if parent.parts}
    root = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The upper ones first: a mount hides what was mounted below its place before.
        for path in sorted(read_only | above, key=lambda path: len(path.parts)):
            try:
                target = _open(root, path)
            except OSError as error:
                if error.errno in _CHANGED and path not in needed:
                    continue
                raise
            try:
                system.bind_in_place(target, read_only=path in read_only)
            finally:
                os.close(target)
    finally:
        os.close(root)


def _open(root: int, path: Path) -> int:
    """Opens a path below a folder, name by name: a link can stand for none of them."""
    here = os.dup(root)
    try:
        for name in path.parts:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            above, here = here, os.open(name, flags, dir_fd=here)
            os.close(above)
            if stat.S_ISLNK(os.fstat(here).st_mode):
                raise OSError(errno.ELOOP, "a link has taken its place", str(path))
    except BaseException:
        os.close(here)
        raise
    return here
