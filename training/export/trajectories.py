"""Convert stored trajectories to conversations: `python -m training.export.trajectories FILE …`.

A file contains one trajectory per line, as the panel's *Trajectory* and the server's
`training_file` write them. Every run counts as correct, because the command does not know the
answers. It leaves out runs without an answer and runs on questions for evaluation only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.errors import DmJupyterError, TrajectoryError, UnrenderableTurnError
from dm_jupyter.core.trajectory import StopReason, Trajectory
from training.durable.json_lines import numbered_lines, write_lines
from training.export.conversation import conversation
from training.export.exporting import export

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.export.trajectories", description=__doc__
    )
    add = parser.add_argument
    add("files", type=Path, nargs="+", metavar="FILE", help="one trajectory a line")
    add("--dialect", required=True, choices=tuple(DIALECTS), metavar="NAME",
        help=", ".join(DIALECTS))  # fmt: skip
    add("--out", type=Path, required=True, metavar="FILE", help="of the conversations")
    return parser


def _trajectories(files: Sequence[Path]) -> Iterator[tuple[str, Trajectory]]:
    """Yield each trajectory with its location, `FILE:LINE`.

    Raises:
        TrajectoryError: a line is not a trajectory, or a file has none.
        OSError: a file can't be read.
    """
    for file in files:
        place = ""
        for number, line in numbered_lines(file):
            place = f"{file}:{number}"
            try:
                yield place, Trajectory.from_json(json.loads(line))
            except (ValueError, RecursionError, TrajectoryError) as error:
                raise TrajectoryError(f"{place} is no trajectory: {error}") from error
        if not place:
            raise TrajectoryError(f"{file} contains no trajectory")


async def _conversations(
    files: Sequence[Path], dialect: str, left_out: Counter[str]
) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    names: Counter[str] = Counter()
    for place, trajectory in _trajectories(files):
        if trajectory.stop is not StopReason.ANSWERED or not trajectory.answer:
            left_out[f"{place}: it has no answer"] += 1
            continue
        if trajectory.task.metadata.get("evaluation_only"):
            left_out[f"{place}: its question's licence forbids to learn from it"] += 1
            continue
        try:
            exported = await export(trajectory, dialect)
        except UnrenderableTurnError as error:
            left_out[f"{place}: {error}"] += 1
            continue
        name = trajectory.task.id or place
        line = {
            "id": name if not names[name] else f"{name} #{names[name] + 1}",
            "dialect": dialect,
            "tools": [tool.to_json() for tool in dialect_named(dialect).tools],
            "messages": conversation(exported),
        }
        names[name] += 1
        lines.append(line)
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0, 1 after a fault."""
    arguments = _parser().parse_args(argv)
    left_out: Counter[str] = Counter()
    try:
        lines = asyncio.run(_conversations(arguments.files, arguments.dialect, left_out))
        write_lines(lines, arguments.out)
    except (DmJupyterError, OSError, UnicodeDecodeError) as fault:
        print(f"export: {fault}", file=sys.stderr)
        return 1
    print(f"{len(lines)} of {len(lines) + left_out.total()} runs: {arguments.out}")
    for why in left_out:
        print(f"left out: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
