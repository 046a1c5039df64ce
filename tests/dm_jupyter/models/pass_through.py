"""A server that passes every request on to a real engine, and keeps what was asked."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx2

from tests.endpoint import LocalServer

__all__ = ["PassThrough"]

_TIMEOUT_S = 600.0
"""An engine on a CPU reads a long prompt slowly."""


class PassThrough(LocalServer):
    """Stands between a client and an engine; a context manager."""

    def __init__(self, base_url: str) -> None:
        """Prepares the server, which entering the context starts.

        Args:
            base_url: of the engine, ending in `/v1`.
        """
        self.engine_url = base_url.rstrip("/")
        self.bodies: list[dict[str, Any]] = []
        """What was asked."""
        self.statuses: list[int] = []
        """How it was answered, in the same order where nobody asks two things at once."""
        self.must_call = False
        """Whether a request with tools is passed on with the order to call one."""

    @property
    def base_url(self) -> str:
        """What the client takes for the engine."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def refused(self) -> int:
        """Requests that the engine answered with an error."""
        return sum(status >= 400 for status in self.statuses)


class _Handler(BaseHTTPRequestHandler):
    endpoint: PassThrough
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""

    def do_POST(self) -> None:
        """Passes one request on, and the answer back as it comes."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.endpoint.bodies.append(body)
        must_call = self.endpoint.must_call and "tools" in body
        content = json.dumps({**body, "tool_choice": "required"} if must_call else body).encode()
        url = self.endpoint.engine_url + self.path.removeprefix("/v1")
        headers = {name: self.headers[name] for name in ("Authorization", "Content-Type")}
        with httpx2.stream(
            "POST", url, content=content, headers=headers, timeout=_TIMEOUT_S
        ) as answer:
            self.endpoint.statuses.append(answer.status_code)
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in answer.iter_raw():
                self._send(piece)
        self._send(b"")

    def _send(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()


PassThrough.handler = _Handler
