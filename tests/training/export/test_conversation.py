"""What a trainer learns of an exported run: the marks of each turn, and the tokens behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    DataContext,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
)
from kernel_sandbox.types import CellError, CellResult, CellStatus
from tests.fakes import printed
from tests.training.trainer.tiny import tiny_tokenizer
from training.export.conversation import conversation
from training.export.exporting import export
from training.trainer.conversations import row_of

LOAD = "import pandas as pd\ndf = pd.read_csv('t.csv')\n"
CONTEXT = DataContext("a profile", preamble=LOAD)


def ran(source: str, output: str, **changes: object) -> Step:
    told = Step(Completion(source), Turn("t", RunCell(source)), printed(output), "told")
    return replace(told, **changes)  # type: ignore[arg-type]


def run_of(*steps: Step, answer: str = "@mean[3]") -> Trajectory:
    task = Task("t", "Mean?", answer_format="@mean[value]")
    said = Step(Completion("a"), Turn("so", Answer(answer)))
    stop = StopReason.ANSWERED
    run = Trajectory(task, "datamind", CONTEXT, (*steps, said), stop, answer=answer)
    return replace(run, assistance=Assistance())


def opened(source: str, output: str) -> Step:
    """A turn of `markdown` that begins with the opening that loads the data."""
    return ran(f"{LOAD}{source}", output, turn=Turn("", RunCell(f"{LOAD}{source}")))


async def learned(run: Trajectory, dialect: str) -> list[str]:
    """The stretches that are learned."""
    tokenizer = tiny_tokenizer()
    row = row_of(conversation(await export(run, dialect)), tokenizer, "r")
    found = [""]
    for token, is_learned in zip(row.ids, row.mask, strict=True):
        if is_learned:
            found[-1] += tokenizer.decode([token])
        elif found[-1]:
            found.append("")
    return [one for one in found if one]


async def test_an_opening_is_not_learned_where_the_dialect_has_one() -> None:
    run = run_of(opened("x = 1", ""), opened("print('@mean[3]')", "@mean[3]\n"))
    exported = await export(run, "markdown")
    said = [one for one in conversation(exported) if one["role"] == "assistant"]
    assert [one["prefill"] for one in said] == [f"```python\n{LOAD}"] * 2
    assert {one["ended_by"] for one in said} == {"stop"}
    assert await learned(run, "markdown") == ["x = 1\n```", "print('@mean[3]')\n```"]


async def test_a_dialect_without_openings_learns_to_load_the_data() -> None:
    run = run_of(opened("print(3)", "3\n"))
    cell, answer = await learned(run, "datamind")
    assert cell == f"<think></think>\n<code>\n{LOAD}print(3)\n</code>"
    assert answer == "<think>so</think>\n<answer>\n@mean[3]\n</answer>"


async def test_a_turn_that_does_not_begin_with_the_opening_closes_itself() -> None:
    (cell,) = await learned(run_of(ran("print('@mean[3]')", "@mean[3]\n")), "markdown")
    assert cell == "t\n```python\nprint('@mean[3]')\n```<|im_end|>"


@pytest.mark.parametrize(
    ("dialect", "ends"),
    [
        ("datamind", ["stop", "stop"]),
        ("deepanalyze", ["stop", "stop"]),
        ("react", ["model", "model"]),  # it stops before the next label, which is no turn's
        ("jupiter", ["model", "model"]),
    ],
)
async def test_what_ends_a_turn_follows_from_the_dialect(dialect: str, ends: list[str]) -> None:
    messages = conversation(await export(run_of(ran("print(3)", "3\n")), dialect))
    assert [one["ended_by"] for one in messages if one["role"] == "assistant"] == ends
    assert all("ended_by" not in one for one in messages if one["role"] != "assistant")


async def test_cells_that_help_or_a_person_changed_are_not_learned() -> None:
    wrote = RunCell("x")
    run = run_of(
        ran("a", "1"),
        ran("import numpy as np\nx", "2", written=wrote),
        ran("b", "3", is_edited=True, written=wrote),
        ran("c", "3", written=RunCell("# what an opening said\nc")),
    )
    for dialect in ("datamind", "react"):
        messages = conversation(await export(run, dialect))
        said = [one for one in messages if one["role"] == "assistant"]
        assert [one.get("learn", True) for one in said] == [True, False, False, True, True]


async def test_a_failed_cell_is_not_learned_and_its_correction_is() -> None:
    raised = CellError("NameError", "name 'y' is not defined", ())
    failed = replace(ran("y", ""), result=CellResult(CellStatus.ERROR, (raised,)))
    run = run_of(failed, ran("print(3)", "3\n"))
    assert (await export(run, "datamind")).learnable == (False, True, True)
    cell, answer = await learned(run, "datamind")
    assert "print(3)" in cell
    assert "@mean[3]" in answer


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_trainer_reads_every_dialect_in_words(dialect: str) -> None:
    run = run_of(ran("m = 3", ""), ran("print('@mean[3]')", "@mean[3]\n"))
    messages = conversation(await export(run, dialect), calls_in_words=True)
    row = row_of(messages, tiny_tokenizer(), "r")
    said = tiny_tokenizer().decode(row.ids[row.learned])
    assert "m = 3" in said
    assert "@mean[3]" in said
    assert "Mean?" not in said
    assert all(one["role"] != "tool" for one in messages)
