"""Copies the files that code has made to where the caller wants them.

Covered: what code has laid out to lead elsewhere. No link is followed on either side, also not one
that takes the place of a folder meanwhile; what is no regular file is left out; the sum of the
sizes is bounded. Not covered: what is in the files, and their names, which are the code's.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.errors import FilesTooLargeError, WorkspaceError
from kernel_sandbox.files import beneath

__all__ = ["copy_files", "regular_files", "write_files"]

_CHUNK_BYTES = 1024 * 1024


def regular_files(root: Path, apart: str = "", most: int | None = None) -> dict[Path, int]:
    """Returns the regular files below a folder and when each was changed, nanoseconds.

    What can't be looked at is left out.

    Args:
        root: the folder.
        apart: the name of an entry of it that does not count.
        most: after so many files it is enough; `None` for all.
    """
    found: dict[Path, int] = {}
    skipped = os.path.join(root, apart) if apart else ""  # noqa: PTH118 (compared as text)
    waiting = [str(root)]
    while waiting and (most is None or len(found) < most):
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.path != skipped:
                        waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found[Path(entry.path)] = entry.stat(follow_symlinks=False).st_mtime_ns
    return found


async def copy_files(
    paths: Iterable[Path], root: Path, folder: Path, limit_bytes: int
) -> tuple[Path, ...]:
    """Copies files, all or none; returns where the copies lie, sorted.

    Args:
        paths: of the files, below `root`.
        root: the folder in which code made them; their places relative to it are kept.
        folder: where the copies go, made if missing; a file of the same name there is replaced.
        limit_bytes: what all of them may take together.

    Raises:
        FilesTooLargeError: with a file they are too large; it is named.
        WorkspaceError: a file can't be copied; it is named.
        asyncio.CancelledError: the caller was cancelled; nothing goes on.
    """
    openers = {path.relative_to(root): partial(_opened, root) for path in paths}
    return await run_shielded(asyncio.to_thread(_place, openers, folder, limit_bytes))


async def write_files(
    contents: Mapping[str, bytes], folder: Path, limit_bytes: int
) -> tuple[Path, ...]:
    """Writes files that came from another machine, all or none; returns where they lie, sorted.

    Args:
        contents: by their relative places.
        folder: where they go, made if missing; a file of the same name there is replaced.
        limit_bytes: what all of them may take together.

    Raises:
        FilesTooLargeError: with a file they are too large; it is named.
        WorkspaceError: a place leads out of the folder, or a file can't be written; it is named.
        asyncio.CancelledError: the caller was cancelled; nothing goes on.
    """

    @contextmanager
    def held(place: Path) -> Iterator[BinaryIO]:
        if place.is_absolute() or ".." in place.parts:
            raise OSError("it would leave the folder")
        yield io.BytesIO(contents[str(place)])

    openers = {Path(name): held for name in contents}
    return await run_shielded(asyncio.to_thread(_place, openers, folder, limit_bytes))


_Opener = Callable[[Path], contextlib.AbstractContextManager[BinaryIO]]


def _place(openers: Mapping[Path, _Opener], folder: Path, limit_bytes: int) -> tuple[Path, ...]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"the folder {folder} can't be made: {error}") from error
    placed: list[Path] = []
    left = limit_bytes
    try:
        for place in sorted(openers):
            try:
                with beneath.held(folder) as root, openers[place](place) as source:
                    left -= _copy(source, place, root, left)
                placed.append(folder / place)
            except OverflowError:
                text = f"with {str(place)!r} the files take more than {limit_bytes} bytes together"
                raise FilesTooLargeError(f"{text}: none was collected") from None
            except OSError as error:
                text = f"the file {str(place)!r} can't be collected: {error}"
                raise WorkspaceError(text) from error
    except BaseException:
        for path in placed:
            with contextlib.suppress(OSError):
                path.unlink()
        raise
    return tuple(placed)


@contextmanager
def _opened(root: Path, place: Path) -> Iterator[BinaryIO]:
    with beneath.held(root) as folder, beneath.read(folder, place) as source:
        yield source


def _copy(source: BinaryIO, place: Path, folder: int, left: int) -> int:
    """Copies what is read to a file, which a failure leaves as it was; returns its size.

    Raises:
        OverflowError: it is larger than what is left.
    """
    size = 0
    with beneath.replaced(folder, place) as target:
        while chunk := source.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > left:
                raise OverflowError
            target.write(chunk)
    return size
