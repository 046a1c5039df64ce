"""Folder of long work: its lock, and the manifest of the settings of the work in it.

The system frees the lock of a folder when its owner dies, however that happens. The manifest
prevents work with other settings from continuing the records.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dm_jupyter.core.errors import UsageError

__all__ = ["LOCK_FILE", "ManifestError", "folder_lock", "kept_manifest"]

LOCK_FILE = "run.lock"


@contextmanager
def folder_lock(folder: Path, what: str = "command") -> Iterator[None]:
    """Lock a folder against other processes and other tasks of this one; create it if needed.

    The lock file stays; its `flock` decides who owns the folder. *Covered*: an owner that was
    killed. *Not covered*: a network file system without `flock` over several machines.

    Args:
        folder: the folder to lock.
        what: the kind of work, for the message.

    Raises:
        UsageError: the folder is locked; the message names the owner and the way out.
        OSError: the folder can't be created, or the file can't be opened.
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
                "it, or choose another folder."
            ) from error
        except OSError as error:
            raise UsageError(
                f"{folder} can't be locked ({error.strerror}): its file system has no locks. "
                "Choose a folder on another disk with --out."
            ) from error
        file.truncate(0)
        file.write(json.dumps(_self()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
            # Unlock explicitly: a child forked in the meantime has the same file open.
            fcntl.flock(file, fcntl.LOCK_UN)


def _self() -> dict[str, object]:
    return {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": Path(sys.argv[0]).name if sys.argv else "",
    }


def _holder(text: str) -> str:
    """Return a description of the lock's owner, as far as the file names it."""
    with suppress(ValueError, TypeError, KeyError):
        held = json.loads(text)
        return "process {process} on {host}, since {since}".format_map(held)
    return "a process that did not name itself"


class ManifestError(ValueError):
    """A folder contains the records of another run; the message names the difference."""


def kept_manifest(
    path: Path, mine: Mapping[str, Any], may_change: Collection[str]
) -> dict[str, Any] | None:
    """Return the manifest in a file after a check that it matches; `None` without a file.

    A field that the file lacks counts as equal: an older release wrote the file.

    Args:
        path: a JSON object.
        mine: the expected manifest.
        may_change: fields that may differ; `settings.seed` is the field `seed` of `settings`.

    Raises:
        ManifestError: a field differs, or the file can't be read.
    """
    if not path.exists():
        return None
    try:
        theirs = dict(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError, OSError) as error:
        raise ManifestError(f"{path} can't be read ({error}); choose another --out") from error
    for name, value in mine.items():
        if name in may_change or name not in theirs:
            continue
        if _fixed(name, theirs[name], may_change) != _fixed(name, value, may_change):
            raise ManifestError(
                f"{path.parent} holds a run with another {name}: {theirs[name]!r} there, "
                f"{value!r} now. Choose another --out, or give the same options to go on."
            )
    return theirs


def _fixed(name: str, value: Any, may_change: Collection[str]) -> Any:
    """Return the value of a field without its own fields that may differ."""
    if not isinstance(value, Mapping):
        return value
    return {key: one for key, one in value.items() if f"{name}.{key}" not in may_change}
