"""`dm-jupyter profile`: what the model is shown of a file."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.cli.exits import reporting
from dm_jupyter.core.plain_text import harmless_text

if TYPE_CHECKING:
    from dm_jupyter.data.profile import FileProfile

__all__ = ["print_profile"]

_TITLE_CHARS = 60


def print_profile(file: Path, *, seconds: float, as_json: bool) -> int:
    """Print the profile and return the exit code.

    Args:
        file: the data file.
        seconds: time limit for reading it; a terminal shows the progress meanwhile.
        as_json: whether to print everything as JSON.
    """
    with reporting() as outcome:
        from dm_jupyter.data.profile import profile_to_json, render  # noqa: PLC0415
        from dm_jupyter.data.profile.values import without_values  # noqa: PLC0415

        profile = asyncio.run(_read(Path(os.path.realpath(file)), file.name, seconds))
        if as_json:
            print(
                json.dumps(
                    profile_to_json(without_values(profile)),
                    ensure_ascii=False,
                    indent=2,
                    default=str,
                )
            )
        else:
            print(harmless_text(render(profile)))
    return outcome.code


async def _read(file: Path, name: str, seconds: float) -> FileProfile:
    from dm_jupyter.data.profile_reader import ProfileReader, reading_for  # noqa: PLC0415

    show = _shown(name) if sys.stderr.isatty() else None
    async with ProfileReader(reading_for(seconds)) as reader:
        try:
            return await reader.profile(file, name, show)
        finally:
            if show is not None:
                print("\r\033[K", end="", file=sys.stderr, flush=True)


def _shown(name: str) -> Callable[[float], None]:
    """Return a function that shows on one line of the terminal how much of a file was read."""
    title = " ".join(harmless_text(name).split())[:_TITLE_CHARS]

    def show(share: float) -> None:
        print(f"\r\033[KReading {title}: {share:.0%}", end="", file=sys.stderr, flush=True)

    return show
