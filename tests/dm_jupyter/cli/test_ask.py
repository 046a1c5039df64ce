"""The real command as a process of its own, against a real server that follows a script."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from dm_jupyter.core.trajectory import StopReason, Trajectory
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, name_with_adapter, resolve
from tests.dm_jupyter.models.local.gguf_files import write_adapter_file, write_model
from tests.endpoint import ScriptedEndpoint, unused_url
from tests.kernel_sandbox.running import places_of
from tests.waiting import wait_until
from tests.wheels import index_variables, make_wheel

COUNT = "print(len(df))\n```"
SAID = "There are 3 rows."
WAIT = "import time\nopen('begun', 'w').close()\ntime.sleep(600)\n```"
QUESTION = "How many rows?"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "people.csv").write_text("Age,Fare\n30,7.25\n41,8.5\n29,9.0\n")
    yield tmp_path
    with suppress(AssertionError):
        wait_until(lambda: not _left_behind(tmp_path), "all have ended")
    left = _left_behind(tmp_path)
    for process in left:
        process.kill()
    assert not left


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


COMMAND = "from dm_jupyter.cli import main; main()"
WITHOUT_ENGINE = f"import sys; sys.modules['xllamacpp'] = None; {COMMAND}"


def _start(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, code: str = COMMAND
) -> subprocess.Popen[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("DM_JUPYTER_")}
    return subprocess.Popen(
        [sys.executable, "-c", code, "ask", *arguments],
        cwd=folder,
        env={**own, "TMPDIR": str(_refuge(folder)), "COLUMNS": "300", **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _end(process: subprocess.Popen[str]) -> Outcome:
    try:
        out, err = process.communicate(timeout=90)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert "Traceback" not in err
    return Outcome(process.returncode, out, err)


def _ask(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, code: str = COMMAND
) -> Outcome:
    return _end(_start(folder, *arguments, env=env, code=code))


def _at(endpoint: ScriptedEndpoint) -> tuple[str, ...]:
    return ("--base-url", endpoint.base_url, "--model", "tiny")


def _refuge(folder: Path) -> Path:
    """The temporary folder of the command."""
    refuge = folder / "t"
    refuge.mkdir(exist_ok=True)
    return refuge


def _read(path: Path) -> tuple[Any, Trajectory]:
    document = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(document)
    return document, Trajectory.from_json(document.metadata["dm_jupyter"]["trajectory"])


def _files(folder: Path) -> set[str]:
    """What lies in the folder of the command, and in its temporary one."""
    return {str(file.relative_to(folder)) for file in folder.rglob("*")} - {"t", "people.csv"}


def _left_behind(folder: Path) -> list[psutil.Process]:
    """Processes that the command should have ended."""
    left = [child for child in psutil.Process().children() if _lives(child)]
    for process in psutil.process_iter(["cmdline"]):
        told = " ".join(process.info["cmdline"] or ())
        if str(folder) in told and process.pid != os.getpid():
            left.append(process)
    return left


def _lives(process: psutil.Process) -> bool:
    try:
        # Other files of tests share a server, which stays.
        return process.status() != psutil.STATUS_ZOMBIE and process.name() != "jupyter-server"
    except psutil.NoSuchProcess:
        return False


def _kernel_of(process: subprocess.Popen[str]) -> psutil.Process | None:
    """The process in which cells run: the deepest one, below every layer around it."""
    return next(
        (
            child
            for child in reversed(psutil.Process(process.pid).children(recursive=True))
            if not child.children()
        ),
        None,
    )


def _wait_for_the_cell(folder: Path) -> None:
    """Waits until the cell `WAIT` runs; its kernel works in the command's temporary folder."""
    wait_until(lambda: places_of("begun", _refuge(folder)), "the cell runs")


# it goes well


def test_the_answer_is_printed_and_the_notebook_kept(folder: Path) -> None:
    with ScriptedEndpoint([COUNT, SAID]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, *_at(endpoint))
    notebook = folder / "people-analysis.ipynb"
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{SAID}\nnotebook: {notebook}\n"
    document, trajectory = _read(notebook)
    assert document.cells[1].outputs[0].text == "3\n"
    assert (trajectory.stop, trajectory.answer) == (StopReason.ANSWERED, SAID)
    assert (trajectory.policy, trajectory.endpoint) == ("tiny", endpoint.base_url)
    assert not list(_refuge(folder).iterdir())


def test_several_tries_are_told_and_the_notebook_holds_one(folder: Path) -> None:
    with ScriptedEndpoint([*[COUNT] * 2, SAID]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, "--tries", "3", *_at(endpoint))
    notebook = folder / "people-analysis.ipynb"
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{SAID}\nattempts that agree: 2 of 2\nnotebook: {notebook}\n"
    document, _ = _read(notebook)
    assert [cell.cell_type for cell in document.cells] == ["markdown", "code", "markdown"]
    assert not list(_refuge(folder).iterdir())
    assert not _left_behind(folder)


@pytest.mark.slow
def test_tries_that_differ_are_shown(folder: Path) -> None:
    others = ["There are 4 people.", "There are 5 people."]
    with ScriptedEndpoint([COUNT, COUNT, SAID, others[0], COUNT, others[1]]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, "--tries", "3", *_at(endpoint))
    assert "attempts that agree: 1 of 3\n" in done.out
    assert "another attempt answered: " in done.out
    assert "no two attempts agree" in done.err


@pytest.mark.slow
def test_json_holds_the_whole_outcome(folder: Path) -> None:
    made = "open('x.txt', 'w').write('x')\nprint(len(df))\n```"
    with ScriptedEndpoint([made, "There are 7 rows."]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, "--json", "--out", "o.ipynb", *_at(endpoint))
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert told.pop("seconds") > 0
    assert told.pop("tokens") > 0
    (number,) = told.pop("numbers")
    assert (number["text"], number["cell"]) == ("7", None)
    assert told == {
        "ending": [],
        "answer": "There are 7 rows.",
        "unsupported": ["7"],
        "rests_on": [],
        "tries": None,
        "stop": "answered",
        "stop_detail": "",
        "notebook": str(folder / "o.ipynb"),
        "files": [str(folder / "x.txt")],
        "model": "tiny",
        "endpoint": endpoint.base_url,
        "turns": 3,
        "cells": 1,
    }
    _read(folder / "o.ipynb")


def test_a_trajectory_names_the_adapter_that_answered(folder: Path) -> None:
    pytest.importorskip("xllamacpp")
    write_model(folder / "tiny.gguf")
    file = write_adapter_file(folder / "mine.gguf")
    given = ("people.csv", QUESTION, "--model", "tiny.gguf", "--adapter", file.name)
    short = ("--max-turns", "1", "--turn-tokens", "4", "--json")
    done = _ask(folder, *given, *short, env={"XDG_RUNTIME_DIR": str(folder)})
    model = resolve(name_with_adapter(str(folder / "tiny.gguf"), file)).served_name
    assert json.loads(done.out)["model"] == model
    assert model.endswith(f"+mine@{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}")


@pytest.mark.slow
def test_an_adapter_that_can_not_be_used_is_named_with_the_way_out(folder: Path) -> None:
    write_model(folder / "tiny.gguf")
    for name, why in (("none.gguf", "no adapter file at"), ("tiny.gguf", "it is a model.")):
        done = _ask(folder, "people.csv", QUESTION, "--adapter", name)
        assert (done.code, done.out) == (4, "")
        assert why in done.err
        assert str(folder / name) in done.err
    done = _ask(folder, "people.csv", QUESTION, "--adapter", "a.gguf", "--model", "gpt-99")
    assert done.code == 2
    assert "'gpt-99' is not one. `dm-jupyter model list` lists them" in done.err


@pytest.mark.slow
def test_a_number_without_an_output_is_pointed_out_and_no_notebook_overwritten(
    folder: Path,
) -> None:
    (folder / "people-analysis.ipynb").write_text("mine")
    with ScriptedEndpoint([COUNT, "There are 7 rows."]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, *_at(endpoint))
    assert done.code == 0
    assert "not found in the outputs: 7" in done.err
    assert (folder / "people-analysis.ipynb").read_text() == "mine"
    _read(folder / "people-analysis-2.ipynb")


@pytest.mark.slow
def test_commands_at_the_same_time_write_notebooks_of_their_own(folder: Path) -> None:
    with ScriptedEndpoint([COUNT, SAID]) as one, ScriptedEndpoint([COUNT, SAID]) as other:
        ways = [_at(endpoint) for endpoint in (one, other)]
        started = [_start(folder, "people.csv", QUESTION, *way) for way in ways]
        ends = [_end(process) for process in started]
    assert [end.code for end in ends] == [0, 0]
    written = [folder / "people-analysis.ipynb", folder / "people-analysis-2.ipynb"]
    assert {f"notebook: {path}" for path in written} <= {
        line for end in ends for line in end.out.splitlines()
    }
    for path in written:
        assert _read(path)[1].stop is StopReason.ANSWERED


@pytest.mark.slow
def test_a_printed_answer_of_the_asked_form(folder: Path) -> None:
    with ScriptedEndpoint(["print(f'@n[{len(df)}]')\n```"]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, "--format", "@n[n]", *_at(endpoint))
    assert (done.code, done.out.splitlines()[0]) == (0, "@n[3]")


def _use(folder: Path, *options: str) -> tuple[Outcome, Trajectory]:
    """Asks with a cell that imports a package, from an index that is a folder."""
    index = folder / "index"
    index.mkdir(exist_ok=True)
    make_wheel(index, "squarify", "9.1", files={"squarify.py": "rows = 3\n"})
    own = {"JUPYTER_DATA_DIR": str(folder / "jupyter"), **index_variables(index)}
    use, anyway = "import squarify\nprint(squarify.rows)\n```", " it is missing.\nprint(3)\n```"
    with ScriptedEndpoint([use, SAID] if options else [use, anyway, SAID]) as endpoint:
        given = ("people.csv", QUESTION, "--out", "n.ipynb", *options, *_at(endpoint))
        done = _ask(folder, *given, env=own)
    return done, _read(folder / "n.ipynb")[1]


@pytest.mark.slow
def test_a_missing_package_is_installed_only_with_leave(folder: Path) -> None:
    done, trajectory = _use(folder)
    first = trajectory.steps[0].result
    assert first is not None
    assert first.error is not None
    assert (done.code, first.error.name, first.message) == (0, "ModuleNotFoundError", "")
    assert not (folder / "jupyter").exists()
    done, trajectory = _use(folder, "--install-packages")
    first = trajectory.steps[0].result
    assert first is not None
    assert (done.code, first.stdout, first.message) == (0, "3\n", "Installed squarify 9.1.")
    (site,) = (folder / "jupyter" / "dm_jupyter" / "packages").glob("*/site")
    assert (site / "squarify.py").exists()


# the data


def test_a_missing_file_is_exit_code_3(folder: Path) -> None:
    done = _ask(folder, "people.csv", "gone.csv", QUESTION)
    assert (done.code, done.out) == (3, "")
    assert "gone.csv: there is no such file" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "empty", "unreadable"])
def test_a_file_that_can_not_be_read_is_exit_code_3(folder: Path, kind: str) -> None:
    bad = folder / "bad.csv"
    if kind == "folder":
        bad.mkdir()
    else:
        bad.touch(0o000 if kind == "unreadable" else 0o644)
    if kind == "unreadable" and os.access(bad, os.R_OK):
        pytest.skip("this user may read every file")
    with ScriptedEndpoint([COUNT]) as endpoint:
        done = _ask(folder, "bad.csv", QUESTION, *_at(endpoint))
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("dm-jupyter: ")
    assert "bad.csv" in done.err
    assert not endpoint.bodies
    assert _files(folder) == {"bad.csv"}


# the usage


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["people.csv"], "ask people.csv 'How many rows are there?'`"),
        (["How many?"], "ask sales.csv 'How many?'`"),
        (["people.csv", " "], "question is empty"),
        (["How many?", "people.csv"], "the question is missing: it comes last"),
        (["people.csv", "How many?", "--out", "x.txt"], "ends in .ipynb"),
        (["people.csv", "How many?", "--out", "gone/x.ipynb"], "there is no folder gone"),
        (["people.csv", "How many?", "--dialect", "latin"], "latin"),
        (["people.csv", "How many?", "--base-url", "http://127.0.0.1:9/v1"], "--model"),
    ],
)
def test_wrong_usage_is_exit_code_2(folder: Path, arguments: list[str], words: str) -> None:
    done = _ask(folder, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


@pytest.mark.slow
def test_a_layer_that_does_not_exist_is_exit_code_5(folder: Path) -> None:
    with ScriptedEndpoint([COUNT]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, "--strict", "moat", *_at(endpoint))
    assert done.code == 5
    assert "moat" in done.err
    assert not _files(folder)


# the model


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (WITHOUT_ENGINE, "needs the package xllamacpp, which is not installed. Run `"),
        (COMMAND, f"The local model {DEFAULT_MODEL} (1.1 GB) is not on this machine"),
    ],
)
def test_what_the_local_model_lacks_is_exit_code_4_the_engine_first(
    folder: Path, code: str, words: str
) -> None:
    cache = {"XDG_CACHE_HOME": str(folder / "t")}
    done = _ask(folder, "people.csv", QUESTION, env=cache, code=code)
    assert (done.code, done.out) == (4, "")
    assert words in done.err
    assert not _files(folder)


def test_nothing_at_the_endpoint_is_exit_code_4_and_leaves_no_file(folder: Path) -> None:
    url = unused_url()
    done = _ask(folder, "people.csv", QUESTION, "--base-url", url, "--model", "tiny")
    assert (done.code, done.out) == (4, "")
    assert f"nothing answers for tiny at {url}" in done.err
    assert not _files(folder)


@pytest.mark.slow
def test_a_wrong_key_is_exit_code_4_and_shown_nowhere(folder: Path) -> None:
    key = "sk-secret-123"
    with ScriptedEndpoint([COUNT], refusals=[401] * 9) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, *_at(endpoint), env={"DM_JUPYTER_API_KEY": key})
    assert done.code == 4
    assert "DM_JUPYTER_API_KEY" in done.err
    assert endpoint.headers[0]["authorization"] == f"Bearer {key}"
    assert key not in done.out + done.err
    assert not _files(folder)


@pytest.mark.slow
def test_an_answer_that_breaks_off_is_exit_code_4_with_the_notebook_kept(folder: Path) -> None:
    with ScriptedEndpoint([COUNT, SAID], breaks_at=1) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, *_at(endpoint))
    assert done.code == 4
    assert f"tiny at {endpoint.base_url}" in done.err
    assert f"notebook: {folder / 'people-analysis.ipynb'}" in done.out
    document, trajectory = _read(folder / "people-analysis.ipynb")
    assert document.cells[1].outputs[0].text == "3\n"
    assert (trajectory.stop, trajectory.turns) == (StopReason.FAULT, 1)


@pytest.mark.slow
def test_garbage_in_every_turn_is_exit_code_1(folder: Path) -> None:
    with ScriptedEndpoint(["blah"]) as endpoint:
        done = _ask(folder, "people.csv", QUESTION, "--dialect", "datamind", *_at(endpoint))
    assert done.code == 1
    assert "3 turns in a row without code or an answer" in done.err
    assert "no cell ran, so there is no notebook" in done.err
    assert len(endpoint.bodies) == 3
    assert not _files(folder)


# it is stopped, or something is


@pytest.mark.slow
def test_an_interrupt_before_the_first_cell_is_exit_code_130_and_touches_no_file(
    folder: Path,
) -> None:
    mine = folder / "mine.ipynb"
    mine.write_text("mine")
    with ScriptedEndpoint([COUNT], piece_pause_s=30) as endpoint:
        process = _start(folder, "people.csv", QUESTION, "--out", "mine.ipynb", *_at(endpoint))
        wait_until(lambda: endpoint.bodies, "the model is asked")
        process.send_signal(signal.SIGINT)
        done = _end(process)
    assert (done.code, done.out, done.err) == (130, "", "dm-jupyter: interrupted\n")
    assert _files(folder) == {"mine.ipynb"}
    assert mine.read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_a_cell_is_exit_code_130_with_the_notebook_kept(
    folder: Path, sent: signal.Signals
) -> None:
    notebook = folder / "people-analysis.ipynb"
    with ScriptedEndpoint([WAIT]) as endpoint:
        process = _start(folder, "people.csv", QUESTION, *_at(endpoint))
        _wait_for_the_cell(folder)
        process.send_signal(sent)
        done = _end(process)
    assert done.code == 130
    assert f"notebook so far: {notebook}" in done.err
    document, trajectory = _read(notebook)
    assert "time.sleep(600)" in document.cells[1].source
    assert trajectory.stop is StopReason.CANCELLED
    assert not list(_refuge(folder).iterdir())


@pytest.mark.slow
def test_a_kernel_that_is_killed_is_replaced_and_the_run_goes_on(folder: Path) -> None:
    notebook = folder / "people-analysis.ipynb"
    with ScriptedEndpoint([WAIT, COUNT, SAID]) as endpoint:
        process = _start(folder, "people.csv", QUESTION, *_at(endpoint))
        _wait_for_the_cell(folder)
        kernel = _kernel_of(process)
        assert kernel is not None
        kernel.send_signal(signal.SIGKILL)
        done = _end(process)
    assert (done.code, done.out.splitlines()[0]) == (0, SAID)
    document, trajectory = _read(notebook)
    assert document.cells[1].cell_type == "markdown"
    first = trajectory.steps[0].result
    assert first is not None
    assert (first.status.value, first.state_lost) == ("killed", True)


@pytest.mark.slow
def test_a_folder_that_takes_no_file_is_exit_code_6_before_the_model_is_asked(
    folder: Path, small_disk: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with ScriptedEndpoint([COUNT, SAID]) as endpoint:
        out = ("--out", str(small_disk / "n.ipynb"))
        done = _ask(folder, "people.csv", QUESTION, *out, *_at(endpoint))
    assert (done.code, done.out, endpoint.bodies) == (6, "", [])
    assert f"can't be written into {small_disk}" in done.err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this user may mount nothing")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_exit_code_6_and_the_notebook_is_elsewhere(
    folder: Path, small_disk: Path
) -> None:
    long = "print('x' * 400_000)\nprint(len(df))\n```"
    with ScriptedEndpoint([long, SAID]) as endpoint:
        done = _ask(
            folder, "people.csv", QUESTION, "--out", str(small_disk / "n.ipynb"), *_at(endpoint)
        )
    assert done.code == 6
    assert "No space left" in done.err
    (kept,) = _refuge(folder).glob("*.ipynb")
    assert f"the notebook so far is in {kept}" in done.err
    document, _ = _read(kept)
    assert "x" * 1000 in document.cells[1].outputs[0].text
    former = nbformat.read(small_disk / "n.ipynb", as_version=nbformat.NO_CONVERT)
    nbformat.validate(former)
    assert [entry.name for entry in small_disk.iterdir()] == ["n.ipynb"]


def test_a_long_question_is_no_file_name(folder: Path) -> None:
    done = _ask(folder, "nowhere.csv", "why? " * 200)
    assert done.code == 3
    assert "nowhere.csv" in done.err


def test_what_is_no_table_is_refused_before_the_model_is_asked(folder: Path) -> None:
    name, words = "report.pdf", "a PDF"
    (folder / name).write_bytes(b"%PDF-1.7\n")
    done = _ask(folder, name, QUESTION, "--base-url", unused_url(), "--model", "m")
    assert done.code == 3
    assert f"{name}: " in done.err
    assert words in done.err
    assert "Files that can be read: csv, tsv" in done.err
