"""Scores in processes of their own: suites that hang, die and wait, in whole evaluations."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.core.task import Task
from dm_jupyter.search.strategies import Vote
from dm_jupyter.search.tree import Search, SearchSettings
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from tests.fakes import ScriptedPolicy
from training.evaluation.run import EvalOptions, SuiteError, evaluate
from training.evaluation.scoring import ScoringError, ScoringPool
from training.records.failures import Failure
from training.records.records import EvalRecord
from training.suites.dabench import DABench
from training.suites.suite import ItemScore, Outcome, Sample

RIGHT = 'print(f"@n[{len(df)}]")\n```'
NOTHING = Outcome("", Path("nothing"))


class _Hangs(DABench):
    """Reads the answer to q1 as a pattern does that never ends and never lets go of the lock."""

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        if item.task.id == "q1":
            re.match(r"(a+)+$", "a" * 60 + "b")
        return super().score(item, outcome)

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        if item.task.id == "q1":
            re.match(r"(a+)+$", "a" * 60 + "b")
        return super().agree(item, one, other)


class _Dies(DABench):
    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        if item.task.id == "q1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(item, outcome)


class _NeedsMemory(DABench):
    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        if item.task.id == "q1":
            raise MemoryError
        return super().score(item, outcome)


class _Waits(DABench):
    """Scores once the event loop of the evaluation has answered it."""

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(60)
            line.connect(str(outcome.folder.parents[3] / "line"))
            assert line.recv(2) == b"go"
        return super().score(item, outcome)


class _SaysNothing(DABench):
    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        return None  # type: ignore[return-value]


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[SandboxPool]:
    async with SandboxPool(
        PoolSettings(profile=Strictness.INTERACTIVE, modules=("pandas",))
    ) as pool:
        yield pool


@pytest.fixture
def options(tmp_path: Path) -> EvalOptions:
    split = tmp_path / "split"
    split.mkdir()
    (split / "t.csv").write_text("a\n1\n2\n3\n")
    rows = [
        {"id": f"q{number}", "question": f"How many rows? {number}", "constraints": "",
         "format": "@n[n]", "file": "t.csv", "level": "easy", "concepts": [],
         "label_pairs": [["n", "3"]]}
        for number in range(3)
    ]  # fmt: skip
    (split / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = RunSettings(max_turns=2)
    return EvalOptions(DABench(), split, tmp_path / "out", run=run, score_seconds=30)


def _verdicts(records: list[EvalRecord]) -> list[tuple[str, bool, bool]]:
    return [(record.failure, record.correct, record.strict_correct) for record in records]


async def test_the_loop_answers_while_a_suite_scores(
    options: EvalOptions, pool: SandboxPool, tmp_path: Path
) -> None:
    asked = 0

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.write(b"go")
        writer.close()

    async with await asyncio.start_unix_server(answer, tmp_path / "line"):
        waiting = replace(options, suite=_Waits())
        records = await evaluate(waiting, ScriptedPolicy([RIGHT]), pool)
    assert all(record.correct for record in records)
    assert asked == 3


@pytest.mark.parametrize(
    ("suite", "limit_s", "why"),
    [
        (_Hangs(), 0.5, "dabench took more than 0.5 s to score the answer to q1; --score-seconds"),
        (_Dies(), 30, "that was to score the answer to q1 by the rules of dabench was ended (Kill"),
        (_NeedsMemory(), 30, "dabench needed too much memory to score the answer to q1"),
    ],
)
async def test_a_score_that_does_not_come_is_a_fault_of_its_question_alone(
    options: EvalOptions, pool: SandboxPool, suite: DABench, limit_s: float, why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    options = replace(options, suite=suite, score_seconds=limit_s)
    records = await evaluate(options, ScriptedPolicy([RIGHT]), pool)
    none, right = (Failure.UNSCORED, False, False), ("", True, True)
    assert _verdicts(records) == [right, none, right]
    assert why in records[1].fault
    assert records[1].answer == "@n[3]"
    assert why in caplog.text


@pytest.mark.slow
async def test_answers_that_cannot_be_compared_are_a_fault_of_their_question_alone(
    options: EvalOptions, pool: SandboxPool
) -> None:
    options = replace(options, suite=_Hangs(), score_seconds=0.5, strategy=Vote(2))
    records = await evaluate(options, ScriptedPolicy([RIGHT]), pool)
    assert [record.correct for record in records] == [True, False, True]
    assert records[1].failure == Failure.FAULT
    assert "took more than 0.5 s to compare two answers to q1" in records[1].fault


async def test_a_collecting_search_learns_no_reward_where_there_is_no_verdict(
    options: EvalOptions, pool: SandboxPool
) -> None:
    search = Search(SearchSettings(candidates=1, iterations=1).for_collecting())
    options = replace(options, suite=_Hangs(), score_seconds=0.5, strategy=search, collects=True)
    records = await evaluate(options, ScriptedPolicy([RIGHT]), pool)
    assert [bool(record.search) for record in records] == [True, False, True]
    assert "to score the answer to q1" in records[1].fault


async def test_a_verdict_that_is_none_is_a_mistake_of_the_suite(
    options: EvalOptions, pool: SandboxPool
) -> None:
    with pytest.raises(SuiteError, match=r"dabench could not score .* it returned a NoneType"):
        await evaluate(replace(options, suite=_SaysNothing()), ScriptedPolicy([RIGHT]), pool)


@pytest.mark.slow
async def test_a_cancelled_evaluation_waits_for_no_score(
    options: EvalOptions, pool: SandboxPool, tmp_path: Path
) -> None:
    asked = asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        gone.set_result(await reader.read())  # nothing comes: the process is killed
        writer.close()

    gone: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    async with await asyncio.start_unix_server(hear, tmp_path / "line"):
        waiting = replace(options, suite=_Waits())
        task = asyncio.create_task(evaluate(waiting, ScriptedPolicy([RIGHT]), pool))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await gone == b""


async def test_a_closed_pool_scores_nothing(options: EvalOptions) -> None:
    (item, *_) = DABench().load(options.split)
    async with ScoringPool(DABench(), 30) as scorer:
        assert not (await scorer.score(item, NOTHING)).correct
    with pytest.raises(ScoringError, match="nothing more is scored"):
        scorer.score_now(item, NOTHING)


async def test_a_label_that_no_process_can_be_sent_is_named() -> None:
    item = Sample(Task("q", "?"), lambda: None)
    async with ScoringPool(DABench(), 30) as scorer:
        with pytest.raises(SuiteError, match="could not score the answer to q: it or a label can"):
            await scorer.score(item, NOTHING)
        with pytest.raises(SuiteError, match="could not compare two answers to q: it or a label"):
            scorer.agree_now(item, NOTHING, NOTHING)
