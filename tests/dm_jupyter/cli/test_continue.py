"""`dm-jupyter ask --continue`: the question is about a notebook, which gets the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.dm_jupyter.cli.test_ask import Outcome, _ask, _at, folder  # noqa: F401  (a fixture)
from tests.dm_jupyter.server.jupyter import JupyterServer
from tests.endpoint import ScriptedEndpoint

COUNT = "print('rows', len(people))\n```"
SAID = "There are 3 rows."
QUESTION = "How many rows does my table have, and what did I compute above?"
LOAD = "import pandas as pd\npeople = pd.read_csv('people.csv')\nfactor = 2\napi_key = 'abcdefgh'"


def _ran(source: str, count: int | None, *outputs: Any) -> Any:
    return new_code_cell(source, execution_count=count, outputs=list(outputs))


def _shown(text: str) -> Any:
    return new_output("execute_result", data={"text/plain": text}, execution_count=2)


def _write(place: Path, *cells: Any, minor: int = 5) -> Path:
    document = new_notebook(cells=list(cells))
    document.nbformat_minor = minor
    if minor < 5:
        for cell in document.cells:
            del cell["id"]
    nbformat.write(document, place)
    return place


@pytest.fixture
def notebook(folder: Path) -> Path:  # noqa: F811
    return _write(
        folder / "work.ipynb",
        new_markdown_cell("# My people"),
        _ran(LOAD, 1),
        _ran("people.Age.mean()", 2, _shown("33.3")),
        _ran("never = 1", None),
        _ran("1 / 0", 3, new_output("error", ename="ZeroDivisionError", evalue="x")),
        _ran("%%analyze\nHow many?", 4),
    )


def _told(endpoint: ScriptedEndpoint) -> str:
    return json.dumps(endpoint.bodies[0]["messages"], ensure_ascii=False)


def test_the_notebook_is_told_alive_and_continued(notebook: Path) -> None:
    before = nbformat.read(notebook, as_version=4)
    notebook.chmod(0o600)
    with ScriptedEndpoint([COUNT, SAID]) as endpoint:
        outcome = _ask(notebook.parent, "--continue", "work.ipynb", QUESTION, *_at(endpoint))
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, SAID), outcome
    told = _told(endpoint)
    assert "- people (DataFrame, 3 x 2): Age (int64, e.g. 30), Fare (float64, e.g. 7.25)" in told
    assert "- factor (int): 2" in told
    assert "[2]\\npeople.Age.mean()\\nshowed:\\n33.3" in told
    assert "# My people" in told
    assert "- people.csv (" in told
    assert "never (" not in told
    assert "abcdefgh" not in told
    after = nbformat.read(notebook, as_version=4)
    nbformat.validate(after)
    assert after.cells[: len(before.cells)] == before.cells
    question, code, answer = after.cells[len(before.cells) :]
    assert QUESTION in question.source
    assert code.outputs[0].text == "rows 3\n"
    assert SAID in answer.source
    assert notebook.stat().st_mode & 0o777 == 0o600
    assert after.metadata.dm_jupyter.trajectory["answer"] == SAID


@pytest.mark.slow
def test_a_notebook_is_continued_again_and_keeps_both_records(notebook: Path) -> None:
    for said in ("First.", "Second."):
        with ScriptedEndpoint([COUNT, said]) as endpoint:
            outcome = _ask(notebook.parent, "--continue", "work.ipynb", QUESTION, *_at(endpoint))
        assert outcome.code == 0, outcome
    kept = nbformat.read(notebook, as_version=4).metadata.dm_jupyter
    assert kept.trajectory["answer"] == "First."
    assert [one["answer"] for one in kept.continued] == ["Second."]


@pytest.mark.slow
def test_a_notebook_without_counts_and_ids_is_run_whole(folder: Path) -> None:  # noqa: F811
    notebook = _write(folder / "bare.ipynb", _ran(LOAD, None), minor=4)
    with ScriptedEndpoint([COUNT, SAID]) as endpoint:
        outcome = _ask(folder, "--continue", "bare.ipynb", QUESTION, *_at(endpoint))
    assert outcome.code == 0, outcome
    document = nbformat.read(notebook, as_version=nbformat.NO_CONVERT)
    nbformat.validate(document)
    assert document.nbformat_minor == 4
    assert document.cells[2].outputs[0].text == "rows 3\n"


def _refused(folder: Path, *arguments: str) -> Outcome:  # noqa: F811
    with ScriptedEndpoint([COUNT, SAID]) as endpoint:
        outcome = _ask(folder, *arguments, QUESTION, *_at(endpoint))
    assert not [body for body in endpoint.bodies if QUESTION in json.dumps(body)]
    return outcome


def test_a_cell_that_fails_is_named_and_nothing_is_asked(folder: Path) -> None:  # noqa: F811
    notebook = _write(folder / "work.ipynb", _ran("a = 1", 1), _ran("a / 0", 2), _ran("b = 2", 3))
    before = notebook.read_bytes()
    outcome = _refused(folder, "--continue", "work.ipynb")
    assert outcome.code == 6
    assert "cell [2] of work.ipynb failed when run again: ZeroDivisionError" in outcome.err
    assert notebook.read_bytes() == before


@pytest.mark.slow
def test_a_cell_that_may_not_run_is_left_out_and_named(folder: Path) -> None:  # noqa: F811
    _write(folder / "work.ipynb", _ran("import os\nos.system('ls')", 1), _ran(LOAD, 2))
    with ScriptedEndpoint([COUNT, SAID]) as endpoint:
        outcome = _ask(folder, "--continue", "work.ipynb", QUESTION, *_at(endpoint))
    assert outcome.code == 0
    assert "cell [1] was not run again: os.system()" in outcome.err
    assert "- people (DataFrame, 3 x 2)" in _told(endpoint)


def test_cells_reach_no_file_beside_the_notebooks_folder(folder: Path) -> None:  # noqa: F811
    (folder / "below").mkdir()
    secret = folder / "secret.csv"
    secret.write_text("a\n1\n")
    (folder / "below" / "link.csv").symlink_to(secret)
    for name in (str(secret), "../secret.csv", "link.csv"):
        _write(folder / "below" / "work.ipynb", _ran(f"text = open('{name}').read()", 1))
        outcome = _refused(folder, "--continue", "below/work.ipynb")
        assert outcome.code == 6
        assert "cell [1] of work.ipynb failed when run again" in outcome.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "can't be read"),
        ("a,b\n1,2\n", "is not a notebook"),
        ('{"cells": 5, "nbformat": 4}', "is not in notebook format 4"),
        ('{"worksheets": [], "nbformat": 3, "nbformat_minor": 0}', "Open it in Jupyter"),
    ],
)
def test_what_is_no_notebook_is_refused(
    folder: Path,  # noqa: F811
    content: str | None,
    says: str,
) -> None:
    if content is not None:
        (folder / "work.ipynb").write_text(content)
    outcome = _refused(folder, "--continue", "work.ipynb")
    assert outcome.code == 6
    assert says in outcome.err


def test_a_notebook_that_changes_meanwhile_is_left_as_it_is(notebook: Path) -> None:
    document = nbformat.read(notebook, as_version=4)
    document.cells.append(new_markdown_cell("added by hand"))
    text = nbformat.writes(document)

    with ScriptedEndpoint([COUNT, SAID]) as endpoint:
        answer = endpoint.next_answer

        def next_answer(*args: Any) -> Any:
            notebook.write_text(text)
            return answer(*args)

        endpoint.next_answer = next_answer  # type: ignore[method-assign]
        outcome = _ask(notebook.parent, "--continue", "work.ipynb", QUESTION, *_at(endpoint))
    assert outcome.code == 6
    assert "was changed by someone else in the meantime" in outcome.err
    assert "notebook: " not in outcome.out  # the file there is not this one
    assert notebook.read_text() == text
    refuge = next((notebook.parent / "t").glob("work-*.ipynb"))
    assert any("len(people)" in cell.source for cell in nbformat.read(refuge, as_version=4).cells)


def test_a_notebook_that_is_open_in_jupyter_is_refused(notebook: Path, tmp_path: Path) -> None:
    with JupyterServer(tmp_path / "server", "http://127.0.0.1:9/v1") as server:
        path = server.notebook("open.ipynb")
        runtime = {"JUPYTER_RUNTIME_DIR": str(server.folder / "private" / "runtime")}
        with ScriptedEndpoint([COUNT, SAID]) as endpoint:
            outcome = _ask(
                notebook.parent,
                *("--continue", str(server.root / path), QUESTION, *_at(endpoint)),
                env=runtime,
            )
    assert outcome.code == 6
    assert "is open in Jupyter" in outcome.err


@pytest.mark.parametrize("option", [("--out", "other.ipynb"), ("--tries", "2")])
def test_options_that_make_no_sense_with_it_are_refused(
    notebook: Path, option: tuple[str, str]
) -> None:
    outcome = _refused(notebook.parent, "--continue", "work.ipynb", *option)
    assert outcome.code == 2
    assert f"{option[0]} can't go with --continue" in outcome.err
