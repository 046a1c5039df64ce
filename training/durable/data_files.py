"""Data files by content: hashed once, and found again under another path."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dm_jupyter.core.errors import DataFileError

__all__ = ["DataFinder", "DataHashes", "changed_files", "data_fingerprint", "hash_file"]

DataHashes = Mapping[str, Mapping[str, Any]]
"""By a file's name: `sha256` of its content, and as `seen` the file's status at that time.

The name of a file of the split is its path in the split. For a file that a suite wrote itself, it
is the question and the file's own name.
"""
_SHOWN = 12
"""Digits of a hash that are shown."""


def hash_file(file: Path, known: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
    """Return the hash of a regular file; `None` for anything else or unreadable.

    A file whose status has not changed since it was last hashed is not read again. The status is
    its device, inode, size, and times of modification and status change.

    Args:
        file: the path.
        known: the result of an earlier call.
    """
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            seen = [status.st_dev, status.st_ino, status.st_size,
                    status.st_mtime_ns, status.st_ctime_ns]  # fmt: skip
            if known and known.get("seen") == seen and known.get("sha256"):
                return known
            return {"sha256": hashlib.file_digest(opened, "sha256").hexdigest(), "seen": seen}
    except OSError:
        return None


def changed_files(before: DataHashes, now: DataHashes) -> list[str]:
    """Return the names of the files whose content changed, in order."""
    both = before.keys() & now.keys()
    return sorted(name for name in both if before[name].get("sha256") != now[name]["sha256"])


def data_fingerprint(data: DataHashes) -> str:
    """Return the first 12 hex digits of a hash of all files by name; empty without files."""
    hashes = {name: one.get("sha256") for name, one in data.items() if isinstance(one, Mapping)}
    text = json.dumps(hashes, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_SHOWN] if hashes else ""


class DataFinder:
    """Finder of data files by content below some folders; it hashes each file once."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Create a finder without reading anything.

        Args:
            folders: searched recursively, in this order.
        """
        self._folders = tuple(folders)
        self._hashes: dict[Path, str] = {}

    def find(self, name: Path, sha256: str, recorded: Path | None = None) -> Path:
        """Return the file with the given content.

        The search tries the recorded path, then the same path below each folder. After that it
        tries every file with the same name, then every file with the same suffix.

        Args:
            name: its path in the split, or its bare name.
            sha256: of the content, hex digits.
            recorded: its path when it was recorded.

        Raises:
            DataFileError: there is no such file. The message names it, any file of the same name
                with another content, and the way out.
        """
        others: list[Path] = []
        for file in self._candidates(name, recorded):
            found = self._hash_of(file)
            if found == sha256:
                return file
            if found and file.name == name.name:
                others.append(file)
        where = ", ".join(map(str, self._folders)) or "the recorded path"
        text = f"the data file {name} (sha256 {sha256[:_SHOWN]}) was not found in {where}"
        if others:
            other = self._hash_of(others[0])[:_SHOWN]
            text = f"{text}; {others[0]} has another content (sha256 {other})"
        raise DataFileError(f"{text}. Name the folder that has it with --data.")

    def _candidates(self, name: Path, recorded: Path | None) -> Iterator[Path]:
        seen: set[Path] = set()
        for file in self._in_order(name, recorded):
            if file not in seen and file.is_file():
                seen.add(file)
                yield file

    def _in_order(self, name: Path, recorded: Path | None) -> Iterator[Path]:
        if recorded is not None:
            yield recorded
        yield from (folder / name for folder in self._folders)
        for pattern in (name.name, f"*{name.suffix}"):
            for folder in self._folders:
                yield from sorted(folder.rglob(pattern))

    def _hash_of(self, file: Path) -> str:
        if file not in self._hashes:
            found = hash_file(file)
            self._hashes[file] = str(found["sha256"]) if found else ""
        return self._hashes[file]
