"""Evaluations whose cells, suites or data get in the way: each failure is one of its question."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.search.strategies import React, Strategy, Vote
from dm_jupyter.search.tree import Search, SearchSettings
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from kernel_sandbox.types import MIB, Limits
from tests.fakes import ScriptedPolicy
from training.evaluation.run import EvalOptions, evaluate, item_folder
from training.records.failures import Failure
from training.suites.dabench import DABench
from training.suites.suite import Outcome, Sample

FULL = (
    "file = open('big.bin', 'wb'); file.truncate(3 << 20); file.close()\n"
    'print(f"@n[{len(df)}]")\n```'
)
IN_THE_WAY = (
    "import os; os.mkdir('notebook.ipynb'); open('notebook.ipynb/x', 'w').write('x')\n"
    'print(f"@n[{len(df)}]")\n```'
)
HUGE = f'print("@n[{"9" * 310}]")\n```'


@pytest.fixture
def options(tmp_path: Path) -> EvalOptions:
    split = tmp_path / "split"
    split.mkdir()
    (split / "t.csv").write_text("a\n1\n2\n3\n")
    question = {
        "id": "q", "question": "How many rows?", "constraints": "", "format": "@n[n]",
        "file": "t.csv", "level": "easy", "concepts": [], "label_pairs": [["n", "3"]],
    }  # fmt: skip
    (split / "questions.jsonl").write_text(json.dumps(question) + "\n")
    return EvalOptions(DABench(), split, tmp_path / "out", run=RunSettings(max_turns=2))


def _pool() -> SandboxPool:
    settings = PoolSettings(profile=Strictness.INTERACTIVE, modules=("pandas",))
    return SandboxPool(settings, Limits(disk_bytes=2 * MIB))


@pytest.mark.parametrize(
    "strategy", [React(), Vote(2), Search(SearchSettings(candidates=2, iterations=1))]
)
async def test_files_that_are_too_large_are_not_kept_and_the_answer_counts(
    options: EvalOptions, strategy: Strategy
) -> None:
    async with _pool() as pool:
        (record,) = await evaluate(
            replace(options, strategy=strategy), ScriptedPolicy([FULL]), pool
        )
    assert record.strict_correct
    assert "'big.bin' the files take more than" in record.trajectory["stop_detail"]
    assert not list((options.out / "items").rglob("big.bin"))


async def test_a_folder_with_the_name_of_the_notebook_is_not_in_its_way(
    options: EvalOptions,
) -> None:
    async with _pool() as pool:
        (record,) = await evaluate(options, ScriptedPolicy([IN_THE_WAY]), pool)
    assert record.strict_correct
    assert (item_folder(options.out, "q", 0) / "notebook.ipynb").is_file()


class _Brittle(DABench):
    """A suite with a mistake of its own."""

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        raise KeyError("column")


async def test_a_suite_that_cannot_compare_two_answers_is_a_fault_of_their_question(
    options: EvalOptions,
) -> None:
    votes = replace(options, suite=_Brittle(), strategy=Vote(2))
    async with _pool() as pool:
        (record,) = await evaluate(votes, ScriptedPolicy(['print("@n[3]")\n```']), pool)
    assert record.failure == Failure.FAULT
    assert "dabench could not compare two answers to q: KeyError" in record.fault


async def test_a_number_beyond_every_float_is_an_answer_like_any_other(
    options: EvalOptions,
) -> None:
    votes = replace(options, strategy=Vote(2))
    async with _pool() as pool:
        (record,) = await evaluate(votes, ScriptedPolicy([HUGE]), pool)
    assert (record.failure, record.fault) == (Failure.WRONG, "")
