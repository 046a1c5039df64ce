"""A control group for one kernel: the system itself counts its memory and its processes.

Covered: memory of every kind that the kernel and its descendants touch, without swap. That includes
page cache, memory files and data queued in sockets. Also the number of processes and threads, and
ending all of them at once. With a processor controller, no kernel gets more of a busy processor
than another, however many processes it has.
Not covered: what a process touched and started before it was added. A kernel that may write the
control group file system itself, as root may without a view of its own and without Landlock.
Version 2 is used if a part of its tree is delegated to this user, else version 1 as root. The
limits were tested on version 1. Of version 2, only a group without controllers was tested on a
real system.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from kernel_sandbox.confine.cgroup_tree import (
    CONTROLLERS,
    MEMBERS,
    PREFIX,
    Place,
    alone,
    enable,
    places,
    read_setting,
    remove_abandoned,
)
from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.rlimits import THREADS
from kernel_sandbox.types import Limits

__all__ = ["Cgroup", "delegate"]

NAME = "cgroup"
_KILL = "cgroup.kill"
_REQUIRED = frozenset({"memory.max", "memory.limit_in_bytes", "pids.max"})
"""Settings that must exist; a system may lack the others, for example one without swap."""
SHARE_PERCENT = 50
"""Percent of a program's share outside that a group gets of a busy processor."""
_MOST_SHARE = {"cpu.weight": 10_000, "cpu.shares": 262_144}
"""Shares for a group that ends: many processes need the processor to end soon."""
_POLLS = 1000
_POLL_S = 0.002
REMEDY = (
    "start the server in a delegated group, for example with "
    "`systemd-run --user --scope -p Delegate=yes`"
)


def delegate(name: str, limits: Limits) -> Cgroup | Layer:
    """Create a control group with the limits, or return the layer that says why there is none.

    It tries the real operations and assumes nothing from versions or settings.

    Args:
        name: the name of the kernel: letters, digits, `.`, `_` and `-`.
        limits: memory and processes; threads are added on top, since the system counts them.

    Raises:
        ValueError: the name contains other characters.
    """
    if not re.fullmatch(r"[\w.-]{1,64}", name, re.ASCII):
        raise ValueError(f"a control group can't be named {name!r}")
    refusals: list[str] = []
    for place in places():
        try:
            return _make(place, name, limits)
        except OSError as error:
            refusals.append(f"{place.parents[0]}: {error.strerror or error}")
    if not refusals:
        reason = f"this system has no control groups for {' and '.join(CONTROLLERS)}"
        return Layer(NAME, LayerState.ABSENT, reason)
    return Layer(NAME, LayerState.REFUSED, f"{'; '.join(refusals)}. Remedy: {REMEDY}")


class Cgroup:
    """A control group that this process created and has to remove."""

    def __init__(self, folders: tuple[Path, ...], is_unified: bool) -> None:
        """Take over folders that were created, and lock them.

        Args:
            folders: the folders of the group, each in its own hierarchy.
            is_unified: whether it is version 2.

        Raises:
            OSError: one of them is gone.
        """
        self.folders = folders
        self._is_unified = is_unified
        self._had_oom = False
        # Locked while the owner lives: an unlocked group is known to be abandoned.
        self._locks = [os.open(folder, os.O_RDONLY | os.O_CLOEXEC) for folder in folders]
        for lock in self._locks:
            fcntl.flock(lock, fcntl.LOCK_EX)

    def add(self, pid: int) -> Layer:
        """Move a process into the group; return the layer, as the system then lists it.

        Its later children are in it as well. Children that it has already stay where they are.

        Args:
            pid: the process, as this process numbers it.
        """
        for folder in self.folders:
            try:
                _write(folder / MEMBERS, str(pid))
            except OSError as error:
                return Layer(NAME, LayerState.REFUSED, f"{folder}: {error.strerror}")
            if pid not in _members(folder):
                return Layer(NAME, LayerState.REFUSED, f"{folder} does not list process {pid}")
        version = "2" if self._is_unified else "1"
        swap = "without swap" if self._is_without_swap() else "(swap is not counted)"
        reason = f"version {version}: memory {swap}, processes and threads"
        return Layer(NAME, LayerState.ACTIVE, reason)

    def _is_without_swap(self) -> bool:
        folder = self.folders[0]
        if self._is_unified:
            return read_setting(folder / "memory.swap.max").strip() == "0"
        both = read_setting(folder / "memory.memsw.limit_in_bytes")
        return bool(both) and both == read_setting(folder / "memory.limit_in_bytes")

    def kill(self) -> None:
        """End every process of the group; return once the system lists none."""
        _try_write(self.folders[0] / _KILL, "1")  # version 2, since Linux 5.14
        for folder in self.folders:
            for name, most in _MOST_SHARE.items():
                _try_write(folder / name, str(most))
            _try_write(folder / "pids.max", "0")  # no child escapes between two polls
        for _ in range(_POLLS):
            members = {pid for folder in self.folders for pid in _members(folder)}
            if not members:
                return
            for pid in members:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_S)

    def oom_killed(self) -> bool:
        """Return whether the system has ended a process of the group for lack of memory."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                found = re.search(r"^oom_kill (\d+)$", read_setting(folder / name), re.MULTILINE)
                self._had_oom |= found is not None and int(found[1]) > 0
        return self._had_oom

    def remove(self) -> None:
        """End what is in the group and remove it. Safe to call again."""
        if not self._locks:
            return
        self.oom_killed()
        self.kill()
        for folder in self.folders:
            _remove(folder)
        for lock in self._locks:
            os.close(lock)
        self._locks.clear()
        _own.discard(self.folders[0].name)


_own: set[str] = set()
"""The names of the groups of this process."""


def _make(place: Place, name: str, limits: Limits) -> Cgroup:
    """Create the group and set its limits; leave nothing behind if that fails."""
    if place.is_unified:
        enable(place.parents[0])
    unique = f"{PREFIX}{name}-{secrets.token_hex(4)}"
    made: list[Path] = []
    group: Cgroup | None = None
    try:
        with alone(place.parents[0]):
            for parent in place.parents:
                remove_abandoned(parent, _own)
                (parent / unique).mkdir()
                made.append(parent / unique)
            if place.optional is not None:
                remove_abandoned(place.optional, _own)
                with contextlib.suppress(OSError):
                    (place.optional / unique).mkdir()
                    made.append(place.optional / unique)
            group = Cgroup(tuple(made), place.is_unified)
            _own.add(unique)
        _limit(group.folders, _settings(limits, place.is_unified))
    except BaseException:
        for folder in made:
            _remove(folder)
        if group is not None:
            group.remove()
        raise
    return group


def _settings(limits: Limits, is_unified: bool) -> Mapping[str, int]:
    """Return the files to write, in order, with their values."""
    memory, tasks = limits.memory_bytes, limits.processes + THREADS
    if is_unified:
        return {
            "memory.max": memory,
            "memory.swap.max": 0,
            "memory.oom.group": 1,
            "pids.max": tasks,
            "cpu.weight": SHARE_PERCENT,
        }
    return {
        "memory.limit_in_bytes": memory,
        "memory.memsw.limit_in_bytes": memory,  # memory and swap together
        "memory.swappiness": 0,
        "pids.max": tasks,
        "cpu.shares": 1024 * SHARE_PERCENT // 100,
    }


def _limit(folders: tuple[Path, ...], settings: Mapping[str, int]) -> None:
    """Write the limits and read them back.

    Raises:
        OSError: a required limit is missing or did not take effect.
    """
    for name, wanted in settings.items():
        path = next((folder / name for folder in folders if (folder / name).exists()), None)
        if path is None:
            if name in _REQUIRED:
                raise OSError(f"{folders[0]} has no {name}")
            continue
        if name not in _REQUIRED:
            _try_write(path, str(wanted))
            continue
        _write(path, str(wanted))
        held = read_setting(path).strip()
        if not held.isdigit() or int(held) > wanted:  # the system rounds down to whole pages
            raise OSError(f"{path} did not take {wanted}: it says {held!r}")


def _members(folder: Path) -> set[int]:
    # A 0 means a process that this one can't name, and a signal to 0 reaches our own group.
    return {int(pid) for pid in read_setting(folder / MEMBERS).split()} - {0, os.getpid()}


def _remove(folder: Path) -> None:
    for _ in range(_POLLS):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:  # the last process is still ending
            time.sleep(_POLL_S)
        else:
            return


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)  # never creates a file
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def _try_write(path: Path, text: str) -> None:
    with contextlib.suppress(OSError):
        _write(path, text)
