from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter
from IPython.lib.pretty import pretty

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.notebook_words import why_no_answer
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, StopReason, Trajectory
from dm_jupyter.magic.inline import ShownAnswer
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed

TASK = Task("t", "How many?", (Path("t.csv"),))


async def _answer(*texts: str, answer_format: str = "", turns: int = 3) -> ShownAnswer:
    task = replace(TASK, answer_format=answer_format)
    start = Trajectory(task, "react" if answer_format else "markdown", DataContext("f"))
    notebook = ScriptedNotebook([printed("3\n")])
    settings = RunSettings(max_turns=turns)
    ended = await run(start, ScriptedPolicy(texts), notebook, settings, lambda _: None)
    kept = HeadlessNotebook(None)  # type: ignore[arg-type]
    kept.ask(task)
    kept.finish(ended)
    return ShownAnswer(ended, kept.document)


async def test_an_answer_holds_text_and_cells() -> None:
    answer = await _answer("print(len(df))\n```", "There are **3**.")
    assert (answer.text, answer.values) == ("There are **3**.", {})
    assert answer.cells == ("print(len(df))",)
    assert repr(answer) == "<Answer 'There are **3**.', cells run: 1>"
    shown, _ = DisplayFormatter().format(answer)
    assert shown == {"text/plain": "There are **3**.", "text/markdown": "There are **3**."}
    assert pretty([answer]) == f"[{answer!r}]"


async def test_a_closed_form_answer_has_values_by_name() -> None:
    answer = await _answer("Final Answer: @n[3], @mean_age[33.33]", answer_format="@n[count]")
    assert answer.values == {"n": "3", "mean_age": "33.33"}


async def test_numbers_without_an_output_are_named() -> None:
    answer = await _answer("print(1)\n```", "There are 77.")
    assert answer._repr_markdown_() == "There are 77.\n\nNot found in the outputs: 77"
    assert answer.text == "There are 77."


async def test_data_that_are_not_there_are_named() -> None:
    answer = await _answer("print(1)\n```", "There are 0.")
    trajectory = replace(answer.trajectory, unsupported=(), rests_on=("no row has year == 2012",))
    assert replace(answer, trajectory=trajectory)._repr_markdown_() == (
        "There are 0.\n\n"
        "This answer rests on a selection without rows or values: no row has year == 2012."
    )


async def test_no_answer_says_why() -> None:
    answer = await _answer("print(1)\n```", turns=2)
    assert (answer.text, answer.values) == ("", {})
    assert str(answer) == "no answer: the run reached its limit of 2 turns"


@pytest.mark.parametrize(
    ("stop", "detail", "why"),
    [
        (StopReason.ANSWERED, "", ""),
        (StopReason.TURN_LIMIT, "2 turns", "the run reached its limit of 2 turns"),
        (StopReason.VOID, "", "the model wrote neither code nor an answer"),
        (StopReason.FAULT, "nothing answers", "nothing answers"),
        (StopReason.FAULT, "", "an unexpected error occurred"),
        (StopReason.CANCELLED, "", "the run was stopped"),
        (StopReason.CANCELLED, "why", "the run was stopped: why"),
    ],
)
def test_every_end_without_an_answer_has_a_reason(stop: StopReason, detail: str, why: str) -> None:
    assert why_no_answer(Trajectory(TASK, "markdown", stop=stop, stop_detail=detail)) == why


async def test_it_can_not_be_changed_and_neither_can_its_notebook() -> None:
    answer = await _answer("x\n```", "There are 3.")
    with pytest.raises(FrozenInstanceError):
        answer.trajectory = None  # type: ignore[misc]
    answer.to_notebook().cells.clear()
    assert answer.to_notebook().cells


async def test_the_notebook_is_returned_and_written(tmp_path: Path) -> None:
    answer = await _answer("x\n```", "There are 3.")
    document = answer.to_notebook(tmp_path / "n.ipynb")
    nbformat.validate(document)
    assert nbformat.read(tmp_path / "n.ipynb", as_version=4) == document
    assert document.cells[-1].source == "## Answer\n\nThere are 3."
    with pytest.raises(NotebookError, match="can't be written"):
        answer.to_notebook(tmp_path / "nowhere" / "n.ipynb")
