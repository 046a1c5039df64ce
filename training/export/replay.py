"""Exported runs, run again: their turns in the loop, their cells in fresh workers of a pool.

A run is the same again when it answers the same and every cell ends and shows as it did before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.agent.candidates import Agree, Candidate
from dm_jupyter.agent.rollout import Pool, RolloutContext
from dm_jupyter.core.trajectory import Trajectory
from training.evaluation.repeated import cell_difference
from training.export.exporting import Export, ScriptedRun, begun

__all__ = ["Replayed", "replay"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of running an exported run again."""

    trajectory: Trajectory
    answers_same: bool
    """Whether it gives the answer that was recorded."""
    difference: str = ""
    """The first thing that was otherwise, for a person; empty where nothing was."""

    @property
    def is_same(self) -> bool:
        """Whether it answers the same from the same outputs."""
        return self.answers_same and not self.difference


async def replay(
    exported: Export,
    original: Candidate,
    pool: Pool,
    files: Mapping[str, Path],
    folder: Path,
    agree: Agree,
) -> Replayed:
    """Returns what came of an exported run in a fresh worker.

    Args:
        exported: the run in its new dialect.
        original: the run as it was made, and the files that it left.
        pool: where cells run; open.
        files: the task's data files by the names that the code reads them by.
        folder: gets the files that the code makes.
        agree: whether two runs answer the same; called in a thread.

    Raises:
        SandboxError: no cell can be run, or a file can't be used.
    """
    told = exported.trajectory
    start = begun(told, told.dialect)
    context = RolloutContext(
        told.task, pool, folder, files, start.data_context, dialect=told.dialect
    )
    async with context.open_rollout() as rollout:
        scripted = ScriptedRun(start, told.assists)
        for text in exported.texts:
            await scripted.say(text, rollout)
            if scripted.trajectory.stop is not None:
                break
        ended = await rollout.finish(scripted.trajectory, folder)
    answers_same = await asyncio.to_thread(agree, original, Candidate(ended, folder))
    return Replayed(ended, answers_same, _difference(told, ended))


def _difference(before: Trajectory, after: Trajectory) -> str:
    """The first step that went otherwise, in words."""
    for at, (one, other) in enumerate(zip(before.steps, after.steps, strict=False), 1):
        if one.result is None or other.result is None:
            if one.result is not other.result:
                return f"turn {at} was another action"
            continue
        if difference := cell_difference(at, one.result, other.result):
            return difference
    if after.turns < before.turns:
        return f"the run ended after turn {after.turns} of {before.turns}"
    return ""
