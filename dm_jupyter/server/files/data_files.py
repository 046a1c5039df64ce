"""The data files that a question is about, and their copies for a restricted kernel.

A name may come from a kernel, and whoever may write to a folder may create a link in it. So each
component of a path is looked up beneath the server's folder, and a link is followed only if the
person has agreed to it. A file that a kernel itself can't read is not read for it.
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
    """Files behind links that nobody agreed to; `files` contains each with its target."""

    def __init__(self, files: Iterable[WantedFile]) -> None:
        """Create the error.

        Args:
            files: the files that a person may agree to.
        """
        self.files = tuple(files)
        named = ", ".join(f"{file.name} leads to {file.leads_to}" for file in self.files)
        super().__init__(f"a link is followed only when you agree: {named}")


class DataFiles:
    """The files below the folder that the server shows; names are those of the contents API."""

    def __init__(self, root: Path, *, allows_hidden: bool = False) -> None:
        """Store the settings; nothing is read yet.

        Args:
            root: the folder that the server shows; a path without links.
            allows_hidden: whether files and folders that begin with a dot are shown, too.
        """
        self._root = root
        self._allows_hidden = allows_hidden
        self.search = FileSearch(root, allows_hidden=allows_hidden)

    def folder_of(self, notebook_path: str) -> Path:
        """Return the folder of a notebook."""
        return (self._root / notebook_path.lstrip("/")).parent

    def place(self, name: str, agreed: Collection[str] = ()) -> Path:
        """Return the path of a file; no component of it is a link.

        Args:
            name: the name of the file.
            agreed: the targets that links may lead to.

        Raises:
            FileNotFoundError: the file is not below the server's folder, not there, or hidden.
            LinkedFilesError: the file is behind a link whose target is not in `agreed`.
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
        """Return the paths of files, as `place` does.

        Raises:
            FileNotFoundError: a file is not there.
            LinkedFilesError: some files are behind links; the error names all of them.
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
        """Create a new file through no link, and remove it on failure.

        Args:
            name: the name of the file, in a folder that exists.

        Raises:
            FileExistsError: the name is taken.
            OSError: the file can't be created, or a component of its path is a link or hidden.
        """
        relative = PurePosixPath(name.lstrip("/"))
        if not self._is_shown(relative):
            raise _missing(name)
        with beneath.held(self._root) as root, beneath.made(root, relative) as target:
            yield target

    def size_of(self, name: str) -> int | None:
        """Return a file's size in bytes; `None` if it is not there, or behind a link."""
        about = self._about(name)
        return about.st_size if about is not None else None

    def states(self, names: Iterable[str]) -> dict[str, str]:
        """Return the size and modification time of each existing file, to detect changes."""
        found = ((name, self._about(name)) for name in names)
        return {name: f"{one.st_size} {one.st_mtime_ns}" for name, one in found if one is not None}

    def _about(self, name: str) -> os.stat_result | None:
        relative = PurePosixPath(name.lstrip("/"))
        if not self._is_shown(relative):
            return None
        try:  # by descriptor: whoever writes to the folder may create a link at any moment
            with beneath.held(self._root) as root, beneath.opened(Path(relative), root) as found:
                about = os.fstat(found)
        except OSError:
            return None
        return about if stat.S_ISREG(about.st_mode) else None

    def name_of(self, path: str, folder: str) -> str:
        """Return the contents API's name for a kernel's path, which need not exist.

        Args:
            path: the path that the kernel sent.
            folder: the folder that it is relative to.

        Raises:
            FileNotFoundError: the path is outside of the server's folder.
        """
        whole = posixpath.normpath(posixpath.join(folder, path))
        root = self._root.as_posix()
        if not whole.startswith(f"{root.rstrip('/')}/"):
            raise _missing(path)
        return posixpath.relpath(whole, root)

    def named_in(self, text: str, folder: str) -> tuple[str, ...]:
        """Return the data files of a folder whose whole names appear in a text.

        `sales.csv` does not appear in `old-sales.csv`, nor in `data/sales.csv`.

        Args:
            text: a question.
            folder: the folder, below the server's root.
        """
        names = [name for name in self._names(folder) if is_data_file(name)]
        found = []
        # The longest first: the text `my sales.csv` does not mean `sales.csv`.
        for name in sorted(names, key=len, reverse=True):
            text, count = whole_name(name).subn(" ", text)
            if count:
                found.append(name)
        return tuple(posixpath.join(folder, name) for name in sorted(found))

    def beside(self, name: str, folder: str) -> tuple[str, ...]:
        """Return the one file that a name or path leads to from a folder, or none.

        Args:
            name: the name as the person wrote it.
            folder: the folder, below the server's root.
        """
        path = posixpath.normpath(posixpath.join("/", folder, name)).lstrip("/")
        try:
            self.place(path)
        except LinkedFilesError:
            pass  # the person is asked with the question
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
        """Return the files that still exist and are not links."""
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
    """Return the first bytes of a file; none if it can't be opened or has become a link.

    Args:
        file: the path without links, as `DataFiles.place` returns it.
        size: most bytes to read.
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
    """Return the path of a file's copy in a kernel's folder; an identical copy is reused.

    Nothing is overwritten and no link is followed, on either side.

    Args:
        folder: the kernel's folder.
        file: the path without links, as `DataFiles.place` returns it.

    Raises:
        OSError: the file can't be read, or not copied.
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
    """Whether a regular file in the folder has the same bytes as the source from its start."""
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
