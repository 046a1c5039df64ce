"""`dm-jupyter profile`: what the model would be shown of a file."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dm_jupyter.cli.exits import reporting
from dm_jupyter.core.plain_text import harmless_text

if TYPE_CHECKING:
    from dm_jupyter.agent.profile import FileProfile

__all__ = ["print_profile"]


def print_profile(file: Path, *, as_json: bool) -> int:
    """Prints the profile; returns the exit code."""
    with reporting() as outcome:
        from dm_jupyter.agent.profile import render, to_json  # noqa: PLC0415
        from dm_jupyter.agent.profile.values import without_values  # noqa: PLC0415

        profile = asyncio.run(_read(Path(os.path.realpath(file)), file.name))
        if as_json:
            print(
                json.dumps(
                    to_json(without_values(profile)), ensure_ascii=False, indent=2, default=str
                )
            )
        else:
            print(harmless_text(render(profile)))
    return outcome.code


async def _read(file: Path, name: str) -> FileProfile:
    from dm_jupyter.agent.profile_reader import ProfileReader  # noqa: PLC0415

    async with ProfileReader() as reader:
        return await reader.profile(file, name)
