"""Run the cells of recorded runs again in fresh workers: `python -m training.replay RUN`.

No model is called. Data files are found by content: at the recorded path, in the split, or in a
folder given with `--data`. So a run can be replayed on another machine.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.agent.rollout import Pool, RolloutContext
from dm_jupyter.core.errors import DataFileError, DmJupyterError, TrajectoryError
from dm_jupyter.core.trajectory import RunCell, Trajectory
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.runners.pool import PoolSettings
from kernel_sandbox.runners.pool_settings import PROFILES
from training.durable.data_files import DataFinder
from training.evaluation.pools import POOLS, open_pool
from training.evaluation.repeated import cell_difference, recorded_files
from training.records.records import EvalRecord, read_run

__all__ = ["RepeatedCells", "main", "repeat_cells"]


@dataclass(frozen=True, slots=True)
class RepeatedCells:
    """Result of running the cells of a run again."""

    cells: int
    difference: str
    """Description of the first difference; empty if there is none."""


async def repeat_cells(
    trajectory: Trajectory, files: Mapping[str, Path], pool: Pool, folder: Path
) -> RepeatedCells:
    """Run the cells of a run again in a fresh worker and return the result.

    Args:
        trajectory: the run.
        files: its data files by the names that the code reads them by.
        pool: where cells run; open.
        folder: receives the files that the code creates.

    Raises:
        SandboxError: no cell can be run, or a file can't be used.
    """
    context = RolloutContext(
        trajectory.task, pool, folder, files, trajectory.data_context, dialect=trajectory.dialect
    )
    cells, difference = 0, ""
    async with context.open_rollout() as rollout:
        for number, step in enumerate(trajectory.steps, 1):
            if not isinstance(step.turn.action, RunCell) or step.result is None:
                continue
            ran = await rollout.run(step.turn.action, step.turn.thought)
            cells += 1
            difference = difference or cell_difference(number, step.result, ran.result)
    return RepeatedCells(cells, difference)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.replay", description=__doc__)
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="a folder with records.jsonl, or a file of records")
    add("--data", type=Path, action="append", default=[], metavar="FOLDER",
        help="where the data files are on this machine; may be given several times")  # fmt: skip
    add("--pool", choices=POOLS, default=POOLS[0], help="where cells run")
    add("--profile", choices=[one.value for one in PROFILES], default=Strictness.ROLLOUT.value)
    return parser


async def _repeated(record: EvalRecord, finder: DataFinder, pool: Pool, folder: Path) -> str:
    """Return the difference in words; empty if there is none."""
    try:
        files = recorded_files(record, finder)
        trajectory = Trajectory.from_json(record.trajectory)
    except (DataFileError, TrajectoryError) as fault:
        return str(fault)
    return (await repeat_cells(trajectory, files, pool, folder)).difference


async def _main(arguments: argparse.Namespace) -> int:
    records, finder = read_run(arguments.run), DataFinder(arguments.data)
    settings = PoolSettings(profile=Strictness(arguments.profile))
    same = 0
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        async with open_pool(arguments.pool, settings) as pool:
            for number, record in enumerate(records):
                said = await _repeated(record, finder, pool, Path(folder) / str(number))
                same += not said
                print(f"{record.id} #{record.trial + 1}: {said or 'the same'}")
    print(f"{same} of {len(records)} runs showed the same")
    return 0 if same == len(records) else 1


def main() -> int:
    """Run the command; return the exit code: 0, 1 after a fault or a difference."""
    arguments = _parser().parse_args()
    try:
        return asyncio.run(_main(arguments))
    except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
        print(f"replay: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
