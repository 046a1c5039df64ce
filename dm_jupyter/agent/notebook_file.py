"""Notebook files, which are validated when read and written atomically."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, TypeVar

import nbformat

from dm_jupyter.core.errors import NotebookError

__all__ = ["new_names", "read_notebook", "replace_text", "write_elsewhere", "write_new"]

P = TypeVar("P", bound=PurePath)
_MOST_BYTES = 64 * 2**20
_MOST_NAMES = 1_000
"""Limit for the names that are tried for a new file."""


def read_notebook(path: Path) -> tuple[bytes, Any]:
    """Return the bytes of a notebook file and its document in nbformat 4.

    Args:
        path: path of the file.

    Raises:
        NotebookError: the file is missing, is not a readable notebook, or is too large.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise NotebookError(f"{path} can't be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise NotebookError(f"{path} is larger than {_MOST_BYTES >> 20} MiB: clear its outputs")
    try:
        raw = json.loads(content)
        is_four = raw.get("nbformat") == 4 and isinstance(raw.get("cells"), list)
        document = _read(content.decode()) if is_four else None
    except (ValueError, AttributeError, RecursionError, nbformat.ValidationError) as error:
        raise NotebookError(f"{path} is not a notebook ({type(error).__name__})") from error
    if document is None:
        raise NotebookError(f"{path} is not in notebook format 4. Open it in Jupyter and save it")
    return content, document


def _read(text: str) -> Any:
    read: Any = nbformat.reads  # it has no types
    return read(text, as_version=4)


def replace_text(path: Path, text: str) -> None:
    """Write a file atomically over an existing one, which stays if writing fails.

    Args:
        path: path of the file.
        text: its entire text.

    Raises:
        OSError: it can't be written.
    """
    with _written(path.parent, path.stem, text) as temporary:
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)


def write_new(wanted: Path, text: str) -> Path:
    """Write a new file, never over another one, and return its path.

    Args:
        wanted: the preferred path; if that name is taken, a number is added to it.
        text: its entire text.

    Raises:
        OSError: it can't be written; nothing is left of it then.
    """
    with _written(wanted.parent, wanted.stem, text) as temporary:
        for path in new_names(wanted):
            try:
                _place(temporary, path)
            except FileExistsError:
                continue
            return path
    raise FileExistsError(0, "too many files of that name")


def new_names(wanted: P) -> Iterator[P]:
    """Yield the names to try for a new file: the wanted one, then numbered ones."""
    yield wanted
    for number in range(2, _MOST_NAMES):
        yield wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")


def _place(temporary: Path, path: Path) -> None:
    """Give a written file its name, unless another file has it.

    Raises:
        FileExistsError: another file has it.
        OSError: the file can't get the name.
    """
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the name is taken first, then filled
        with path.open("x"):
            pass
        try:
            temporary.replace(path)
        except OSError:
            path.unlink()
            raise


@contextlib.contextmanager
def _written(folder: Path, stem: str, text: str) -> Iterator[Path]:
    """Yield a hidden file with the text, synced to disk; remove it unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=f".{stem[:40]}-")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_elsewhere(path: Path, text: str, why: str) -> str:
    """Save a notebook in the temporary folder, and return the message that says so.

    Args:
        path: the path that could not be written.
        text: the entire text of the notebook.
        why: the reason, as a clause.
    """
    refuge = Path(tempfile.gettempdir()) / f"{path.stem}-{os.getpid()}.ipynb"
    try:
        replace_text(refuge, text)
    except OSError:
        return f"{path} {why}; free some space or choose --out"
    return f"{path} {why}; the notebook so far is in {refuge}"
