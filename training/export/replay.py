"""Exported runs, run again: their turns in the loop, their cells in fresh workers of a pool.

A run is the same again when it answers the same and every cell ends and shows as it did before.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.agent.candidates import Agree, Candidate
from dm_jupyter.agent.rollout import Pool, RolloutContext
from dm_jupyter.core.trajectory import Trajectory
from training.durable.data_files import DataFinder
from training.evaluation.repeated import cell_difference, recorded_files
from training.evaluation.run import item_folder, outcome_of
from training.evaluation.scoring import ScoringPool
from training.export.exporting import Export, ScriptedRun, begun
from training.records.records import EvalRecord
from training.suites.suite import Sample, Suite

__all__ = ["Replayed", "Replays", "open_replays", "replay"]

_SCORE_SECONDS = 60.0


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


@dataclass(frozen=True, slots=True)
class Replays:
    """What the replays of one split's runs share; all of it is open."""

    pool: Pool
    scorer: ScoringPool
    items: Mapping[str, Sample]
    """The questions of the split, by id."""
    made: Path
    """Gets the files that the replays make."""
    finder: DataFinder

    async def difference(self, record: EvalRecord, exported: Export, run: Path) -> str:
        """Return what was otherwise when a run was run again, in words; empty for nothing.

        Args:
            record: of the run.
            exported: the run in its new dialect.
            run: the folder of the evaluation that made it.

        Raises:
            DataFileError: a data file is not there, or has another content.
            SandboxError: no cell can be run.
            ScoringError: nobody knows whether the answers agree.
        """
        item = self.items.get(record.id)
        if item is None:
            return "the split has no such question"
        if not exported.trajectory.answer:
            return "the run has no answer"
        folder = item_folder(run, record.id, record.trial)
        original = Candidate(Trajectory.from_json(record.trajectory), folder)

        def agree(one: Candidate, other: Candidate) -> bool:
            # Where an answer is not in the form that is asked for, a suite has nothing to compare.
            if item.task.is_closed_form and one.trajectory.answer == other.trajectory.answer:
                return True
            return self.scorer.agree_now(item, outcome_of(one, folder), outcome_of(other, folder))

        files = _files(record, item, self.finder)
        with tempfile.TemporaryDirectory(dir=self.made) as made:
            again = await replay(exported, original, self.pool, files, Path(made), agree)
        answer = "" if again.answers_same else "another answer"
        return "; ".join(filter(None, (answer, again.difference)))


@asynccontextmanager
async def open_replays(suite: Suite, split: Path, pool: Pool) -> AsyncIterator[Replays]:
    """Open what the replays of runs at a split need.

    Args:
        suite: of the questions.
        split: its folder.
        pool: where cells run; open.

    Raises:
        RecordError: the split is not as the suite needs it.
    """
    items = {item.task.id: item for item in suite.load(split)}
    async with ScoringPool(suite, _SCORE_SECONDS, 1) as scorer:
        with tempfile.TemporaryDirectory(prefix="replay-") as made:
            yield Replays(pool, scorer, items, Path(made), DataFinder([split]))


def _files(record: EvalRecord, item: Sample, finder: DataFinder) -> dict[str, Path]:
    """The data files of a run, by their content where the record says what it is."""
    if record.data:
        return recorded_files(record, finder)
    return {file.name: file.resolve() for file in item.task.files}


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
