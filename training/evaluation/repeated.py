"""Recorded cells that run again: the files that they read, and differences in what they show."""

from __future__ import annotations

import re
from pathlib import Path

from dm_jupyter.agent.observe import describe
from dm_jupyter.core.errors import DataFileError, TrajectoryError
from dm_jupyter.core.trajectory import Trajectory
from kernel_sandbox.types import CellResult
from training.durable.data_files import DataFinder
from training.records.records import EvalRecord

__all__ = ["cell_difference", "recorded_files"]

_SHOWN_CHARS = 1_000_000
_OF_ONE_PROCESS = re.compile(r"\b0x[0-9a-fA-F]+|\bIn\s?\[\d+\]|/tmp/[^\s'\"]*")
"""Text that differs between two kernels for the same cell: addresses, cell counts, folders."""


def recorded_files(record: EvalRecord, finder: DataFinder) -> dict[str, Path]:
    """Return the data files of a recorded run by the names that its code reads them by.

    Args:
        record: the record, with its trajectory.
        finder: searches the folders of this machine.

    Raises:
        DataFileError: a file is not found; the message names it and what helps.
        TrajectoryError: the record is compact or incomplete.
    """
    if not record.trajectory:
        raise TrajectoryError(f"the record of {record.id} is compact and contains no run")
    files = Trajectory.from_json(record.trajectory).task.files
    if not record.data:  # written by an older release
        missing = next((file for file in files if not file.is_file()), None)
        if missing is not None:
            raise DataFileError(
                f"the data file {missing} is not there, and the record of {record.id}, of an older "
                "release, has no hash to find it by. Put it back to run its cells again."
            )
        return {file.name: file.resolve() for file in files}
    found = {}
    recorded = {file.name: file for file in files}
    for name, sha256 in record.data.items():
        path = Path(name)
        if path.name not in recorded:  # made by the suite for this question
            path = Path(name.removeprefix(f"{record.id}: "))
        found[path.name] = finder.find(path, sha256, recorded.get(path.name)).resolve()
    return found


def cell_difference(turn: int, before: CellResult, after: CellResult) -> str:
    """Return how a cell differed when it ran again, for a person; empty without a difference.

    Args:
        turn: the number of its turn, from 1.
        before: the recorded result.
        after: the result of the new run.
    """
    if before.status is not after.status:
        return f"the cell of turn {turn} ended as {after.status}, not {before.status}"
    if _shown(before) != _shown(after):
        return f"the cell of turn {turn} showed something else"
    return ""


def _shown(result: CellResult) -> str:
    return _OF_ONE_PROCESS.sub("", describe(result, _SHOWN_CHARS)).strip()
