"""A folder of this process alone, that goes away with it: at the latest when the next is made."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from pathlib import Path

from kernel_sandbox.files.removal import remove_tree

__all__ = ["PrivateFolder"]

_FRESH_S = 60.0
"""A folder this young may not have its lock yet."""


class PrivateFolder:
    """A new folder with mode 0700, locked while its owner lives.

    Covered: a process that is killed can't tidy up; its folders lose their locks, and whoever
    makes the next folder of that kind removes them. Not covered: a machine that makes none.
    """

    def __init__(self, base: Path, prefix: str) -> None:
        """Makes the folder, and removes those of owners that died.

        Args:
            base: where to make it.
            prefix: what its name starts with; folders of one kind share it.

        Raises:
            OSError: it can't be made.
        """
        _remove_abandoned(base, prefix)
        self.path = base / f"{prefix}{secrets.token_hex(4)}"
        self.path.mkdir(mode=0o700)
        self._lock = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Removes the folder and what is in it. Safe to call again."""
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
