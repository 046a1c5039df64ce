"""Locks and leases: how the users of one server know of each other without a daemon between them.

Everything is an `flock`, because the kernel frees it when its holder dies, however that happens.

- `start.lock` is held while somebody joins, leaves, or the server decides to end. Leases are only
  taken and counted under it, so no server ends between another client's look and its lease.
- `alive.lock` is held by the server for its whole life and holds its process id.
- `leases/<pid>-<random>` is held by one user each, for as long as it uses the server.

A lock belongs to an open file, which a `fork` without `exec` shares: a forked child of a user keeps
that user's lease alive until both have ended or the user has released it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

__all__ = ["Lease", "exclusive", "is_locked", "live_leases", "try_lock"]

_POLL_S = 0.05


def try_lock(path: Path) -> IO[str] | None:
    """Take the lock of `path` without waiting.

    Returns:
        The open file that holds the lock until it is closed, or None when another holds it.
    """
    handle = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        return None
    return handle


def is_locked(path: Path) -> bool:
    """Say whether some process holds the lock of `path`.

    The look takes a shared lock for a moment: two who look don't take each other for the holder.
    """
    with path.open("a+", encoding="utf-8") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@asynccontextmanager
async def exclusive(path: Path) -> AsyncIterator[None]:
    """Hold the lock of `path`, waiting for it without blocking the event loop."""
    while (handle := try_lock(path)) is None:  # noqa: ASYNC110 another process holds it
        await asyncio.sleep(_POLL_S)
    try:
        yield
    finally:
        handle.close()


class Lease:
    """One user's claim on the server; as long as one is held, the server stays."""

    def __init__(self, folder: Path) -> None:
        """Take a lease. The caller holds `start.lock`."""
        self.path = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._handle = self.path.open("w", encoding="utf-8")
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def release(self) -> None:
        """Give the lease back; once is enough, twice does no harm."""
        if self._handle.closed:
            return
        # Unlocked by name, not only closed: a forked child may still hold the same open file.
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._handle.close()
        self.path.unlink(missing_ok=True)


def live_leases(folder: Path) -> int:
    """Count the leases whose holder lives, and remove the others. The caller holds `start.lock`."""
    count = 0
    for path in folder.iterdir():
        handle = try_lock(path)
        if handle is None:
            count += 1
        else:
            path.unlink(missing_ok=True)
            handle.close()
    return count
