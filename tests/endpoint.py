"""A real HTTP server that speaks the OpenAI streaming protocol and says what it is told to."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from dm_jupyter.models.http_policy import PROBE_OPENING, TOOL_PROBE
from tests.waiting import PATIENCE_S

__all__ = ["LocalServer", "ScriptedEndpoint", "answer_to_probe", "unused_url"]


class LocalServer:
    """A server of this machine, in a thread of its own; a context manager."""

    handler: type[BaseHTTPRequestHandler]
    """What answers; it finds this object as `endpoint`."""

    def __enter__(self) -> Self:
        handler = type("Handler", (self.handler,), {"endpoint": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Where it listens, once the context was entered."""
        return int(self._server.server_address[1])


class ScriptedEndpoint(LocalServer):
    """Answers with the next text of a script, the last one again and again; a context manager."""

    def __init__(
        self,
        texts: Iterable[str],
        *,
        refusals: Iterable[int] = (),
        refusal: str = "refused",
        breaks_at: int | None = None,
        breaks_politely: bool = False,
        piece_chars: int = 7,
        piece_pause_s: float = 0.0,
        reads_until: threading.Event | None = None,
        models: Iterable[str] | int = (),
    ) -> None:
        """Prepares the server; entering the context starts it.

        Args:
            texts: what is answered, one text a request.
            refusals: the status codes of the first requests, which use up no text.
            refusal: what those say.
            breaks_at: the number of the answer (from 0) whose connection breaks half-way.
            breaks_politely: whether that answer ends by the rules of HTTP, only too early.
            piece_chars: length of the pieces in which a text is streamed.
            piece_pause_s: the time between two pieces: a model's own pace.
            reads_until: set when the first piece may come; the stream is open before.
            models: the names that it lists, or the status code with which it refuses to.
        """
        self.texts = list(texts)
        self.models = models
        self.bodies: list[dict[str, Any]] = []
        """What was asked, refused requests included."""
        self.headers: list[Mapping[str, str]] = []
        """Their headers, the names in small letters."""
        self._refusals = list(refusals)
        self.refusal = refusal
        self._breaks_at = breaks_at
        self.breaks_politely = breaks_politely
        self._piece_chars = piece_chars
        self.piece_pause_s = piece_pause_s
        self.reads_until = reads_until
        self._answers = 0
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """What to give as `--base-url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def rewind(self) -> None:
        """Begins the script again."""
        self._answers = 0

    def answered(self) -> None:
        """Called when the last piece of an answer has been sent."""

    def next_answer(self, body: dict[str, Any], headers: Mapping[str, str]) -> _Reply:
        """Keeps the request and says how to answer it.

        What a client asks to find out what it can do uses up no text, and is not kept: the answer
        is that of a model that continues an opening and calls no tools.
        """
        with self._lock:
            probe = answer_to_probe(body)
            if self._refusals or not probe:
                self.bodies.append(body)
                self.headers.append(headers)
            if self._refusals:
                return _Reply(status=self._refusals.pop(0))
            if probe:
                return _Reply(pieces=[probe])
            number = self._answers
            self._answers += 1
            text = self.texts[min(number, len(self.texts) - 1)]
        size = self._piece_chars
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        return _Reply(pieces=pieces, breaks=number == self._breaks_at)


def answer_to_probe(body: Mapping[str, Any]) -> str:
    """Returns what is said to a client that finds out what it can do; empty for a question."""
    if body["messages"][-1]["content"] == PROBE_OPENING:
        return " four five six"
    return "I am ready." if body.get("tools") == [TOOL_PROBE.to_json()] else ""


class _Reply:
    def __init__(self, status: int = 200, pieces: Iterable[str] = (), breaks: bool = False) -> None:
        self.status = status
        self.pieces = list(pieces)
        self.breaks = breaks


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no fault of the server."""


class _Handler(BaseHTTPRequestHandler):
    endpoint: ScriptedEndpoint
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""

    def do_GET(self) -> None:
        """Lists the models."""
        models = self.endpoint.models
        if isinstance(models, int):
            self._refuse(models)
            return
        entries = [{"id": name, "object": "model", "created": 1} for name in models]
        self._answer(200, {"object": "list", "data": entries})

    def do_POST(self) -> None:
        """Answers one request for a completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self._refuse(404)
            return
        reply = self.endpoint.next_answer(body, {k.lower(): v for k, v in self.headers.items()})
        if reply.status != 200:
            self._refuse(reply.status)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._stream(reply, body["model"])

    def _stream(self, reply: _Reply, model: str) -> None:
        self._event(_chunk(model, {"role": "assistant", "content": ""}))
        if self.endpoint.reads_until is not None:
            self.endpoint.reads_until.wait(PATIENCE_S)
        pieces = reply.pieces[: len(reply.pieces) // 2] if reply.breaks else reply.pieces
        for number, piece in enumerate(pieces):
            time.sleep(self.endpoint.piece_pause_s if number else 0)
            self._event(_chunk(model, {"content": piece}))
        self.endpoint.answered()
        if reply.breaks and self.endpoint.breaks_politely:
            self._send(b"")
            return
        if reply.breaks:  # in the middle of a chunked answer
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._event(_chunk(model, {}, "stop"))
        usage = {"prompt_tokens": 11, "completion_tokens": len(pieces)}
        usage["total_tokens"] = sum(usage.values())
        self._event({**_chunk(model, {}), "choices": [], "usage": usage})
        self._send(b"data: [DONE]\n\n")
        self._send(b"")

    def _event(self, content: dict[str, Any]) -> None:
        self._send(f"data: {json.dumps(content)}\n\n".encode())

    def _send(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _refuse(self, status: int) -> None:
        self._answer(status, {"error": {"message": f"{self.endpoint.refusal} with {status}"}})

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)


ScriptedEndpoint.handler = _Handler


def _chunk(model: str, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def unused_url() -> str:
    """An address on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
