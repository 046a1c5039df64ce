"""Files of JSON lines: one value on each line, which ends with a line feed and nothing else.

A string in a value may contain other signs at which `str.splitlines` splits, such as U+2028.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from training.durable.atomic import write_whole

__all__ = ["numbered_lines", "write_lines"]


def numbered_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, each with its number from 1.

    Raises:
        OSError: the file can't be read.
        UnicodeDecodeError: it is not in UTF-8.
    """
    with file.open(encoding="utf-8", newline="\n") as opened:
        for number, line in enumerate(opened, 1):
            if line.strip():
                yield number, line


def write_lines(values: Iterable[Any], file: Path) -> None:
    """Write values as JSON lines.

    Raises:
        OSError: the file can't be written; an old one is then unchanged.
    """
    lines = [json.dumps(value, ensure_ascii=False) for value in values]
    write_whole("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"), file)
