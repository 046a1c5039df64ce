"""Trajectories of the panel as conversations that a model learns from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed
from training.durable.json_lines import numbered_lines, write_lines
from training.export.trajectories import main

SAYS = ["I count.\n```python\nprint(3)\n```", "There are 3 rows."]


async def ended(question: str) -> Trajectory:
    start = Trajectory(Task("q", question), "markdown")
    notebook = ScriptedNotebook([printed("3\n")])
    return await run(start, ScriptedPolicy(SAYS), notebook, RunSettings(), lambda _: None)


async def test_answered_runs_become_conversations_and_others_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = await ended("How many rows\u2028are there?")
    assert right.answer
    broken = replace(right, answer=None, stop=StopReason.VOID)
    barred = replace(right, task=replace(right.task, metadata={"evaluation_only": True}))
    file, alone = tmp_path / "training.jsonl", tmp_path / "alone.json"
    write_lines([one.to_json() for one in (right, broken, right, barred)], file)
    alone.write_text(json.dumps((await ended("Really?")).to_json()))
    out = tmp_path / "conversations.jsonl"
    code = await _in_thread(str(file), str(alone), "--dialect", "datamind", "--out", str(out))
    assert code == 0
    told = capsys.readouterr().out
    assert f"3 of 5 runs: {out}" in told
    assert f"left out: {file}:2: it has no answer" in told
    assert f"left out: {file}:4: its question's licence forbids to learn from it" in told
    lines = [json.loads(line) for _, line in numbered_lines(out)]
    assert [line["id"] for line in lines] == ["q", "q #2", "q #3"]
    assert "Really?" in lines[2]["messages"][1]["content"]
    code_turn, answer = (one for one in lines[0]["messages"] if one["role"] == "assistant")
    assert "<code>" in code_turn["content"]
    assert "3 rows" in answer["content"]
    assert code_turn["ended_by"] == "stop"  # the marks that the trainer reads


@pytest.mark.parametrize(
    "line", ['{"version": "none"}', "[1]", "3", "null", "[" * 100_000, '{"schema_version": [1]}']
)
async def test_a_line_that_is_no_trajectory_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    file = tmp_path / "training.jsonl"
    file.write_text(f"\n{line}\n")
    code = await _in_thread(str(file), "--dialect", "markdown", "--out", str(tmp_path / "o"))
    assert code == 1
    assert f"{file}:2 is no trajectory" in capsys.readouterr().err


async def test_a_file_without_a_trajectory_replaces_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "training.jsonl", tmp_path / "conversations.jsonl"
    file.write_text("\n")
    out.write_text("earlier")
    code = await _in_thread(str(file), "--dialect", "markdown", "--out", str(out))
    assert (code, out.read_text()) == (1, "earlier")
    assert f"{file} contains no trajectory" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


async def _in_thread(*arguments: str) -> int:
    import asyncio

    return await asyncio.to_thread(main, list(arguments))
