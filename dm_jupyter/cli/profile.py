"""`dm-jupyter profile`: what the model would be shown of a file."""

from __future__ import annotations

import json
from pathlib import Path

from dm_jupyter.cli.exits import reporting

__all__ = ["print_profile"]


def print_profile(file: Path, *, as_json: bool) -> int:
    """Prints the profile; returns the exit code."""
    with reporting() as outcome:
        from dm_jupyter.agent.profile import profile_file, render, to_json  # noqa: PLC0415

        profile = profile_file(file)
        if as_json:
            print(json.dumps(to_json(profile), ensure_ascii=False, indent=2, default=str))
        else:
            print(render(profile))
    return outcome.code
