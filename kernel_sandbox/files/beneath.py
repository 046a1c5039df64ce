"""Access to files beneath a folder through descriptors, without following a link.

A process that may write a folder, such as a kernel, can put a link into it at any moment. That
includes the moment between the check of a path and its use. Hence nothing here is used by its path.
A folder is opened once and kept open. What is beneath it is opened name by name, each in the folder
before, and a name that is a link is an error.

Covered: links, including those that replace a name meanwhile; `..`; what is not a regular file and
would block, such as a pipe. Not covered: a folder that is moved elsewhere while it is open; what
another name of the same file (a hard link) leads to.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO

__all__ = ["draft_of", "held", "is_gone", "made", "open_to_read", "opened", "parent_of", "replaced"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(path: Path, folder: int | None = None) -> Iterator[int]:
    """Open a file or folder with `O_PATH`, yield the descriptor, and close it in the end.

    Args:
        path: absolute; or below the folder, relative to it.
        folder: a descriptor of the folder where the path starts; `None` for the root folder.

    Raises:
        OSError: a name is missing, or is a link (`ELOOP`).
    """
    place = os.open("/", os.O_PATH | os.O_CLOEXEC) if folder is None else os.dup(folder)
    try:
        for name in path.parts[path.is_absolute() :]:
            try:
                above, place = place, os.open(name, _PLACE, dir_fd=place)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from error
            os.close(above)
            if stat.S_ISLNK(os.fstat(place).st_mode):
                raise OSError(errno.ELOOP, f"{name} was replaced by a link", str(path))
        yield place
    finally:
        os.close(place)


@contextmanager
def held(folder: Path) -> Iterator[int]:
    """Yield a descriptor of a folder, opened by its own path; links above and at it are followed.

    Args:
        folder: one that no kernel can replace.

    Raises:
        OSError: it can't be opened.
    """
    descriptor = os.open(folder, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def parent_of(folder: int, place: PurePath, *, makes: bool = False) -> Iterator[int]:
    """Yield a descriptor of the folder that contains a path.

    Args:
        folder: a descriptor of the folder that the path is relative to.
        place: the path, of names alone.
        makes: whether missing folders are created.

    Raises:
        OSError: the path leads out, or a name on the way is missing, a link or not a folder.
    """
    if place.is_absolute() or ".." in place.parts or not place.name:
        raise OSError(errno.EXDEV, "the path leads out of the folder", str(place))
    here = os.dup(folder)
    try:
        for name in place.parent.parts:
            if makes:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
            there = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


def is_gone(folder: int, place: PurePath) -> bool:
    """Return whether an entry is missing for sure; one that can't be looked at may be there.

    Args:
        folder: a descriptor of the folder that the path is relative to.
        place: the path, of names alone.
    """
    try:
        with parent_of(folder, place) as parent:
            os.stat(place.name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


@contextmanager
def open_to_read(folder: int, place: PurePath) -> Iterator[BinaryIO]:
    """Open a regular file to read; never wait.

    Args:
        folder: a descriptor of the folder that the path is relative to.
        place: the path, of names alone.

    Raises:
        OSError: the path leads out, a name is missing or a link, or it is not a regular file.
    """
    with parent_of(folder, place) as parent:
        descriptor = os.open(place.name, _READ, dir_fd=parent)
    with os.fdopen(descriptor, "rb") as source:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(place))
        yield source


@contextmanager
def made(folder: int, place: PurePath, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Create a new file to write; a failure leaves none.

    Args:
        folder: a descriptor of the folder that the path is relative to.
        place: the path, of names alone; missing folders are created.
        mode: the mode of the file, before the umask.

    Raises:
        OSError: the path leads out, a name on the way is a link, or the name is taken.
    """
    with parent_of(folder, place, makes=True) as parent:
        descriptor = os.open(place.name, _MAKE, mode, dir_fd=parent)
        try:
            with os.fdopen(descriptor, "wb") as target:
                yield target
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(place.name, dir_fd=parent)
            raise


def draft_of(place: PurePath) -> PurePath:
    """Return a new path beside another, for what is renamed to it once it is complete."""
    return place.with_name(f".{secrets.token_hex(6)}.part")


@contextmanager
def replaced(folder: int, place: PurePath, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Write a file atomically; at the end it replaces whatever had its name.

    Args:
        folder: a descriptor of the folder that the path is relative to.
        place: the path, of names alone; missing folders are created.
        mode: the mode of the file, before the umask.

    Raises:
        OSError: the path leads out, a name on the way is a link, or the name is a folder's.
    """
    draft = draft_of(place)
    with parent_of(folder, place, makes=True) as parent:
        try:
            with made(parent, PurePath(draft.name), mode) as target:
                yield target
            os.rename(draft.name, place.name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft.name, dir_fd=parent)
            raise
