"""What is kept of replays, and what is tried again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, RunCell, Step, Trajectory, Turn
from tests.fakes import printed
from tests.training.outcomes import tried
from training.collect.examining import CollectedRun
from training.collect.replaying import replayed_runs
from training.durable.log import LogError
from training.evaluation.scoring import SuiteError
from training.export.exporting import Export
from training.export.rerun import Replays, ReplayTimeoutError


@dataclass
class Answering:
    """Replays of which each has its own end, by question."""

    ends: dict[str, str | Exception]
    asked: list[str] = field(default_factory=list)

    async def difference(self, record: Any, exported: Export, run: Path) -> str:
        assert run.name == "runs"
        self.asked.append(f"{record.id} {exported.trajectory.dialect}")
        end = self.ends[record.id]
        if isinstance(end, Exception):
            raise end
        return end


def a_run(name: str, **cells: str) -> CollectedRun:
    """A run with the cell of each dialect."""
    exported = {
        dialect: Export(
            Trajectory(
                Task(name, "?"),
                dialect,
                steps=(Step(Completion(source), Turn("", RunCell(source)), printed("")),),
            )
        )
        for dialect, source in cells.items()
    }
    return CollectedRun(tried(name, True), Path("runs"), 0, "c", exported, "p", 1)


async def test_a_fault_is_tried_again_and_an_outcome_is_not(tmp_path: Path) -> None:
    log = tmp_path / "replays.jsonl"
    runs = [a_run("same", react="x"), a_run("other", react="x"), a_run("lost", react="x")]
    replays = Answering({"same": "", "other": "another answer", "lost": DataFileError("gone")})
    first = await replayed_runs(runs, cast(Replays, replays), log, at_once=2)
    assert [run.record.id for run in first.same] == ["same"]
    assert first.faults == ["lost #1: gone"]
    again = Answering({"lost": ""})
    second = await replayed_runs(runs, cast(Replays, again), log, at_once=2)
    assert [run.record.id for run in second.same] == ["same", "lost"]
    assert again.asked == ["lost react"]
    kept = {json.loads(line)["id"] for line in log.read_text().splitlines()}
    assert kept == {"same", "other", "lost"}


async def test_a_replay_that_ran_out_of_time_is_made_again(tmp_path: Path) -> None:
    log, runs = tmp_path / "replays.jsonl", [a_run("slow", react="x")]
    slow = Answering({"slow": ReplayTimeoutError("the cell of turn 1 ran out of time")})
    first = await replayed_runs(runs, cast(Replays, slow), log, at_once=1)
    assert (first.same, first.timed_out) == ([], 1)
    assert first.faults == ["slow #1: the cell of turn 1 ran out of time"]
    second = await replayed_runs(runs, cast(Replays, Answering({"slow": ""})), log, at_once=1)
    assert (second.same, second.timed_out) == (runs, 0)


async def test_dialects_that_run_the_same_cells_share_a_replay(tmp_path: Path) -> None:
    replays = Answering({"q": ""})
    runs = [a_run("q", react="x", datamind="x", jupiter="y")]
    await replayed_runs(runs, cast(Replays, replays), tmp_path / "replays.jsonl", at_once=1)
    assert replays.asked == ["q react", "q jupiter"]


async def test_a_fault_of_the_suite_or_of_the_log_ends_the_work(tmp_path: Path) -> None:
    log = tmp_path / "replays.jsonl"
    broken = Answering({"q": SuiteError("no rule")})
    with pytest.raises(SuiteError, match="no rule"):
        await replayed_runs([a_run("q", react="x")], cast(Replays, broken), log, at_once=1)
    log.write_text('{"run": 1}\n')
    with pytest.raises(LogError, match=r"line 1: no record .* Remove the line"):
        await replayed_runs([], cast(Replays, Answering({})), log, at_once=1)
