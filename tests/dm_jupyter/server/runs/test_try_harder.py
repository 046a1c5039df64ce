"""A question that is tried several times: in fresh kernels first, and then in the notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any

import psutil
import pytest

from dm_jupyter.core.codec import decode_value
from dm_jupyter.server.protocol import ClientMessage, RunMessage
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.dm_jupyter.server.telling import Says, tell
from tests.endpoint import ScriptedEndpoint, unused_url
from tests.waiting import PATIENCE_S, until

CODE = "print(df.sales.sum(), df.sales.sum() + 1)\n```"
ANSWERS = ("There are 41.", "The sales add up to **40**.", "It is 40.0 in all.")
SLEEP = "import time\ntime.sleep(600)\n```"
QUESTION = "What is the sum of sales?"


def _votes(*answers: str) -> Says:
    """The same cell in every try, and then one answer each."""
    left = list(answers)
    return lambda turn, _: CODE if turn == 0 else left.pop(0)


def _sources(panel: Panel) -> list[str]:
    """The code cells that the run has written."""
    operations = [message["operation"] for message in panel.of("operated")]
    return [
        one["source"]
        for one in operations
        if one["op"] == "insert_cell" and one["cell_type"] == "code"
    ]


async def _closed(panel: Panel) -> dict[str, Any]:
    async with asyncio.timeout(90):
        return await panel.until("run_closed")


@contextmanager
def _own_server(
    folder: Path, base_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[JupyterServer]:
    """A server with a temporary folder of its own, so that what is left there is its own."""
    (folder / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
    with JupyterServer(folder, base_url) as server:
        (server.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
        # The process that reads data files stays for a while.
        assert server.get("/dm-jupyter/api/examples?near=")["examples"]
        yield server


def _zygotes(server: JupyterServer) -> list[psutil.Process]:
    """The processes of the tries: the zygote, its workers and their monitors."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        command = " ".join(process.info["cmdline"] or ())
        environ = process.info["environ"] or {}
        is_reader = "dm_jupyter.data.profile_reader" in command
        if (
            "kernel_sandbox.forkserver.zygote" in command
            and not is_reader
            and any(str(server.folder) in value for value in environ.values())
        ):
            found.append(process)
    return found


def _folders(server: JupyterServer) -> list[str]:
    places = [server.folder / "tmp", server.folder / "r"]
    return [
        path.name
        for place in places
        for path in place.iterdir()
        if path.name.startswith(("dm-tries-", "dm-work-", "dmz-"))
    ]


async def test_the_notebook_gets_once_what_most_tries_say(
    server: JupyterServer, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    says = _votes(*ANSWERS)
    tell(monkeypatch, endpoint, lambda turn, told: asked.append(turn) or says(turn, told))
    path = server.notebook("harder.ipynb")
    async with Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, QUESTION, files=["sales.csv"], tries=3)
        closed = await _closed(panel)
    assert closed["stop"] == "answered", closed
    assert "40" in closed["answer"]
    assert (closed["agreeing"], closed["turns"], closed["cells"]) == (2, 2, 1)
    assert asked.count(1) == 3  # what was said in the notebook was not asked for again
    opened = panel.of("run_opened")[0]
    assert (opened["tries"], opened["max_tokens"]) == (3, 60_000)
    phases = [message["text"] for message in panel.of("phase")]
    assert phases.index("trying 3 times in fresh kernels") < phases.index("thinking")
    assert [text for text in phases if text.endswith(" ended")] == [
        f"trying 3 times in fresh kernels: {ended} ended" for ended in (1, 2, 3)
    ]
    assert len(_sources(panel)) == 1
    outputs = [
        message["operation"]["output"]
        for message in panel.of("operated")
        if message["operation"]["op"] == "append_output"
    ]
    assert [output["text"] for output in outputs] == ["40 41\n"]
    # The endpoint counts a token for each piece of seven characters.
    tokens = 3 * ceil(len(CODE) / 7) + sum(ceil(len(answer) / 7) for answer in ANSWERS)
    assert closed["tokens"] == tokens
    listed = server.get(f"/dm-jupyter/api/runs?notebook={path}")["runs"]
    assert (listed[0]["run_id"], listed[0]["tokens"]) == (run_id, tokens)


@pytest.mark.slow
async def test_cells_wait_and_can_be_undone_as_always(
    server: JupyterServer, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, endpoint, _votes(*ANSWERS[1:], ANSWERS[1]))
    path = server.notebook("waits.ipynb")
    async with asyncio.timeout(120), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, QUESTION, files=["sales.csv"], approval="ask", tries=2)
        waiting = await panel.until("cell_opened")
        assert waiting["waits_because"]
        word = {"run_id": run_id, "cell_id": waiting["cell_id"], "decision": "approve"}
        await panel.say("decide", **word)
        closed = await _closed(panel)
        await panel.say("undo", run_id=run_id)
        await panel.until("run_undone")
    assert (closed["stop"], closed["agreeing"]) == ("answered", 2)
    deleted = [x for x in panel.of("operated") if x["operation"]["op"] == "delete_cell"]
    assert len(deleted) == 3  # question, cell, answer


@pytest.mark.slow
async def test_where_a_cell_ends_otherwise_the_model_goes_on(
    server: JupyterServer, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tries don't see the file beside the notebook; the notebook's own kernel does."""

    def says(turn: int, told: str) -> str:
        if turn == 0:
            return "import os\nprint(os.path.exists('beside.txt'))\n```"
        return "It is there." if "True" in told else "It is not there."

    (server.root / "beside.txt").write_text("here")
    tell(monkeypatch, endpoint, says)
    path = server.notebook("beside.ipynb")
    async with Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Is it there?", files=["sales.csv"], tries=2)
        closed = await _closed(panel)
    assert (closed["answer"], closed["agreeing"]) == ("It is there.", 0)


@pytest.mark.slow
async def test_a_file_by_its_whole_path_is_read_by_the_tries_too(
    server: JupyterServer, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a kernel of the person's own, which does not work in the server's folder."""
    tell(monkeypatch, endpoint, _votes(*ANSWERS[1:]))
    (server.root / "own").mkdir()
    path = server.notebook("own/own.ipynb", kernel="python3")
    async with asyncio.timeout(120), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, QUESTION, files=["sales.csv"], kernel="own", tries=2)
        waiting = await panel.until("cell_opened")
        word = {"run_id": run_id, "cell_id": waiting["cell_id"], "decision": "approve"}
        await panel.say("decide", **word)
        closed = await _closed(panel)
    assert str(server.root / "sales.csv") in _sources(panel)[0]
    assert (closed["stop"], closed["agreeing"]) == ("answered", 2)


async def test_stop_ends_the_tries_at_once_and_leaves_nothing(
    tmp_path: Path, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, endpoint, lambda turn, _: SLEEP)
    with _own_server(tmp_path, endpoint.base_url, monkeypatch) as server:
        path, before = server.notebook("stopped.ipynb"), _folders(server)
        async with asyncio.timeout(90), Panel(server) as panel:
            await panel.attach(path)
            run_id = await panel.ask(path, QUESTION, files=["sales.csv"], tries=3)
            await panel.until(lambda x: x["kind"] == "phase" and x["text"].startswith("trying"))
            # The zygote, its monitor, a worker of each try.
            await until(lambda: len(_zygotes(server)) >= 5, "all tries have a worker")
            await panel.say("stop", run_id=run_id)
            closed = await _closed(panel)
        assert (closed["stop"], closed["cells"], closed["agreeing"]) == ("cancelled", 0, 0)
        assert _sources(panel) == []
        assert (_zygotes(server), _folders(server)) == ([], before)


@pytest.mark.slow
async def test_a_dead_endpoint_is_one_clear_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _own_server(tmp_path, unused_url(), monkeypatch) as server:
        path, before = server.notebook("dead.ipynb"), _folders(server)
        async with Panel(server) as panel:
            await panel.attach(path)
            await panel.ask(path, QUESTION, files=["sales.csv"], tries=3)
            closed = await _closed(panel)
        assert closed["stop"] == "fault"
        assert "127.0.0.1" in closed["detail"]
        assert "\n" not in closed["detail"]
        assert (_zygotes(server), _folders(server)) == ([], before)


@pytest.mark.slow
async def test_where_no_worker_can_start_one_line_says_so(
    tmp_path: Path, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(monkeypatch, endpoint, _votes(*ANSWERS))
    with _own_server(tmp_path, endpoint.base_url, monkeypatch) as server:
        path = server.notebook("nowhere.ipynb")
        async with Panel(server) as panel:
            await panel.attach(path)
            await panel.ask(path, QUESTION, files=["sales.csv"])
            assert (await _closed(panel))["stop"] in {"answered", "turn_limit"}
            (tmp_path / "tmp").rename(tmp_path / "gone")
            await panel.ask(path, QUESTION, files=["sales.csv"], tries=2)
            closed = await _closed(panel)
    assert closed["stop"] == "fault"
    assert "for the tries" in closed["detail"]
    assert "\n" not in closed["detail"]


async def test_variables_are_not_in_fresh_kernels(server: JupyterServer) -> None:
    path = server.notebook("variables.ipynb")
    async with asyncio.timeout(PATIENCE_S), Panel(server) as panel:
        await panel.attach(path)
        await panel.say(
            "ask", request_id="r", notebook_path=path, question="How?", variables=["df"], tries=2
        )
        refused = await panel.until("refused")
    assert "none of this notebook's variables" in refused["message"]


@pytest.mark.parametrize("tries", [0, -1, 10, "3", True, 2.0])
def test_a_number_of_tries_that_makes_no_sense_is_refused(tries: object) -> None:
    raw = {"kind": "ask", "request_id": "r", "notebook_path": "n.ipynb", "question": "How?"}
    with pytest.raises(ValueError, match="tries"):
        decode_value(ClientMessage, {**raw, "tries": tries}, "message")


def test_a_journal_from_before_there_were_tries_is_read() -> None:
    raw = {
        "kind": "run_closed", "run_id": "r", "seq": 9, "at": 1.0, "stop": "answered",
        "detail": "", "answer": "40", "unsupported": [], "turns": 1, "cells": 1, "tokens": 1,
        "seconds": 1.0,
    }  # fmt: skip
    closed = decode_value(RunMessage, raw, "message")
    assert getattr(closed, "agreeing", None) == 0
