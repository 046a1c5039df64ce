"""A layer above a person's folder: cells write into it, and what may go on is let through to it.

A kernel in a view of its own sees the folder with the layer above it (overlayfs): it reads the
folder's files, and all that it makes, changes or removes stays in the layer. From outside, the
layer is a folder, `upper`, with what was made and changed, and a mark for what was removed.

    settle      lets through what may go on, keeps what needs a yes, refuses what never may
    decide      writes what waits for a yes, or drops it
    look_below  makes the kernel see what the person has changed in the folder

Covered: what cells do to files is decided on by what they did, not by how their code reads; names
that programs run or obey unasked, modules that hide others, links that lead out and what is no
file never reach the folder; what a person says yes to is what is written, whatever the kernel does
meanwhile; files are written whole, beneath the folder, through no link.
Not covered: what is in the files; which cell, or which thread that a cell has left, did it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePath

from kernel_sandbox.files import beneath
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.files.layer_entries import (
    ASKED,
    COPY_BYTES,
    LayerEntry,
    Signature,
    changes_nothing,
    folder_times,
    look,
    new_entries,
    remove,
    target_of,
)
from kernel_sandbox.types import FileChange

__all__ = ["WorkspaceLayer"]

TEND_S = 1.0
QUIET_S = 1.0
"""A file that was written so short a time ago is not done yet, unless its cell has ended."""


class WorkspaceLayer:
    """The layer of one kernel, from its start to its end. May be used from several threads."""

    def __init__(self, folder: Path, base: Path) -> None:
        """Makes an empty one.

        Args:
            folder: the working folder, a person's.
            base: where to make it: on a file system that overlayfs takes, as most disks are.

        Raises:
            OSError: it can't be made.
        """
        self.folder = folder
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._private = PrivateFolder(base, "dm-layer-")
        except BaseException:
            os.close(self._folder)
            raise
        for name in ("upper", "work", "held"):
            (self.path / name).mkdir(mode=0o700)
        self.upper.chmod(stat.S_IMODE(folder.stat().st_mode))
        self.refresh: Callable[[], object] = lambda: None
        """Has the kernel's view forget what it remembers of the folder."""
        self._lock = threading.RLock()
        self._handled: dict[PurePath, Signature] = {}
        """What was dealt with, as it then was in the layer."""
        self._written: dict[PurePath, Signature] = {}
        """What was let through, as it then was in the folder."""
        self._waiting: dict[str, LayerEntry] = {}
        self._news: list[FileChange] = []
        self._folders = folder_times(folder)
        self.is_gated = False
        """Whether what is overwritten, removed or a program waits for a yes."""
        self.is_asked_about = True
        """Whether somebody is there to say it; else what waits is dropped."""

    @property
    def path(self) -> Path:
        """The folder that holds it."""
        return self._private.path

    @property
    def upper(self) -> Path:
        """Where the kernel's writes are."""
        return self.path / "upper"

    @property
    def waiting(self) -> tuple[FileChange, ...]:
        """What waits for a yes."""
        with self._lock:
            return tuple(entry.change for entry in self._waiting.values())

    def take_news(self) -> tuple[FileChange, ...]:
        """Returns what was let through, kept, refused or decided on since the last call."""
        with self._lock:
            news, self._news = tuple(self._news), []
            return news

    def settle(self, quiet_s: float = 0.0) -> None:
        """Lets through what may go on, keeps what needs a yes; `take_news` tells what it was.

        Args:
            quiet_s: what was changed so short a time ago is left for the next call.

        Raises:
            OSError: the layer can't be opened any more.
        """
        with self._lock, beneath.held(self.upper) as upper:
            newest_ns = time.time_ns() - round(quiet_s * 1e9)
            found = [
                entry
                for entry in new_entries(upper, self._folder, self._handled, PurePath())
                if entry.kind != "file" or entry.signature[2] <= newest_ns
            ]
            found.sort(key=lambda entry: entry.change.path)
            done = [self._settled(entry, upper) for entry in found]
            self._news += filter(None, done)
            self._folders = folder_times(self.folder)

    def _settled(self, entry: LayerEntry, upper: int) -> FileChange | None:
        """Does what is to be done with an entry; returns the change, `None` where it is none."""
        self._handled[entry.place] = entry.signature
        self._waiting.pop(entry.change.path, None)
        change = entry.change
        if change.state == "refused":
            return change
        try:
            if changes_nothing(entry, upper, self._folder):
                self._written[entry.place] = look(self._folder, entry.place)
                return None
            if self.is_gated and (change.kind != "made" or set(change.marks) & set(ASKED)):
                self._keep(entry, upper)
                return replace(change, state="waits")
            self._write(entry, upper, upper, entry.place)
        except OSError as error:
            del self._handled[entry.place]  # it is looked at again
            if error.errno in (errno.ENOENT, errno.ENOTDIR):  # gone, or another, by now
                return None
            why = error.strerror or str(error)
            return replace(change, state="refused", marks=(*change.marks, why))
        return change if entry.kind != "folder" or change.kind != "made" else None

    def _keep(self, entry: LayerEntry, upper: int) -> None:
        """Keeps a copy of what waits for a yes: that is what is written then."""
        if entry.kind == "file":
            with (
                beneath.open_to_read(upper, entry.place) as source,
                beneath.held(self.path / "held") as held,
                beneath.replaced(held, _kept_name(entry)) as target,
            ):
                shutil.copyfileobj(source, target, COPY_BYTES)
        self._waiting[entry.change.path] = entry

    def decide(self, *, allows: bool) -> tuple[FileChange, ...]:
        """Writes what waits, or drops it; returns what was done.

        Args:
            allows: whether it may be written.

        Raises:
            OSError: the layer can't be opened any more.
        """
        with (
            self._lock,
            beneath.held(self.upper) as upper,
            beneath.held(self.path / "held") as held,
        ):
            waiting, self._waiting = self._waiting, {}
            act = self._allow if allows else self._deny
            done = tuple(act(entry, upper, held) for entry in waiting.values())
            self._news += done
            self._folders = folder_times(self.folder)
        if done:
            self.refresh()
        return done

    def _allow(self, entry: LayerEntry, upper: int, held: int) -> FileChange:
        try:
            self._write(entry, upper, held, _kept_name(entry))
        except OSError as error:
            marks = (*entry.change.marks, error.strerror or str(error))
            return replace(entry.change, state="refused", marks=marks)
        finally:
            remove(held, _kept_name(entry))
        return entry.change

    def _deny(self, entry: LayerEntry, upper: int, held: int) -> FileChange:
        if look(upper, entry.place) == entry.signature:
            remove(upper, entry.place)
        remove(held, _kept_name(entry))
        self._handled.pop(entry.place, None)
        return replace(entry.change, state="refused")

    def _write(self, entry: LayerEntry, upper: int, contents: int, name: PurePath) -> None:
        """Does to the folder what was done in the layer.

        Args:
            entry: what was done.
            upper: the layer.
            contents: where a file's content is: in the layer, or where it was kept.
            name: that of the content there.

        Raises:
            OSError: it can't be done.
        """
        place, folder = entry.place, self._folder
        before, mode = look(folder, place), stat.S_IMODE(entry.signature[4])
        if entry.kind == "file":
            with beneath.open_to_read(contents, name) as source:
                if stat.S_ISDIR(before[4]):
                    remove(folder, place)
                with beneath.replaced(folder, place, mode) as written:
                    shutil.copyfileobj(source, written, COPY_BYTES)
                    os.fchmod(written.fileno(), mode)
        else:
            target = target_of(upper, place) if entry.kind == "link" else ""
            remove(folder, place)
            if entry.kind != "gone":
                with beneath.parent_of(folder, place, makes=True) as parent:
                    if entry.kind == "link":
                        os.symlink(target, place.name, dir_fd=parent)
                    else:
                        os.mkdir(place.name, mode, dir_fd=parent)
        self._written[place] = look(folder, place)

    def look_below(self) -> None:
        """Makes the kernel see what the person has changed in the folder since it was written.

        Raises:
            OSError: the layer can't be opened any more.
        """
        with self._lock, beneath.held(self.upper) as upper:
            times = folder_times(self.folder)
            is_other, self._folders = times != self._folders, times
            for place, written in list(self._written.items()):
                if look(self._folder, place) != written:
                    is_other = True
                    del self._written[place]
                    if self._handled.get(place) == look(upper, place):
                        remove(upper, place)
                        self._handled.pop(place, None)
        if is_other:
            self.refresh()

    async def tend(self) -> None:
        """Looks at both sides now and then, until it is cancelled."""
        while True:
            await asyncio.sleep(TEND_S)
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self.look_below)
                await asyncio.to_thread(self.settle, QUIET_S)
                if self.waiting and not self.is_asked_about:
                    await asyncio.to_thread(self.decide, allows=False)

    def finish(self) -> None:
        """Lets through what may still go on, drops the rest, and removes the layer."""
        with contextlib.suppress(OSError):
            self.settle()
            self.decide(allows=False)
        self.remove()

    def remove(self) -> None:
        """Removes the layer, with what was not let through. Safe to call again."""
        with self._lock:
            self._private.remove()
            if self._folder >= 0:
                os.close(self._folder)
                self._folder = -1


def _kept_name(entry: LayerEntry) -> PurePath:
    return PurePath(hashlib.sha256(os.fsencode(entry.place)).hexdigest())
