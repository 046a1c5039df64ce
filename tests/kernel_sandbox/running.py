"""Cells that say when they run: by a file in their working folder, wherever that lies."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from kernel_sandbox.types import CellResult
from tests.waiting import until

BEGIN = "open('begun', 'w').close()"
"""A line of a cell that is to be caught while it runs."""
SLEEPING = f"{BEGIN}\nimport time\ntime.sleep(60)"
"""A cell that runs until somebody ends it."""


def places_of(name: str, folder: Path) -> list[Path]:
    """Returns the folders at or below this one in which a file of the name lies."""
    return [Path(place) for place, _, files in os.walk(folder) if name in files]


async def begun(running: asyncio.Task[CellResult], folder: Path) -> None:
    """Waits until a cell has come to its line `BEGIN`, the first one that does.

    Args:
        running: the cell.
        folder: its working folder, or one above it.
    """
    await until(lambda: running.done() or places_of("begun", folder), "the cell runs")
    assert not running.done(), running.result()
