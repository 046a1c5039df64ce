"""The folder of a user beneath a layer: what was written into it, and what the user has changed.

Covered: files are written completely, beneath the folder, through no link, and give nobody the
rights of their owner. All of them together, with the copies that wait, stay below a size, holes
included. Not covered: whether a change may be written, which the layer decides.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO

from kernel_sandbox.files import beneath
from kernel_sandbox.files.layer_entries import (
    COPY_BYTES,
    GONE,
    LayerEntry,
    Signature,
    look,
    remove,
    show_through,
    target_of,
)
from kernel_sandbox.types import MIB

__all__ = ["UserFolder"]

_FolderTimes = dict[str, tuple[int, list[str]]]
"""For each folder, when it was changed, nanoseconds, and the folders in it."""
_WATCHED_FOLDERS = 300
_RIGHTS = 0o777
"""Not the rights of a program's owner and group."""


class UserFolder:
    """A user's folder as a layer sees it, which also locks it."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        """Open the folder.

        Args:
            path: the folder.
            limit_bytes: the size that the written files and the copies that wait may have together.

        Raises:
            OSError: it can't be opened.
        """
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.written: dict[PurePath, Signature] = {}
        """Entries that were written, as they then were."""
        self._limit_bytes = limit_bytes
        self._used_bytes = 0
        self._sizes: dict[PurePath, int] = {}
        """The bytes of what was written, or of the copy that waits to replace it."""
        self._times = _folder_times(path)

    def copy(self, place: PurePath, source: BinaryIO, target: BinaryIO) -> int:
        """Copy the content of a file, unless all of them would become too large; return its size.

        Args:
            place: where it is, or waits to be.
            source: the content.
            target: where to write it.

        Raises:
            OSError: they would, or it can't be copied.
        """
        size, room = 0, self._limit_bytes - self._used_bytes + self._sizes.get(place, 0)
        while chunk := source.read(COPY_BYTES):
            size += len(chunk)
            if size > room:
                most = f"{self._limit_bytes / MIB:.0f} MiB"
                raise OSError(errno.EDQUOT, f"with it, the files take more than {most} together")
            target.write(chunk)
        return size

    def count(self, place: PurePath, size_bytes: int | None = None) -> None:
        """Count a file towards the limit, instead of what counted in its place.

        Args:
            place: its path.
            size_bytes: the size of a copy that waits; `None` counts what was written.
        """
        if size_bytes is None:
            _, size_bytes, _, _, mode = self.written.get(place, GONE)
            size_bytes *= stat.S_ISREG(mode)
        self._used_bytes += size_bytes - self._sizes.pop(place, 0)
        if size_bytes:
            self._sizes[place] = size_bytes

    def record(self, place: PurePath) -> None:
        """Remember an entry as it is now, as one that was written."""
        self.written[place] = look(self.descriptor, place)
        self.count(place)

    def _forget(self, place: PurePath) -> None:
        del self.written[place]
        self.count(place)

    def forget_removed(self, places: Iterable[PurePath]) -> None:
        """Forget removals: what the user puts in these places can be seen by itself."""
        for place in places:
            if self.written.get(place) == GONE:
                self._forget(place)

    def write(self, entry: LayerEntry, upper: int, contents: int, name: PurePath) -> None:
        """Apply a change of the layer.

        Args:
            entry: the change.
            upper: the layer.
            contents: the folder of a file's content: the layer, or where a copy was kept.
            name: the name of the content there.

        Raises:
            OSError: it can't be done.
        """
        place, folder = entry.place, self.descriptor
        before, mode = look(folder, place), entry.signature[4] & _RIGHTS
        if entry.kind == "file":
            with beneath.open_to_read(contents, name) as source:
                if stat.S_ISDIR(before[4]):
                    remove(folder, place)
                with beneath.replaced(folder, place, mode) as written:
                    self.copy(place, source, written)
                    os.fchmod(written.fileno(), mode)
        else:
            target = target_of(upper, place) if entry.kind == "link" else ""
            remove(folder, place)
            if entry.kind != "gone":
                with beneath.parent_of(folder, place, makes=True) as parent:
                    if entry.kind == "link":
                        os.symlink(target, place.name, dir_fd=parent)
                    else:
                        os.mkdir(place.name, mode | stat.S_IRWXU, dir_fd=parent)  # files follow
                        show_through(upper, place)
        if stat.S_ISDIR(before[4]):
            for inside in [x for x in self.written if place in x.parents]:
                self._forget(inside)
        self.record(place)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep what is written meanwhile apart from what the user has changed before."""
        is_other = _folder_times(self.path, self._times) != self._times
        yield
        self._times = {} if is_other else _folder_times(self.path, self._times)

    def changed(self) -> tuple[list[PurePath], bool]:
        """Forget what the user has changed since it was written.

        Returns:
            These entries, the deepest first, and whether the user has changed anything.
        """
        times = _folder_times(self.path, self._times)
        is_other, self._times = times != self._times, times
        others = [x for x, was in self.written.items() if _is_other(look(self.descriptor, x), was)]
        for place in others:
            self._forget(place)
        return sorted(others, key=lambda place: -len(place.parts)), is_other or bool(others)

    def close(self) -> None:
        """Close the folder. Safe to call again."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _is_other(now: Signature, written: Signature) -> bool:
    """Return whether an entry is not the written one any more; a folder is, whatever is in it."""
    return now != written and not (stat.S_ISDIR(now[4]) and stat.S_ISDIR(written[4]))


def _folder_times(folder: Path, known: _FolderTimes | None = None) -> _FolderTimes:
    """Return when the folder and those below it were last changed; of some hundred at most.

    Args:
        folder: where to begin.
        known: what this returned before; a folder that has not changed since is not read again.
    """
    found: _FolderTimes = {}
    waiting = deque([str(folder)])
    while waiting and len(found) < _WATCHED_FOLDERS:
        path = waiting.popleft()
        with contextlib.suppress(OSError):
            changed_ns = os.stat(path).st_mtime_ns  # noqa: PTH116
            before = (known or {}).get(path)
            if before is None or before[0] != changed_ns:
                with os.scandir(path) as entries:
                    inside = (x.path for x in entries if x.is_dir(follow_symlinks=False))
                    before = (changed_ns, list(itertools.islice(inside, _WATCHED_FOLDERS)))
            found[path] = before
            waiting += before[1]
    return found
