"""Which data files a question is about, where they lie, and how a restricted kernel gets them.

A name may come from a kernel, and whoever may write a folder may lay a link into it. So names are
looked up beneath the server's folder, name by name, and no link is followed that the person has
not agreed to; what a kernel itself can't read is not read for it.
"""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from dm_jupyter.server.files.file_search import FileSearch, is_data_file, whole_name
from dm_jupyter.server.protocol import WantedFile
from kernel_sandbox.files import beneath

__all__ = ["DataFiles", "LinkedFilesError", "copied_into", "head_of"]

_CHUNK_BYTES = 1024 * 1024
_MOST_COPIES = 1000


class LinkedFilesError(Exception):
    """Files that links lead to; its text names them, `files` says where the links lead."""

    def __init__(self, files: Iterable[WantedFile]) -> None:
        """Makes the error.

        Args:
            files: what a person may agree to.
        """
        self.files = tuple(files)
        named = ", ".join(f"{file.name} leads to {file.leads_to}" for file in self.files)
        super().__init__(f"a link is followed only when you agree: {named}")


class DataFiles:
    """The files below the folder that the server shows; names are those of the contents API."""

    def __init__(self, root: Path, *, allows_hidden: bool = False) -> None:
        """Looks at nothing yet.

        Args:
            root: the folder that the server shows; without links.
            allows_hidden: whether files and folders that begin with a dot are shown, too.
        """
        self._root = root
        self._allows_hidden = allows_hidden
        self.search = FileSearch(root, allows_hidden=allows_hidden)

    def folder_of(self, notebook_path: str) -> Path:
        """Returns the folder in which a notebook lies."""
        return (self._root / notebook_path.lstrip("/")).parent

    def place(self, name: str, agreed: Collection[str] = ()) -> Path:
        """Returns where a file lies; no name of the path is a link.

        Args:
            name: of the file.
            agreed: where links may lead.

        Raises:
            FileNotFoundError: it is not below the server's folder, not there, or hidden.
            LinkedFilesError: a link leads to it, and it is not agreed that it may.
        """
        relative = PurePosixPath(name.lstrip("/"))
        if not self._is_shown(relative):
            raise _missing(name)
        path = self._root / relative
        try:
            with beneath.held(self._root) as root, beneath.opened(Path(relative), root) as found:
                if stat.S_ISREG(os.fstat(found).st_mode):
                    return path
        except OSError as error:
            if error.errno == errno.ELOOP:
                return self._behind_link(name, path, agreed)
            raise _missing(name) from error
        raise _missing(name)

    def _is_shown(self, name: PurePosixPath) -> bool:
        if not name.parts or ".." in name.parts:
            return False
        return self._allows_hidden or not any(part.startswith(".") for part in name.parts)

    def _behind_link(self, name: str, path: Path, agreed: Collection[str]) -> Path:
        real = Path(os.path.realpath(path))
        if not real.is_file():
            raise _missing(name)
        if str(real) not in agreed:
            raise LinkedFilesError((WantedFile(name, str(real)),))
        return real

    def places(self, names: Iterable[str], agreed: Collection[str] = ()) -> tuple[Path, ...]:
        """Returns where files lie, as `place` does.

        Raises:
            FileNotFoundError: one is not there.
            LinkedFilesError: links lead to some; all of them are named.
        """
        found: list[Path] = []
        linked: list[WantedFile] = []
        for name in names:
            try:
                found.append(self.place(name, agreed))
            except LinkedFilesError as error:
                linked += error.files
        if linked:
            raise LinkedFilesError(linked)
        return tuple(found)

    @contextmanager
    def made(self, name: str) -> Iterator[BinaryIO]:
        """Makes a file that was not there, through no link; a failure leaves none.

        Args:
            name: of the file; its folder is there.

        Raises:
            FileExistsError: the name is taken.
            OSError: it can't be made, or a name on the way is a link or hidden.
        """
        relative = PurePosixPath(name.lstrip("/"))
        if not self._is_shown(relative):
            raise _missing(name)
        with beneath.held(self._root) as root, beneath.made(root, relative) as target:
            yield target

    def size_of(self, name: str) -> int | None:
        """Returns a file's size in bytes; `None` for one that is not there, or behind a link."""
        about = self._about(name)
        return about.st_size if about is not None else None

    def states(self, names: Iterable[str]) -> dict[str, str]:
        """Returns each file that is there, to what tells whether it was written since."""
        found = ((name, self._about(name)) for name in names)
        return {name: f"{one.st_size} {one.st_mtime_ns}" for name, one in found if one is not None}

    def _about(self, name: str) -> os.stat_result | None:
        relative = PurePosixPath(name.lstrip("/"))
        if not self._is_shown(relative):
            return None
        try:  # by descriptor: whoever writes the folder may lay a link at any moment
            with beneath.held(self._root) as root, beneath.opened(Path(relative), root) as found:
                about = os.fstat(found)
        except OSError:
            return None
        return about if stat.S_ISREG(about.st_mode) else None

    def name_of(self, path: str, folder: str) -> str:
        """Returns the contents API's name of what a kernel calls by a path; it need not be there.

        Args:
            path: as the kernel says it.
            folder: what it is relative to.

        Raises:
            FileNotFoundError: it would lie outside of the server's folder.
        """
        whole = posixpath.normpath(posixpath.join(folder, path))
        root = self._root.as_posix()
        if not whole.startswith(f"{root.rstrip('/')}/"):
            raise _missing(path)
        return posixpath.relpath(whole, root)

    def named_in(self, text: str, folder: str) -> tuple[str, ...]:
        """Returns the data files of a folder whose whole names stand in a text.

        `sales.csv` does not stand in `old-sales.csv`, nor in `data/sales.csv`.

        Args:
            text: a question.
            folder: below the server's root.
        """
        names = [name for name in self._names(folder) if is_data_file(name)]
        found = []
        # The longest first: what `my sales.csv` is, `sales.csv` is not.
        for name in sorted(names, key=len, reverse=True):
            text, count = whole_name(name).subn(" ", text)
            if count:
                found.append(name)
        return tuple(posixpath.join(folder, name) for name in sorted(found))

    def beside(self, name: str, folder: str) -> tuple[str, ...]:
        """Returns the one file that a name or path leads to from a folder, or none.

        Args:
            name: as the person wrote it.
            folder: below the server's root.
        """
        path = posixpath.normpath(posixpath.join("/", folder, name)).lstrip("/")
        try:
            self.place(path)
        except LinkedFilesError:
            pass  # the person is asked when the question is
        except FileNotFoundError:
            return ()
        return (path,)

    def _names(self, folder: str) -> list[str]:
        place = self._root / folder
        try:
            found = [path.name for path in place.iterdir()]
        except OSError:
            return []
        return [name for name in found if self._is_shown(PurePosixPath(name))]

    def still_there(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Returns those of the files that are still where they were, and no links."""
        found = []
        for name in names:
            try:
                self.place(name)
            except (FileNotFoundError, LinkedFilesError):
                continue
            found.append(name)
        return tuple(found)


def _missing(name: str) -> FileNotFoundError:
    return FileNotFoundError(f"{name}: there is no such file here")


def head_of(file: Path, size: int) -> bytes:
    """Returns the first bytes of a file; none where it can't be opened or is a link by now.

    Args:
        file: without links, as `DataFiles.place` gives it.
        size: the most to read, bytes.
    """
    here = Path(file.anchor)
    try:
        with (
            beneath.held(here) as root,
            beneath.open_to_read(root, file.relative_to(here)) as source,
        ):
            return source.read(size)
    except OSError:
        return b""


def copied_into(folder: Path, file: Path) -> Path:
    """Returns the copy of a file in a kernel's folder, which may be there already.

    Nothing there is written over and no link is followed, on either side.

    Args:
        folder: the kernel's.
        file: without links, as `DataFiles.place` gives it.

    Raises:
        OSError: it can't be read, or not copied.
    """
    here = Path(file.anchor)
    with (
        beneath.held(here) as root,
        beneath.held(folder) as target,
        beneath.open_to_read(root, file.relative_to(here)) as source,
    ):
        for number in count(1):
            stem = file.stem if number == 1 else f"{file.stem} ({number})"
            name = PurePosixPath(f"{stem}{file.suffix}")
            try:
                with beneath.made(target, name) as copy:
                    shutil.copyfileobj(source, copy, _CHUNK_BYTES)
                return folder / name
            except FileExistsError:
                if _is_alike(source.fileno(), target, name):
                    return folder / name
                if number == _MOST_COPIES:
                    raise
    raise AssertionError("the numbers do not end")


def _is_alike(source: int, folder: int, name: PurePosixPath) -> bool:
    """Whether a regular file in the folder holds the same; the source is read from its start."""
    try:
        with (
            os.fdopen(os.dup(source), "rb") as one,
            beneath.open_to_read(folder, name) as other,
        ):
            if os.fstat(source).st_size != os.fstat(other.fileno()).st_size:
                return False
            one.seek(0)
            while chunk := one.read(_CHUNK_BYTES):
                if chunk != other.read(_CHUNK_BYTES):
                    return False
            return True
    except OSError:
        return False
    finally:
        os.lseek(source, 0, os.SEEK_SET)
