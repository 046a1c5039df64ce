"""A filter on messages from a restricted kernel to a page, so that they make it load nothing.

It applies to kernels in which a run worked. JupyterLab listens to kernels itself, beside the runs:
it shows outputs of cells that the person runs, updates of earlier outputs, widgets, consoles, logs
and help. A run can leave code in its kernel that puts a picture into any of these.

*Covered*: every message from such a kernel, from the start of its first run, also after a restart
of the kernel. Messages that can't be read are dropped.
*Not covered*: kernels that are not restricted, which can reach the network without a page; kernels
behind a gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from tornado.websocket import WebSocketClosedError

if TYPE_CHECKING:
    from jupyter_client.session import Session

__all__ = ["filtered", "inert_message"]

_TEXT_ONLY = frozenset({
    "clear_output", "error", "execute_input", "input_request", "iopub_welcome",
    "kernel_info_reply", "shutdown_reply", "status", "stream",
})  # fmt: skip
"""Message types in which nothing is shown as HTML."""
_HEAVY_BYTES = 2**15
_PARTS = 5
"""Signature, header, parent header, metadata and content."""


def inert_message(session: Session, message: list[Any]) -> list[Any] | None:
    """Return a message of a kernel with its content inert; `None` if it can't be read.

    Args:
        session: the session that signs it.
        message: the message as it arrived, with its addresses in front.
    """
    try:
        addresses, parts = session.feed_identities(message)
        if len(parts) < _PARTS:
            return None
        signed = [part if isinstance(part, bytes) else part.bytes for part in parts[1:_PARTS]]
        kind = str(json.loads(signed[0])["msg_type"])
        if kind in _TEXT_ONLY:
            return message
        signed[3] = _inert(signed[3], kind)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    signature = session.sign(signed)
    return [*addresses, b"<IDS|MSG>", signature, *signed, *parts[_PARTS:]]


def _inert(raw: bytes, kind: str) -> bytes:
    # Imported here: a server's start need not wait for it.
    from dm_jupyter.core.inert import inert_content  # noqa: PLC0415

    is_comm = kind.startswith("comm_") and kind != "comm_info_reply"
    content = inert_content(json.loads(raw), is_of_widget=is_comm)
    if is_comm:
        content.pop("target_module", None)  # a page would load it
    return json.dumps(content).encode()


def filtered(connection: type, is_watched: Callable[[str], bool]) -> type:
    """Return the server's class of connections to pages, with the messages filtered.

    Args:
        connection: the class; one that does not derive from Jupyter's is returned as it is.
        is_watched: returns whether the messages of the kernel with that id are filtered.
    """
    if not issubclass(connection, ZMQChannelsWebsocketConnection):
        return connection
    members = {"is_watched": staticmethod(is_watched)}
    return type(connection.__name__, (_Filtered, connection), members)


class _Filtered(ZMQChannelsWebsocketConnection):
    """A connection that makes messages inert, large ones in a thread, and keeps their order."""

    is_watched: Callable[[str], bool]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._waiting: deque[tuple[Any, list[Any]]] = deque()
        self._sending: asyncio.Task[None] | None = None

    def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
        """Filter and send a message for the page; the base class calls this with each one."""
        is_next = self._sending is None and not self._waiting
        if is_next and not self.is_watched(self.kernel_id):
            super().handle_outgoing_message(stream, outgoing_msg)
        elif is_next and _bytes_of(outgoing_msg) <= _HEAVY_BYTES:
            self._hand_on(stream, inert_message(self.session, outgoing_msg))
        else:
            self._waiting.append((stream, outgoing_msg))
            if self._sending is None:
                self._sending = asyncio.create_task(self._send_waiting())

    async def _send_waiting(self) -> None:
        try:
            while self._waiting:
                stream, message = self._waiting.popleft()
                inert = await asyncio.to_thread(inert_message, self.session, message)
                self._hand_on(stream, inert)
        finally:
            self._sending = None

    def _hand_on(self, stream: Any, message: list[Any] | None) -> None:
        if message is None:
            self.log.warning("A message of kernel %s can't be read and is dropped", self.kernel_id)
            return
        with contextlib.suppress(WebSocketClosedError):
            super().handle_outgoing_message(stream, message)


def _bytes_of(message: list[Any]) -> int:
    return sum(len(part) for part in message[: _PARTS + 4])
