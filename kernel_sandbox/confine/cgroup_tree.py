"""The tree of control groups: where this process is in it, and where it may make more.

Covered: both versions, side by side; a tree of which a container shows a part; groups that a
killed owner left behind. Not covered: a group is not limited here, `cgroups` does that.
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
"""The controller that shares out the processor; a group without it still limits."""
MEMBERS = "cgroup.procs"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a control group may be made: one folder in version 2, one a controller in 1."""

    parents: tuple[Path, ...]
    is_unified: bool
    """Whether it is version 2."""
    optional: Path | None = None
    """The folder of the controller that a group can do without, where that is another one."""


def places() -> Iterator[Place]:
    """Yields where a group of this process may be made, the best first.

    In version 2 a folder that holds processes can't hand its controllers down: after its own
    folder come those above it, as far as the tree goes.
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
    """The groups of this process, as controller (empty for version 2) to path."""
    for line in read_setting(Path("/proc/self/cgroup")).splitlines():
        _, kinds, path = line.split(":", 2)
        for kind in kinds.split(","):
            yield kind, path


def _folder(kind: str, own: Mapping[str, str], mounts: Iterable[str]) -> tuple[Path, Path] | None:
    """Where the hierarchy is mounted, and the folder of this process in it."""
    if kind not in own:
        return None
    for line in mounts:
        before, _, after = line.partition(" - ")
        root, mounted = before.split()[3:5]
        system, _, options = after.split(" ", 2)
        if system == ("cgroup" if kind else "cgroup2") and (not kind or kind in options.split(",")):
            relative = os.path.relpath(own[kind], root)
            # A container may show only a part of the tree: then its top is our own folder.
            inside = "." if relative.startswith("..") else relative
            return Path(mounted), Path(mounted) / inside
    return None


def enable(parent: Path) -> None:
    """Hands the controllers down to the children of a folder of version 2.

    Args:
        parent: the folder.

    Raises:
        OSError: it has not got them, or holds processes of its own.
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
    if not os.access(parent / MEMBERS, os.W_OK):  # whoever moves a process must write here, too
        raise PermissionError(f"{parent / MEMBERS} can't be written")


@contextlib.contextmanager
def alone(parent: Path) -> Iterator[None]:
    """While it lasts, no other process of ours makes or removes a group below the folder.

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
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child forked meanwhile holds it as well
        os.close(descriptor)


def remove_abandoned(parent: Path, own: Container[str]) -> None:
    """Removes the empty groups of owners that were killed.

    Args:
        parent: the folder that they lie in.
        own: the names of the groups that this process has, of which there may be many.
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
    """Returns what a file holds; nothing where it can't be read.

    Args:
        path: the file.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
