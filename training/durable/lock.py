"""One writer a folder: a lock that the system frees when its holder dies, however that happens."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from dm_jupyter.core.errors import UsageError

__all__ = ["LOCK_FILE", "folder_lock"]

LOCK_FILE = "run.lock"


@contextmanager
def folder_lock(folder: Path, what: str = "command") -> Iterator[None]:
    """Keeps every other process out of a folder, which is made, and other tasks of this one.

    The file stays behind; whoever holds its `flock` holds the folder. *Covered*: a holder that was
    killed. *Not covered*: a network file system without `flock` over several machines.

    Args:
        folder: what is locked.
        what: the kind of work, for the message.

    Raises:
        UsageError: the folder is taken; the message names the holder and the way out.
        OSError: the folder can't be made, or the file not be opened.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK_FILE
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise UsageError(
                f"Another {what} is at work in {folder}: {_holder(file.read())}. Wait for it, stop "
                "it, or choose another folder with --out."
            ) from error
        file.truncate(0)
        file.write(json.dumps(_self()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
            # Unlocked by name: a child that was forked meanwhile holds the same open file.
            fcntl.flock(file, fcntl.LOCK_UN)


def _self() -> dict[str, object]:
    return {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": Path(sys.argv[0]).name if sys.argv else "",
    }


def _holder(text: str) -> str:
    """Who holds the lock, as far as it said so."""
    with suppress(ValueError, TypeError, KeyError):
        held = json.loads(text)
        return "process {process} on {host}, since {since}".format_map(held)
    return "a process that did not name itself"
