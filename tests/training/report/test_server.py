"""The page that a server keeps up to date, asked over real connections."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.training.report.report_runs import a_record, write_run
from tests.waiting import PATIENCE_S, wait_until
from training.report.__main__ import main
from training.report.page import write_page
from training.report.server import MAX_BODY_BYTES, LivePage, ReportServer
from training.report.source import (
    MAX_NOTE_CHARS,
    NoteConflictError,
    keep_note,
    notes_file,
    read_notes,
)

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", a_record(name="a"), a_record(name="b", right=False))


@pytest.fixture
def server(run: Path) -> Iterator[ReportServer]:
    with ReportServer(LivePage([run])) as running:
        thread = Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def ask(server: ReportServer) -> Ask:
    """Asks the server; as the page does, unless told otherwise."""

    def one(
        path: str, note: object = None, *, token: str = "", body: bytes = b"", **headers: str
    ) -> tuple[int, Any]:
        host, port = server.server_address[:2]
        connection = http.client.HTTPConnection(str(host), int(port), timeout=PATIENCE_S)
        body = body or (b"" if note is None else json.dumps(note).encode())
        method = "POST" if body else "GET"
        sent = {"Origin": server.origin, **headers}
        try:
            connection.request(method, f"/{token or server.token}/{path}", body or None, sent)
            reply = connection.getresponse()
            text = reply.read()
        finally:
            connection.close()
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        is_json = reply.headers["Content-Type"] == "application/json"
        return reply.status, json.loads(text) if is_json else text.decode()

    return one


def a_note(text: str, was: str = "", name: str = "b", run: str = "run") -> dict[str, object]:
    return {"run": run, "id": name, "trial": 0, "text": text, "was": was}


def test_a_note_is_kept_beside_the_run_changed_and_taken_away(ask: Ask, run: Path) -> None:
    ask("")
    status, reply = ask("notes", a_note("the gold is wrong\n<b>"))
    assert (status, reply) == (
        200,
        {"text": "the gold is wrong\n<b>", "file": str(run / "notes.jsonl")},
    )
    (line,) = (run / "notes.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == "b"
    assert "the gold is wrong\n&lt;b&gt;</textarea>" in ask("")[1]
    assert ask("notes", a_note("better", "the gold is wrong\n<b>"))[0] == 200
    assert ask("notes", a_note("for a", name="a"))[0] == 200
    assert {n.key: n.text for n in read_notes(run / "notes.jsonl").values()} == {
        ("b", 0): "better",
        ("a", 0): "for a",
    }
    assert ask("notes", a_note(" ", "better")) == (
        200,
        {"text": "", "file": str(run / "notes.jsonl")},
    )
    assert [n.id for n in read_notes(run / "notes.jsonl").values()] == ["a"]
    assert sorted(file.name for file in run.iterdir()) == ["notes.jsonl", "records.jsonl"]


def test_a_note_that_somebody_else_changed_is_not_written_over(ask: Ask, run: Path) -> None:
    ask("")
    assert ask("notes", a_note("mine"))[0] == 200
    assert ask("notes", a_note("other")) == (409, {"text": "mine"})
    assert ask("notes", a_note("other", "mine"))[0] == 200


def test_the_page_follows_the_records(ask: Ask, run: Path) -> None:
    page = ask("")[1]
    before = ask("state")[1]
    assert before == {"version": before["version"], "fault": ""}
    assert f'data-version="{before["version"]}"' in page
    assert ask("notes", a_note("a note alone is no new data"))[0] == 200
    assert ask("state")[1] == before
    with (run / "records.jsonl").open("a") as file:
        file.write(json.dumps({"half": "a line"})[:-3])
    wait_until(lambda: ask("state")[1]["version"] != before["version"], "the page has changed")
    assert "of 2 shown" in ask("")[1]
    write_run(run, *(a_record(name=name) for name in "abc"))
    wait_until(lambda: "of 3 shown" in ask("")[1], "the new page")


def test_a_run_that_can_not_be_read_leaves_the_page_as_it_was(ask: Ask, run: Path) -> None:
    page = ask("")[1]
    (run / "records.jsonl").write_text("no record\n")
    wait_until(lambda: ask("state")[1]["fault"] != "", "the fault is told")
    assert "records.jsonl, line 1: not JSON" in ask("state")[1]["fault"]
    assert ask("")[1] == page
    damaged = asdict(a_record())
    damaged["trajectory"]["steps"][0]["result"]["outputs"] = ["text"]
    (run / "records.jsonl").write_text(json.dumps(damaged) + "\n")
    wait_until(lambda: "line 1, field 'trajectory'" in ask("state")[1]["fault"], "the new fault")
    assert ask("")[1] == page


def test_a_run_that_has_not_begun_is_waited_for(tmp_path: Path) -> None:
    live = LivePage([tmp_path / "run"], "Mine")
    live.refresh()
    assert b"Nothing to show yet" in live.page
    write_run(tmp_path / "run")
    wait_until(lambda: live.refresh() or live.version != "", "the run is there")
    assert b"<title>Mine</title>" in live.page


def test_whoever_has_no_token_or_comes_from_another_page_gets_nothing(ask: Ask, run: Path) -> None:
    note = a_note("from outside")
    assert ask("", token="guessed")[0] == 404
    assert ask("", Host="evil.example")[0] == 404
    assert ask("state", Host="evil.example")[0] == 404
    assert ask("notes", note, token="guessed")[0] == 404
    assert ask("notes", note, Origin="http://evil.example")[0] == 404
    assert ask("notes", note, Origin="null")[0] == 404
    assert ask("../records.jsonl")[0] == 404
    assert ask("records.jsonl")[0] == 404
    assert not (run / "notes.jsonl").exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 404),
        (b"[1]", 404),
        (json.dumps(a_note("x", name="no such")).encode(), 404),
        (json.dumps(a_note("x", run="../other")).encode(), 404),
        (json.dumps({**a_note("x"), "text": 5}).encode(), 404),
        (json.dumps(a_note("x" * (MAX_NOTE_CHARS + 1))).encode(), 500),
        (b"x" * (MAX_BODY_BYTES + 1), 413),
        (b"[" * 20_000, 404),
    ],
)
def test_what_is_no_note_on_a_try_of_the_page_is_refused(
    body: bytes, status: int, ask: Ask, run: Path
) -> None:
    ask("")
    assert ask("notes", body=body)[0] == status
    assert not (run / "notes.jsonl").exists()


def test_a_damaged_file_of_notes_is_named_and_left_alone(ask: Ask, run: Path, capsys) -> None:
    ask("")
    damaged = '{"id": "a"}\n'
    (run / "notes.jsonl").write_text(damaged)
    status, reply = ask("notes", a_note("x"))
    assert (status, "notes.jsonl, line 1: no note" in reply["error"]) == (500, True)
    assert (run / "notes.jsonl").read_text() == damaged
    assert main([str(run), "--html", str(run / "page.html")]) == 1
    assert "notes.jsonl, line 1: no note" in capsys.readouterr().err


def test_notes_are_shown_and_filtered_by_on_a_page_from_a_disk(run: Path, tmp_path: Path) -> None:
    keep_note(notes_file(run), ("b", 0), "check <this>", "")
    write_page([run], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "check &lt;this&gt;" in text
    assert "with a note" in text
    assert "<textarea" not in text
    assert "connect-src" not in text


def test_notes_on_a_file_of_records_are_named_after_it(run: Path, tmp_path: Path) -> None:
    records = tmp_path / "kept-7.jsonl"
    (run / "records.jsonl").rename(records)
    keep_note(notes_file(records), ("b", 0), "of a file", "")
    assert (tmp_path / "kept-7.notes.jsonl").exists()
    with pytest.raises(NoteConflictError, match="of a file"):
        keep_note(notes_file(records), ("b", 0), "x", "")


def test_the_command_shows_the_page_until_it_is_interrupted(run: Path) -> None:
    command = [sys.executable, "-m", "training.report", str(run), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as reply:
                assert "Live: this page follows the run." in reply.read().decode()
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def test_a_missing_run_and_a_taken_port_are_named(
    run: Path, server: ReportServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "no"), "--serve"]) == 1
    assert "no is not there" in capsys.readouterr().err
    assert main([str(run), "--serve", "--port", str(server.server_address[1])]) == 1
    assert "Address already in use" in capsys.readouterr().err
    assert main([str(run), "--serve", "--port", "70000"]) == 1
    assert "port must be 0-65535" in capsys.readouterr().err
