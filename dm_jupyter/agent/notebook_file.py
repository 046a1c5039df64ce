"""The files of notebooks: read whole and checked, written whole or not at all."""

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
"""Names that are tried for a new file."""


def read_notebook(path: Path) -> tuple[bytes, Any]:
    """Returns the file of a notebook and what it holds, as nbformat 4 has it.

    Args:
        path: of the file.

    Raises:
        NotebookError: there is none, it is none that can be read, or it is too large.
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
        raise NotebookError(f"{path} is no notebook ({type(error).__name__})") from error
    if document is None:
        raise NotebookError(f"{path} is no notebook of format 4: open it in Jupyter and save it")
    return content, document


def _read(text: str) -> Any:
    read: Any = nbformat.reads  # it has no types
    return read(text, as_version=4)


def replace_text(path: Path, text: str) -> None:
    """Writes a file, over the one that is there; the former one stays when that fails.

    Args:
        path: of the file.
        text: all of it.

    Raises:
        OSError: it can't be written.
    """
    with _written(path.parent, path.stem, text) as temporary:
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)


def write_new(wanted: Path, text: str) -> Path:
    """Writes a new file, and never over another; returns where it is.

    Args:
        wanted: where it should be; where that name is taken, a number is added to it.
        text: all of it.

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
    """Yields the names to try for a new file: the one that is wanted, then with numbers."""
    yield wanted
    for number in range(2, _MOST_NAMES):
        yield wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")


def _place(temporary: Path, path: Path) -> None:
    """Gives a written file its name, unless another has it.

    Raises:
        FileExistsError: another has it.
        OSError: it can't be had.
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
    """A hidden file with the text, on disk; it is gone afterwards unless it has got a name."""
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
    """Keeps a notebook in the temporary folder; returns the message that says so.

    Args:
        path: where it could not be written.
        text: all of it.
        why: it could not, as a clause.
    """
    refuge = Path(tempfile.gettempdir()) / f"{path.stem}-{os.getpid()}.ipynb"
    try:
        replace_text(refuge, text)
    except OSError:
        return f"{path} {why}; free some space or choose --out"
    return f"{path} {why}; the notebook so far is in {refuge}"
