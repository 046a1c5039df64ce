"""The runs of several servers in one folder, and what is kept of a run after a fault."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dm_jupyter.core.errors import NotebookError
from dm_jupyter.server.history.journal import Journal, undo
from dm_jupyter.server.history.memory import Memory, before, read_memory
from dm_jupyter.server.history.run_history import Redaction, RunHistory
from dm_jupyter.server.history.summaries import Summary
from dm_jupyter.server.notebooks.open_notebooks import OpenNotebooks, Tab
from dm_jupyter.server.protocol import (
    Attach,
    Attached,
    Operated,
    RunClosed,
    RunMessage,
    ServerMessage,
)
from dm_jupyter.server.protocol.operations import DeleteCell, InsertCell

HERE, ELSEWHERE = Path("/srv/here"), Path("/srv/elsewhere")
NOTEBOOK = "Untitled.ipynb"


def _history(tmp_path: Path, root: Path = HERE) -> RunHistory:
    """Returns the history as a server with this root sees it."""
    return RunHistory(tmp_path / "runs", root, Redaction((), ()))


@pytest.fixture
def history(tmp_path: Path) -> RunHistory:
    return _history(tmp_path)


def _begun(history: RunHistory, root: Path | str | None = None, **fields: str | None) -> Journal:
    """Begins a run that its server works on until the journal is released."""
    journal = history.begin()
    where = str(history.root if root is None else root)
    summary = Summary(journal.run_id, NOTEBOOK, "Pay?", ("a.csv",), 1.0, "m", root=where, **fields)
    history.keep(summary)
    return journal


def _stops(history: RunHistory) -> list[str | None]:
    return [run.stop for run in history.summaries()]


def test_a_run_on_which_a_server_works_is_ended_by_no_other(tmp_path: Path) -> None:
    working, started = _history(tmp_path), _history(tmp_path)
    journal = _begun(working)
    assert started.close_cut_off() == []
    assert started.is_active(journal.run_id)
    journal.operate(InsertCell("a", "code", "x = 1"))
    assert [message.seq for message in Journal(journal.folder).messages()] == [1]
    journal.release()
    assert not started.is_active(journal.run_id)
    assert [run.stop for run in started.close_cut_off()] == ["fault"]
    assert started.close_cut_off() == []


def test_a_run_cut_off_in_another_folder_waits_for_a_server_there(tmp_path: Path) -> None:
    here, elsewhere = _history(tmp_path), _history(tmp_path, ELSEWHERE)
    _begun(here).release()
    assert elsewhere.close_cut_off() == []
    assert _stops(here) == [None]
    assert [run.notebook_path for run in here.close_cut_off()] == [NOTEBOOK]


def test_a_run_without_a_root_ends_and_is_written_nowhere(history: RunHistory) -> None:
    journal = _begun(history, root="")
    journal.release()
    assert history.close_cut_off() == []
    assert _stops(history) == ["fault"]
    (closed,) = Journal(journal.folder).messages()
    assert isinstance(closed, RunClosed)
    assert "its notebook is not written: export the run" in closed.detail


@pytest.mark.parametrize("root", [ELSEWHERE, ""])
def test_a_question_knows_no_run_of_another_folder(history: RunHistory, root: Path | str) -> None:
    _begun(history, root=root, answer="71,300", stop="answered").release()
    assert before(history.memories(NOTEBOOK), Memory(), (), 3_000) == ()
    assert history.summaries(NOTEBOOK) == []
    history.rename(NOTEBOOK, "pay.ipynb")
    _begun(history, answer="7", stop="answered").release()
    assert [run.answer for run, _ in history.memories(NOTEBOOK)] == ["7"]
    assert [run.answer for run in history.summaries(NOTEBOOK)] == ["7"]


def test_a_list_of_all_has_the_runs_of_this_folder_and_those_without_one(tmp_path: Path) -> None:
    here, elsewhere = _history(tmp_path, tmp_path), _history(tmp_path, ELSEWHERE)
    journals = [_begun(here, stop="answered") for _ in range(2)]
    journals.append(_begun(here, root="", stop="answered"))
    for journal in journals:
        journal.release()
    here.rename(NOTEBOOK, "pay.ipynb")
    paths = {NOTEBOOK: 1, "pay.ipynb": 2}
    listed = [run.notebook_path for run in here.summaries()]
    assert {path: listed.count(path) for path in paths} == paths
    assert [run.root for run in elsewhere.summaries()] == [""]
    assert here.summary(journals[0].run_id).root == str(tmp_path)
    for journal in (journals[0], journals[2]):
        with pytest.raises(KeyError):
            elsewhere.summary(journal.run_id)


def test_the_runs_of_a_folder_that_was_moved_are_in_the_list_of_all(tmp_path: Path) -> None:
    folder, moved = tmp_path / "project", tmp_path / "archive"
    folder.mkdir()
    journals = [_begun(_history(tmp_path, folder), stop=stop) for stop in ("answered", None)]
    for journal in journals:
        journal.release()
    there, other = _history(tmp_path, moved), _history(tmp_path, ELSEWHERE)
    assert there.summaries() == other.summaries() == []
    folder.rename(moved)
    ids = sorted((journal.run_id for journal in journals), reverse=True)
    for history in (there, other):
        assert [run.run_id for run in history.summaries()] == ids
        assert history.summaries(NOTEBOOK) == history.memories(NOTEBOOK) == []
        assert history.close_cut_off() == []
    assert sorted(map(str, _stops(there))) == ["None", "answered"]


@contextmanager
def _disk_with_room_for(size: int) -> Iterator[None]:
    """Limits the size of a file, which stands for the disk."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_full_disk_at_a_runs_end_keeps_its_entry_and_memory(history: RunHistory) -> None:
    journal = _begun(history)
    journal.release()
    Memory(figures=("a line",)).keep(journal.folder)
    with _disk_with_room_for(0):
        with pytest.raises(OSError, match="File too large"):
            history.keep(replace(history.summary(journal.run_id), answer="42"))
        with pytest.raises(OSError, match="File too large"):
            Memory().keep(journal.folder)
    assert history.summary(journal.run_id).question == "Pay?"
    assert read_memory(journal.folder).figures == ("a line",)
    assert {path.name for path in journal.folder.iterdir()} == {
        "summary.json", "memory.json", "lock",
    }  # fmt: skip


def test_after_a_line_that_a_full_disk_cut_short_the_next_one_is_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.operate(InsertCell("a", "code", "x = 1"))
    size = (tmp_path / "journal.jsonl").stat().st_size
    with _disk_with_room_for(size + 40), pytest.raises(NotebookError, match="free some space"):
        journal.operate(InsertCell("b", "code", "x" * 200))
    assert (tmp_path / "journal.jsonl").stat().st_size == size + 40
    journal.operate(InsertCell("c", "code", "x = 2"))
    again = Journal(tmp_path)
    assert (again.last, [message.seq for message in again.messages()]) == (3, [1, 3])


def _damage(journal: Journal) -> None:
    """Writes a line that no version has written."""
    with (journal.folder / "journal.jsonl").open("a") as file:
        file.write('{"kind":"cell_opened","run_id":"x","seq":2}\n')


def test_a_damaged_journal_keeps_no_other_run_from_its_end(
    history: RunHistory, caplog: pytest.LogCaptureFixture
) -> None:
    runs = [_begun(history) for _ in range(4)]
    _damage(runs[1])
    (runs[3].folder / "journal.jsonl").write_text('{"kind":"run_closed"}\n')
    for journal in runs:
        journal.release()
    ended = {run.run_id for run in history.close_cut_off()}
    assert ended == {runs[0].run_id, runs[2].run_id}
    assert _stops(history) == ["fault"] * 4
    assert f"{runs[3].folder}: the run's end can't be read" in caplog.text
    assert f"{runs[1].folder / 'journal.jsonl'}, line 1: Object missing" in caplog.text
    caplog.clear()
    assert history.close_cut_off() == []
    assert not caplog.text


def test_a_journal_that_can_not_be_opened_keeps_no_other_run_from_its_end(
    history: RunHistory, caplog: pytest.LogCaptureFixture
) -> None:
    whole, unreadable = _begun(history), _begun(history)
    for journal in (whole, unreadable):
        journal.release()
    (unreadable.folder / "journal.jsonl").mkdir()
    assert [run.run_id for run in history.close_cut_off()] == [whole.run_id]
    assert f"run {unreadable.run_id} was cut off, and can't be ended now" in caplog.text


def test_what_another_server_has_added_since_is_counted_before_an_undo(tmp_path: Path) -> None:
    here, there = _history(tmp_path), _history(tmp_path)
    journal = _begun(here)
    journal.operate(InsertCell("a", "code", "x = 1"))
    journal.release()
    followed = there.journal(journal.run_id)
    heard: list[RunMessage] = []
    followed.listen(heard.append)
    undo(here.journal(journal.run_id))
    undo(followed)
    assert [message.seq for message in followed.messages()] == [1, 2, 3, 4]
    assert heard == list(followed.messages(after=1))
    assert isinstance(heard[0], Operated)
    assert heard[0].operation == DeleteCell("a", if_source="x = 1")
    assert journal.hold()
    with pytest.raises(NotebookError, match="another JupyterLab server"):
        undo(followed)
    assert not here.journal(journal.run_id).hold()
    assert followed.last == 4
    journal.release()


def test_a_journal_that_is_held_stays_held(history: RunHistory) -> None:
    journal = _begun(history)
    assert journal.hold()
    assert history.is_active(journal.run_id)
    journal.release()
    assert not history.is_active(journal.run_id)


def test_a_damaged_run_is_followed_by_no_notebook(history: RunHistory) -> None:
    damaged, whole = _begun(history), _begun(history)
    _damage(damaged)
    whole.operate(InsertCell("a", "code", "x = 1"))
    open_notebooks = OpenNotebooks(SimpleNamespace(root_dir=str(HERE)), reconnect_grace_s=1.0)
    with pytest.raises(ValueError, match="line 1: Object missing"):
        open_notebooks.follow(NOTEBOOK, damaged)
    open_notebooks.follow(NOTEBOOK, whole)
    heard: list[ServerMessage] = []
    open_notebooks.attach(Attach(NOTEBOOK, "tab"), Tab("tab", heard.append))
    assert [type(message) for message in heard] == [Attached, Operated]
    damaged.release()
    whole.release()


def test_a_run_that_is_damaged_later_is_followed_no_longer(history: RunHistory) -> None:
    damaged, whole = _begun(history), _begun(history)
    open_notebooks = OpenNotebooks(SimpleNamespace(root_dir=str(HERE)), reconnect_grace_s=1.0)
    for journal in (damaged, whole):
        journal.operate(InsertCell("a", "code", "x = 1"))
        open_notebooks.follow(NOTEBOOK, journal)
    _damage(damaged)
    heard: list[ServerMessage] = []
    open_notebooks.attach(Attach(NOTEBOOK, "tab"), Tab("tab", heard.append))
    attached, *operated = heard
    assert isinstance(attached, Attached)
    assert list(attached.in_file) == [whole.run_id]
    assert [type(message) for message in operated] == [Operated]
    damaged.release()
    whole.release()
