"""Temporary folders: one of this process alone, and what code has left behind.

A private folder is removed with its process, at the latest when the next one is created. Code may
leave folders of any depth, without rights, with any names.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import stat
import time
from pathlib import Path

__all__ = ["PrivateFolder", "empty_folder", "remove_tree"]

_FRESH_S = 60.0
"""A folder this young may not have its lock yet."""
_OPEN = stat.S_IRWXU


class PrivateFolder:
    """A new folder with mode 0700, locked while its owner lives.

    Covered: a killed process can't clean up. Its folders lose their locks, and the creator of the
    next folder of that kind removes them. Not covered: a machine that creates none.
    """

    def __init__(self, base: Path, prefix: str) -> None:
        """Create the folder, and remove those of dead owners.

        Args:
            base: the folder in which to create it.
            prefix: what its name starts with; folders of one kind share it.

        Raises:
            OSError: it can't be created.
        """
        _remove_abandoned(base, prefix)
        self.path = base / f"{prefix}{secrets.token_hex(4)}"
        self.path.mkdir(mode=0o700)
        self._lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder and its contents. Safe to call again."""
        if self._lock < 0:
            return
        remove_tree(self.path)
        os.close(self._lock)
        self._lock = -1


def _remove_abandoned(base: Path, prefix: str) -> None:
    for folder in base.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # gone meanwhile, someone else's, or locked: in use
            if folder.is_symlink() or time.time() - folder.stat().st_mtime < _FRESH_S:
                continue
            descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(folder)
            finally:
                os.close(descriptor)


def remove_tree(path: str | os.PathLike[str]) -> None:
    """Remove a folder and its contents as far as possible; follow no link and never raise.

    It goes down one level only: deeper folders are moved up first, under names that nobody can
    guess and take. So neither the length of a path nor the interpreter's stack limits the depth.

    Args:
        path: the folder; a missing one is not an error.
    """
    root = os.fspath(path)
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(OSError):
            if os.path.islink(folder):  # noqa: PTH114
                return
            os.chmod(folder, _OPEN)  # noqa: PTH101
            with os.scandir(folder) as entries:
                found = list(entries)
            for entry in found:
                _take_out(entry, folder, root, waiting)
        if folder != root:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106
    with contextlib.suppress(OSError):
        os.rmdir(root)  # noqa: PTH106


def empty_folder(path: str | os.PathLike[str], keep: str = "") -> None:
    """Remove the contents of a folder, as `remove_tree` would; the folder itself stays.

    Args:
        path: the folder.
        keep: the name of an entry that stays.
    """
    with contextlib.suppress(OSError):
        os.chmod(path, _OPEN)  # noqa: PTH101
        with os.scandir(path) as entries:
            found = [entry for entry in entries if entry.name != keep]
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108


def _take_out(entry: os.DirEntry[str], folder: str, root: str, waiting: list[str]) -> None:
    """Remove a file, or move a folder to where it can be emptied."""
    with contextlib.suppress(OSError):
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)  # noqa: PTH108
        elif folder == root:
            waiting.append(entry.path)
        else:
            os.chmod(entry.path, _OPEN)  # noqa: PTH101 (a folder that can't be written can't move)
            place = os.path.join(root, f".removed-{secrets.token_hex(8)}")  # noqa: PTH118
            os.rename(entry.path, place)  # noqa: PTH104
            waiting.append(place)
