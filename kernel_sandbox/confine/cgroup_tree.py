"""The tree of control groups: where this process is in it, and where it may create more.

Covered: both versions, side by side; a tree of which a container shows a part; groups that a
killed owner left behind. Not covered: the limits of a group, which `cgroups` sets.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place", "alone", "enable", "places", "read_setting", "remove_abandoned"]

PREFIX = "dm-sandbox-"
CONTROLLERS = ("memory", "pids")
SHARE = "cpu"
"""The controller that distributes the processor; a group without it still limits."""
MEMBERS = "cgroup.procs"


@dataclass(frozen=True, slots=True)
class Place:
    """Parent folders for a new control group: one in version 2, one per controller in version 1."""

    parents: tuple[Path, ...]
    is_unified: bool
    """Whether it is version 2."""
    optional: Path | None = None
    """The folder of the optional controller, if it is not among `parents`."""


def places() -> Iterator[Place]:
    """Yield where a group of this process may be created, the best first.

    In version 2, a folder that contains processes can't pass its controllers down. The folders
    above it therefore follow its own, up to the top of the tree.
    """
    own = dict(_own_groups())
    mounts = read_setting(Path("/proc/self/mountinfo")).splitlines()
    found = {kind: _folder(kind, own, mounts) for kind in ("", SHARE, *CONTROLLERS)}
    unified, share = found.pop(""), found.pop(SHARE)
    if unified is not None:
        top, folder = unified
        for parent in (folder, *folder.parents):
            yield Place((parent,), is_unified=True)
            if parent == top:
                break
    folders = tuple(dict.fromkeys(pair[1] for pair in found.values() if pair is not None))
    if folders and all(found.values()):
        optional = share[1] if share is not None and share[1] not in folders else None
        yield Place(folders, False, optional)


def _own_groups() -> Iterator[tuple[str, str]]:
    """Yield the groups of this process, as controller (empty for version 2) and path."""
    for line in read_setting(Path("/proc/self/cgroup")).splitlines():
        _, kinds, path = line.split(":", 2)
        for kind in kinds.split(","):
            yield kind, path


def _folder(kind: str, own: Mapping[str, str], mounts: Iterable[str]) -> tuple[Path, Path] | None:
    """Return where the hierarchy is mounted, and the folder of this process in it."""
    if kind not in own:
        return None
    for line in mounts:
        before, _, after = line.partition(" - ")
        root, mounted = before.split()[3:5]
        system, _, options = after.split(" ", 2)
        if system == ("cgroup" if kind else "cgroup2") and (not kind or kind in options.split(",")):
            relative = os.path.relpath(own[kind], root)
            # A container may show only a part of the tree, whose top is then our own folder.
            inside = "." if relative.startswith("..") else relative
            return Path(mounted), Path(mounted) / inside
    return None


def enable(parent: Path) -> None:
    """Pass the controllers down to the children of a folder of version 2.

    Args:
        parent: the folder.

    Raises:
        OSError: it lacks the controllers, or contains processes of its own.
    """
    offered = set(read_setting(parent / "cgroup.controllers").split())
    missing = set(CONTROLLERS) - offered
    if missing:
        raise OSError(f"it has no controller for {' and '.join(sorted(missing))}")
    control = parent / "cgroup.subtree_control"
    absent = [name for name in CONTROLLERS if name not in read_setting(control).split()]
    if absent:
        control.write_text(" ".join(f"+{name}" for name in absent), encoding="ascii")
    if SHARE in offered - set(read_setting(control).split()):
        with contextlib.suppress(OSError):
            control.write_text(f"+{SHARE}", encoding="ascii")
    if not os.access(parent / MEMBERS, os.W_OK):  # moving a process needs write access here, too
        raise PermissionError(f"{parent / MEMBERS} can't be written")


@contextlib.contextmanager
def alone(parent: Path) -> Iterator[None]:
    """Keep our other processes from creating or removing groups below the folder meanwhile.

    Args:
        parent: the folder.

    Raises:
        OSError: it can't be read.
    """
    descriptor = os.open(parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child forked meanwhile has the lock as well
        os.close(descriptor)


def remove_abandoned(parent: Path, own: Container[str]) -> None:
    """Remove the empty groups of owners that were killed.

    Args:
        parent: the folder that contains them.
        own: the names of the groups of this process, of which there may be many.
    """
    for folder in parent.iterdir():
        if not folder.name.startswith(PREFIX) or folder.name in own:
            continue
        with contextlib.suppress(OSError):  # locked: in use; or gone, or not empty
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                folder.rmdir()
            finally:
                os.close(descriptor)


def read_setting(path: Path) -> str:
    """Return the contents of a file, or an empty string if it can't be read.

    Args:
        path: the file.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
