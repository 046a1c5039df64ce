"""Replays of a collection, whose results are kept so that none runs twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.core.trajectory import RunCell
from kernel_sandbox.errors import SandboxError
from training.collect.examining import CollectedRun
from training.durable.at_once import each_at_once
from training.durable.log import DurableLog
from training.durable.progress import WorkProgress
from training.evaluation.scoring import ScoringError
from training.export.exporting import Export
from training.export.rerun import Replays, ReplayTimeoutError

__all__ = ["ReplayedRuns", "replayed_runs"]

_WAY_OUT = "Remove the line: its run is then replayed again."
_Key = tuple[str, str, int, str]


@dataclass(frozen=True, slots=True)
class _KeptReplay:
    """Result of one replay."""

    run: str
    """Path of the evaluation's folder."""
    id: str
    trial: int
    cells: str
    """Hash of the cells and the answer; dialects with equal ones share a replay."""
    difference: str

    @property
    def key(self) -> _Key:
        return self.run, self.id, self.trial, self.cells


@dataclass(frozen=True, slots=True)
class ReplayedRuns:
    """Results of the replays of a collection."""

    same: list[CollectedRun]
    """Runs whose replay gave the same outputs and answer, in their order."""
    faults: list[str]
    """Why a run could not be replayed, one line each; the same command tries it again."""
    timed_out: int = 0
    """Number of the faults in which a cell ran out of time."""


async def replayed_runs(
    runs: Sequence[CollectedRun], replays: Replays, log: Path, at_once: int
) -> ReplayedRuns:
    """Return the runs whose replay gives the same outputs and answer in every dialect.

    Args:
        runs: to replay.
        replays: open.
        log: of earlier results, which receives these. One process at a time uses it.
        at_once: number of concurrent replays.

    Raises:
        LogError: the log is damaged.
        SuiteError: the suite's process did not start, or can't be sent a label.
        OSError: the log can't be read or written.
    """
    memory = _Memory(log)
    same: dict[tuple[str, int], CollectedRun] = {}
    faults: list[str] = []
    timed_out = 0

    async def replay(run: CollectedRun) -> None:
        nonlocal timed_out
        name = f"{run.record.id} #{run.trial + 1}"
        try:
            found = await memory.difference(run, replays)
        except (DataFileError, SandboxError, ScoringError, ReplayTimeoutError) as fault:
            found = str(fault)
            timed_out += isinstance(fault, ReplayTimeoutError)
            faults.append(f"{name}: {fault}")
        if not found:
            same[run.key] = run
        progress.add(f"{name:<20} replayed: {found or 'the same'}", f"{len(same)} the same")

    with WorkProgress("replays") as progress:
        progress.begin(len(runs), 0)
        await each_at_once(runs, at_once, replay)
    return ReplayedRuns([run for run in runs if run.key in same], faults, timed_out)


class _Memory:
    """Log of the result of each replay; a fault is not kept."""

    def __init__(self, log: Path) -> None:
        self._log = DurableLog(log, _encoded, _decoded, lambda one: one.key, _WAY_OUT)
        self._known = {key: one.difference for key, one in self._log.by_key().items()}

    async def difference(self, run: CollectedRun, replays: Replays) -> str:
        """Return the difference in the first dialect that has one; empty if none does."""
        for exported in run.exported.values():
            key = str(run.run.resolve()), run.record.id, run.record.trial, _cells(exported)
            if key not in self._known:
                found = await replays.difference(run.record, exported, run.run)
                self._log.append(_KeptReplay(*key, found))
                self._known[key] = found
            if self._known[key]:
                return self._known[key]
        return ""


def _cells(exported: Export) -> str:
    steps = [step.turn.action for step in exported.trajectory.steps]
    cells = [(one.language, one.source) for one in steps if isinstance(one, RunCell)]
    text = json.dumps([cells, exported.trajectory.answer])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _encoded(one: _KeptReplay) -> str:
    return json.dumps(asdict(one), ensure_ascii=False)


def _decoded(line: bytes) -> _KeptReplay:
    return _KeptReplay(**json.loads(line))
