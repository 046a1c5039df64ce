"""Atomic writes: a reader finds either the old content of a file or folder, or the new one."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["replaced_folder", "write_json", "write_whole"]


def write_whole(content: bytes, file: Path) -> None:
    """Write a file atomically.

    Raises:
        OSError: the file can't be written; an old one is then unchanged.
    """
    part = file.parent / f".{file.name}.{secrets.token_hex(4)}.part"
    try:
        with part.open("wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        part.replace(file)
    except OSError as error:  # it names the temporary file, which means nothing to a caller
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        with suppress(OSError):  # already renamed, or never created
            part.unlink()


def write_json(value: Any, file: Path) -> None:
    """Write a value as indented JSON.

    Raises:
        OSError: the file can't be written; an old one is then unchanged.
        ValueError: the value contains a number that JSON can't represent.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(f"{text}\n".encode(), file)


@contextmanager
def replaced_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of another one when the block ends.

    It is flushed to disk first. If the block raises, the old folder is unchanged. A process that is
    killed while it swaps the two leaves the old one beside them; the next call puts it back.

    Args:
        folder: need not exist; one process at a time may replace it.

    Raises:
        OSError: a folder or file can't be written.
    """
    folder = folder.resolve()  # a link stays one
    part, old = (folder.with_name(f".{folder.name}.{end}") for end in ("part", "old"))
    if old.exists() and not folder.exists():
        old.rename(folder)
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed
    part.mkdir(parents=True)
    try:
        yield part
        for path in (*part.rglob("*"), part):
            _flush(path)
        if old.exists():
            shutil.rmtree(old)
        if folder.exists():
            folder.rename(old)
        try:
            part.rename(folder)
        except OSError:
            if old.exists():
                old.rename(folder)
            raise
        _flush(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _flush(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
