from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.analysis import AnalysisSettings, analyze
from dm_jupyter.core.errors import DataFileError, NotebookError
from dm_jupyter.core.events import CellFinished, CellStarted, Event, RunFinished
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from dm_jupyter.data.data_context import names_for
from kernel_sandbox.runners.pool_settings import PoolSettings
from tests.fakes import ScriptedPolicy
from tests.kernel_sandbox.running import BEGIN, places_of
from tests.waiting import until

COUNT = "print(len(df))\n```"
SAID = "There are 3 rows."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("Age,Fare\n30,7.25\n41,8.5\n29,9.0\n")
    return tmp_path


def _task(folder: Path, name: str = "people.csv") -> Task:
    return Task("t", "How many rows?", (folder / name,))


def _settings(folder: Path) -> AnalysisSettings:
    return AnalysisSettings(RunSettings(max_turns=4), notebook=folder / "n.ipynb")


def _read(path: Path) -> Any:
    document = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(document)
    return document


def _ignore(event: Event) -> None:
    pass


async def test_a_question_is_answered_and_the_notebook_kept(folder: Path) -> None:
    events: list[Event] = []
    policy = ScriptedPolicy([COUNT, SAID])
    done = await analyze(_task(folder), policy, _settings(folder), events.append)
    assert (done.trajectory.stop, done.trajectory.answer) == (StopReason.ANSWERED, SAID)
    assert (done.fault, done.files, done.trajectory.unsupported) == (None, (), ())
    document = _read(folder / "n.ipynb")
    assert [cell.cell_type for cell in document.cells] == ["markdown", "code", "markdown"]
    assert document.cells[1].outputs[0].text == "3\n"
    assert document.cells[2].source == f"## Answer\n\n{SAID}"
    stored = Trajectory.from_json(document.metadata["dm_jupyter"]["trajectory"])
    assert stored.steps == done.trajectory.steps
    assert stored.containment
    assert isinstance(events[-1], RunFinished)
    assert str(folder) not in policy.requests[0].prefill


async def test_of_several_tries_the_best_is_taken_again_in_the_notebook(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    light = partial(PoolSettings, modules=("pandas",))  # all that a pool prepares takes seconds
    monkeypatch.setattr("dm_jupyter.search.best_of_n.PoolSettings", light)
    settings = replace(_settings(folder), tries=3)
    done = await analyze(_task(folder), ScriptedPolicy([COUNT] * 2 + [SAID]), settings, _ignore)
    assert done.best_of_n is not None
    assert (done.best_of_n.tries, done.best_of_n.agreeing) == (2, 2)
    assert done.trajectory.answer == SAID
    document = _read(folder / "n.ipynb")
    assert [cell.cell_type for cell in document.cells] == ["markdown", "code", "markdown"]
    assert document.cells[1].outputs[0].text == "3\n"


async def test_files_that_the_code_made_lie_beside_and_never_over_another(folder: Path) -> None:
    (folder / "out.csv").write_text("mine")
    make = (
        "import os\nos.makedirs('sub')\n"
        "for name in ('out.csv', 'sub/x.txt', 'new.txt'):\n    open(name, 'w').write('made')\n"
        "print(3)\n```"
    )
    done = await analyze(_task(folder), ScriptedPolicy([make, SAID]), _settings(folder), _ignore)
    assert done.trajectory.answer == SAID
    assert set(done.files) == {folder / "out (2).csv", folder / "sub/x.txt", folder / "new.txt"}
    assert (folder / "out.csv").read_text() == "mine"
    assert [file.read_text() for file in done.files] == ["made"] * 3
    assert (folder / "people.csv").read_text().startswith("Age")


async def test_without_a_folder_nothing_is_kept(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    make = "open('out.csv', 'w').write('made')\nprint(len(df))\n```"
    done = await analyze(_task(folder), ScriptedPolicy([make, SAID]), AnalysisSettings(), _ignore)
    assert (done.trajectory.answer, done.files, done.notebook.path) == (SAID, (), None)
    assert not list(here.iterdir())
    assert [entry.name for entry in folder.iterdir()] == ["people.csv"]


async def test_a_notebook_that_can_not_be_written_ends_the_run_as_a_fault(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()

    def remove(event: Event) -> None:
        if isinstance(event, CellStarted):
            place.rmdir()

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    settings = _settings(place)
    done = await analyze(_task(folder), ScriptedPolicy([COUNT, SAID]), settings, remove)
    assert done.trajectory.stop is StopReason.FAULT
    assert isinstance(done.fault, NotebookError)
    assert "the notebook so far is in" in str(done.fault)
    (kept,) = tmp_path.glob("n-*.ipynb")
    assert _read(kept).cells[-1].source.startswith("## No answer")


async def test_cancelling_keeps_the_notebook_and_the_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = "open('early.txt', 'w').write('made')\nprint(3)\n```"
    wait = f"{BEGIN}\nimport time\ntime.sleep(60)\n```"
    (temporary := folder / "t").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    cells = 0

    def count(event: Event) -> None:
        nonlocal cells
        cells += isinstance(event, CellStarted)
        assert cells < 2 or not isinstance(event, CellFinished)

    question = Task("t", "n?", (folder / "people.csv",), answer_format="@n[n]")
    policy = ScriptedPolicy([made, wait])
    task = asyncio.create_task(analyze(question, policy, _settings(folder), count))
    await until(lambda: task.done() or places_of("begun", temporary), "the second cell runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    document = _read(folder / "n.ipynb")
    assert "time.sleep(60)" in document.cells[-2].source
    assert "was stopped" in document.cells[-1].source
    stored = Trajectory.from_json(document.metadata["dm_jupyter"]["trajectory"])
    assert (stored.stop, stored.turns) == (StopReason.CANCELLED, 1)
    assert (folder / "early.txt").read_text() == "made"


async def test_a_missing_file_is_told_before_a_kernel_starts(folder: Path) -> None:
    with pytest.raises(DataFileError, match=r"gone\.csv"):
        await analyze(_task(folder, "gone.csv"), ScriptedPolicy([SAID]), _settings(folder), _ignore)
    assert not (folder / "n.ipynb").exists()


async def test_a_database_is_queried_and_its_result_kept(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "shop.db")) as connection, connection:
        connection.execute("create table people (age integer)")
        connection.executemany("insert into people values (?)", [(30,), (41,), (29,)])
    policy = ScriptedPolicy(["select count(*) as n from people\n```", SAID])
    done = await analyze(_task(folder, "shop.db"), policy, _settings(folder), _ignore)
    assert done.trajectory.answer == SAID
    assert [file.name for file in done.files] == ["result_1.csv"]
    assert done.files[0].read_text() == "n\n3\n"
    sources = [cell.source for cell in _read(folder / "n.ipynb").cells]
    assert "def run_sql" in sources[1]
    assert sources[2].startswith("result_1 = run_sql('shop.db'")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "db"])
async def test_the_notebook_runs_again_where_it_lies(folder: Path, suffix: str) -> None:
    (folder / "data").mkdir()
    if suffix == "csv":
        name = "data/people.csv"
        (folder / "people.csv").rename(folder / name)
        texts = ["print(dff)\n```", f"so.\n{COUNT}", SAID]  # a comment is open after a fault
    else:
        name = "data/shop 1.db"
        with closing(sqlite3.connect(folder / name)) as connection, connection:
            connection.execute("create table people (age integer)")
            connection.executemany("insert into people values (?)", [(30,), (41,), (29,)])
        texts = ["selec 1\n```", " count(*) as n from people\n```", SAID]  # SELECT is there
    done = await analyze(_task(folder, name), ScriptedPolicy(texts), _settings(folder), _ignore)
    assert done.trajectory.answer == SAID
    first = _read(folder / "n.ipynb")
    again = await _executed(first, folder)
    for before, after in zip(first.cells, again.cells, strict=True):
        if before.cell_type == "code" and "raises-exception" not in before.metadata.get("tags", ()):
            assert _texts(after) == _texts(before)
    assert any("raises-exception" in cell.metadata.get("tags", ()) for cell in first.cells)


async def _executed(document: Any, folder: Path) -> Any:
    """The notebook after Run All in a fresh, unrestricted kernel, as in JupyterLab."""
    from nbclient import NotebookClient

    copy = nbformat.from_dict(document)
    client = NotebookClient(copy, timeout=60, resources={"metadata": {"path": str(folder)}})
    await client.async_execute()
    return copy


def _texts(cell: Any) -> list[str]:
    return [output.get("text") or output["data"]["text/plain"] for output in cell.outputs]


# names


def test_a_file_below_the_notebook_goes_by_its_relative_path(tmp_path: Path) -> None:
    files = (tmp_path / "a.csv", tmp_path / "sub" / "b c.csv")
    assert names_for(files, tmp_path) == {"a.csv": files[0], "sub/b c.csv": files[1]}


def test_a_file_elsewhere_goes_by_its_absolute_path(tmp_path: Path) -> None:
    file = tmp_path / "x" / "a.csv"
    assert names_for((file,), tmp_path / "y") == {str(file): file}


def test_a_relative_file_is_found_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    files = (Path("a.csv"), Path("../b.csv"))
    assert names_for(files, Path())["a.csv"] == tmp_path / "here" / "a.csv"
    assert names_for(files, tmp_path) == {
        "here/a.csv": tmp_path / "here" / "a.csv",
        "b.csv": tmp_path / "b.csv",
    }


def test_a_link_keeps_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "8f3a").write_text("a\n1\n")
    (tmp_path / "work").mkdir()
    link = tmp_path / "work" / "a.csv"
    link.symlink_to(tmp_path / "store" / "8f3a")
    assert names_for((link,), link.parent) == {"a.csv": tmp_path / "store" / "8f3a"}


def test_without_a_folder_a_file_goes_by_its_bare_name(tmp_path: Path) -> None:
    assert names_for((tmp_path / "x" / "a.csv",), None) == {"a.csv": tmp_path / "x" / "a.csv"}
