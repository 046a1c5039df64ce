"""Searches that a value model guides: a real server, and the real command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from tests.endpoint import LocalServer, ScriptedEndpoint, unused_url
from training.evaluate import main
from training.evaluation.models import ValueModel, ValueModelError
from training.records.records import read_run

Reply = Callable[[list[Any]], Any]


class _Handler(BaseHTTPRequestHandler):
    endpoint: ValueServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.asked += body["states"]
        reply = json.dumps(self.endpoint.reply(body["states"])).encode()
        self.send_response(self.endpoint.status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class ValueServer(LocalServer):
    """Replies with what a function makes of the states."""

    handler = _Handler

    def __init__(self, reply: Reply, status: int = 200) -> None:
        self.reply, self.status = reply, status
        self.asked: list[list[dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://someone:secret@127.0.0.1:{self.port}/values?key=secret"


def _likes_four(states: list[Any]) -> dict[str, list[float]]:
    """Values each state by whether its last words speak of 4."""
    return {"values": [0.9 if "4" in state[-1]["content"] else -0.5 for state in states]}


@pytest.mark.parametrize(("choose", "answer"), [("vote", "@n[3]"), ("value", "@n[4]")])
def test_a_search_chooses_as_the_command_says(
    choose: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split, out = tmp_path / "split", tmp_path / "out"
    split.mkdir()
    (split / "t.csv").write_text("a\n1\n")
    question = {
        "id": "q", "question": "How many?", "constraints": "", "format": "@n[n]", "file": "t.csv",
        "level": "easy", "concepts": [], "label_pairs": [["n", "3"]],
    }  # fmt: skip
    (split / "questions.jsonl").write_text(json.dumps(question) + "\n")
    says = [f"print('@n[{number}]')\n```" for number in (3, 4, 3)]
    with ValueServer(_likes_four) as values, ScriptedEndpoint(says) as endpoint:
        monkeypatch.setattr(
            sys, "argv",
            ["evaluate", "dabench", "--split", str(split), "--out", str(out), "--profile",
             "interactive", "--policy", "scripted", "--base-url", endpoint.base_url, "--strategy",
             "search", "--iterations", "1", "--value-model", values.url, "--choose", choose],
        )  # fmt: skip
        assert main() == 0
        assert len(values.asked) == 3
        assert values.asked[0][0]["role"] == "system"
        address = f"http://127.0.0.1:{values.port}/values"
    (record,) = read_run(out)
    assert record.answer == answer
    manifest = (out / "run.json").read_text()
    assert json.loads(manifest)["strategy"]["value_model"] == address
    assert json.loads(manifest)["strategy"]["select"] == choose
    assert "secret" not in manifest


@pytest.mark.parametrize(
    ("reply", "status", "why"),
    [
        (lambda _: {"values": []}, 200, "asked for 1 values and replied with another number"),
        (lambda _: {"values": [2]}, 200, "replied with 2, which is not a number from -1 to 1"),
        (lambda _: {"values": [True]}, 200, "replied with True, which is not a number"),
        (lambda _: {"values": [float("nan")]}, 200, "replied with nan, which is not a number"),
        (lambda _: {"values": {"0": 1}}, 200, "replied with another number"),
        (lambda _: [0.5], 200, 'did not reply with {"values": '),
        (lambda _: "?", 404, "answers 404 Not Found; see --value-model"),
    ],
)
async def test_another_reply_is_refused_and_no_secret_is_said(
    reply: Reply, status: int, why: str
) -> None:
    state = Trajectory(Task("q", "How many?"), "markdown")
    with ValueServer(reply, status) as server:
        async with ValueModel(server.url) as model:
            with pytest.raises(ValueModelError) as fault:
                await model([state])
    assert why in str(fault.value)
    assert "secret" not in str(fault.value)


async def test_an_address_that_nothing_listens_at_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.evaluation.models._PAUSE_S", 0.0)
    url = unused_url()
    async with ValueModel(url) as model:
        with pytest.raises(ValueModelError, match="can't be reached"):
            await model([Trajectory(Task("q", "How many?"), "markdown")])
