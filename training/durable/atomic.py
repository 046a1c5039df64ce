"""Atomic writes: a reader finds either the old content or the new one."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["write_json", "write_whole"]


def write_whole(content: bytes, file: Path) -> None:
    """Write a file atomically.

    Raises:
        OSError: the file can't be written; an old one is then unchanged.
    """
    part = file.parent / f".{file.name}.part"
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
