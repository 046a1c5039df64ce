"""The working folder of a kernel: inputs by the names that the code uses, room for new files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath

from kernel_sandbox.errors import WorkspaceError
from kernel_sandbox.files import beneath
from kernel_sandbox.files.collection import regular_files
from kernel_sandbox.files.layer_entries import written
from kernel_sandbox.files.private_folder import PrivateFolder
from kernel_sandbox.types import FileChange

__all__ = ["Workspace"]

_MOST_FILES = 5_000
"""Of more, nobody is told what happened to each."""


class Workspace:
    """A folder for one session, private unless the caller gives one.

    Covered: an input is a link to the real file, which the file view holds read-only.
    Not covered: without that view, code that follows the link may write to the input.
    """

    def __init__(self, inputs: Mapping[str, Path], writable_dir: Path | None = None) -> None:
        """Makes the folder and links the inputs into it.

        Args:
            inputs: the name that the code sees, to the real file. An absolute name needs no link.
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
        if link.resolve() == target:  # already there: the folder that was given holds it
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
        """Whether the folder goes away in the end."""
        return self._private is not None

    @property
    def readable(self) -> tuple[Path, ...]:
        """The real files of the inputs, each once."""
        return tuple(dict.fromkeys(self.inputs.values()))

    def new_files(self) -> tuple[Path, ...]:
        """Returns the files that were made or changed since the start, sorted; no links."""
        files = regular_files(self.path)
        return tuple(sorted(path for path, at in files.items() if self._before.get(path) != at))

    def take_changes(self) -> tuple[FileChange, ...]:
        """Returns what happened to the files since this was asked last, sorted; no links.

        Raises:
            OSError: the folder can't be looked at.
        """
        told, now = self._told, regular_files(self.path, "", _MOST_FILES)
        self._told = now
        if max(len(told), len(now)) >= _MOST_FILES:
            return ()
        changed = sorted(x for x in told.keys() | now.keys() if told.get(x) != now.get(x))
        with beneath.held(self.path) as folder:
            return tuple(
                written(folder, path.relative_to(self.path), was_there=path in told)
                for path in changed
            )

    def forget_new_files(self) -> None:
        """Takes the files that there are now for those of the start."""
        self._before = self._told = regular_files(self.path)

    def remove(self) -> None:
        """Removes the folder if it is private, else only the links. Safe to call again."""
        if self._private is not None:
            self._private.remove()
            return
        while self._links:
            with suppress(OSError):
                self._unlink(self._links.pop())

    def _unlink(self, place: PurePath) -> None:
        """Removes a link that was placed here; what has taken its place stays."""
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


def _readable(name: str, path: Path) -> Path:
    """The real, absolute path of an input that can be read."""
    try:
        real = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise WorkspaceError(f"input {name!r} is missing: {path} ({error})") from error
    if not real.is_file():
        raise WorkspaceError(f"input {name!r} is not a file: {real}")
    if not os.access(real, os.R_OK):
        raise WorkspaceError(f"input {name!r} can't be read: {real}")
    return real
