"""Ten conversations over prepared notebooks: with a scripted capable model, and the local one.

The scripted model answers only from what it was sent, so that a right answer says that loop, kernel
and context do their part, and nothing of any model.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, output_from_msg

from dm_jupyter.agent.notebook_context import NotebookCell, cells_of_document
from dm_jupyter.core.codec import decode_value
from dm_jupyter.models.http_policy import TOOL_PROBE
from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, resolve
from dm_jupyter.server.protocol import RunMessage, operations
from examples.questions import PersonsQuestion
from tests.dm_jupyter.models.families import family
from tests.dm_jupyter.models.stand_in import ScriptedModelRequest, ScriptedTurn, StandIn
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel

_RAW = tomllib.loads(Path(__file__).with_name("conversations.toml").read_text("utf-8"))
NOTEBOOKS: Mapping[str, Any] = _RAW["notebooks"]
CONVERSATIONS: Mapping[str, Any] = {one["name"]: one for one in _RAW["conversations"]}
ASKS = {
    step["ask"]: step for one in _RAW["conversations"] for step in one["steps"] if "ask" in step
}
QUICK = ("variables alive", "an edited cell")
"""Those of `make test`: each tells the model another part of the notebook."""
CAN_NOT_KNOW = "That can't be known from what I was told."


def capable_model(request: ScriptedModelRequest) -> ScriptedTurn:
    """Runs the code of the last question that it was sent, if it was sent what it takes."""
    if request.tools == (TOOL_PROBE.name,):
        return ScriptedTurn("", tool_calls=((TOOL_PROBE.name, "{}"),))
    told = next(str(one["content"]) for one in request.messages if one["role"] == "user")
    step = ASKS[max(ASKS, key=told.rfind)]
    results = [str(one["content"]) for one in request.messages if one["role"] == "tool"]
    if not all(text in told for text in step["sees"]):
        return _call("answer", {"text": CAN_NOT_KNOW})
    if not results:
        return _call("run_python", {"code": step["code"]})
    lines = iter(results[0].splitlines())
    return _call("answer", {"text": re.sub(r"\{\}", lambda _: next(lines), step["says"])})


def _call(name: str, arguments: dict[str, str]) -> ScriptedTurn:
    return ScriptedTurn("", tool_calls=((name, json.dumps(arguments)),))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[StandIn]:
    with StandIn(family("openai"), capable_model) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, endpoint: StandIn) -> Iterator[JupyterServer]:
    folder = tmp_path_factory.mktemp("c")
    with JupyterServer(folder, endpoint.base_url, model="gpt-4.1-mini") as running:
        yield running


@pytest.fixture(scope="module")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    with JupyterServer(tmp_path_factory.mktemp("l"), "", model="local") as running:
        yield running


class Conversation:
    """One conversation in one notebook, as a panel would hold it."""

    def __init__(self, server: JupyterServer, name: str) -> None:
        self.raw = CONVERSATIONS[name]
        self.prepared = NOTEBOOKS[self.raw["notebook"]]
        self.server = server
        self.folder = re.sub(r"\W", "-", name)
        self.document = new_notebook()
        self.cells: list[NotebookCell] = []
        self.answers: list[str] = []

    async def hold(self) -> None:
        """Runs the prepared cells, then takes each step."""
        (self.server.root / self.folder).mkdir()
        for file, text in self.prepared["files"].items():
            self._write(file, text.lstrip())
        sources = tuple(self.prepared["cells"])
        path = self.server.notebook(f"{self.folder}/work.ipynb", sources=sources)
        await self._run_prepared(path)
        async with Panel(self.server) as panel:
            await panel.attach(path)
            for step in self.raw["steps"]:
                await self._take(step, panel, path)
        self.server.end_kernels(self.folder)

    async def _take(self, step: Mapping[str, Any], panel: Panel, path: str) -> None:
        if "ask" in step:
            cells = [asdict(cell) for cell in self.cells]
            selected = self.raw["selected"]
            await panel.ask(path, step["ask"], cells=cells, selected=selected, approval="auto")
            closed = await panel.until("run_closed")
            self.answers.append(closed["answer"] or f"[{closed['stop']}: {closed['detail']}]")
            self._apply(panel)
        elif "restart" in step:
            self.server.request("POST", f"/api/kernels/{self.server.kernel_id(path)}/restart")
        elif "write" in step:
            self._write(step["write"], step["text"])
        else:
            last = max(place for place, cell in enumerate(self.cells) if cell.role == "cell")
            changed = asdict(self.cells[last])
            changed |= {"source": changed["source"].replace(*step["edit"]), "count": None}
            self.cells[last] = NotebookCell(**changed)

    def _write(self, file: str, text: str) -> None:
        path = self.server.root / self.folder / file
        path.write_text(text)
        os.utime(path)

    async def _run_prepared(self, path: str) -> None:
        for place, source in enumerate(self.prepared["cells"]):
            cell = new_markdown_cell(source)
            if place not in self.prepared["markdown"]:
                cell = new_code_cell(source, execution_count=place + 1)
                cell.outputs = _outputs(await self.server.execute(path, source))
            self.document.cells.append(cell)
        self.cells = cells_of_document(self.document)

    def _apply(self, panel: Panel) -> None:
        """The notebook as the panel shows it once the run's cells are in it."""
        for raw in panel.of("operated"):
            operations.apply(decode_value(RunMessage, raw, "message").operation, self.document)
        panel.heard.clear()
        self.cells = cells_of_document(self.document)

    @property
    def missing(self) -> list[float | str]:
        """What the last answer does not state."""
        question = PersonsQuestion((), "", tuple(self.raw["states"]))
        return question.missing(self.answers[-1])

    def assert_untouched(self) -> None:
        """The person's own cells are as they were."""
        cells = self.document.cells
        own = [cell["source"] for cell in cells if "dm_jupyter" not in cell["metadata"]]
        assert own == self.prepared["cells"]


def _outputs(text: str) -> list[Any]:
    """The outputs among the contents of a kernel's messages."""
    kinds = {"name": "stream", "execution_count": "execute_result", "ename": "error"}
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        content, at = decoder.raw_decode(text, at)
        kind = "display_data" if "data" in content else ""
        for key, named in kinds.items():
            kind = (
                named
                if key in content and ("data" in content or key != "execution_count")
                else kind
            )
        if kind and "status" not in content:
            found.append(output_from_msg({"header": {"msg_type": kind}, "content": content}))
    return found


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CONVERSATIONS],
)
async def test_a_capable_model_gets_what_it_takes(server: JupyterServer, name: str) -> None:
    conversation = Conversation(server, name)
    async with asyncio.timeout(120):
        await conversation.hold()
    assert conversation.missing == [], conversation.answers
    conversation.assert_untouched()


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.skipif(
    not is_present(resolve(DEFAULT_MODEL)), reason="skipped: run `make model` first"
)
async def test_the_local_model_answers_six_of_ten(local_server: JupyterServer) -> None:
    told = {}
    for name in CONVERSATIONS:
        conversation = Conversation(local_server, name)
        async with asyncio.timeout(900):
            await conversation.hold()
        told[name] = (not conversation.missing, conversation.answers)
        print(name, *told[name], flush=True)
        conversation.assert_untouched()
    assert sum(is_right for is_right, _ in told.values()) >= 6, told
