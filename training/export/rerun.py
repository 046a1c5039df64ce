"""Replays of exported runs: their turns in the agent loop, their cells in fresh workers of a pool.

A replay is the same if it gives the same answer and every cell has the same status and output.
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
from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.core.trajectory import Trajectory
from kernel_sandbox.types import CellStatus
from training.durable.data_files import DataFinder
from training.evaluation.repeated import cell_difference, recorded_files
from training.evaluation.run import item_folder, outcome_of
from training.evaluation.scoring import ScoringPool
from training.export.exporting import Export, ScriptedRun, begun
from training.records.records import EvalRecord
from training.suites.suite import Sample, Suite

__all__ = ["ReplayTimeoutError", "Replayed", "Replays", "open_replays", "replay"]

_SCORE_SECONDS = 60.0
_MOST_NAMED = 3


class ReplayTimeoutError(DmJupyterError):
    """A cell ran out of time in a replay only, so the machine may have been too slow for it."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of replaying an exported run."""

    trajectory: Trajectory
    answers_same: bool
    """Whether it gives the recorded answer."""
    difference: str = ""
    """Description of the first difference; empty if there is none."""


async def replay(
    exported: Export,
    original: Candidate,
    pool: Pool,
    files: Mapping[str, Path],
    folder: Path,
    agree: Agree,
) -> Replayed:
    """Replay an exported run in a fresh worker and return the result.

    Args:
        exported: the run in its new dialect.
        original: the original run, and the files that it left.
        pool: where cells run; open.
        files: the task's data files by the names that the code reads them by.
        folder: receives the files that the code creates.
        agree: whether two runs give the same answer; called in a thread.

    Raises:
        SandboxError: no cell can be run, or a file can't be used.
        ReplayTimeoutError: a cell ran out of time, before any difference.
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
    """Open resources that the replays of one split's runs share."""

    pool: Pool
    scorer: ScoringPool
    items: Mapping[str, Sample]
    """The questions of the split, by id."""
    made: Path
    """Receives the files that the replays create."""
    finder: DataFinder

    async def difference(self, record: EvalRecord, exported: Export, run: Path) -> str:
        """Replay a run and return its difference in words; empty if there is none.

        Args:
            record: of the run.
            exported: the run in its new dialect.
            run: the folder of the evaluation that produced it.

        Raises:
            DataFileError: a data file is missing, or has another content.
            SandboxError: no cell can be run.
            ScoringError: the answers could not be compared.
            ReplayTimeoutError: a cell ran out of time, before any difference.
        """
        item = self.items.get(record.id)
        if item is None:
            return "the split has no such question"
        if not exported.trajectory.answer:
            return "the run has no answer"
        folder = item_folder(run, record.id, record.trial)
        original = Candidate(Trajectory.from_json(record.trajectory), folder)

        def agree(one: Candidate, other: Candidate) -> bool:
            # If an answer is not in the requested form, a suite has nothing to compare.
            if item.task.is_closed_form and one.trajectory.answer == other.trajectory.answer:
                return True
            return self.scorer.agree_now(item, outcome_of(one, folder), outcome_of(other, folder))

        files = _files(record, item, self.finder)
        with tempfile.TemporaryDirectory(dir=self.made) as made:
            again = await replay(exported, original, self.pool, files, Path(made), agree)
            lost = _lost_files(folder, Path(made))
        answer = "" if again.answers_same else "another answer"
        if answer and lost:
            answer = f"the recorded run lost its {', '.join(lost)}, so answers can't be compared"
        return "; ".join(filter(None, (answer, again.difference)))


@asynccontextmanager
async def open_replays(suite: Suite, split: Path, pool: Pool) -> AsyncIterator[Replays]:
    """Open the resources for replays of a split's runs.

    Args:
        suite: of the questions.
        split: its folder.
        pool: where cells run; open.

    Raises:
        RecordError: the split does not have the form that the suite needs.
    """
    items = {item.task.id: item for item in suite.load(split)}
    async with ScoringPool(suite, _SCORE_SECONDS, 1) as scorer:
        with tempfile.TemporaryDirectory(prefix="replay-") as made:
            yield Replays(pool, scorer, items, Path(made), DataFinder([split]))


def _files(record: EvalRecord, item: Sample, finder: DataFinder) -> dict[str, Path]:
    """Return the data files of a run, found by content if the record has their hashes."""
    if record.data:
        return recorded_files(record, finder)
    return {file.name: file.resolve() for file in item.task.files}


def _lost_files(folder: Path, again: Path) -> list[str]:
    """Return a few names of files that a replay created and the recorded run no longer has.

    Code chose the names, so all that a terminal may obey is escaped.
    """
    lost = sorted(one.name for one in again.iterdir() if not (folder / one.name).exists())
    return [name.encode("unicode_escape").decode() for name in lost[:_MOST_NAMED]]


def _difference(before: Trajectory, after: Trajectory) -> str:
    """Describe the first step that differs; empty if none does.

    Raises:
        ReplayTimeoutError: that step only ran out of time.
    """
    for at, (one, other) in enumerate(zip(before.steps, after.steps, strict=False), 1):
        if one.result is None or other.result is None:
            if one.result is not other.result:
                return f"turn {at} was another action"
            continue
        if (
            other.result.status is CellStatus.TIMEOUT
            and one.result.status is not other.result.status
        ):
            raise ReplayTimeoutError(
                f"the cell of turn {at} ran out of time, which the recorded one did not"
            )
        if difference := cell_difference(at, one.result, other.result):
            return difference
    if after.turns < before.turns:
        return f"the run ended after turn {after.turns} of {before.turns}"
    return ""
