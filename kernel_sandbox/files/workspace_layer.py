"""A layer above a user's folder: cells write into it, and permitted changes reach the folder.

A kernel in its own view sees the folder with the layer above it (overlayfs). It reads the folder's
files, and all that it creates, changes or removes stays in the layer. From outside, the layer is a
folder, `upper`, with what was created and changed, and a mark for what was removed.

    settle      pass on permitted changes, keep those that need approval, refuse forbidden ones
    decide      write the changes that wait for approval, or drop them
    look_below  make the kernel see what the user has changed in the folder

Covered: changes are judged by what cells did to files, not by what their code looks like. Names
that programs run or obey unasked, modules that hide others, links that lead out and what is not a
file never reach the folder. What a person approves is what is written, whatever the kernel does
meanwhile, and only if what it replaces is still the same. Files are written completely, beneath the
folder, through no link. All of them together stay below a size, holes included, and a number.
Not covered: the contents of the files; which cell, or which thread that a cell has left, did it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path, PurePath

from kernel_sandbox.files import beneath
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.files.layer_entries import (
    ASKED,
    GONE,
    MOST_ENTRIES,
    UNREADABLE,
    LayerEntry,
    Signature,
    changes_nothing,
    look,
    new_entries,
    refused_folder,
    remove,
    remove_empty,
)
from kernel_sandbox.files.user_folder import UserFolder
from kernel_sandbox.files.waiting_changes import ChangeNews, WaitingChanges
from kernel_sandbox.types import FileChange

__all__ = ["WorkspaceLayer"]

log = logging.getLogger(__name__)

TEND_S = 1.0
TOO_MANY = (
    f"only {MOST_ENTRIES:,} files and folders of a kernel get there; "
    "a restarted kernel may write more"
)
QUIET_S = 1.0
"""A file written within this time may be incomplete, unless its cell has ended."""


class WorkspaceLayer:
    """The layer of one kernel, from its start to its end. May be used from several threads."""

    def __init__(self, folder: Path, base: Path, limit_bytes: int) -> None:
        """Create an empty layer.

        Args:
            folder: the working folder of a user.
            base: where to create it, on a file system that overlayfs accepts, as most disks are.
            limit_bytes: the size that the files which reach the folder may have together, with
                those that wait. The holes of a sparse file count.

        Raises:
            OSError: it can't be created.
        """
        self.folder = folder
        self._below = UserFolder(folder, limit_bytes)
        with ExitStack() as undone:
            undone.callback(self._below.close)
            self._private = PrivateFolder(base, "dm-layer-")
            undone.callback(self._private.remove)
            self.path = self._private.path
            """The folder of the layer."""
            self.upper = self.path / "upper"
            """The folder with the kernel's writes."""
            for name in ("upper", "work", "held"):
                (self.path / name).mkdir(mode=0o700)
            self.upper.chmod(stat.S_IMODE(folder.stat().st_mode))
            undone.pop_all()
        self.refresh: Callable[[], object] = lambda: None
        """Makes the kernel's view drop its cache of the folder."""
        self._lock = threading.RLock()
        self._handled: dict[PurePath, Signature] = {}
        """Handled entries, as they then were in the layer."""
        self._remembered = 0
        """How many there were when those that had left the layer were last forgotten."""
        self.waiting = WaitingChanges(self.path / "held", self._below)
        """What waits for approval."""
        self._news = ChangeNews()
        self._told: frozenset[tuple[Signature, FileChange]] = frozenset()
        """What was refused the last time; it is not reported again while nothing changes."""
        self.is_gated = False
        """Whether overwritten and removed files, and programs, wait for approval."""
        self.is_asked_about = True
        """Whether somebody is there to approve; else what waits is dropped."""

    def ask(self) -> tuple[FileChange, ...]:
        """Settle, and return the changes that wait; they stay as they are until `decide` is called.

        It may wait for a comparison of files, as all but `take_news` may: not for an event loop.
        """
        with self._lock:
            self.settle()
            return self.waiting.ask()

    def take_news(self) -> tuple[FileChange, ...]:
        """Return the last change of each path that was passed on, kept, refused or decided on.

        Each is returned once. It never waits for files.
        """
        return self._news.take()

    def settle(self, quiet_s: float = 0.0) -> None:
        """Pass on permitted changes and keep those that need approval; `take_news` reports them.

        What can't be done is reported as refused, once, and tried again at each call. That there
        are too many files is reported after each cell. A layer that was removed has nothing to pass
        on.

        Args:
            quiet_s: files changed within this time are left for the next call, seconds; 0 after a
                cell.
        """
        with self._lock, ExitStack() as stack:
            if self._below.descriptor < 0:
                return
            try:
                upper = stack.enter_context(beneath.held(self.upper))
                os.stat(".", dir_fd=upper)
                found = self._found(upper)
            except OSError:
                upper, found = -1, [refused_folder(UNREADABLE)]
            found.sort(key=lambda entry: (entry.kind != "gone", entry.change.path))  # makes room
            newest_ns = time.time_ns() - round(quiet_s * 1e9) if quiet_s else math.inf
            due = [entry for entry in found if self._is_due(entry, newest_ns)]
            with self._below.writing() if due else nullcontext():
                done = [
                    (entry.signature, change)
                    for entry in due
                    if (change := self._settled(entry, upper)) is not None
                ]
            told = {x for x in self._told if quiet_s or TOO_MANY not in x[1].marks}
            self._news.add(
                sorted(
                    (change for signature, change in done if (signature, change) not in told),
                    key=lambda change: change.path,
                )
            )
            self._told = frozenset(x for x in done if x[1].state == "refused")
            if upper >= 0:
                self._forget_gone(upper)

    def _found(self, upper: int) -> list[LayerEntry]:
        """Return what is new or has changed in the layer; the rest of too much is one entry."""
        found: list[LayerEntry] = []
        written = self._below.written
        there = self.waiting.writes | {x for x, was in written.items() if was != GONE}
        is_full, room = False, MOST_ENTRIES - len(there)
        known = there | written.keys()
        every = new_entries(upper, self._below.descriptor, self._handled)
        with contextlib.closing(every) as entries:
            for number, entry in enumerate(entries):
                if number >= MOST_ENTRIES:
                    is_full = True
                    break
                if entry is None:
                    continue
                room -= entry.kind != "gone" and entry.place not in known
                if room < 0 and entry.place not in known:
                    is_full = True
                else:
                    found.append(entry)
        return [*found, refused_folder(TOO_MANY)] if is_full else found

    def _forget_gone(self, upper: int) -> None:
        """Forget what has left the layer, once it is much: a kernel may make ever new names."""
        known = self._handled.keys() | self._below.written.keys()
        if len(known) > 2 * max(MOST_ENTRIES, self._remembered):
            gone = {place for place in known if beneath.is_gone(upper, place)}
            self._handled = {x: was for x, was in self._handled.items() if x not in gone}
            self._below.forget_removed(gone)
            self._remembered = len(self._handled)

    def _is_due(self, entry: LayerEntry, newest_ns: float) -> bool:
        """Return whether a file is complete, and nothing that comes after an open question."""
        is_asked = self._needs_approval(entry.change) or entry.place in self.waiting
        if self.waiting.is_asking and is_asked:
            return False
        return entry.kind != "file" or entry.signature[3] <= newest_ns

    def _needs_approval(self, change: FileChange) -> bool:
        is_special = change.kind != "made" or bool(set(change.marks) & set(ASKED))
        return self.is_gated and is_special

    def _settled(self, entry: LayerEntry, upper: int) -> FileChange | None:
        """Handle an entry; return the change, or `None` if nothing changes."""
        change = entry.change
        self._handled[entry.place] = entry.signature
        try:
            if not self.waiting.is_asking:
                self.waiting.drop(entry)
            if change.state == "refused":
                return change
            if changes_nothing(entry, upper, self._below.descriptor):
                self._below.record(entry.place)
                return None
            if self._needs_approval(change):
                self.waiting.keep(entry, upper)
                return replace(change, state="waits")
            self._below.write(entry, upper, upper, entry.place)
        except OSError as error:
            del self._handled[entry.place]  # it is checked again
            if error.errno in (errno.ENOENT, errno.ENOTDIR):  # gone, or another, by now
                return None
            why = error.strerror or str(error)
            return replace(change, state="refused", marks=(*change.marks, why))
        return change if entry.kind != "folder" or change.kind != "made" else None

    def decide(self, *, allows: bool) -> tuple[FileChange, ...]:
        """Write the waiting changes or drop them; return what was done.

        What can't be written is refused with the reason, and asked about again. A layer that was
        removed has nothing that waits.

        Args:
            allows: whether they may be written.
        """
        with self._lock:
            if self._below.descriptor < 0:
                return ()
            done = self.waiting.decide(self.upper, allows=allows)
            for place, change in done.items():
                if change.state == "refused":
                    self._handled.pop(place, None)
            self._news.add(done.values())
        if done:
            self.refresh()
        return tuple(done.values())

    def look_below(self) -> None:
        """Make the kernel see what the user has changed in the folder since it was written.

        Raises:
            OSError: the layer can't be opened any more.
        """
        with self._lock, beneath.held(self.upper) as upper:
            others, is_other = self._below.changed()
            for place in others:
                self._uncover(upper, place)
        if is_other:
            self.refresh()

    def _uncover(self, upper: int, place: PurePath) -> None:
        """Remove from the layer what was passed on, and only that."""
        now = look(upper, place)
        if not stat.S_ISDIR(now[4]) and self._handled.get(place) == now:
            remove(upper, place)
            del self._handled[place]
        for folder in (place, *place.parents)[:-1]:
            if not stat.S_ISDIR(look(self._below.descriptor, folder)[4]):
                remove_empty(upper, folder)

    async def tend(self) -> None:
        """Check both sides now and then, until cancelled."""
        while True:
            await asyncio.sleep(TEND_S)
            with contextlib.suppress(OSError):  # `settle` reports a layer that can't be opened
                await asyncio.to_thread(self.look_below)
            await asyncio.to_thread(self.settle, QUIET_S)
            if not self.is_asked_about:
                await asyncio.to_thread(self.decide, allows=False)

    def finish(self) -> None:
        """Pass on what is still permitted, drop the rest, and remove the layer."""
        with self._lock:
            self.settle()
            self.decide(allows=False)
        refused = self._news.count_refused()
        if refused:
            log.warning("%s: %d changes of its kernel did not get there", self.folder, refused)
        self.remove()

    def remove(self) -> None:
        """Remove the layer, with what was not passed on. Safe to call again."""
        with self._lock:
            self._private.remove()
            self._below.close()
