"""Work that is killed again and again repeats no call that came to its end, and loses nothing."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.endpoint import LocalServer
from tests.training.durable.killed_program import AT_ONCE
from tests.training.evaluation.eval_program import turn_text
from tests.waiting import PATIENCE_S

CHECKOUT = Path(__file__).resolve().parents[3]
# An optional part of the notebook format's validator takes longer to import than all the rest.
START = """
import runpy, sys
sys.modules["rfc3987_syntax"] = None
runpy.run_module("tests.training.durable.killed_program", run_name="__main__")
"""


class CountingModel(LocalServer):
    """Answers by the question and the turn, counts what it is asked, and says when to kill."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        """A digest of each request."""
        self.reached = threading.Event()
        self._moment: tuple[int, bool] | None = None
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def kill_at(self, number: int | None, *, is_answered: bool) -> None:
        """The moment is a request from now on, before or after it is answered."""
        self.reached.clear()
        self._moment = None if number is None else (len(self.asked) + number, is_answered)

    def count(self, body: bytes) -> int:
        with self._lock:
            self.asked.append(hashlib.sha256(body).hexdigest())
            return len(self.asked)

    def note(self, number: int, *, is_answered: bool) -> None:
        if self._moment == (number, is_answered):
            self.reached.set()


class _CountingHandler(BaseHTTPRequestHandler):
    endpoint: CountingModel
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        body = self.rfile.read(size)
        if len(body) < size:  # killed in the middle of asking
            self.close_connection = True
            return
        number = self.endpoint.count(body)
        self.endpoint.note(number, is_answered=False)
        reply = json.dumps({"text": turn_text(json.loads(body)["messages"])}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
        self.endpoint.note(number, is_answered=True)


CountingModel.handler = _CountingHandler


@dataclass
class Killed:
    """A program that is killed at random moments, until it is let to its end."""

    kind: str
    split: Path
    out: Path
    model: CountingModel
    broken_off: list[int] = field(default_factory=list)
    """By session, the calls that were in flight at its end."""

    def session(self, number: int | None, *, is_answered: bool = False, pause_s: float = 0) -> None:
        """Runs until a moment, or to the end."""
        self.model.kill_at(number, is_answered=is_answered)
        asked, kept = len(self.model.asked), len(self.kept())
        with subprocess.Popen(
            [sys.executable, "-c", START,
             self.kind, str(self.split), str(self.out), self.model.url],
            cwd=CHECKOUT, stdin=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            if number is None:
                assert process.wait(PATIENCE_S) == 0
            else:
                assert self.model.reached.wait(PATIENCE_S)
                time.sleep(pause_s)  # any moment will do
                process.kill()
        self.broken_off.append(len(self.model.asked) - asked - (len(self.kept()) - kept))

    def kept(self) -> list[str]:
        """The keys of the calls that are whole in the log."""
        file = self.out / "calls.jsonl"
        raw = file.read_bytes() if file.exists() else b""
        return [json.loads(line)["key"] for line in raw.split(b"\n")[:-1]]


def _split(folder: Path, questions: int) -> Path:
    folder.mkdir()
    (folder / "t.csv").write_text("a\n1\n2\n3\n")
    rows = [
        {"id": f"q{number}", "question": f"What is number {number} modulo 7?", "constraints": "",
         "format": "@n[n]", "file": "t.csv", "level": "easy", "concepts": [],
         "label_pairs": [["n", str(number % 7)]], "flags": []}
        for number in range(questions)
    ]  # fmt: skip
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def _kill_and_compare(kind: str, folder: Path, kills: int, questions: int, seed: int) -> None:
    split = _split(folder / "split", questions)
    random_ = random.Random(seed)
    with CountingModel() as model:
        killed = Killed(kind, split, folder / "killed", model)
        for _ in range(kills):
            killed.session(
                random_.randint(1, 3),
                is_answered=random_.random() < 0.5,
                pause_s=random_.choice((0, random_.random() / 20)),
            )
        killed.session(None)
        kept, asked = killed.kept(), Counter(model.asked)
        assert all(0 <= one <= AT_ONCE for one in killed.broken_off), killed.broken_off
        assert killed.broken_off[-1] == 0
        assert len(kept) == len(set(kept)) == len(asked)
        assert len(model.asked) == len(asked) + sum(killed.broken_off)
        plain = Killed(kind, split, folder / "plain", model)
        plain.session(None)
        assert set(model.asked) == set(asked)  # both ways ask the same
    name = {"evaluate": "results.jsonl", "groups": "results.json"}[kind]
    assert (killed.out / name).read_bytes() == (plain.out / name).read_bytes()
    lines = (killed.out / {"evaluate": "records.jsonl", "groups": "groups.jsonl"}[kind]).read_text()
    assert len({json.loads(line)["id"] for line in lines.splitlines()}) == questions


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("kind", "questions"), [("evaluate", 9), pytest.param("groups", 4, marks=pytest.mark.slow)]
)
def test_work_that_is_killed_repeats_no_call_and_loses_nothing(
    kind: str, questions: int, kills: int, tmp_path: Path
) -> None:
    _kill_and_compare(kind, tmp_path, kills=kills, questions=questions, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize(("kind", "questions"), [("evaluate", 30), ("groups", 12)])
def test_the_same_with_more_moments(kind: str, questions: int, seed: int, tmp_path: Path) -> None:
    _kill_and_compare(kind, tmp_path, kills=30, questions=questions, seed=seed)
