"""Evaluation of a suite through the product's own loop, which can be stopped and resumed.

Every finished attempt becomes one line of `records.jsonl` at once; nothing of an unfinished one
stays. The same command, run again, runs only the missing attempts. Unanswered questions stay in the
denominator.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import shutil
import time
from asyncio import Semaphore
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.rollout import Pool, RolloutContext
from dm_jupyter.agent.simplify import simplified
from dm_jupyter.core.errors import (
    DataFileError,
    DmJupyterError,
    StreamBrokenError,
    UsageError,
    first_fault,
)
from dm_jupyter.core.trajectory import Completion, StopReason
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.protocols import Policy
from dm_jupyter.search.strategies import React, Solution, Strategy
from dm_jupyter.search.tree import Search
from kernel_sandbox.errors import SandboxError
from training.durable.data_files import DataHashes
from training.durable.folder import folder_lock
from training.durable.json_lines import write_lines
from training.durable.log import Salvaged
from training.evaluation.knowledge import Knowledge
from training.evaluation.manifest import data_of, hash_data, known_hashes
from training.evaluation.scoring import ScoringError, ScoringPool, SuiteError
from training.marking.asking import ModelUnreachableError, NoReplyError
from training.marking.judge import Judge
from training.records.failures import Failure
from training.records.records import EvalRecord, RecordLog, RunUsage, salvage
from training.suites.suite import ItemScore, JudgedSuite, Outcome, Sample, Suite, draw

__all__ = [
    "SEEDS_A_TRIAL",
    "EvalOptions",
    "ResumeState",
    "SuiteError",
    "evaluate",
    "fingerprint_of",
    "item_folder",
    "outcome_of",
    "resume_state_of",
    "write_results",
]

SEEDS_A_TRIAL = 100_000
"""Distance between the seeds of two attempts at a question: more than a strategy uses."""
_BREAKS = 2
"""Model replies that may break off in an attempt; one more ends the run, which can be resumed."""
_RESULT = ("id", "trial", "correct", "strict_correct", "parts", "strict_parts", "grades",
           "failure", "answer", "turns", "cells", "tokens", "sampled_cells")  # fmt: skip
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """Settings of an evaluation: what to run and where to keep it."""

    suite: Suite
    split: Path
    out: Path
    limit: int | None = None
    levels: tuple[str, ...] = ()
    """Of the questions to draw from; empty for all."""
    seed: int = 7
    """Seed of the draw of samples; turns are sampled from `run.seed` on."""
    leaves_out: Collection[str] = ()
    """Ids of samples that are taken out of the draw."""
    trials: int = 1
    """Number of attempts at each sample."""
    strategy: Strategy = field(default_factory=React)
    collects: bool = False
    """Whether a search is shown which answers are correct, to collect values and not to score."""
    dialect: str = "markdown"
    simplifies: bool = False
    """Whether the model restates each task in short words before it works on it."""
    knowledge: Knowledge | None = None
    """Workflows that come with the questions, to collect runs and not to score."""
    run: RunSettings = field(default_factory=RunSettings)
    at_once: int = 1
    """Attempts that run at the same time."""
    slots: Semaphore | None = None
    """Slots shared with parallel evaluations; each attempt takes one, first come, first served."""
    reader: ProfileReader | None = None
    """Open reader that parallel evaluations share; `None` opens one for the run."""
    score_seconds: float = 60.0
    """Seconds that one score may take; beyond that, the attempt is unscored."""
    salvages: bool = False
    """Whether damaged lines of the records are set aside before the run resumes."""
    judge: Judge | None = None
    """Judge for suites whose verdict needs a model."""


@dataclass(frozen=True, slots=True)
class ResumeState:
    """State of a run when it starts or resumes."""

    tries: tuple[tuple[Sample, int], ...]
    """Each sample of the draw with the number of an attempt, all first attempts first."""
    done: Mapping[tuple[str, int], EvalRecord]
    """Outcomes that exist already, by id and attempt."""
    others: int
    """Number of records of attempts that are not in the draw."""
    questions: str
    """Fingerprint of the split's questions and expected answers."""
    data: DataHashes
    """Hashes of the data files of the draw."""
    salvaged: Salvaged | None = None
    """Result of setting damaged records aside; `None` if that was not requested."""

    def refuse_others(self, folder: Path) -> None:
        """Refuse records of another draw, because every record of a folder counts in its report.

        Raises:
            UsageError: there are such records.
        """
        if self.others:
            raise UsageError(
                f"{folder} holds {self.others} tries that this draw leaves out. A smaller --limit "
                "or --k, another --level, and of some suites a larger --limit as well, draws other "
                "ones: give this run a folder of its own with --out."
            )

    @property
    def wanted(self) -> set[tuple[str, int]]:
        """The draw, by id and attempt."""
        return _keys(self.tries)

    @property
    def to_do(self) -> list[tuple[Sample, int]]:
        """Attempts that are still to be made."""
        return [one for one in self.tries if (one[0].task.id, one[1]) not in self.done]


def resume_state_of(options: EvalOptions) -> ResumeState:
    """Return the state of a run; set damaged records aside if the options say so.

    Raises:
        RecordError: the split is not in the form that the suite needs.
        ValueError: the file of records is broken; the message names the line and what helps.
        OSError: the records can't be read, or damaged ones can't be set aside.
    """
    items = options.suite.load(options.split)
    drawn = draw(items, options.limit, options.seed, options.levels)
    drawn = [item for item in drawn if item.task.id not in options.leaves_out]
    tries = tuple((item, trial) for trial in range(options.trials) for item in drawn)
    wanted = _keys(tries)
    file = options.out / "records.jsonl"
    salvaged = salvage(file) if options.salvages else None
    found = RecordLog(file).outcomes()
    done = {record.key: record for record in found if record.key in wanted}
    others = sum(record.key not in wanted for record in found)
    data = hash_data(drawn, options.split, known_hashes(options.out))
    return ResumeState(tries, done, others, fingerprint_of(items), data, salvaged)


def _keys(tries: Iterable[tuple[Sample, int]]) -> set[tuple[str, int]]:
    return {(item.task.id, trial) for item, trial in tries}


def fingerprint_of(items: Sequence[Sample]) -> str:
    """Return the first 12 hex digits of the sha256 of a split's questions and labels.

    Args:
        items: the whole split, in its order.
    """
    asked = [
        (one.task.id, one.task.question, one.task.constraints, one.task.answer_format, one.label)
        for one in items
    ]
    text = json.dumps(asked, default=str).encode()
    return hashlib.sha256(text).hexdigest()[:12]


async def evaluate(
    options: EvalOptions,
    policy: Policy,
    pool: Pool,
    on_record: Callable[[EvalRecord], None] = lambda _: None,
    on_start: Callable[[ResumeState], None] = lambda _: None,
) -> list[EvalRecord]:
    """Return the records of all attempts, in the order of the draw.

    Records of an earlier call come without trajectories, which are in the file.

    Args:
        options: what to run.
        policy: the model.
        pool: runs the cells; open.
        on_record: called with each new record.
        on_start: called with the state of the run before the first attempt; may raise to refuse.

    Raises:
        RecordError: the split is not in the form that the suite needs.
        SuiteError: the suite could not score an answer; the records so far are kept.
        UsageError: another evaluation is running in the folder.
        PolicyError: the model can't be reached; the records so far are kept.
        SandboxError: no cell can be run; likewise.
        ModelUnreachableError: the judge can't be reached, or its replies can't be kept; likewise.
    """
    with folder_lock(options.out, "evaluation"):
        resume_state = resume_state_of(options)
        on_start(resume_state)
        return await _evaluate(options, policy, pool, on_record, resume_state)


async def _evaluate(
    options: EvalOptions,
    policy: Policy,
    pool: Pool,
    on_record: Callable[[EvalRecord], None],
    resume_state: ResumeState,
) -> list[EvalRecord]:
    done = dict(resume_state.done)
    log = RecordLog(options.out / "records.jsonl")
    waiting = _Waiting(resume_state.to_do)
    scores_at_once = max(1, min(options.at_once, (os.cpu_count() or 1) // 2))
    scorer = ScoringPool(options.suite, options.score_seconds, scores_at_once, "--score-seconds")

    async def work(means: _Means) -> None:
        for item, trial in waiting.of_one_worker():
            async with options.slots or nullcontext():
                record = await _unbroken(item, trial, options, means)
            record = replace(record, data=data_of(item, options.split, resume_state.data))
            log.append(record)
            done[record.key] = record
            on_record(record)

    try:
        own = ProfileReader() if options.reader is None else nullcontext(options.reader)
        async with own as reader, scorer, asyncio.TaskGroup() as group:
            for _ in range(min(options.at_once, len(resume_state.to_do))):
                group.create_task(work(_Means(policy, pool, reader, scorer)))
    except* (DmJupyterError, SandboxError, ValueError, OSError) as faults:
        raise first_fault(faults) from faults
    return [done[item.task.id, trial] for item, trial in resume_state.tries]


class _Waiting:
    """Attempts that wait, grouped by their files.

    A worker gets all attempts on the same files in a row. The model's server has then read the
    description of these files already.
    """

    def __init__(self, tries: Iterable[tuple[Sample, int]]) -> None:
        groups: dict[tuple[int, tuple[Path, ...]], deque[tuple[Sample, int]]] = {}
        for item, trial in tries:
            groups.setdefault((trial, item.task.files), deque()).append((item, trial))
        self._waiting = deque(groups.values())
        self._begun: list[deque[tuple[Sample, int]]] = []

    def of_one_worker(self) -> Iterator[tuple[Sample, int]]:
        """Yield group after group; if none waits, the rest of the longest group in progress."""
        while self._waiting or any(self._begun):
            if self._waiting:
                self._begun.append(self._waiting.popleft())
                group = self._begun[-1]
            else:
                group = max(self._begun, key=len)
            while group:
                yield group.popleft()


@dataclass(frozen=True, slots=True)
class _Means:
    """Resources that all attempts share, each of them open."""

    policy: Policy
    pool: Pool
    reader: ProfileReader
    scorer: ScoringPool


def item_folder(run: Path, name: str, trial: int) -> Path:
    """Return the folder with the files of an attempt.

    Args:
        run: the run's folder.
        name: the id of the sample.
        trial: counted from 0.
    """
    safe = re.sub(r"[^\w.-]", "_", name)
    if safe != name:  # another name may become the same once its signs are replaced
        safe = f"{safe}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return run / "items" / safe / str(trial)


async def _unbroken(item: Sample, trial: int, options: EvalOptions, means: _Means) -> EvalRecord:
    """Return the record of an attempt, restarted with the same seeds if a model reply broke off."""
    for _ in range(_BREAKS):
        with suppress(StreamBrokenError):
            return await _try(item, trial, options, means)
    return await _try(item, trial, options, means)


async def _try(item: Sample, trial: int, options: EvalOptions, means: _Means) -> EvalRecord:
    folder = item_folder(options.out, item.task.id, trial)
    shutil.rmtree(folder, ignore_errors=True)  # files of an attempt that was interrupted
    folder.mkdir(parents=True)
    context = RolloutContext(
        item.task,
        means.pool,
        folder,
        run=replace(options.run, seed=options.run.seed + SEEDS_A_TRIAL * trial),
        dialect=options.dialect,
        agree=lambda one, other: means.scorer.agree_now(
            item, outcome_of(one, folder), outcome_of(other, folder)
        ),
    )
    started = time.monotonic()
    fault, is_scored, restating = "", True, Completion("")
    if options.simplifies:
        restated = await simplified(item.task, means.policy, context.run.seed)
        context, restating = replace(context, task=restated.task), restated.completion
    try:
        context = await context.with_data_context(means.reader)
        if options.knowledge is not None:
            told = options.knowledge.told(replace(item, task=context.task))
            context = replace(context, task=told)
        strategy = _strategy(item, options, folder, means.scorer)
        solution = await strategy.solve(context, means.policy)
    except (DataFileError, ScoringError) as error:
        fault, is_scored = str(error), not isinstance(error, ScoringError)
        solution = _unread(context, fault)
    seconds = time.monotonic() - started
    if solution.notebook is not None:
        solution.notebook.path = _place_for(folder / "notebook.ipynb")
        solution.notebook.save()
    spent = RunUsage(
        solution.tokens + restating.completion_tokens,
        solution.prompt_tokens + restating.prompt_tokens,
        solution.cells,
        seconds,
        solution.record,
    )
    unmarked = EvalRecord.of(item, trial, solution.best.trajectory, ItemScore(False, False), spent)
    if not is_scored:
        return replace(unmarked, fault=fault)
    try:
        score = await _score(item, outcome_of(solution.best, folder), options, means.scorer)
    except ModelUnreachableError:
        raise
    except (NoReplyError, ScoringError) as error:
        _log.warning("%s is unscored: %s", item.task.id, error)
        return replace(unmarked, failure=Failure.UNSCORED, fault=str(error))
    marked = EvalRecord.of(item, trial, solution.best.trajectory, score, spent)
    return replace(marked, fault=fault)


def _place_for(file: Path) -> Path:
    """Return a free path for a file of ours; a cell may have created a folder of that name."""
    if file.is_dir():
        shutil.rmtree(file)
    return file


def _strategy(item: Sample, options: EvalOptions, folder: Path, scorer: ScoringPool) -> Strategy:
    """Return the strategy; one that collects gets 1 for a correct answer, -1 for a wrong one."""
    if not options.collects or not isinstance(options.strategy, Search):
        return options.strategy

    def reward(candidate: Candidate) -> float:
        return 1.0 if scorer.score_now(item, outcome_of(candidate, folder)).correct else -1.0

    return replace(options.strategy, reward=reward)


def _unread(context: RolloutContext, why: str) -> Solution:
    """Return the solution of an attempt with unreadable data or answers that can't be compared."""
    ended = replace(context.start, stop=StopReason.FAULT, stop_detail=why)
    return Solution(0, (Candidate(ended, context.folder),), None, 0, 0, 0)


def outcome_of(candidate: Candidate, folder: Path) -> Outcome:
    """Return the outcome of a candidate; without files, its folder does not exist.

    Args:
        candidate: a run that ended.
        folder: the folder of the attempt.
    """
    return Outcome(candidate.trajectory.answer or "", candidate.folder or folder / "nothing")


async def _score(
    item: Sample, outcome: Outcome, options: EvalOptions, scorer: ScoringPool
) -> ItemScore:
    if isinstance(options.suite, JudgedSuite) and options.judge is not None:
        return await options.suite.judge(item, outcome, options.judge)
    return await scorer.score(item, outcome)


def write_results(records: Sequence[EvalRecord], path: Path) -> None:
    """Write the results without clock times: the same bytes for the same draws of the model."""
    write_lines(map(_result, records), path)


def _result(record: EvalRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in _RESULT}
