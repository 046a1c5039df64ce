"""A page about runs that follows them while they run, and keeps a person's notes beside them.

*Covered*: the server listens on 127.0.0.1 alone. Every address contains a token that only the
person who started the server was shown. Requests from other pages are refused by `Host` and
`Origin`, so neither a web page nor a name that resolves to this machine reaches it. A request's
body and the notes are bounded. Only notes on attempts of these runs are written, and nothing else.
*Not covered*: other programs of the same user, which may read the files anyway.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from training.records.records import RunError
from training.report.page import page_of
from training.report.source import (
    MAX_NOTE_CHARS,
    NoteConflictError,
    keep_note,
    notes_file,
    read_report_runs,
    title_of,
)

__all__ = ["LivePage", "ReportServer"]

HOST = "127.0.0.1"
MAX_BODY_BYTES = 8 * MAX_NOTE_CHARS
REST_FACTOR = 4
"""Seconds until the next build for each second that building the page took."""
_BESIDE = ("records.jsonl", "run.json", "summary.json", "judged.jsonl")
_WAITING = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>Waiting</title></head><body><p>Nothing to show yet. This page looks again by itself.</p>
</body></html>
"""


class LivePage:
    """The page about some runs, built again when their files have changed."""

    def __init__(self, runs: Sequence[Path], title: str | None = None) -> None:
        """Prepare the page without reading anything.

        Args:
            runs: folders of the runs, or files of records.
            title: the title of the page; `None` names the runs.
        """
        self._runs = list(runs)
        self._title = title
        self._lock = Lock()
        self._tried: object = None
        """State of all files at the last attempt to build the page."""
        self._rest_until = 0.0
        self._names: dict[str, Path] = {}
        self._keys: set[tuple[str, str, int]] = set()
        self.page = _WAITING.encode()
        self.version = ""
        """Version of the records that the page shows; notes do not change it."""
        self.fault = ""
        """Why the files can't be read now; empty if they can."""

    def refresh(self) -> None:
        """Build the page again if a file has changed, at most as often as `REST_FACTOR` allows."""
        with self._lock:
            data = [_state(file) for run in self._runs for file in _files(run)]
            state = (data, [_state(notes_file(run)) for run in self._runs])
            if state == self._tried or time.monotonic() < self._rest_until:
                return
            self._tried, begun = state, time.monotonic()
            try:
                self._make(hashlib.sha256(repr(data).encode()).hexdigest()[:16])
                self.fault = ""
            except (RunError, OSError) as fault:
                self.fault = f"The run can't be read now: {fault}"
            ended = time.monotonic()
            self._rest_until = ended + REST_FACTOR * (ended - begun)

    def _make(self, version: str) -> None:
        read = read_report_runs(self._runs, are_running=True)
        text = page_of(read, self._title or title_of(read), version)
        self.page, self.version = text.encode("utf-8", "replace"), version
        self._names = {one.name: path for one, path in zip(read, self._runs, strict=True)}
        self._keys = {(run.name, *one.record.key) for run in read for one in run.tries}

    def keep(self, asked: Mapping[str, Any]) -> tuple[HTTPStatus, dict[str, str]]:
        """Store a note and return the status and the body of the reply.

        Args:
            asked: the request. `run`, `id` and `trial` name the attempt, `text` is the new note,
                `was` the previous one.
        """
        match asked:
            case {
                "run": str(run), "id": str(name), "trial": int(trial), "text": str(text),
                "was": str(was),
            } if (run, name, trial) in self._keys:  # fmt: skip
                file = notes_file(self._names[run])
            case _:
                return HTTPStatus.NOT_FOUND, {"error": "the page has no such try"}
        try:
            kept = keep_note(file, (name, trial), text, was)
        except NoteConflictError as other:
            return HTTPStatus.CONFLICT, {"text": str(other)}
        except (OSError, ValueError) as fault:
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": str(fault)}
        self._rest_until = 0.0  # the next load of the page must show the note
        return HTTPStatus.OK, {"text": kept.text if kept else "", "file": str(file)}


def _files(run: Path) -> list[Path]:
    if run.is_dir():
        return [run / name for name in _BESIDE]
    return [run, *(run.parent / name for name in _BESIDE[1:])]


def _state(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class ReportServer(ThreadingHTTPServer):
    """Server of one `LivePage` at `url`, until it is shut down."""

    daemon_threads = True

    def __init__(self, live: LivePage, port: int = 0) -> None:
        """Start listening.

        Args:
            live: the page to serve.
            port: the port; 0 takes a free one.

        Raises:
            OSError: the port is taken.
        """
        self.live = live
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), _Handler)

    @property
    def origin(self) -> str:
        """The address without its path."""
        return f"http://{HOST}:{self.server_address[1]}"

    @property
    def url(self) -> str:
        """The address of the page, with the token."""
        return f"{self.origin}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    """Handler of one request."""

    server: ReportServer
    timeout = 30
    server_version = "report"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page, or its version and fault."""
        live = self.server.live
        match self._asked():
            case "":
                live.refresh()
                self._reply(HTTPStatus.OK, live.page, "text/html; charset=utf-8")
            case "state":
                live.refresh()
                self._say(HTTPStatus.OK, {"version": live.version, "fault": live.fault})
            case _:
                self._say(HTTPStatus.NOT_FOUND, {"error": "not here"})

    def do_POST(self) -> None:
        """Store a note."""
        length = self.headers.get("Content-Length", "")
        is_ours = self.headers.get("Origin") == self.server.origin
        if self._asked() != "notes" or not is_ours:
            self._say(HTTPStatus.NOT_FOUND, {"error": "not here"})
        elif not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": "the note is too long"})
        else:
            try:
                asked = json.loads(self.rfile.read(int(length)))
            except (ValueError, RecursionError):
                asked = None
            self._say(*self.server.live.keep(asked if isinstance(asked, dict) else {}))

    def _asked(self) -> str | None:
        """Return the path after the token; `None` if the host or the token is wrong."""
        if self.headers.get("Host") != self.server.origin.removeprefix("http://"):
            return None
        token, slash, rest = self.path.removeprefix("/").partition("/")
        is_known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        return rest.partition("?")[0] if slash and is_known else None

    def _say(self, status: HTTPStatus, words: Mapping[str, str]) -> None:
        self._reply(status, json.dumps(words).encode(), "application/json")

    def _reply(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", "frame-ancestors 'none'"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base's name)
        """Log nothing, because every address contains the token."""
