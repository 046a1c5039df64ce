"""What is on disk of a run, after whatever happened to it."""

import asyncio
import json
import math
import resource
from pathlib import Path

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_ydoc import YNotebook
from nbformat.v4 import new_markdown_cell, new_notebook

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.codec import decode_json, decode_value, encode_json, encode_value
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL
from dm_jupyter.server.files.data_files import copied_into
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.history.run_history import Redaction, RunHistory
from dm_jupyter.server.history.summaries import Summary
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.notebooks.open_notebooks import OpenNotebooks, Tab, write_file
from dm_jupyter.server.notebooks.shared_document import apply_shared
from dm_jupyter.server.protocol import (
    Attach,
    CellClosed,
    CellOpened,
    Operated,
    RunClosed,
    RunMessage,
)
from dm_jupyter.server.protocol.operations import (
    AppendOutput,
    ClearOutputs,
    DeleteCell,
    FoldCell,
    InsertCell,
    Operation,
    ReplaceOutput,
    SetExecution,
    SetSource,
    apply,
)
from tests.waiting import PATIENCE_S, until

ROOT = Path("/srv/work")
IDS = st.sampled_from(["a", "b", "c", "person"])
STREAM = st.builds(
    lambda name, text: {"output_type": "stream", "name": name, "text": text},
    st.sampled_from(["stdout", "stderr"]),
    st.text(max_size=5),
)
DISPLAY = st.builds(
    lambda text: {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}},
    st.text(max_size=5),
)
OPERATIONS = st.one_of(
    st.builds(
        InsertCell,
        st.sampled_from(["a", "b", "c"]),
        st.just("code"),
        st.text(max_size=5),
        st.lists(IDS, max_size=2).map(tuple),
    ),
    st.builds(SetSource, st.sampled_from(["a", "b", "c"]), st.text(max_size=5)),
    st.builds(AppendOutput, IDS, st.one_of(STREAM, DISPLAY)),
    st.builds(ReplaceOutput, IDS, st.integers(0, 3), DISPLAY),
    st.builds(ClearOutputs, IDS),
    st.builds(SetExecution, IDS, st.booleans(), st.integers(1, 9)),
    st.builds(DeleteCell, st.sampled_from(["a", "b", "c"]), st.none()),
    st.builds(FoldCell, st.sampled_from(["a", "b", "c"]), st.text(max_size=5)),
)


def _document() -> dict:
    return new_notebook(cells=[new_markdown_cell("mine", id="person")])


@given(st.lists(OPERATIONS, max_size=25))
def test_any_operations_leave_a_valid_notebook_and_the_persons_cell(
    operations: list[Operation],
) -> None:
    document = _document()
    for operation in operations:
        apply(operation, document)
    nbformat.validate(nbformat.from_dict(document))
    ids = [cell["id"] for cell in document["cells"]]
    assert len(ids) == len(set(ids))
    assert [cell["source"] for cell in document["cells"] if cell["id"] == "person"] == ["mine"]


@given(st.lists(OPERATIONS, max_size=25))
def test_a_shared_document_becomes_what_the_file_becomes(operations: list[Operation]) -> None:
    shared, document = YNotebook(), _document()
    shared.set(json.loads(json.dumps(document)))
    for operation in operations:
        apply(operation, document)
        apply_shared(operation, shared)
    wanted = [
        (
            cell["id"], cell["source"], cell.get("outputs"), cell.get("execution_count"),
            cell["metadata"],
        )
        for cell in document["cells"]
    ]  # fmt: skip
    found = [
        (
            cell["id"], cell["source"], cell.get("outputs"), cell.get("execution_count"),
            cell["metadata"],
        )
        for cell in shared.get()["cells"]
    ]  # fmt: skip
    assert found == wanted


@given(OPERATIONS)
def test_an_operation_survives_the_wire(operation: Operation) -> None:
    raw = encode_value(operation)
    assert raw["op"] in encode_json(operation)
    assert decode_value(Operation, raw, "operation") == operation
    message = Operated("r", 3, operation)
    assert decode_json(RunMessage, encode_json(message), "message") == message


def test_a_journal_from_before_runs_told_their_variables_is_read() -> None:
    raw = {
        "kind": "run_opened", "run_id": "r", "seq": 1, "at": 1.0, "request_id": "q",
        "notebook_path": "n.ipynb", "question": "How?", "files": [], "model": "small",
        "approval": "risky", "kernel": "restricted", "max_turns": 1, "max_tokens": 1,
        "max_seconds": 1.0, "max_cells": 1,
    }  # fmt: skip
    assert decode_value(RunMessage, raw, "message").variables == ()


def test_a_deletion_spares_a_changed_cell() -> None:
    document = _document()
    apply(InsertCell("a", "code", "x = 1", ("person",)), document)
    apply(SetSource("a", "x = 2"), document)
    apply(DeleteCell("a", if_source="x = 1"), document)
    assert len(document["cells"]) == 2
    apply(DeleteCell("a", if_source="x = 2"), document)
    assert len(document["cells"]) == 1


def test_a_cell_folds_unless_the_person_changed_it() -> None:
    document = _document()
    mark = {"dm_jupyter": {"run": "r", "role": "cell"}, "jupyter": {"kept": 1}}
    apply(InsertCell("a", "code", "x = 1", ("person",), mark), document)
    apply(FoldCell("a", if_source="x = 2"), document)
    assert document["cells"][1]["metadata"] == mark
    apply(FoldCell("a", if_source="x = 1"), document)
    hidden = {"kept": 1, "source_hidden": True, "outputs_hidden": True}
    assert document["cells"][1]["metadata"] == {**mark, "jupyter": hidden, "collapsed": True}
    nbformat.validate(nbformat.from_dict(document))
    document["cells"][1]["source"] = ["x ", "= 1"]  # as a file may hold it
    document["cells"][1]["metadata"] = dict(mark)
    apply(FoldCell("a", if_source="x = 1"), document)
    assert document["cells"][1]["metadata"]["collapsed"]


@pytest.mark.parametrize("extra", ["metadata", "jupyter", "tags"])
def test_folding_takes_no_metadata_from_anybody(extra: str) -> None:
    raw = {"op": "fold_cell", "cell_id": "a", "if_source": "x", extra: {"trusted": True}}
    with pytest.raises(ValueError, match=f"operation: Object contains unknown field `{extra}`"):
        decode_value(Operation, raw, "operation")


def _open_cell(journal: Journal, cell_id: str) -> None:
    journal.operate(InsertCell(cell_id, "code", "print(1)"))
    journal.add(
        CellOpened, step=1, cell_id=cell_id, thought="", language="python", waits_because=""
    )
    journal.operate(ClearOutputs(cell_id))


def _close_cell(journal: Journal, cell_id: str) -> None:
    journal.add(
        CellClosed, step=1, cell_id=cell_id, status="ok", seconds=0.1, peak_bytes=None, message="",
        state_lost=False,
    )  # fmt: skip


def _line(text: str) -> dict:
    return {"output_type": "stream", "name": "stdout", "text": text}


def test_a_journal_is_read_again_after_a_torn_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    _open_cell(journal, "a")
    journal.mark_in_file(2)
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"kind": "cell_cl')
    again = Journal(tmp_path)
    assert (again.last, again.in_file, again.is_closed) == (3, 2, False)
    assert [message.seq for message in again.messages(after=1)] == [2, 3]
    _close_cell(again, "a")
    assert [message.seq for message in Journal(tmp_path).messages()] == [1, 2, 3, 4]


def test_a_line_torn_within_a_character_costs_that_line_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    _open_cell(journal, "a")
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write('{"kind": "step_opened", "run_id": "é'.encode()[:-1])
    again = Journal(tmp_path)
    assert (again.last, [message.seq for message in again.messages()]) == (3, [1, 2, 3])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"kind":"smell","seq":4}', r"line 4\.kind: Invalid value 'smell'"),
        ('{"kind":"run_undone","seq":4,"run_id":"r"}', "line 4: Object missing .* `at`"),
        (
            '{"kind":"operated","seq":4,"run_id":"r","operation":{"op":"set_source","cell_id":1}}',
            r"line 4\.operation\.cell_id: Expected `str`, got `int`",
        ),
        (
            '{"kind":"operated","seq":4,"run_id":"r","operation":{"op":"burn","cell_id":"a"}}',
            r"line 4\.operation\.op: Invalid value 'burn'",
        ),
    ],
)
def test_a_line_that_is_no_message_is_named(tmp_path: Path, line: str, said: str) -> None:
    journal = Journal(tmp_path)
    _open_cell(journal, "a")
    file = tmp_path / "journal.jsonl"
    file.write_text(f"{file.read_text()}{line}\n")
    with pytest.raises(ValueError, match=f"{file}, {said}"):
        list(Journal(tmp_path).messages())


def test_a_journal_with_a_number_that_json_does_not_have_is_read(tmp_path: Path) -> None:
    """An earlier release wrote `NaN`, and half a character as `\\ud800`."""
    line = (
        '{"kind": "operated", "run_id": "r", "seq": 1, "operation": {"op": "append_output", '
        '"cell_id": "a", "output": {"data": {"application/json": [NaN, "\\ud800"]}}}}'
    )
    (tmp_path / "journal.jsonl").write_text(line + "\n")
    (message,) = Journal(tmp_path).messages()
    number, half = message.operation.output["data"]["application/json"]
    assert math.isnan(number)
    assert half == "\ud800"


def test_the_outputs_of_a_cell_that_ran_during_the_save_are_filled_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    _open_cell(journal, "a")
    journal.operate(AppendOutput("a", _line("1")))
    journal.operate(AppendOutput("a", _line("2")))
    journal.mark_in_file(4)
    assert journal.applied_for_sure() == 2
    _close_cell(journal, "a")
    journal.mark_in_file(6)
    assert journal.applied_for_sure() == 6


class _Contents:
    """A contents manager with one notebook."""

    def __init__(self, document: dict) -> None:
        self.document = document

    def get(self, path: str, **_: object) -> dict:
        return {"content": json.loads(json.dumps(self.document))}

    def save(self, model: dict, path: str) -> None:
        self.document = model["content"]


async def test_writing_the_file_again_and_again_doubles_nothing(tmp_path: Path) -> None:
    journal, contents = Journal(tmp_path), _Contents(_document())
    _open_cell(journal, "a")
    journal.operate(AppendOutput("a", _line("1")))
    assert await write_file(contents, "n.ipynb", [journal])
    journal.operate(AppendOutput("a", _line("2")))
    assert await write_file(contents, "n.ipynb", [journal])
    assert not await write_file(contents, "n.ipynb", [journal])
    cell = contents.document["cells"][1]
    assert cell["outputs"] == [_line("12")]


async def test_a_cell_that_the_person_deleted_does_not_come_back(tmp_path: Path) -> None:
    journal, contents = Journal(tmp_path), _Contents(_document())
    _open_cell(journal, "a")
    await write_file(contents, "n.ipynb", [journal])
    del contents.document["cells"][1]
    journal.operate(AppendOutput("a", _line("1")))
    await write_file(contents, "n.ipynb", [journal])
    assert [cell["id"] for cell in contents.document["cells"]] == ["person"]


async def test_a_cell_that_the_person_made_text_stops_no_writing(tmp_path: Path) -> None:
    journal, contents = Journal(tmp_path), _Contents(_document())
    _open_cell(journal, "a")
    assert await write_file(contents, "n.ipynb", [journal])
    contents.document["cells"][1] = new_markdown_cell("a note now", id="a")
    journal.operate(AppendOutput("a", _line("1")))
    journal.operate(SetExecution("a", is_running=False, execution_count=1))
    _close_cell(journal, "a")
    _open_cell(journal, "b")
    assert await write_file(contents, "n.ipynb", [journal])
    nbformat.validate(nbformat.from_dict(contents.document))
    assert [cell["id"] for cell in contents.document["cells"]] == ["person", "a", "b"]
    assert contents.document["cells"][1]["source"] == "a note now"


async def test_a_notebook_that_can_not_be_written_keeps_no_other_from_it(tmp_path: Path) -> None:
    read: list[str] = []
    saved: list[str] = []

    class Files(_Contents):
        def get(self, path: str, **_: object) -> dict:
            read.append(path)
            if len(read) == 1:
                raise KeyError("outputs")
            return super().get(path)

        def save(self, model: dict, path: str) -> None:
            saved.append(path)

    open_notebooks = OpenNotebooks(Files(_document()), reconnect_grace_s=1.0)
    for path in ("one.ipynb", "two.ipynb", "three.ipynb"):
        (tmp_path / path).mkdir()
        _open_cell(open_notebooks.follow(path, Journal(tmp_path / path)), "a")
    await open_notebooks.close()
    assert len(read) == 3
    assert saved == read[1:]


async def test_without_a_grace_a_notebook_that_no_tab_shows_is_written_with_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_notebooks = OpenNotebooks(_Contents(_document()), reconnect_grace_s=0.0)
    journal = open_notebooks.follow("n.ipynb", Journal(tmp_path))
    _open_cell(journal, "a")
    waits: list[float] = []
    has_waited = asyncio.Event()

    async def recorded(delay: float) -> None:
        waits.append(delay)
        if len(waits) == 3:
            has_waited.set()
            await asyncio.Event().wait()

    open_notebooks.attach(Attach("n.ipynb", "tab"), Tab("tab", lambda _: None))
    monkeypatch.setattr(asyncio, "sleep", recorded)
    open_notebooks.leave("n.ipynb", "tab")
    await asyncio.wait_for(has_waited.wait(), PATIENCE_S)
    await open_notebooks.close()
    assert waits[0] == 0
    assert min(waits[1:]) >= 0.5


async def test_a_notebook_whose_place_a_link_has_taken_is_not_written(tmp_path: Path) -> None:
    """A kernel may write the notebook's folder: it lays the link while the run goes on."""
    saved: list[str] = []

    class Files(_Contents):
        root_dir = str(tmp_path)

        def save(self, model: dict, path: str) -> None:
            saved.append(path)

    (tmp_path / "runs").mkdir()
    notebook, other = tmp_path / "n.ipynb", tmp_path / "other.ipynb"
    notebook.write_text("{}")
    other.write_text("{}")
    open_notebooks = OpenNotebooks(Files(_document()), reconnect_grace_s=1.0)
    _open_cell(open_notebooks.follow("n.ipynb", Journal(tmp_path / "runs")), "a")
    notebook.unlink()
    notebook.symlink_to(other)
    assert open_notebooks.is_elsewhere("n.ipynb")
    await open_notebooks.close()
    assert not saved
    notebook.unlink()
    notebook.write_text("{}")
    await open_notebooks.close()
    assert saved == ["n.ipynb"]


def test_a_data_file_is_never_copied_over_another(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "work"
    elsewhere.mkdir()
    folder.mkdir()
    (elsewhere / "a.csv").write_text("theirs")
    (folder / "a.csv").write_text("mine")
    for _ in range(2):
        assert copied_into(folder, elsewhere / "a.csv").name == "a (2).csv"
    assert (folder / "a.csv").read_text() == "mine"


def test_the_models_begin_with_the_one_that_answers() -> None:
    for choice, first in (
        (ModelChoice(), DEFAULT_MODEL),
        (ModelChoice("smollm2-135m"), "smollm2-135m"),
        (ModelChoice("m", "http://localhost/v1"), "m"),
    ):
        listed = ModelPool(choice).listed()
        assert listed[0]["name"] == first
        assert len({model["name"] for model in listed}) == len(listed)


async def test_an_old_notebook_gets_the_ids_it_lacks(tmp_path: Path) -> None:
    old = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": "mine"}]}  # fmt: skip
    journal, contents = Journal(tmp_path), _Contents(old)
    _open_cell(journal, "a")
    assert await write_file(contents, "n.ipynb", [journal])
    nbformat.validate(nbformat.from_dict(contents.document))
    assert contents.document["cells"][0]["source"] == "mine"


def test_a_full_disk_is_told_and_the_listeners_hear_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    journal, heard = Journal(folder), []
    journal.listen(heard.append)
    folder.rmdir()
    with pytest.raises(NotebookError, match="free some space"):
        journal.operate(ClearOutputs("a"))
    assert [message.seq for message in heard] == [1]


@pytest.fixture
def history(tmp_path: Path) -> RunHistory:
    redaction = Redaction((Path("/home/ann"),), ("token-of-ann",))
    return RunHistory(tmp_path / "runs", ROOT, redaction)


def _kept(history: RunHistory, question: str, notebook: str = "n.ipynb") -> Journal:
    journal = history.begin()
    journal.release()  # as if its server had ended
    summary = Summary(journal.run_id, notebook, question, ("a.csv",), 1.0, "local", root=str(ROOT))
    history.keep(summary)
    return journal


def test_runs_are_searched_by_all_words(history: RunHistory) -> None:
    _kept(history, "Mean of sales?")
    _kept(history, "Mean of costs?", "other.ipynb")
    assert [x.question for x in history.summaries(query="MEAN sales")] == ["Mean of sales?"]
    assert [x.question for x in history.summaries("other.ipynb")] == ["Mean of costs?"]
    assert len(history.summaries()) == 2


@pytest.mark.parametrize("run_id", ["", ".", "..", "../runs", "no-such-run"])
def test_nothing_outside_the_history_is_reached(history: RunHistory, run_id: str) -> None:
    _kept(history, "q")
    with pytest.raises(KeyError):
        history.delete(run_id)


def test_a_run_cut_off_is_closed_with_its_cell_at_rest(history: RunHistory) -> None:
    journal = _kept(history, "q")
    _open_cell(journal, "a")
    journal.operate(SetExecution("a", is_running=True))
    ended = history.close_cut_off()
    assert [summary.stop for summary in ended] == ["fault"]
    messages = list(history.journal(journal.run_id).messages())
    assert isinstance(messages[-1], RunClosed)
    assert messages[-2].operation == SetExecution("a", is_running=False)
    assert history.close_cut_off() == []


def test_the_exported_notebook_holds_the_run_and_no_undoing(history: RunHistory) -> None:
    journal = _kept(history, "q")
    _open_cell(journal, "a")
    journal.operate(AppendOutput("a", _line("1")))
    history.close_cut_off()
    journal = history.journal(journal.run_id)
    journal.operate(DeleteCell("a"))
    document = nbformat.reads(history.notebook(journal.run_id), as_version=4)
    assert document.cells[0].outputs[0].text == "1"


def test_runs_are_kept_for_training_only_where_asked(tmp_path: Path) -> None:
    trajectory = Trajectory(Task("t", "What is in /home/ann/x?"), "markdown")
    file = tmp_path / "kept.jsonl"
    for training_file in (None, file, file):
        redaction = Redaction((Path("/home/ann"),), ())
        history = RunHistory(tmp_path / "runs", ROOT, redaction, training_file)
        journal = history.begin()
        history.keep_trajectory(journal, trajectory)
        journal.release()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [Trajectory.from_json(line).task.question for line in lines] == [
        "What is in [folder]/x?"
    ] * 2


def test_a_full_disk_leaves_no_torn_trajectory(tmp_path: Path) -> None:
    """A limit on the size of a file stands for the disk."""
    file = tmp_path / "kept.jsonl"
    history = RunHistory(tmp_path / "runs", ROOT, Redaction((), ()), file)
    short, long = (Trajectory(Task("t", "x" * count), "markdown") for count in (10, 5000))
    journal = history.begin()
    journal.release()
    history.keep_trajectory(journal, long)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (7000, 4000):  # too small for a second line, then for the trajectory
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
        try:
            with pytest.raises(OSError, match="File too large"):
                history.keep_trajectory(journal, long)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert json.loads(history.trajectory_line(journal.run_id))
    history.keep_trajectory(journal, short)
    *_, torn, last = file.read_text().splitlines()
    assert Trajectory.from_json(json.loads(last)).task.question == "x" * 10
    assert 0 < len(torn) < 5000


def test_secrets_and_places_are_taken_out() -> None:
    redaction = Redaction((Path("/home/ann"), Path("/")), ("token-of-ann", "short"))
    value = {
        "/home/ann/x": ["token-of-ann", "key sk-abcdefghijklmnop1234", 3, None],
        "url": "postgres://ann:hunter2@host/db at /home/ann/data.csv",
    }
    assert redaction.applied_to(value) == {
        "[folder]/x": ["[secret]", "key [secret]", 3, None],
        "url": "postgres://[secret]@host/db at [folder]/data.csv",
    }


async def test_outputs_are_joined_before_they_travel() -> None:
    from dm_jupyter.server.notebooks.output_stream import OutputStream
    from kernel_sandbox.cells.outputs import Added, Cleared, Replaced
    from kernel_sandbox.types import Display, Stream

    done: list[Operation] = []
    stream = OutputStream("a", done.append)
    for text in "abc":
        stream.take(Added(Stream("stdout", text)))
    stream.take(Added(Stream("stderr", "!")))
    await until(lambda: len(done) > 1, "they have travelled")
    assert [operation.output["text"] for operation in done] == ["abc", "!"]
    stream.take(Added(Display({"text/plain": "x"})))
    for text in "vwy":  # only the last of one output travels
        stream.take(Replaced(2, Display({"text/plain": text})))
    stream.take(Cleared())
    await stream.close()
    assert done[3].output["data"]["text/plain"] == "y"
    assert [type(x).__name__ for x in done[2:]] == ["AppendOutput", "ReplaceOutput", "ClearOutputs"]


async def test_outputs_that_travel_load_nothing_and_keep_their_order() -> None:
    from dm_jupyter.server.notebooks.output_stream import OutputStream
    from kernel_sandbox.cells.outputs import Added
    from kernel_sandbox.types import Display, Stream

    done: list[Operation] = []
    stream = OutputStream("a", done.append)
    picture = '<img src="http://remote.test/a">'
    large = f"<p>{'word ' * 100_000}</p>{picture}"  # made inert in a thread
    for shown in (large, picture):
        stream.take(Added(Display({"text/html": shown})))
        stream.take(Added(Stream("stdout", picture)))
    await stream.close()
    first, text, second, _ = (operation.output for operation in done)
    assert first["data"]["text/html"].startswith("<p>word ")
    assert text["text"] == picture
    for output in (first, second):
        assert "<img" not in output["data"]["text/html"]
        assert "a picture from remote.test, not loaded" in output["data"]["text/html"]
