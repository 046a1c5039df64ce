"""Runs a suite through the product's own loop, so that it can be stopped and goes on.

Every finished try is one line of `records.jsonl` at once; nothing of an unfinished one stays. What
is missing is run when the same command comes again, and nothing else. Unanswered questions stay in
the denominator.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dm_jupyter.agent.episodes import Arena, Pool
from dm_jupyter.agent.local_model.leases import try_lock
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.protocols import Policy
from dm_jupyter.agent.search.candidates import Candidate
from dm_jupyter.agent.search.solution import Solution
from dm_jupyter.agent.search.strategies import React, Strategy
from dm_jupyter.agent.search.tree import Search
from dm_jupyter.core.errors import (
    DataFileError,
    DmJupyterError,
    StreamBrokenError,
    UsageError,
    first_fault,
)
from dm_jupyter.core.trajectory import StopReason
from kernel_sandbox.errors import SandboxError
from training.evaluation.failures import Failure
from training.evaluation.records import EvalRecord, RecordLog, Spent
from training.judge.judge import Judge, JudgeError, JudgeUnreachableError
from training.tasks.suite import EvalItem, ItemScore, JudgedSuite, Outcome, Suite, draw
from training.whole_file import write_lines

__all__ = ["EvalOptions", "evaluate", "item_folder", "missing", "write_results"]

_SEEDS_A_TRIAL = 100_000
"""Between the seeds of two tries at a question: more than a strategy uses."""
_BREAKS = 2
"""Answers of the model that may break off in a try; one more ends the run, which can go on."""
_RESULT = ("id", "trial", "right", "strict", "parts", "strict_parts", "grades", "failure",
           "answer", "turns", "cells", "tokens", "sampled_cells")  # fmt: skip


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What to run and where to keep it."""

    suite: Suite
    split: Path
    out: Path
    limit: int | None = None
    seed: int = 7
    """Of the draw of items; sampling starts from `run.seed`."""
    trials: int = 1
    """How often each item is tried."""
    strategy: Strategy = field(default_factory=React)
    collects: bool = False
    """Whether a search is told which answers are right, to collect values and not to score."""
    dialect: str = "markdown"
    run: RunSettings = field(default_factory=RunSettings)
    at_once: int = 1
    """Tries that go on at the same time."""
    judge: Judge | None = None
    """For suites whose verdict needs a model."""

    def tries(self) -> Iterator[tuple[EvalItem, int]]:
        """Yields each item and number of a try, all first tries first.

        Raises:
            RecordError: the split is not as the suite needs it.
        """
        items = draw(self.suite.load(self.split), self.limit, self.seed)
        return ((item, trial) for trial in range(self.trials) for item in items)


def missing(options: EvalOptions) -> tuple[list[EvalRecord], list[tuple[EvalItem, int]]]:
    """Returns the outcomes that are there already and the tries that are still to be made.

    Raises:
        RecordError: the split is not as the suite needs it.
        ValueError: the file of records is broken.
    """
    tries = list(options.tries())
    wanted = {(item.task.id, trial) for item, trial in tries}
    log = RecordLog(options.out / "records.jsonl")
    done = {record.key: record for record in log.outcomes() if record.key in wanted}
    return list(done.values()), [key for key in tries if (key[0].task.id, key[1]) not in done]


async def evaluate(
    options: EvalOptions,
    policy: Policy,
    pool: Pool,
    on_record: Callable[[EvalRecord], None] = lambda _: None,
) -> list[EvalRecord]:
    """Returns the records of all tries, in the order of the draw.

    Those made by an earlier call come without trajectories, which are in the file.

    Args:
        options: what to run.
        policy: the model.
        pool: where cells run; open.
        on_record: gets each record that is new.

    Raises:
        RecordError: the split is not as the suite needs it.
        UsageError: another evaluation is at work in the folder.
        PolicyError: the model can't be reached; what is done so far is kept.
        SandboxError: no cell can be run; likewise.
        JudgeUnreachableError: nothing answers where the judge should; likewise.
    """
    with _alone_in(options.out):
        return await _evaluate(options, policy, pool, on_record)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keeps a second evaluation out of the folder: it would make the same tries again."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = try_lock(folder / "run.lock")
    if lock is None:
        raise UsageError(
            f"Another evaluation is at work in {folder}. Wait for it, stop it, or give this one a "
            "folder of its own with --out."
        )
    with lock:
        yield


async def _evaluate(
    options: EvalOptions, policy: Policy, pool: Pool, on_record: Callable[[EvalRecord], None]
) -> list[EvalRecord]:
    done, to_do = missing(options)
    log = RecordLog(options.out / "records.jsonl")
    waiting = iter(to_do)

    async def work() -> None:
        for item, trial in waiting:
            record = await _unbroken(item, trial, options, policy, pool)
            log.append(record)
            done.append(record)
            on_record(record)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(options.at_once, len(to_do))):
                group.create_task(work())
    except* (DmJupyterError, SandboxError, OSError) as faults:
        raise first_fault(faults) from faults
    by_key = {record.key: record for record in done}
    return [by_key[item.task.id, trial] for item, trial in options.tries()]


def item_folder(run: Path, name: str, trial: int) -> Path:
    """Returns where the files of a try lie.

    Args:
        run: the run's folder.
        name: the id of the item.
        trial: counted from 0.
    """
    return run / "items" / re.sub(r"[^\w.-]", "_", name) / str(trial)


async def _unbroken(
    item: EvalItem, trial: int, options: EvalOptions, policy: Policy, pool: Pool
) -> EvalRecord:
    """A try, begun again with the same seeds where an answer of the model broke off."""
    for _ in range(_BREAKS):
        with suppress(StreamBrokenError):
            return await _try(item, trial, options, policy, pool)
    return await _try(item, trial, options, policy, pool)


async def _try(
    item: EvalItem, trial: int, options: EvalOptions, policy: Policy, pool: Pool
) -> EvalRecord:
    folder = item_folder(options.out, item.task.id, trial)
    shutil.rmtree(folder, ignore_errors=True)  # what a try left that was broken off
    folder.mkdir(parents=True)
    arena = Arena(
        item.task,
        pool,
        folder,
        run=replace(options.run, seed=options.run.seed + _SEEDS_A_TRIAL * trial),
        dialect=options.dialect,
        agree=lambda one, other: options.suite.agree(
            item, _outcome(one, folder), _outcome(other, folder)
        ),
    )
    started = time.monotonic()
    try:
        solution = await _strategy(item, options, folder).solve(await arena.briefed(), policy)
    except DataFileError as fault:
        solution = _unread(arena, str(fault))
    seconds = time.monotonic() - started
    if solution.notebook is not None:
        solution.notebook.path = folder / "notebook.ipynb"
        solution.notebook.save()
    spent = Spent(solution.tokens, solution.prompt_tokens, solution.cells, seconds, solution.record)
    trajectory = solution.best.trajectory
    try:
        score = await _score(item, _outcome(solution.best, folder), options)
    except JudgeUnreachableError:
        raise
    except JudgeError:
        unscored = EvalRecord.of(item, trial, trajectory, ItemScore(False, False), spent)
        return replace(unscored, failure=Failure.UNSCORED)
    return EvalRecord.of(item, trial, trajectory, score, spent)


def _strategy(item: EvalItem, options: EvalOptions, folder: Path) -> Strategy:
    """The strategy; one that collects learns 1 for a right answer and -1 for a wrong one."""
    if not options.collects or not isinstance(options.strategy, Search):
        return options.strategy

    def reward(candidate: Candidate) -> float:
        return 1.0 if options.suite.score(item, _outcome(candidate, folder)).right else -1.0

    return replace(options.strategy, reward=reward)


def _unread(arena: Arena, why: str) -> Solution:
    """What remains of a try whose data can't be read."""
    ended = replace(arena.start, stop=StopReason.FAULT, stop_detail=why)
    return Solution(0, (Candidate(ended, arena.folder),), None, 0, 0, 0)


def _outcome(candidate: Candidate, folder: Path) -> Outcome:
    """What a candidate left; one without files has a folder that is not there, never ours."""
    return Outcome(candidate.trajectory.answer or "", candidate.folder or folder / "nothing")


async def _score(item: EvalItem, outcome: Outcome, options: EvalOptions) -> ItemScore:
    if isinstance(options.suite, JudgedSuite) and options.judge is not None:
        return await options.suite.judge(item, outcome, options.judge)
    return options.suite.score(item, outcome)


def write_results(records: Sequence[EvalRecord], path: Path) -> None:
    """Writes what came out, without clock times: the same bytes for the same draws of the model."""
    write_lines(map(_result, records), path)


def _result(record: EvalRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _RESULT}
