"""The working folder of a kernel: inputs by the names that the code uses, and new files.

The files that code has created are copied to where the caller wants them. Covered: what code has
prepared to lead elsewhere. No link is followed on either side, not even one that replaces a folder
meanwhile. What is not a regular file is left out, and the sum of the sizes is bounded. Not covered:
the contents of the files, and their names, which the code chooses.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path, PurePath
from typing import BinaryIO

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.errors import FilesTooLargeError, WorkspaceError
from kernel_sandbox.files import beneath
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.files.layer_entries import written
from kernel_sandbox.types import FileChange

__all__ = [
    "TOO_MANY_TO_COMPARE",
    "Workspace",
    "comparable_files",
    "compared",
    "copy_files",
    "regular_files",
    "unfit_folder",
    "write_files",
]

MOST_FILES = 5_000
TOO_MANY_TO_COMPARE = (
    f"What this cell did to files is not listed: the folder has {MOST_FILES:,} files or more."
)
_CHUNK_BYTES = 1024 * 1024


class Workspace:
    """A folder for one session, private unless the caller gives one.

    Covered: an input is a link to the real file, which the file view keeps read-only.
    Not covered: without that view, code that follows the link may write to the input.
    """

    def __init__(self, inputs: Mapping[str, Path], writable_dir: Path | None = None) -> None:
        """Create the folder and link the inputs into it.

        Args:
            inputs: the real file by the name that the code sees. An absolute name needs no link.
            writable_dir: a folder to use instead of a private one; it is kept at the end.

        Raises:
            WorkspaceError: an input is missing, not a file or not readable, a name leaves the
                folder or is taken, or the folder can't be used.
        """
        self.inputs = {name: _readable(name, path) for name, path in inputs.items()}
        self._private: PrivateFolder | None = None
        if writable_dir is None:
            self._private = _temporary()
            self.path = self._private.path
        else:
            self.path = _given(writable_dir)
        self._links: list[PurePath] = []
        try:
            for name, target in self.inputs.items():
                self._link(name, target)
        except WorkspaceError:
            self.remove()
            raise
        self._before = regular_files(self.path)
        self._told = self._before

    def _link(self, name: str, target: Path) -> None:
        if Path(name).is_absolute():
            return
        if ".." in Path(name).parts or name in ("", "."):
            raise WorkspaceError(f"input name {name!r} leaves the working folder")
        link = self.path / name
        if link.resolve() == target:  # already there: the caller's folder contains it
            return
        place = PurePath(name)
        try:
            with (
                beneath.held(self.path) as folder,
                beneath.parent_of(folder, place, makes=True) as parent,
            ):
                os.symlink(target, place.name, dir_fd=parent)
        except OSError as error:
            raise WorkspaceError(f"input {name!r} can't be placed: {error}") from error
        self._links.append(place)

    @property
    def is_private(self) -> bool:
        """Whether the folder is removed in the end."""
        return self._private is not None

    @property
    def readable(self) -> tuple[Path, ...]:
        """The real files of the inputs, each once."""
        return tuple(dict.fromkeys(self.inputs.values()))

    def new_files(self) -> tuple[Path, ...]:
        """Return the files that were created or changed since the start, sorted; no links."""
        files = regular_files(self.path)
        return tuple(sorted(path for path, at in files.items() if self._before.get(path) != at))

    def take_changes(self) -> tuple[FileChange, ...] | None:
        """Return what happened to the files since the last call, as `compared` does.

        Raises:
            OSError: the folder can't be read.
        """
        told, self._told = self._told, comparable_files(self.path)
        return compared(self.path, told, self._told)

    def forget_new_files(self) -> None:
        """Treat the current files as those of the start."""
        self._before = self._told = regular_files(self.path)

    def remove(self) -> None:
        """Remove the folder if it is private, else only the links. Safe to call again."""
        if self._private is not None:
            self._private.remove()
            return
        while self._links:
            with suppress(OSError):
                self._unlink(self._links.pop())

    def _unlink(self, place: PurePath) -> None:
        """Remove a link that was created here; what has replaced it stays."""
        with beneath.held(self.path) as folder, beneath.parent_of(folder, place) as parent:
            if stat.S_ISLNK(os.lstat(place.name, dir_fd=parent).st_mode):
                os.unlink(place.name, dir_fd=parent)


def _temporary() -> PrivateFolder:
    return PrivateFolder(Path(tempfile.gettempdir()).resolve(), "dm-work-")


def _given(folder: Path) -> Path:
    path = folder.expanduser().resolve()
    if not path.is_dir() or not os.access(path, os.W_OK | os.X_OK):
        raise WorkspaceError(f"the working folder {path} is not a folder that can be written")
    return path


def unfit_folder(folder: Path, problem: str) -> WorkspaceError:
    """Return the error of a working folder that a kernel can't have.

    Args:
        folder: the folder.
        problem: why not.
    """
    text = f"the working folder {folder} can't be used: {problem}. Give one below it"
    return WorkspaceError(text)


def _readable(name: str, path: Path) -> Path:
    """Return the real, absolute path of an input that can be read."""
    try:
        real = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise WorkspaceError(f"input {name!r} is missing: {path} ({error})") from error
    if not real.is_file():
        raise WorkspaceError(f"input {name!r} is not a file: {real}")
    if not os.access(real, os.R_OK):
        raise WorkspaceError(f"input {name!r} can't be read: {real}")
    return real


def regular_files(root: Path, apart: str = "", most: int | None = None) -> dict[Path, int]:
    """Return the regular files below a folder and when each was changed, nanoseconds.

    What can't be read is left out.

    Args:
        root: the folder.
        apart: the name of an entry of it that does not count.
        most: the number of files after which the search ends; `None` for all.
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


def comparable_files(folder: Path) -> dict[Path, int]:
    """Return what `compared` needs to know of the files of a folder."""
    return regular_files(folder, most=MOST_FILES)


def compared(
    folder: Path, before: Mapping[Path, int], after: Mapping[Path, int]
) -> tuple[FileChange, ...] | None:
    """Return what happened to the files of a folder, sorted; no links. `None`: they are too many.

    Args:
        folder: the folder.
        before: the return value of `comparable_files` then.
        after: that of now.

    Raises:
        OSError: the folder can't be read.
    """
    if max(len(before), len(after)) >= MOST_FILES:
        return None
    changed = sorted(x for x in before.keys() | after.keys() if before.get(x) != after.get(x))
    with beneath.held(folder) as root:
        return tuple(
            written(root, path.relative_to(folder), was_there=path in before) for path in changed
        )


async def copy_files(
    paths: Iterable[Path], root: Path, folder: Path, limit_bytes: int
) -> tuple[Path, ...]:
    """Copy files, all or none; return the paths of the copies, sorted.

    Args:
        paths: the files, below `root`.
        root: the folder in which code created them; their paths relative to it are kept.
        folder: where the copies go, created if missing; a file of the same name is replaced.
        limit_bytes: the size that all of them may have together.

    Raises:
        FilesTooLargeError: the files are too large together; the first beyond the limit is named.
        WorkspaceError: a file can't be copied; it is named.
        asyncio.CancelledError: the caller was cancelled; the copy has ended.
    """
    openers = {path.relative_to(root): partial(_opened, root) for path in paths}
    return await run_shielded(asyncio.to_thread(_place, openers, folder, limit_bytes))


async def write_files(
    contents: Mapping[str, bytes], folder: Path, limit_bytes: int
) -> tuple[Path, ...]:
    """Write files that came from another machine, all or none; return their paths, sorted.

    Args:
        contents: the contents by relative path.
        folder: where they go, created if missing; a file of the same name is replaced.
        limit_bytes: the size that all of them may have together.

    Raises:
        FilesTooLargeError: the files are too large together; the first beyond the limit is named.
        WorkspaceError: a path leads out of the folder, or a file can't be written; it is named.
        asyncio.CancelledError: the caller was cancelled; the writing has ended.
    """

    @contextmanager
    def held(place: Path) -> Iterator[BinaryIO]:
        if place.is_absolute() or ".." in place.parts:
            raise OSError("the path leads out of the folder")
        yield io.BytesIO(contents[str(place)])

    openers = {Path(name): held for name in contents}
    return await run_shielded(asyncio.to_thread(_place, openers, folder, limit_bytes))


_Opener = Callable[[Path], contextlib.AbstractContextManager[BinaryIO]]


def _place(openers: Mapping[Path, _Opener], folder: Path, limit_bytes: int) -> tuple[Path, ...]:
    """Write all files under other names first: nothing is replaced unless all of them fit."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"the folder {folder} can't be made: {error}") from error
    drafts: dict[Path, PurePath] = {}
    left = limit_bytes
    place = Path()
    with ExitStack() as stack:
        try:
            root = stack.enter_context(beneath.held(folder))
            for place in sorted(openers):
                with openers[place](place) as source:
                    drafts[place], size = _draft(source, place, root, left)
                stack.callback(_discard, root, drafts[place])
                left -= size
            for place, draft in drafts.items():
                with beneath.parent_of(root, place) as parent:
                    os.rename(draft.name, place.name, src_dir_fd=parent, dst_dir_fd=parent)
        except OverflowError:
            text = f"with {str(place)!r} the files take more than {limit_bytes} bytes together"
            raise FilesTooLargeError(f"{text}: none was collected") from None
        except OSError as error:
            text = f"the file {str(place)!r} can't be collected: {error}"
            raise WorkspaceError(text) from error
    return tuple(folder / place for place in drafts)


def _discard(root: int, draft: PurePath) -> None:
    """Remove a draft, unless it has become the file."""
    with contextlib.suppress(OSError), beneath.parent_of(root, draft) as parent:
        os.unlink(draft.name, dir_fd=parent)


@contextmanager
def _opened(root: Path, place: Path) -> Iterator[BinaryIO]:
    with beneath.held(root) as folder, beneath.open_to_read(folder, place) as source:
        yield source


def _draft(source: BinaryIO, place: Path, root: int, left: int) -> tuple[PurePath, int]:
    """Copy what is read to a new file beside its place; return its path and size.

    Raises:
        OSError: it can't be written, or the place is a folder's.
        OverflowError: it is larger than what is left.
    """
    with suppress(FileNotFoundError), beneath.parent_of(root, place) as parent:
        if stat.S_ISDIR(os.stat(place.name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise IsADirectoryError(errno.EISDIR, "a folder has its name", str(place))
    size, draft = 0, beneath.draft_of(place)
    with beneath.made(root, draft) as target:
        while chunk := source.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > left:
                raise OverflowError
            target.write(chunk)
    return draft, size
