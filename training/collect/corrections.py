"""Corrections: right runs that begin with the failed cell of another try at the same question.

Most right runs succeed at their first cell. A model that learns from these alone repeats a failed
cell, because it has never seen what follows one. Here the failed cell of a try comes before the
right run of another, and the replay shows that the right cells work after it. The model learns
only what follows the failed cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from dm_jupyter.core.errors import UnrenderableTurnError
from dm_jupyter.core.trajectory import RunCell, Step, Trajectory
from kernel_sandbox.types import CellStatus
from training.collect.examining import CollectedRun
from training.evaluation.knowledge import without_knowledge
from training.export.exporting import export
from training.records.records import EvalRecord

__all__ = ["corrections", "first_failed_cell"]


def first_failed_cell(record: EvalRecord) -> Step | None:
    """Return the first turn of a run if its cell raised an exception, else `None`.

    Args:
        record: of the run, with its trajectory.

    Raises:
        TrajectoryError: the record is incomplete.
    """
    steps = Trajectory.from_json(record.trajectory).steps
    first = steps[0] if steps else None
    if first is None or first.result is None or first.is_edited:
        return None
    failed = first.result.status is CellStatus.ERROR and not first.result.state_lost
    return first if failed and isinstance(first.turn.action, RunCell) else None


async def corrections(
    runs: Iterable[CollectedRun], failed: Mapping[str, Step], dialects: Sequence[str]
) -> list[CollectedRun]:
    """Return a correction for each question with a failed cell and a right run without one.

    A run that a dialect can't write after the failed cell is left out.

    Args:
        runs: right ones; of several at a question, the first one is used.
        failed: the failed first cell of another try, by question.
        dialects: names of the dialects that must be able to write the correction.
    """
    found: dict[str, CollectedRun] = {}
    for run in runs:
        cell = failed.get(run.record.id)
        if cell is None or run.record.id in found or first_failed_cell(run.record) is not None:
            continue
        right = without_knowledge(Trajectory.from_json(run.record.trajectory))
        corrected = replace(right, steps=(cell, *right.steps))
        try:
            exported = {name: await export(corrected, name) for name in dialects}
        except UnrenderableTurnError:
            continue
        found[run.record.id] = replace(run, exported=exported, is_correction=True)
    return list(found.values())
