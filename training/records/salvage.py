"""Damaged lines taken out of a run's records: the good ones stay, the others are set aside."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from training.atomic import write_whole
from training.records.read_run import RunError, record_of

__all__ = ["DAMAGED", "Salvaged", "salvage"]

DAMAGED = "records.damaged.jsonl"


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was found in a file of records."""

    kept: int
    """Records."""
    damaged: int
    """Lines that were set aside."""


def salvage(file: Path) -> Salvaged:
    """Moves the lines that are no whole records into `records.damaged.jsonl` beside the file.

    Also moved is the second record of a try. The moved bytes are as they were, one line each after
    those of an earlier call; they are on the disk before the records are written anew, so that
    nothing is lost whenever this is stopped. Without a file, or without damage, nothing is written.

    Args:
        file: the records; nobody else writes them meanwhile.

    Raises:
        OSError: a file can't be read or written; the records are then as they were.
    """
    if not file.exists():
        return Salvaged(0, 0)
    kept, damaged = _sorted(file.read_bytes())
    if damaged:
        with (file.parent / DAMAGED).open("ab") as aside:
            aside.writelines(line + b"\n" for line in damaged)
            aside.flush()
            os.fsync(aside.fileno())
        write_whole(b"".join(line + b"\n" for line in kept), file)
    return Salvaged(len(kept), len(damaged))


def _sorted(raw: bytes) -> tuple[list[bytes], list[bytes]]:
    kept: list[bytes] = []
    damaged: list[bytes] = []
    seen: set[tuple[str, int]] = set()
    for line in raw.split(b"\n"):
        if not line.strip():
            continue
        try:
            record = record_of(line.decode("utf-8"), "")
        except (RunError, UnicodeDecodeError):
            damaged.append(line)
            continue
        (damaged if record.key in seen else kept).append(line)
        seen.add(record.key)
    return kept, damaged
