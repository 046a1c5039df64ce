"""Twelve questions of a person, asked in the panel: of a capable model, and of the local one."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.models.http_policy import TOOL_PROBE
from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, resolve
from examples.questions import FOLDER, PersonsQuestion, persons_questions
from tests.browser.lab import LAB_OPTIONS, Lab, until
from tests.dm_jupyter.models.families import family
from tests.dm_jupyter.models.stand_in import ScriptedModelRequest, ScriptedTurn, StandIn
from tests.dm_jupyter.server.jupyter import JupyterServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUESTIONS = persons_questions()
CAPABLE = tomllib.loads(Path("tests/browser/capable.toml").read_text("utf-8"))


def capable_model(request: ScriptedModelRequest) -> ScriptedTurn:
    """Runs the cells of `capable.toml`, then answers with what the last of them printed."""
    if request.tools == (TOOL_PROBE.name,):
        return ScriptedTurn("", tool_calls=((TOOL_PROBE.name, "{}"),))
    task = next(str(one["content"]) for one in request.messages if one["role"] == "user")
    # Those that were asked before in the notebook stand above the question.
    name = max(QUESTIONS, key=lambda one: task.rfind(QUESTIONS[one].ask))
    results = [str(one["content"]) for one in request.messages if one["role"] == "tool"]
    script = CAPABLE[name]
    if len(results) < len(script["cells"]):
        cell = script["cells"][len(results)]
        kind = "sql" if "sql" in cell else "python"
        argument = {"query" if kind == "sql" else "code": cell[kind]}
        return _call(cell["thought"], f"run_{kind}", argument)
    last = results[len(script["cells"]) - 1]  # an answer that was sent back stands as it is
    printed = [line for line in last.splitlines() if line and line[0] != "["]
    lines = iter(printed)
    text = re.sub(r"\{\}", lambda _: next(lines), script["answer"])
    return _call("The output holds all of it.", "answer", {"text": text})


def _call(thought: str, name: str, arguments: dict[str, str]) -> ScriptedTurn:
    return ScriptedTurn(thought, tool_calls=((name, json.dumps(arguments)),))


@pytest.fixture(scope="module")
def capable_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    """JupyterLab with a capable model behind an endpoint that calls tools."""
    with (
        StandIn(family("openai"), capable_model) as endpoint,
        _server(tmp_path_factory.mktemp("capable"), endpoint.base_url) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    """JupyterLab with the local model."""
    with _server(tmp_path_factory.mktemp("local"), "") as server:
        yield server


def _server(folder: Path, base_url: str) -> JupyterServer:
    model = "gpt-4.1-mini" if base_url else "local"
    return JupyterServer(folder, base_url, model=model, app="lab", options=LAB_OPTIONS)


def _asked(lab: Lab, name: str, timeout_s: float) -> list[str]:
    """Asks a question, after the one before it; returns what its answer does not state."""
    question = QUESTIONS[name]
    if question.after:
        _asked(lab, question.after, timeout_s)
    lab.ask(question.ask, *question.files)
    ended = ("answered", "failed", "stopped")
    state = until(
        lab.page,
        lambda: (found := lab.run.get_attribute("data-state")) in ended and found,
        f"an end of {name!r}",
        timeout_s,
    )
    if state != "answered":
        return [f"an answer ({state})"]
    missing = question.missing(lab.answer.inner_text())
    return missing + _not_in_notebook(lab, question)


def _not_in_notebook(lab: Lab, question: PersonsQuestion) -> list[str]:
    """What the document and its folder lack."""
    outputs = [
        output for cell in lab.open_document()["cells"] for output in cell.get("outputs", ())
    ]
    has_figure = any("image/png" in output.get("data", {}) for output in outputs)
    missing = ["a figure"] if question.figure and not has_figure else []
    folder = (lab.server.root / lab.path).parent
    made = folder / question.makes
    if question.makes and not made.is_file():
        missing.append(question.makes)
    elif question.makes:
        made.unlink()  # the questions after it are about what was there before
    return missing


def _opened(open_lab: Callable[..., Lab], server: JupyterServer, folder: str, name: str) -> Lab:
    (server.root / folder).mkdir(exist_ok=True)
    for file in ("penguins.csv", "islands.csv", "seattle-weather.csv", "chinook.sqlite"):
        shutil.copy(FOLDER / file, server.root / folder)
    return open_lab(f"{name}.ipynb", server=server, sources=("",))


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_capable_model_answers_with_tools(
    name: str,
    capable_server: JupyterServer,
    open_lab: Callable[..., Lab],
    folder: str,
    tmp_path: Path,
) -> None:
    lab = _opened(open_lab, capable_server, folder, name)
    missing = _asked(lab, name, timeout_s=90)
    lab.page.screenshot(path=tmp_path / f"{name}.png")
    assert missing == []


@pytest.mark.model
@pytest.mark.skipif(
    not is_present(resolve(DEFAULT_MODEL)), reason="skipped: run `make model` first"
)
def test_the_local_model_is_asked_all_of_them(
    local_server: JupyterServer,
    open_lab: Callable[..., Lab],
    folder: str,
    tmp_path: Path,
) -> None:
    """None ends in a fault; docs/experiments.md#twelve-everyday-questions says which were right."""
    missing: dict[str, Any] = {}
    for name in QUESTIONS:
        lab = _opened(open_lab, local_server, folder, name)
        missing[name] = _asked(lab, name, timeout_s=600)
        lab.page.screenshot(path=tmp_path / f"{name}.png")
        print(name, missing[name] or "right")
        lab.page.close()
    faults = [name for name, lacks in missing.items() if "an answer (failed)" in lacks]
    assert faults == []
    assert any(not lacks for lacks in missing.values()), missing
