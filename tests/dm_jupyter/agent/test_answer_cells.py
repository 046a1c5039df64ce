"""Which cells an answer needs, and which fold away."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from dm_jupyter.agent.answer_cells import AnswerLink, ShownCell, answer_cells, needless_cells
from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.core.grounded import Grounded, Verdict
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
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellResult, Display, Stream
from tests.fakes import ScriptedPolicy, printed, raised

LOAD, LOOK, SUM = "df = [1, 2]", "print(df)", "print(sum(df))"
OK = printed("3\n")
FIGURE = Display({"image/png": "aGk=", "text/plain": "<Figure>"})


class Unopened(ScriptedPolicy):
    """A model whose endpoint can't continue an opening, as most can't."""

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        return await super().sample(replace(request, prefill=""), on_text)


async def _asked(path: Path, question: str, *texts: str) -> Trajectory:
    """Has a question answered in a real kernel; the notebook is at the path."""
    task = Task("t", question)
    async with KernelSession() as kernel:
        notebook = HeadlessNotebook(kernel, path=path)
        notebook.ask(task)
        start = Trajectory(task, "markdown", DataContext())
        ended = await run(start, Unopened(texts), notebook, RunSettings(), lambda _: None)
        notebook.finish(ended)
    return ended


def _step(source: str, result: CellResult = OK, **fields: Any) -> Step:
    return Step(Completion("t"), Turn("so", RunCell(source)), result, "told", **fields)


def _trajectory(*steps: Step, grounding: tuple[Grounded, ...] = (), **fields: Any) -> Trajectory:
    ending = {"stop": StopReason.ANSWERED, "answer": "The sum is right."} | fields
    answered = Step(Completion("t"), Turn("", Answer("It is so.")))
    return Trajectory(
        Task("t", "What?"), "markdown", steps=(*steps, answered), grounding=grounding, **ending
    )


def _folded(trajectory: Trajectory) -> list[int]:
    sources = [
        step.turn.action.source
        for step in trajectory.steps
        if isinstance(step.turn.action, RunCell)
    ]
    return sorted(needless_cells(trajectory, sources))


def test_failed_attempts_and_cells_that_only_looked_fold() -> None:
    steps = (_step(LOAD), _step(LOOK), _step("print(summ(df))", raised("NameError")), _step(SUM))
    assert _folded(_trajectory(*steps)) == [1, 2]


def test_a_cell_that_was_sent_back_folds() -> None:
    assert _folded(_trajectory(_step(SUM, critique="No."), _step(SUM))) == [0]


def test_a_cell_that_was_sent_back_and_gave_the_answer_after_all_does_not() -> None:
    steps = (_step("print('the sum is 3')", printed("the sum is 3\n"), critique="No."), _step(SUM))
    assert _folded(_trajectory(*steps, answer="the sum is 3")) == []


def test_the_last_cell_stays_though_it_failed() -> None:
    assert _folded(_trajectory(_step(LOAD), _step("df.gone", raised("AttributeError")))) == []


def test_a_cell_that_a_person_changed_stays() -> None:
    steps = (_step(LOAD), _step(LOOK, is_edited=True), _step("df.x", raised("E"), is_edited=True))
    assert _folded(_trajectory(*steps, _step(SUM))) == []


@pytest.mark.parametrize("stop", [one for one in StopReason if one is not StopReason.ANSWERED])
def test_nothing_folds_where_there_is_no_answer(stop: StopReason) -> None:
    steps = (_step(LOAD), _step(LOOK), _step("df.x", raised("E")), _step(SUM))
    assert _folded(_trajectory(*steps, stop=stop, answer=None)) == []


def test_the_cell_that_a_number_comes_from_stays_and_a_later_look_folds() -> None:
    number = Grounded("3", 0, 1, Verdict.SUPPORTED, 1)
    steps = (_step(LOAD), _step(SUM), _step(LOOK))
    assert _folded(_trajectory(*steps, grounding=(number,))) == [2]
    lost = Grounded("9", 0, 1, Verdict.UNSUPPORTED, None)
    assert _folded(_trajectory(*steps, grounding=(number, lost))) == []


def test_figures_and_written_files_are_part_of_an_answer() -> None:
    cells = [
        ShownCell(LOAD, ()),
        ShownCell("draw(df)", (FIGURE,)),
        ShownCell("df.to_csv('a.csv')", ()),
        ShownCell(LOOK, (Stream("stdout", "[1, 2]"),)),
        ShownCell(SUM, (Stream("stdout", "3"),)),
    ]
    assert answer_cells(cells, [AnswerLink("supported", 4)]) == {1, 2, 4}
    assert answer_cells(cells, [AnswerLink("supported", 4)], first=3) == {4}
    assert answer_cells(cells, []) == {1, 2, 4}
    assert answer_cells(cells[:1], [AnswerLink("restated", None)]) == {0}


async def test_the_notebook_of_a_run_folds_what_the_answer_does_not_need(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    texts = [
        "I load.\n```python\nimport pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\n```",
        "I look.\n```python\nprint(df.columns.tolist())\n```",
        "I fail.\n```python\nprint(df.b.sum())\n```",
        "I add.\n```python\nprint('total', df.a.sum())\n```",
        "The total is 3.",
    ]
    ended = await _asked(path, "What is the total?", *texts)
    assert ended.answer == "The total is 3."
    document = nbformat.read(path, as_version=4)
    nbformat.validate(document)
    folded = {cell.source: cell.metadata for cell in document.cells if "jupyter" in cell.metadata}
    assert list(folded) == [
        "I look.", "print(df.columns.tolist())", "I fail.", "print(df.b.sum())",
    ]  # fmt: skip
    code = folded["print(df.b.sum())"]
    assert code.jupyter == {"source_hidden": True, "outputs_hidden": True}
    assert code.collapsed is True
    assert code.tags == ["raises-exception"]
    assert folded["I fail."].jupyter == {"source_hidden": True}


async def test_numbers_lead_to_their_cells_past_one_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    texts = [
        "```python\nprint('rows', np.int64(7))\n```",
        "```python\nprint('rows', 7)\n```",
        "```python\nprint('total', 41)\n```",
        "There are 7 rows, and the total is 41.",
    ]
    await _asked(path, "What is the total, and how many rows are there?", *texts)
    cells = nbformat.read(path, as_version=4).cells
    sources = {cell.id: cell.source.splitlines()[-1] for cell in cells}
    numbers = cells[-1].metadata["dm_jupyter"]["numbers"]
    assert {one["text"]: sources.get(one["cell_id"]) for one in numbers} == {
        "7": "print('rows', 7)",
        "41": "print('total', 41)",
    }
