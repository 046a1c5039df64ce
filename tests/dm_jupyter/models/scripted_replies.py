"""A server that answers each request as a function says: status and bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.endpoint import LocalServer

__all__ = ["Replies", "Reply", "chunk", "events", "failing", "turn"]

Reply = tuple[int, bytes]


class _Handler(BaseHTTPRequestHandler):
    endpoint: Replies
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply({})

    def do_POST(self) -> None:
        self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _reply(self, body: dict[str, Any]) -> None:
        with self.endpoint.lock:
            self.endpoint.paths.append(self.path)
            self.endpoint.bodies.append(body)
            self.endpoint.headers.append({k.lower(): v for k, v in self.headers.items()})
        status, content = self.endpoint.reply(body)
        self.send_response(status)
        kind = "text/event-stream" if status == 200 else "text/json"
        for name, value in {"Content-Type": kind, **self.endpoint.sent}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


class Replies(LocalServer):
    """A server of this machine; a context manager."""

    handler = _Handler

    def __init__(self, reply: Callable[[dict[str, Any]], Reply], **sent: str) -> None:
        """Prepares the server.

        Args:
            reply: what is answered to a body; that of a GET is empty.
            **sent: headers of each reply, with `_` for `-`.
        """
        self.reply, self.lock = reply, threading.Lock()
        self.sent = {name.replace("_", "-"): value for name, value in sent.items()}
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def base_url(self) -> str:
        """What to give as `--base-url`."""
        return f"http://127.0.0.1:{self.port}/v1"


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """Returns an event with one piece of an answer."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def events(*sent: object, before: bytes = b"") -> Reply:
    """Returns a stream of these events: JSON values, or the bytes after `data: `."""
    raw = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in sent]
    return 200, before + b"".join(b"data: %s\n\n" % one for one in [*raw, b"[DONE]"])


def turn(text: str) -> Reply:
    """Returns a whole answer."""
    return events(chunk(content=text), chunk("stop"))


def failing(status: int, said: object) -> Reply:
    """Returns a refusal: its message, or its whole body."""
    body = {"error": {"message": said}} if isinstance(said, str) else said
    return status, json.dumps(body).encode()
