"""Entries of a layer above a user's folder, and what each of them means.

Covered: files, folders, links and marks of removal, as overlayfs keeps them for an ordinary user;
what a person should know about each. Nothing is followed and nothing is opened by its path.
Not covered: the contents of the files.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import secrets
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal

from kernel_sandbox import names
from kernel_sandbox.files import beneath
from kernel_sandbox.types import FileChange

__all__ = [
    "ASKED",
    "COPY_BYTES",
    "GONE",
    "MOST_ENTRIES",
    "UNREADABLE",
    "LayerEntry",
    "Signature",
    "State",
    "changes_nothing",
    "look",
    "new_entries",
    "protected_paths",
    "refused_folder",
    "remove",
    "remove_empty",
    "show_through",
    "state_of",
    "target_of",
    "written",
]

CODE, EXECUTABLE, LINK = "code", "executable", "a link"
CARRIES_CODE = "may run code when it is opened"
HIDES = "hides the module"
NEVER = "programs run or obey it unasked"
NOTEBOOK = "a notebook that was there"
LEADS_OUT = "a link that leads out of the folder"
NO_FILE = "neither a file nor a folder"
ODD_NAME = "its name is no text"
TOO_DEEP = "too many folders deep"
TOO_MANY = "too many files to look at"
UNREADABLE = "a folder that can't be read"
_REFUSED = (
    *(HIDES, NEVER, NOTEBOOK, LEADS_OUT, NO_FILE, ODD_NAME, TOO_DEEP, TOO_MANY, UNREADABLE),
)
ASKED = (CODE, EXECUTABLE, LINK)

MOST_ENTRIES = 5_000
"""A layer with more files and folders is looked at in part only."""
_MAXIMUM_DEPTH = 60
_PROTECTED_DEPTH, _PROTECTED_ENTRIES = 3, 5000
"""The search for protected paths: a kernel in an entire home should start without delay."""
_REMOVED_ENTRIES = 50_000
"""A folder with more entries is not removed: what is in it could not be checked in time."""
_ANOTHER = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL)
"""Errors on opening an entry that is gone by now, or has become another."""
_OPAQUE = "user.overlay.opaque"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
COPY_BYTES = 1024 * 1024

Signature = tuple[int, int, int, int, int]
"""Inode, size, both times of change and mode; it differs when the entry does."""
GONE: Signature = (0, 0, 0, 0, 0)
State = frozenset[tuple[str, Signature]]
"""An entry, with what is in it if it is a folder."""

Kind = Literal["file", "folder", "link", "gone", "other"]


_TOP = PurePath()


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """An entry of the layer that is new or has changed since the last look."""

    place: PurePath
    signature: Signature
    """Of the entry in the layer; of its folder if the folder no longer shows the entry."""
    change: FileChange
    kind: Kind


def new_entries(
    upper: int, folder: int, handled: dict[PurePath, Signature], above: PurePath = _TOP
) -> Generator[LayerEntry | None, None, None]:
    """Yield what is in a folder of the layer, and in those below; `None` if it was handled.

    Of one folder it lists no more entries than all of them may be.

    Args:
        upper: the folder of the layer.
        folder: the same folder of the user; -1 if there is none.
        handled: the entries already handled.
        above: the path of both folders.
    """
    with os.scandir(upper) as scan:
        entries = list(itertools.islice(scan, MOST_ENTRIES + 1))
    for entry in entries:
        place, name = above / entry.name, PurePath(entry.name)
        try:
            now = _signature(entry.stat(follow_symlinks=False))
        except OSError:  # gone since it was listed
            continue
        is_open = stat.S_ISDIR(now[4]) and not _name_marks(place)
        if not is_open and handled.get(place) == now:
            yield None
            continue
        before = look(folder, name)
        is_below = is_open and stat.S_ISDIR(before[4])
        with ExitStack() as stack:
            try:
                inner = _entered(stack, upper, entry.name) if is_open else -1
                below = _entered(stack, folder, entry.name) if is_below else -1
                is_new = handled.get(place) != now and not is_below
                judged = _judged(place, now, before, upper, folder) if is_new else None
            except OSError as error:
                if error.errno in _ANOTHER:
                    continue
                change = _change(place, now, before, [UNREADABLE])
                yield LayerEntry(place, (now[0], 0, 0, 0, now[4]), change, "other")
                continue
            yield judged
            if is_below:
                yield from _cleared(place, now, inner, below)
            if is_open:
                yield from new_entries(inner, below, handled, place)


def _entered(stack: ExitStack, folder: int, name: str) -> int:
    """Open a folder whose entries can be listed and opened."""
    descriptor = os.open(name, _FOLDER, dir_fd=folder)
    stack.callback(os.close, descriptor)
    os.stat(".", dir_fd=descriptor)  # refused if its entries can't be opened
    return descriptor


def refused_folder(why: str) -> LayerEntry:
    """Return an entry for all that can't be looked at in the layer, and why."""
    change = FileChange(".", "changed", "refused", marks=(why,))
    return LayerEntry(_TOP, GONE, change, "other")


def show_through(folder: int, place: PurePath) -> None:
    """Let a folder of the layer show what the user puts into theirs from now on."""
    with contextlib.suppress(OSError), ExitStack() as stack:
        parent = stack.enter_context(beneath.parent_of(folder, place))
        os.removexattr(_entered(stack, parent, place.name), _OPAQUE)


def _cleared(place: PurePath, now: Signature, inner: int, below: int) -> Iterator[LayerEntry]:
    """Yield what disappeared from a folder because it was removed and created again."""
    try:
        os.getxattr(inner, _OPAQUE)
    except OSError:  # it was not
        return
    try:
        for name in set(os.listdir(below)) - set(os.listdir(inner)):
            yield _gone(place / name, now, look(below, PurePath(name)), below)
    finally:
        with contextlib.suppress(OSError):  # from here on it shows what the user puts there
            os.removexattr(inner, _OPAQUE)


def _judged(
    place: PurePath, now: Signature, before: Signature, upper: int, folder: int
) -> LayerEntry:
    """Return what an entry of the layer means, and what a person should know about it."""
    mode = now[4]
    if stat.S_ISCHR(mode):
        return _gone(place, now, before, folder)
    marks = list(_name_marks(place))
    if not stat.S_ISDIR(mode):
        marks += _contents_marks(place, before, folder)
    kind: Kind = "other"
    if stat.S_ISREG(mode):
        kind = "file"
        marks += _file_marks(place, mode, before)
    elif stat.S_ISLNK(mode):
        kind = "link"
        leads_to = target_of(upper, PurePath(place.name))
        marks.append(LINK if _stays_inside(place, leads_to) else LEADS_OUT)
    elif stat.S_ISDIR(mode):
        kind = "folder"
    else:
        marks.append(NO_FILE)
    return LayerEntry(place, now, _change(place, now, before, marks), kind)


def _gone(place: PurePath, now: Signature, before: Signature, folder: int) -> LayerEntry:
    """Return the removal of a file, or of a folder and its contents."""
    marks = [*_name_marks(place), *([NOTEBOOK] if _is_notebook(place.name) else [])]
    marks += _contents_marks(place, before, folder)
    change = replace(_change(place, now, before, marks), kind="removed", size_bytes=0)
    return LayerEntry(place, now, change, "gone")


def _contents_marks(place: PurePath, before: Signature, folder: int) -> tuple[str, ...]:
    """Return why a folder may not be removed with its contents; empty if it may, or is none."""
    if not stat.S_ISDIR(before[4]):
        return ()
    entries = _entries(Path(f"/proc/self/fd/{folder}") / place.name, is_strict=True)
    try:
        for number, entry in enumerate(entries):
            if _is_protected(entry.name):
                return (f"{NEVER}: {entry.name}",)
            if number >= _REMOVED_ENTRIES:
                return (TOO_MANY,)
    except OSError:
        return (UNREADABLE,)
    return ()


def _change(place: PurePath, now: Signature, before: Signature, marks: list[str]) -> FileChange:
    is_refused = any(mark.startswith(_REFUSED) for mark in marks)
    return FileChange(
        path=os.fsencode(place).decode("utf-8", "replace"),
        kind="made" if before == GONE else "changed",
        state="refused" if is_refused else "written",
        size_bytes=now[1],
        before_bytes=None if before == GONE else before[1],
        marks=tuple(marks),
    )


def _name_marks(place: PurePath) -> tuple[str, ...]:
    """Return why nothing of that name, or beneath it, may pass; empty if it may."""
    if len(place.parts) > _MAXIMUM_DEPTH:
        return (TOO_DEEP,)
    if names.is_obeyed(place.name):
        return (NEVER,)
    try:
        place.name.encode("utf-8")
    except UnicodeEncodeError:
        return (ODD_NAME,)
    return ()


def _file_marks(place: PurePath, mode: int, before: Signature) -> list[str]:
    hidden = names.hidden_module(place)
    marks = {
        NOTEBOOK: _is_notebook(place.name) and before != GONE,
        f"{HIDES} {hidden}": bool(hidden),
        CODE: names.is_code(place.name),
        CARRIES_CODE: names.carries_code(place.name),
        EXECUTABLE: bool(mode & 0o111 & ~before[4]),
    }
    return [mark for mark, holds in marks.items() if holds]


def written(folder: int, place: PurePath, *, was_there: bool) -> FileChange:
    """Return a change that no layer held back, with what a person should know about the file.

    Args:
        folder: the user's folder.
        place: the path of the file in it.
        was_there: whether there was a file of that name before.
    """
    now = look(folder, place)
    if now == GONE:
        return FileChange(os.fsencode(place).decode("utf-8", "replace"), "removed")
    before = (0, 0, 0, 0, now[4]) if was_there else GONE
    marks = [*_name_marks(place), *_file_marks(place, now[4], before)]
    return replace(_change(place, now, before, marks), state="written", before_bytes=None)


def _stays_inside(place: PurePath, target: str) -> bool:
    """Return whether a link leads to its folder or below; `..` after a name may lead anywhere."""
    names_of_target = PurePosixPath(target).parts
    up = len(list(itertools.takewhile(lambda name: name == "..", names_of_target)))
    is_up_first = not {"/", "//", ".."} & set(names_of_target[up:])
    return is_up_first and up < len(place.parts)


def changes_nothing(entry: LayerEntry, upper: int, folder: int) -> bool:
    """Return whether the folder is already as it would be afterwards."""
    before = look(folder, entry.place)
    if entry.kind == "gone":
        return before == GONE
    if entry.kind == "folder":
        return stat.S_ISDIR(before[4])
    if entry.kind == "link":
        is_link = stat.S_ISLNK(before[4])
        return is_link and target_of(folder, entry.place) == target_of(upper, entry.place)
    is_same_kind = stat.S_ISREG(before[4]) and not (before[4] ^ entry.signature[4]) & 0o111
    if not is_same_kind or before[1] != entry.signature[1]:
        return False
    with (
        beneath.open_to_read(upper, entry.place) as one,
        beneath.open_to_read(folder, entry.place) as other,
    ):
        while chunk := one.read(COPY_BYTES):
            if chunk != other.read(COPY_BYTES):
                return False
    return True


def look(folder: int, place: PurePath) -> Signature:
    """Return the signature of an entry now; `GONE` if it is missing or a link is on the way."""
    if folder < 0:
        return GONE
    try:
        with beneath.parent_of(folder, place) as parent:
            status = os.stat(place.name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return GONE
    return _signature(status)


def _signature(status: os.stat_result) -> Signature:
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_ino, status.st_size, *times, status.st_mode)


def state_of(folder: int, place: PurePath) -> State:
    """Return how an entry is now; another return value means that it has changed.

    Args:
        folder: the user's folder.
        place: the path of a file or a link in it, or of a folder, which counts with its contents.

    Raises:
        OSError: a folder can't be read.
    """
    now = look(folder, place)
    inside: Iterable[os.DirEntry[str]] = ()
    if stat.S_ISDIR(now[4]):
        inside = _entries(Path(f"/proc/self/fd/{folder}") / place, is_strict=True)
    entries = {(x.path, _signature(x.stat(follow_symlinks=False))) for x in inside}
    return frozenset({("", now), *entries})


def target_of(folder: int, place: PurePath) -> str:
    """Return the target of a link, as it is written.

    Raises:
        OSError: it is not a link.
    """
    with beneath.parent_of(folder, place) as parent:
        return os.readlink(place.name, dir_fd=parent)


def remove(folder: int, place: PurePath) -> None:
    """Remove a file, a link or a folder with its contents; a missing one is not an error."""
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        beneath.parent_of(folder, place) as parent,
    ):
        try:
            os.unlink(place.name, dir_fd=parent)
        except IsADirectoryError:
            _remove_folder(parent, place.name)


def _remove_folder(parent: int, name: str) -> None:
    """Remove a folder of any depth: deeper folders are moved up first, and no link is followed.

    Raises:
        OSError: it can't be opened or emptied, or something was put into it meanwhile.
    """
    numbers = itertools.count()
    with ExitStack() as opened:
        root = _entered(opened, parent, name)
        while folders := _without_files(root):
            for folder in folders:
                with ExitStack() as stack:
                    inside = _entered(stack, root, folder)
                    for deeper in _without_files(inside):
                        moved = f".{next(numbers)}-{secrets.token_hex(6)}"
                        os.rename(deeper, moved, src_dir_fd=inside, dst_dir_fd=root)
                os.rmdir(folder, dir_fd=root)
    os.rmdir(name, dir_fd=parent)


def remove_empty(layer: int, place: PurePath) -> None:
    """Remove a folder of the layer in which nothing is left, or only marks of what was removed."""
    with contextlib.suppress(OSError), ExitStack() as opened:
        parent = opened.enter_context(beneath.parent_of(layer, place))
        folder = _entered(opened, parent, place.name)
        with os.scandir(folder) as scan:
            inside = list(scan)
        if all(stat.S_ISCHR(entry.stat(follow_symlinks=False).st_mode) for entry in inside):
            for entry in inside:
                os.unlink(entry.name, dir_fd=folder)
            os.rmdir(place.name, dir_fd=parent)


def _without_files(folder: int) -> list[str]:
    """Remove everything but folders; return the names of the folders that are left."""
    with os.scandir(folder) as scan:
        entries = list(scan)
    folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name, dir_fd=folder)
    return folders


def protected_paths(workspace: Path) -> tuple[Path, ...]:
    """Return what in a working folder no cell may change: notebooks, and what starts programs.

    It looks three folders deep, at no more than some thousand entries, and follows no link.

    Args:
        workspace: the folder.
    """
    found: list[Path] = []
    for number, entry in enumerate(_entries(workspace, _PROTECTED_DEPTH)):
        if number >= _PROTECTED_ENTRIES:
            break
        if _is_protected(entry.name):
            found.append(Path(entry.path))
    return tuple(found)


def _is_protected(name: str) -> bool:
    return names.is_obeyed(name) or _is_notebook(name)


def _is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def _entries(
    folder: Path, depth: float = math.inf, *, is_strict: bool = False
) -> Iterator[os.DirEntry[str]]:
    """Yield what is in the folder and those below, breadth first in each; follow no link.

    Args:
        folder: where to begin.
        depth: the number of levels to go down.
        is_strict: whether links are included, and a folder that can't be read is an error;
            otherwise both are left out.

    Raises:
        OSError: a folder can't be read.
    """
    waiting = [(os.fspath(folder), depth)]
    while waiting:
        path, left = waiting.pop()
        try:
            with os.scandir(path) as scan:
                entries = [entry for entry in scan if is_strict or not entry.is_symlink()]
        except OSError:
            if is_strict:
                raise
            continue
        yield from entries
        if left > 1:
            waiting += [
                (entry.path, left - 1)
                for entry in reversed(entries)
                if not names.is_obeyed(entry.name) and entry.is_dir(follow_symlinks=False)
            ]
