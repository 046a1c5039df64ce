"""JSON files that are whole or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

__all__ = ["write_json"]


def write_json(value: Any, path: Path) -> None:
    """Writes a value as JSON, all at once: a reader finds the old file or the new one.

    Raises:
        OSError: the file can't be written; an old one is then as it was.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
