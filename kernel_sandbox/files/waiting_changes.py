"""Changes of a layer that wait for a person's decision, and the news about all of its changes.

Covered: a file that waits is kept as a copy, so what was shown is what is written. A decision is
carried out as far as it can be, and told in full. The number of news is bounded.
Not covered: which changes wait, which the layer decides.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import stat
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePath

from kernel_sandbox.files import beneath
from kernel_sandbox.files.layer_entries import (
    MOST_ENTRIES,
    LayerEntry,
    State,
    look,
    remove,
    state_of,
)
from kernel_sandbox.files.user_folder import UserFolder
from kernel_sandbox.types import FileChange

__all__ = ["ChangeNews", "WaitingChanges"]

MEANWHILE = "it was changed meanwhile"
UNLISTED = FileChange(".", "changed", marks=("the earlier changes are too many to list",))
MOST_NEWS = 2 * MOST_ENTRIES
"""Of news that nobody takes; one look at a layer brings half as many."""


class WaitingChanges:
    """The changes that wait, with copies of their files. One thread at a time may use it."""

    def __init__(self, copies: Path, below: UserFolder) -> None:
        """Start with nothing waiting.

        Args:
            copies: an empty folder for the copies.
            below: the folder that the changes are for.
        """
        self._copies = copies
        self._below = below
        self._entries: dict[PurePath, tuple[LayerEntry, State]] = {}
        """Entries that wait, each with how the folder was when it was asked about."""
        self.is_asking = False
        """Whether somebody is looking at what waits."""

    @property
    def changes(self) -> tuple[FileChange, ...]:
        """The changes that wait for approval."""
        return tuple(entry.change for entry, _ in self._entries.values())

    @property
    def writes(self) -> set[PurePath]:
        """The paths of what waits to be there: all but removals."""
        return {place for place, (entry, _) in self._entries.items() if entry.kind != "gone"}

    def __contains__(self, place: PurePath) -> bool:
        """Return whether an entry waits."""
        return place in self._entries

    def ask(self) -> tuple[FileChange, ...]:
        """Return the changes that wait; they are to stay as they are until `decide` is called."""
        self.is_asking = bool(self._entries)
        return self.changes

    def keep(self, entry: LayerEntry, upper: int) -> None:
        """Keep a copy of what waits for approval: that copy is written later.

        Args:
            entry: the change.
            upper: the layer.

        Raises:
            OSError: it can't be copied.
        """
        place = entry.place
        before = state_of(self._below.descriptor, place)
        if entry.kind == "file":
            with (
                beneath.open_to_read(upper, place) as source,
                beneath.held(self._copies) as copies,
                beneath.replaced(copies, _kept_name(place)) as target,
            ):
                size = self._below.copy(place, source, target)
            self._below.count(place, size)
        self._entries[place] = entry, before

    def drop(self, entry: LayerEntry) -> None:
        """Forget what waits in the place of an entry, as it is another by now.

        Raises:
            OSError: a copy can't be removed; that entry still waits.
        """
        place = entry.place
        places = [place] if place in self._entries else []
        if entry.kind != "folder" and stat.S_ISDIR(look(self._below.descriptor, place)[4]):
            places += [inside for inside in self._entries if place in inside.parents]
        for waiting in places:
            with beneath.held(self._copies) as copies:
                self._release(waiting, copies)
            del self._entries[waiting]

    def decide(self, upper: Path, *, allows: bool) -> dict[PurePath, FileChange]:
        """Write what waits or drop it; return what was done, by the paths of the entries.

        Args:
            upper: the folder of the layer.
            allows: whether it may be written.
        """
        self.is_asking = False
        entries, self._entries = self._entries, {}
        if not entries:
            return {}
        try:
            with (
                beneath.held(upper) as layer,
                beneath.held(self._copies) as copies,
                self._below.writing(),
            ):
                return {
                    place: self._allow(entry, before, layer, copies)
                    if allows
                    else self._deny(entry, layer, copies)
                    for place, (entry, before) in entries.items()
                }
        except OSError as error:  # a folder can't be opened: nothing was done
            return {place: _failed(entry, error) for place, (entry, _) in entries.items()}

    def _allow(self, entry: LayerEntry, before: State, upper: int, copies: int) -> FileChange:
        try:
            if state_of(self._below.descriptor, entry.place) != before:
                self._deny(entry, upper, copies)
                raise OSError(errno.ESTALE, MEANWHILE)
            self._below.write(entry, upper, copies, _kept_name(entry.place))
        except OSError as error:
            return _failed(entry, error)
        finally:
            self._release_decided(entry.place, copies)
        return entry.change

    def _deny(self, entry: LayerEntry, upper: int, copies: int) -> FileChange:
        with contextlib.suppress(OSError):  # then the kernel still sees it
            if look(upper, entry.place) == entry.signature:
                remove(upper, entry.place)
        self._release_decided(entry.place, copies)
        return replace(entry.change, state="refused")

    def _release_decided(self, place: PurePath, copies: int) -> None:
        """Remove the copy of what waited; one that stays is replaced, or goes with the layer."""
        with contextlib.suppress(OSError):
            self._release(place, copies)

    def _release(self, place: PurePath, copies: int) -> None:
        remove(copies, _kept_name(place))
        self._below.count(place)


class ChangeNews:
    """What became of changes since it was last taken: the last of each path.

    Any thread may use it, the event loop's as well: no call waits for work on files.
    """

    def __init__(self) -> None:
        """Start without news."""
        self._lock = threading.Lock()
        self._changes: dict[str, FileChange] = {}

    def add(self, changes: Iterable[FileChange]) -> None:
        """Add changes; beyond some thousand paths the oldest make room, which is one entry."""
        with self._lock:
            self._changes.update((change.path, change) for change in changes)
            excess = len(self._changes) - MOST_NEWS
            if excess > 0:
                about_all = self._changes.pop(".", UNLISTED)
                kept = itertools.islice(self._changes.items(), excess, None)
                self._changes = {".": about_all, **dict(kept)}

    def take(self) -> tuple[FileChange, ...]:
        """Return the changes and forget them."""
        with self._lock:
            news, self._changes = tuple(self._changes.values()), {}
            return news

    def count_refused(self) -> int:
        """Return how many of the changes were refused."""
        with self._lock:
            return sum(change.state == "refused" for change in self._changes.values())


def _failed(entry: LayerEntry, error: OSError) -> FileChange:
    """Return a change that could not be made, and why."""
    marks = (*entry.change.marks, error.strerror or str(error))
    return replace(entry.change, state="refused", marks=marks)


def _kept_name(place: PurePath) -> PurePath:
    return PurePath(hashlib.sha256(os.fsencode(place)).hexdigest())
