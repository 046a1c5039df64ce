"""Stand-in endpoints: real HTTP servers with the rules of one family, a scripted model behind."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.dm_jupyter.models.families import Family
from tests.dm_jupyter.models.rules import Refusal, effective, error_body, opening_of, refusal
from tests.dm_jupyter.models.turn_stream import (
    ScriptedModelRequest,
    ScriptedTurn,
    chunks_of,
    limited,
    usage_of,
)
from tests.endpoint import LocalServer

__all__ = ["Fault", "ScriptedModelRequest", "ScriptedTurn", "StandIn"]


class Fault(StrEnum):
    """What can go wrong between a client and an endpoint."""

    RESET = "the connection is reset before an answer"
    HALF = "the connection is reset in the middle of the stream"
    RATE_LIMIT = "429 with Retry-After"
    SERVER_ERROR = "500"
    UNAUTHORIZED = "401"
    SLOW = "the first byte comes late"
    HTML = "200 with a page of HTML"
    EMPTY_CHOICES = "all chunks are without choices"
    NO_USAGE = "the usage that was asked for does not come"
    ODD_FINISH = "a finish reason that nobody knows"


_STATUS_FAULTS = {Fault.RATE_LIMIT: 429, Fault.SERVER_ERROR: 500, Fault.UNAUTHORIZED: 401}
_WORDS = {429: "Rate limit reached", 500: "Internal server error", 401: "Invalid API key"}


class StandIn(LocalServer):
    """An endpoint of one family; a context manager."""

    def __init__(
        self,
        family: Family,
        model: Callable[[ScriptedModelRequest], ScriptedTurn],
        *,
        fault: Fault | None = None,
        fault_times: int = 1,
        slow_s: float = 1.0,
        retry_after: str = "0",
    ) -> None:
        """Prepares the server, which entering the context starts.

        Args:
            family: whose rules it has.
            model: what writes the answers; tool calls go out only where tools were sent.
            fault: what goes wrong with requests that break no rule.
            fault_times: how often; then it behaves.
            slow_s: the silence before the first byte, for `Fault.SLOW`.
            retry_after: what that header says with `Fault.RATE_LIMIT`.
        """
        self.family = family
        self.bodies: list[dict[str, Any]] = []
        """All that was asked, refused requests included."""
        self.seen: list[ScriptedModelRequest] = []
        """What the model got to read."""
        self.refused = self.answered = 0
        """Requests that were answered with 4xx, and those that were answered to their end."""
        self.slow_s, self.retry_after = slow_s, retry_after
        self._model, self._fault, self._faults_left = model, fault, fault_times if fault else 0
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """What to give as `--base-url`."""
        return f"http://127.0.0.1:{self.port}{self.family.path}"

    def receive(self, body: dict[str, Any]) -> tuple[Refusal | None, Fault | None]:
        """Keeps a request and says what is wrong with it, or what goes wrong with its answer."""
        with self._lock:
            self.bodies.append(body)
            refused = refusal(self.family, body)
            if refused or not self._faults_left:
                return refused, None
            self._faults_left -= 1
            return None, self._fault

    def count(self, status: int) -> None:
        """Counts an answer, before its last bytes, so that a client finds it counted."""
        with self._lock:
            self.refused += 400 <= status < 500
            self.answered += status == 200

    def turns(self, body: dict[str, Any]) -> tuple[list[ScriptedTurn], str]:
        """Lets the model write: one turn for each choice, and the opening that they continue."""
        opening = opening_of(self.family, body)
        works = effective(self.family, body)
        tools = tuple(tool["function"]["name"] for tool in works.get("tools") or ())
        request = ScriptedModelRequest(tuple(body["messages"]), tools, opening)
        turns = []
        for _ in range(works.get("n") or 1):
            with self._lock:
                self.seen.append(request)
                turn = self._model(request)
            turns.append(limited(turn if tools else replace(turn, tool_calls=()), works))
        return turns, opening


class _Handler(BaseHTTPRequestHandler):
    endpoint: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""

    def do_GET(self) -> None:
        """Lists the models."""
        family = self.endpoint.family
        if self._route() != f"{family.path}/models" or not family.lists_models:
            self._refuse(404, "Not found")
            return
        entry = {"id": family.model, "object": "model", "created": 1, "owned_by": family.name}
        entry |= family.listed
        self._json(200, {"object": "list", "data": [entry]})

    def do_POST(self) -> None:
        """Answers one request for a completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._route() != f"{self.endpoint.family.path}/chat/completions":
            self._refuse(404, "Not found")
            return
        refused, fault = self.endpoint.receive(body)
        if refused:
            self._json(refused.status, refused.content)
        elif fault is Fault.RESET:
            self._reset()
        elif fault is Fault.HTML:
            self._send_all(200, "text/html", b"<!doctype html><title>Sign in</title>")
        elif fault in _STATUS_FAULTS:
            status = _STATUS_FAULTS[fault]
            self._refuse(status, _WORDS[status])
        else:
            time.sleep(self.endpoint.slow_s if fault is Fault.SLOW else 0)
            self._complete(body, fault)

    def _route(self) -> str:
        return self.path.partition("?")[0]

    def _complete(self, body: dict[str, Any], fault: Fault | None) -> None:
        family = self.endpoint.family
        turns, opening = self.endpoint.turns(body)
        works = effective(family, body)
        chunks = _spoilt(chunks_of(family, turns, works, opening), fault)
        if body.get("stream"):
            self._stream(chunks, fault)
        else:
            self._json(200, _joined(chunks, usage_of(turns, works)))

    def _stream(self, chunks: list[dict[str, Any]], fault: Fault | None) -> None:
        family = self.endpoint.family
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        whole = chunks if fault is not Fault.HALF else chunks[: len(chunks) // 2]
        for number, chunk in enumerate(whole):
            if family.comment and number % 3 == 0:
                self._send(f": {family.comment}\n\n".encode())
            self._send(f"data: {json.dumps(chunk)}\n\n".encode())
        if fault is Fault.HALF:
            self._reset()
            return
        self.endpoint.count(200)
        if family.ends_with_done:
            self._send(b"data: [DONE]\n\n")
        self._send(b"")

    def _send(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _reset(self) -> None:
        self.close_connection = True
        time.sleep(0.05)  # so that the client has read what came before
        at_once = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        socket.close(self.connection.detach())

    def _refuse(self, status: int, message: str) -> None:
        self._json(status, error_body(self.endpoint.family, status, message))

    def _json(self, status: int, content: Any) -> None:
        if self.command == "POST":
            self.endpoint.count(status)
        self._send_all(status, "application/json", json.dumps(content).encode())

    def _send_all(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if status == 429:
            self.send_header("Retry-After", self.endpoint.retry_after)
        self.end_headers()
        self.wfile.write(content)


def _spoilt(chunks: list[dict[str, Any]], fault: Fault | None) -> list[dict[str, Any]]:
    if fault is Fault.EMPTY_CHOICES:
        return [{**chunk, "choices": []} for chunk in chunks]
    if fault is Fault.NO_USAGE:
        kept = [{k: v for k, v in chunk.items() if k != "usage"} for chunk in chunks]
        return [chunk for chunk in kept if chunk["choices"] or "prompt_filter_results" in chunk]
    if fault is Fault.ODD_FINISH:
        for choice in (choice for chunk in chunks for choice in chunk["choices"]):
            choice["finish_reason"] = choice["finish_reason"] and "vibes_exhausted"
    return chunks


def _joined(chunks: list[dict[str, Any]], usage: dict[str, int]) -> dict[str, Any]:
    """The whole answer for a request that does not ask for a stream."""
    whole: dict[int, dict[str, Any]] = {}
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        kept = whole.setdefault(choice["index"], {"index": choice["index"], "message": message})
        kept["finish_reason"] = choice["finish_reason"] or kept.get("finish_reason")
        for name, value in choice.get("delta", {}).items():
            if name == "tool_calls":
                _join_calls(kept["message"].setdefault(name, []), value)
            elif name != "role" and value:
                kept["message"][name] = kept["message"].get(name, "") + value
    first = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1}
    return {**first, "choices": list(whole.values()), "usage": usage}


def _join_calls(calls: list[dict[str, Any]], pieces: list[dict[str, Any]]) -> None:
    for piece in pieces:
        if "id" in piece:
            calls.append({name: value for name, value in piece.items() if name != "index"})
        else:
            calls[-1]["function"]["arguments"] += piece["function"]["arguments"]


StandIn.handler = _Handler
