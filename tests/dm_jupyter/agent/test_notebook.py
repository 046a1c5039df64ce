from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.agent.sql_cell import runtime_source
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.grounded import Grounded, Verdict
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Completion,
    DataContext,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
)
from kernel_sandbox.types import CellError, CellResult, CellStatus, Display, Output, Stream
from tests.examples import examples

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DONE = CellResult(CellStatus.OK, (Stream("stdout", "3\n"),), execution_count=1)
FIGURE = Display({"image/png": PNG, "text/plain": "<Figure>"}, {"image/png": {"width": 640}})
VALUE = Display({"text/html": "<b>3</b>", "text/plain": "3", "application/json": {"a": [1]}}, {}, 4)
RAISED = CellError("KeyError", "'agee'", ("\x1b[31mKeyError\x1b[0m", "'agee'"))


class ScriptedRunner:
    """A `CellRunner` that gives the next result for every cell; the last one again and again."""

    def __init__(self, results: Iterable[CellResult] = (DONE,)) -> None:
        self.results = list(results)
        self.sources: list[str] = []

    async def run(self, source: str) -> CellResult:
        result = self.results[min(len(self.sources), len(self.results) - 1)]
        self.sources.append(source)
        await asyncio.sleep(0)
        return result

    async def interrupt(self) -> None:
        raise AssertionError

    async def restart(self) -> None:
        raise AssertionError

    async def close(self) -> None:
        raise AssertionError


def _read(path: Path) -> Any:
    """The notebook in the file, checked against the schema."""
    document = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(document)
    return document


def _trajectory(**fields: Any) -> Trajectory:
    task = Task("t", "How many rows?", (Path("/data/a.csv"),))
    step = Step(Completion("```python\n3\n```"), Turn("so", RunCell("3")), DONE, "told")
    return Trajectory(task, "markdown", DataContext("f", "o"), (step,), **fields)


@pytest.mark.parametrize(
    "outputs",
    [(), DONE.outputs, (FIGURE,), (VALUE,), (Stream("stderr", "w\n"), FIGURE, VALUE)],
    ids=["nothing", "stream", "figure", "value", "all"],
)
async def test_outputs_of_a_cell_are_kept(tmp_path: Path, outputs: tuple[Output, ...]) -> None:
    result = CellResult(CellStatus.OK, outputs, execution_count=4)
    notebook = HeadlessNotebook(ScriptedRunner([result]), path=tmp_path / "n.ipynb")
    ran = await notebook.run(RunCell("plot()"), "I plot.")
    assert ran == ExecutedCell(RunCell("plot()"), result)
    thought, cell = _read(tmp_path / "n.ipynb").cells
    assert (thought.cell_type, thought.source) == ("markdown", "I plot.")
    assert (cell.cell_type, cell.source, cell.execution_count) == ("code", "plot()", 4)
    assert [dict(output) for output in cell.outputs] == [o.to_nbformat() for o in outputs]
    assert "tags" not in cell.metadata


async def test_a_cell_that_raised_is_tagged_so_that_run_all_goes_on(tmp_path: Path) -> None:
    result = CellResult(CellStatus.ERROR, (Stream("stdout", "a"), RAISED), execution_count=2)
    notebook = HeadlessNotebook(ScriptedRunner([result]), path=tmp_path / "n.ipynb")
    await notebook.run(RunCell("df.agee"), "")
    (cell,) = _read(tmp_path / "n.ipynb").cells
    assert cell.metadata["tags"] == ["raises-exception"]
    assert cell.outputs[1].ename == "KeyError"


@pytest.mark.parametrize(
    "status",
    [status for status in CellStatus if status not in (CellStatus.OK, CellStatus.ERROR)],
)
@pytest.mark.parametrize("message", ["It took longer than 120 s; take a sample.", ""])
async def test_a_cell_that_can_not_run_again_becomes_words_with_the_reason(
    tmp_path: Path, status: CellStatus, message: str
) -> None:
    result = CellResult(status, DONE.outputs, message=message)
    notebook = HeadlessNotebook(ScriptedRunner([result, DONE]), path=tmp_path / "n.ipynb")
    await notebook.run(RunCell("while True: pass"), "")
    await notebook.run(RunCell("3"), "")
    words, cell = _read(tmp_path / "n.ipynb").cells
    assert words.cell_type == "markdown"
    assert "while True: pass" in words.source
    assert (message or status.value) in words.source
    assert cell.cell_type == "code"


async def test_a_cell_of_which_output_was_cut_says_so_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    result = CellResult(CellStatus.OK, (Stream("stdout", "3\n"),), cut_bytes=5_000)
    await HeadlessNotebook(ScriptedRunner([result]), path=path).run(RunCell("much()"), "")
    kept, cut = nbformat.read(path, as_version=nbformat.NO_CONVERT).cells[-1].outputs
    assert kept.text == "3\n"
    assert cut.name == "stderr"
    assert cut.text.startswith("[5,000 bytes of output were cut here.")


async def test_the_question_stands_at_the_top(tmp_path: Path) -> None:
    notebook = HeadlessNotebook(ScriptedRunner(), path=tmp_path / "n.ipynb")
    files = (Path("/secret/place/a.csv"), Path("b.csv"))
    notebook.ask(Task("t", " How many? ", files, "Drop the empty rows.", "@n[n]"))
    await notebook.run(RunCell("3"), "")
    cell = _read(tmp_path / "n.ipynb").cells[0]
    assert cell.source.startswith("## How many?\n")
    for words in ("Drop the empty rows.", "@n[n]", "`a.csv`, `b.csv`"):
        assert words in cell.source
    assert "secret" not in cell.source


async def test_the_notebook_names_the_plain_kernel(tmp_path: Path) -> None:
    notebook = HeadlessNotebook(ScriptedRunner(), path=tmp_path / "n.ipynb")
    await notebook.run(RunCell("3"), "")
    assert _read(tmp_path / "n.ipynb").metadata.kernelspec.name == "python3"


async def test_without_a_cell_there_is_no_file_and_a_former_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    for former in (None, "mine"):
        if former is not None:
            path.write_text(former)
        notebook = HeadlessNotebook(ScriptedRunner(), path=path)
        notebook.ask(Task("t", "How many?"))
        notebook.finish(_trajectory(stop=StopReason.FAULT, stop_detail="nothing answers"))
        assert not notebook.has_cells
        assert [file.read_text() for file in tmp_path.iterdir()] == ([former] if former else [])


async def test_without_a_path_it_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = HeadlessNotebook(ScriptedRunner())
    notebook.ask(Task("t", "How many?"))
    await notebook.run(RunCell("3"), "so")
    notebook.finish(_trajectory(stop=StopReason.ANSWERED, answer="3"))
    nbformat.validate(notebook.document)
    assert not list(tmp_path.iterdir())


# sql


async def test_the_first_query_brings_the_function_and_the_next_does_not(tmp_path: Path) -> None:
    runner = ScriptedRunner()
    notebook = HeadlessNotebook(runner, ("s.db",), tmp_path / "n.ipynb")
    for query in ("select 1", "select 2"):
        await notebook.run(RunCell(query, "sql"), "")
    assert runner.sources[0] == runtime_source()
    assert [source.split("(")[0] for source in runner.sources[1:]] == [
        "result_1 = run_sql",
        "result_2 = run_sql",
    ]
    cells = _read(tmp_path / "n.ipynb").cells
    assert [cell.source for cell in cells] == runner.sources
    assert cells[0].metadata["jupyter"] == {"source_hidden": True}


async def test_python_alone_brings_no_function() -> None:
    runner = ScriptedRunner()
    await HeadlessNotebook(runner, ("s.db",)).run(RunCell("3"), "")
    assert runner.sources == ["3"]


async def test_a_kernel_that_lost_its_state_gets_the_function_again() -> None:
    lost = CellResult(CellStatus.KILLED, message="It died.", state_lost=True)
    runner = ScriptedRunner([DONE, lost, DONE])
    notebook = HeadlessNotebook(runner, ("s.db",))
    for _ in range(3):
        await notebook.run(RunCell("select 1", "sql"), "")
    defined = [source == runtime_source() for source in runner.sources]
    assert defined == [True, False, True, False, False]
    nbformat.validate(notebook.document)


async def test_a_definition_that_failed_is_tried_again() -> None:
    failed = CellResult(CellStatus.ERROR, (RAISED,), execution_count=1)
    runner = ScriptedRunner([failed, DONE])
    notebook = HeadlessNotebook(runner, ("s.db",))
    for _ in range(2):
        await notebook.run(RunCell("select 1", "sql"), "")
    assert [source == runtime_source() for source in runner.sources] == [True, False, True, False]


# the end


async def test_the_trajectory_in_the_metadata_is_the_trajectory(tmp_path: Path) -> None:
    notebook = HeadlessNotebook(ScriptedRunner(), path=tmp_path / "n.ipynb")
    await notebook.run(RunCell("3"), "so")
    notebook.finish(_trajectory(stop=StopReason.ANSWERED, answer="3 rows", unsupported=("3",)))
    document = _read(tmp_path / "n.ipynb")
    stored = Trajectory.from_json(document.metadata["dm_jupyter"]["trajectory"])
    assert (
        stored.to_json()
        == _trajectory(stop=StopReason.ANSWERED, answer="3 rows", unsupported=("3",)).to_json()
    )
    words = document.cells[-1].source
    assert words.startswith("## Answer\n\n3 rows")
    assert "Not found in the outputs: 3" in words
    assert "/data" not in str(document)


async def test_the_answer_names_the_cell_of_each_number(tmp_path: Path) -> None:
    notebook = HeadlessNotebook(ScriptedRunner(), path=tmp_path / "n.ipynb")
    await notebook.run(RunCell("3"), "so")
    numbers = (
        Grounded("3", 0, 1, Verdict.SUPPORTED, 0),
        Grounded("9", 7, 8, Verdict.MISMATCHED, 0, "9 is for b, not a"),
    )
    ended = {"stop": StopReason.ANSWERED, "answer": "3 rows 9", "unsupported": ("9",)}
    notebook.finish(_trajectory(**ended, grounding=numbers))
    document = _read(tmp_path / "n.ipynb")
    cell = next(one for one in document.cells if one.cell_type == "code")
    kept = document.cells[-1].metadata["dm_jupyter"]["numbers"]
    assert [(number["text"], number["cell_id"]) for number in kept] == [
        ("3", cell.id),
        ("9", cell.id),
    ]
    words = document.cells[-1].source
    assert "At odds with the outputs: 9 (9 is for b, not a)" in words
    assert "Not found" not in words


@pytest.mark.parametrize("stop", [stop for stop in StopReason if stop is not StopReason.ANSWERED])
async def test_a_run_without_an_answer_says_why(stop: StopReason) -> None:
    notebook = HeadlessNotebook(ScriptedRunner())
    notebook.finish(_trajectory(stop=stop, stop_detail="ten of them"))
    words = notebook.document.cells[-1].source
    assert words.startswith("## No answer")
    assert words.rstrip().endswith(".")
    assert "Ask " in words  # what to do next
    assert "ten of them" in words.lower() or stop is StopReason.VOID
    assert "turn_limit" not in words
    assert f": {stop.value}" not in words


# the file


async def test_saving_replaces_the_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a b.ipynb"
    path.write_text("old")
    notebook = HeadlessNotebook(ScriptedRunner(), path=path)
    await notebook.run(RunCell("3"), "so")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a b.ipynb"]
    assert len(_read(path).cells) == 2


async def test_the_cell_is_in_the_file_before_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"

    class Interrupted(ScriptedRunner):
        async def run(self, source: str) -> CellResult:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await HeadlessNotebook(Interrupted(), path=path).run(RunCell("sleep(60)"), "I wait.")
    assert [cell.source for cell in _read(path).cells] == ["I wait.", "sleep(60)"]


async def test_a_folder_that_is_gone_is_a_fault_that_says_where_the_notebook_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuge, folder = tmp_path / "refuge", tmp_path / "gone"
    refuge.mkdir()
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(refuge))
    notebook = HeadlessNotebook(ScriptedRunner(), path=folder / "n.ipynb")
    notebook.ask(Task("t", "How many?"))
    folder.rmdir()
    with pytest.raises(NotebookError) as caught:
        await notebook.run(RunCell("3"), "so")
    message = str(caught.value)
    assert message.startswith(f"{folder / 'n.ipynb'} can't be written (No such file")
    kept = re.search(r"is in (\S+\.ipynb)$", message)
    assert kept
    assert Path(kept[1]).parent == refuge
    assert "How many?" in _read(Path(kept[1])).cells[0].source
    assert len(list(refuge.iterdir())) == 1
    assert not notebook.is_written
    folder.mkdir()
    notebook.save()
    assert notebook.is_written


async def test_no_room_anywhere_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    notebook = HeadlessNotebook(ScriptedRunner(), path=tmp_path / "gone" / "n.ipynb")
    with pytest.raises(NotebookError, match="choose --out"):
        await notebook.run(RunCell("3"), "")


async def test_a_failed_save_keeps_the_former_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    refuge, path = tmp_path / "refuge", tmp_path / "work" / "n.ipynb"
    refuge.mkdir()
    path.parent.mkdir()
    notebook = HeadlessNotebook(ScriptedRunner(), path=path)
    await notebook.run(RunCell("3"), "")
    former = path.read_text()
    monkeypatch.setattr("tempfile.tempdir", str(refuge))
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(NotebookError, match="No space left"):
        await notebook.run(RunCell("4"), "")
    assert [entry.name for entry in path.parent.iterdir()] == ["n.ipynb"]
    assert path.read_text() == former
    assert not list(refuge.iterdir())


# anything at all

_TEXT = st.text(max_size=40)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=4,
)
_OUTPUTS = st.lists(
    st.one_of(
        st.builds(Stream, st.sampled_from(["stdout", "stderr"]), _TEXT),
        st.builds(CellError, _TEXT, _TEXT, st.lists(_TEXT, max_size=2).map(tuple)),
        st.builds(
            Display,
            st.fixed_dictionaries({"text/plain": _TEXT}, optional={"application/json": _JSON}),
            st.just({}),
            st.none() | st.integers(0, 9),
        ),
    ),
    max_size=3,
).map(tuple)
_RESULTS = st.builds(
    CellResult, st.sampled_from(CellStatus), _OUTPUTS, st.none() | st.integers(0, 9), message=_TEXT
)


@examples(50)
@given(
    question=_TEXT,
    thought=_TEXT,
    cell=st.builds(RunCell, _TEXT, st.sampled_from(["python", "sql"])),
    result=_RESULTS,
    answer=_TEXT,
)
def test_any_text_gives_a_valid_notebook(
    question: str, thought: str, cell: RunCell, result: CellResult, answer: str
) -> None:
    notebook = HeadlessNotebook(ScriptedRunner([result]), ("s.db",))
    notebook.ask(Task("t", question))
    asyncio.run(notebook.run(cell, thought))
    notebook.finish(_trajectory(stop=StopReason.ANSWERED, answer=answer))
    nbformat.validate(notebook.document)
    again = nbformat.reads(nbformat.writes(notebook.document), as_version=nbformat.NO_CONVERT)
    nbformat.validate(again)
    assert again == notebook.document


@pytest.mark.parametrize("padding", ["", "<p>word</p>" * 5_000])
async def test_a_saved_notebook_loads_nothing_from_elsewhere(tmp_path: Path, padding: str) -> None:
    picture = '<img src="http://remote.test/a?d=1">'
    hostile = Display({"text/html": padding + picture, "application/javascript": "fetch('//x')"})
    results = [CellResult(CellStatus.OK, (hostile, Stream("stdout", picture)), execution_count=1)]
    path = tmp_path / "out.ipynb"
    notebook = HeadlessNotebook(ScriptedRunner(results), path=path)
    notebook.ask(Task("t", f"What is it? {picture}", (Path("a.csv"),)))
    await notebook.run(RunCell("show()"), "see ![a](http://remote.test/b)")
    answer = "It is ![a][r]\n\n[r]: http://remote.test/c"
    notebook.finish(_trajectory(stop=StopReason.ANSWERED, answer=answer))
    question, thought, cell, closing = _read(path).cells
    shown, printed = cell.outputs
    for text in (question.source, thought.source, shown.data["text/html"]):
        assert "<img" not in text
        assert "![" not in text
    assert "![" not in closing.source
    assert "a picture from remote.test, not loaded" in shown.data["text/html"]
    assert "application/javascript" not in shown.data
    assert printed.text == picture
