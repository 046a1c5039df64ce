"""The contents of a run's data files, so that a resumed run can't mix two versions of one."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from training.suites.suite import Sample

__all__ = ["DataHashes", "changed_files", "hash_data", "known_hashes"]

DataHashes = Mapping[str, Mapping[str, Any]]
"""By a file's name: `sha256` of its content, and as `seen` what the file system said of it then.

A file of the split is named by its path in it. Another one, which a suite wrote itself, is named by
its question and its own name.
"""


def known_hashes(folder: Path) -> DataHashes:
    """Returns what the `run.json` of a folder holds; nothing where there is none to be read."""
    try:
        found = json.loads((folder / "run.json").read_text("utf-8"))["data"]
        return {name: dict(one) for name, one in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def hash_data(items: Iterable[Sample], split: Path, known: DataHashes) -> DataHashes:
    """Returns the hash of each data file of these items.

    A file that is the same to the file system as when it was last hashed is not read again: same
    device, inode, size, and times of its content and of its entry. One that can't be read is left
    out: its questions end in a fault of their own.

    Args:
        items: of the draw.
        split: the folder of the split.
        known: hashes of an earlier call.
    """
    root = split.resolve()
    found: dict[str, Mapping[str, Any]] = {}
    for item in items:
        for file in item.task.files:
            name = _name(file, root, item.task.id)
            if name not in found and (hashed := _hashed(file, known.get(name, {}))):
                found[name] = hashed
    return dict(sorted(found.items()))


def changed_files(before: DataHashes, now: DataHashes) -> list[str]:
    """Returns the names of the files whose content is another one than before, in order."""
    both = before.keys() & now.keys()
    return sorted(name for name in both if before[name].get("sha256") != now[name]["sha256"])


def _name(file: Path, root: Path, item: str) -> str:
    path = file.resolve()
    return (
        path.relative_to(root).as_posix() if path.is_relative_to(root) else f"{item}: {path.name}"
    )


def _hashed(file: Path, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
    try:
        with file.open("rb") as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode):
                return None
            seen = [status.st_dev, status.st_ino, status.st_size,
                    status.st_mtime_ns, status.st_ctime_ns]  # fmt: skip
            if known.get("seen") == seen and known.get("sha256"):
                return known
            return {"sha256": hashlib.file_digest(opened, "sha256").hexdigest(), "seen": seen}
    except OSError:
        return None
