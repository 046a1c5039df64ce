"""Transfer of input files to other machines, by content and each content once."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from kernel_sandbox.errors import WorkspaceError
from kernel_sandbox.files.folders import PrivateFolder

__all__ = ["Contents", "StagedFiles"]

_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Values that change when a file does."""

    size: int
    mtime_ns: int
    inode: int


class Contents:
    """The sender's side: the contents of files, stored once for all who fetch them.

    Covered: a file that changes is read again; of an unchanged one only the status is read. Not
    covered: a change that keeps size, inode and time stamp.
    """

    def __init__(self, store: Callable[[bytes], Any]) -> None:
        """Read nothing yet.

        Args:
            store: stores bytes and returns a reference to fetch them; called in a thread.
        """
        self._store = store
        self._known: dict[Path, tuple[_Stamp, str]] = {}
        self._stored: dict[str, Any] = {}
        self._lock = asyncio.Lock()

    async def add(self, name: str, path: Path) -> str:
        """Store the content of a file unless it is already stored; return its digest.

        Args:
            name: what the code calls it, for the message.
            path: the file.

        Raises:
            WorkspaceError: it can't be read, or the name is valid on this machine alone.
        """
        if Path(name).is_absolute():
            raise WorkspaceError(
                f"input name {name!r} is absolute; other machines need a name without folder"
            )
        async with self._lock:  # one read, however many ask at once
            try:
                return await asyncio.to_thread(self._add, path)
            except OSError as error:
                raise WorkspaceError(f"input {name!r} can't be read: {error}") from error

    def _add(self, path: Path) -> str:
        path = path.expanduser()
        known = self._known.get(path)
        if known is not None and known[0] == _stamp(path.stat()):
            return known[1]
        with path.open("rb") as file:
            stamp = _stamp(os.fstat(file.fileno()))  # before reading: a change meanwhile shows
            data = file.read()
        digest = blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
        if digest not in self._stored:
            self._stored[digest] = self._store(data)
        self._known[path] = (stamp, digest)
        return digest

    def reference(self, digest: str) -> Any:
        """Return the reference that fetches the content of that digest."""
        return self._stored[digest]


class StagedFiles:
    """The receiver's side: a private folder with one file for each content.

    Covered: the folder is readable by its owner alone, and is removed with its process. Not
    covered: the trajectories of a machine share the files; the file view keeps them read-only.
    """

    def __init__(self) -> None:
        """Create the folder.

        Raises:
            OSError: it can't be created.
        """
        self._folder = PrivateFolder(Path(tempfile.gettempdir()).resolve(), "dm-data-")

    def write(self, digest: str, data: bytes) -> None:
        """Write a content atomically: a reader of the file sees all of it or none.

        Args:
            digest: the digest of the content.
            data: the content.

        Raises:
            OSError: it can't be written.
        """
        part = self._folder.path / f"{digest}.part"
        part.write_bytes(data)
        part.chmod(0o400)
        part.rename(self.path(digest))

    def path(self, digest: str) -> Path:
        """Return where the content of that digest is, or would be."""
        return self._folder.path / digest

    def remove(self) -> None:
        """Remove the folder. Safe to call again."""
        self._folder.remove()


def _stamp(status: os.stat_result) -> _Stamp:
    return _Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
