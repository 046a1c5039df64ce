"""The channels of one kernel, which send cells and sort what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.session import Session
from zmq.utils.monitor import recv_monitor_message

from kernel_sandbox.cells.outputs import OutputCollector
from kernel_sandbox.ledger.facts import LEDGER
from kernel_sandbox.messages import (
    MESSAGE_BYTES,
    OUTPUTS,
    REPLY,
    Shape,
    check,
    decode,
    is_a,
)

__all__ = ["MALFORMED", "Execution", "ZmqChannels", "new_context", "new_session"]

QUEUED_MESSAGES = 64
_TAKEN_BYTES = 16 * 1024**2
"""A longer part of a message ends the connection. A shorter one that is not decoded counts as
output that was cut."""
_DESCRIPTION_BYTES = 64 * 1024
"""The most bytes of each part of a message but its content."""
_PARTS = 5
_TOO_LONG = "too_long"
_SHAPES: Mapping[str, Shape] = {
    **OUTPUTS,
    "execute_reply": REPLY,
    "status": {"execution_state": is_a(str)},
    "comm_open": {"comm_id": is_a(str), "target_name": is_a(str)},
    "comm_msg": {"comm_id": is_a(str)},
    "comm_close": {"comm_id": is_a(str)},
}
"""The shapes of the messages that are read here."""
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""What reading a malformed message may raise."""
_SILENCE_S = 2.0
_WELCOME_S = 5.0

_Message = dict[str, Any]


def new_context() -> zmq.asyncio.Context:
    """Return a context whose sockets accept no message that could fill the memory.

    A larger message never reaches this process: libzmq drops the connection instead.
    """
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.MAXMSGSIZE, _TAKEN_BYTES)
    context.setsockopt(zmq.RCVHWM, QUEUED_MESSAGES)
    context.setsockopt(zmq.LINGER, 0)
    return context


class _BoundedSession(Session):
    """A session that decodes only what a kernel may send, in a time that an event loop can bear.

    The inherited session keeps signatures of any length, reads each text of a header as a date and
    unpacks all parts whatever their size.
    """

    def deserialize(self, msg_list: Any, content: bool = True, copy: bool = True) -> dict[str, Any]:
        """Return the message in these parts.

        Args:
            msg_list: the signature, four parts of JSON, then buffers, which are dropped.
            content: ignored: the content is always unpacked.
            copy: ignored: parts that are not bytes are copied.

        Raises:
            ValueError: it is not a message of the kernel, or is of no known kind.
        """
        del content, copy
        signature, *parts = map(bytes, msg_list[:_PARTS])
        self._check(signature, parts)
        header, parent, _ = map(_described, parts[:3])
        kind = header.get("msg_type")
        if not isinstance(kind, str):
            raise ValueError("a message of no kind")  # noqa: TRY004  (a fault of the text)
        message = {"header": header, "parent_header": parent, "msg_type": kind}
        if len(parts[3]) > MESSAGE_BYTES:
            return {**message, "msg_type": _TOO_LONG, "content": {"bytes": len(parts[3])}}
        return {**message, "content": decode(parts[3])}

    def _check(self, signature: bytes, parts: list[bytes]) -> None:
        if len(parts) != _PARTS - 1:
            raise ValueError("a message without all of its parts")
        if max(map(len, parts[:3])) > _DESCRIPTION_BYTES:
            raise ValueError("a message with too long a header")
        if self.auth is not None:
            if signature in self.digest_history or not hmac.compare_digest(
                signature, self.sign(parts)
            ):
                raise ValueError("a message that is not signed by the kernel, or a copy of one")
            self._add_digest(signature)


def _described(part: bytes) -> dict[str, Any]:
    found = decode(part)
    if not isinstance(found, dict):
        raise ValueError("a header that is no object")  # noqa: TRY004  (a fault of the text)
    return found


def new_session(key: bytes) -> Session:
    """Return a new session: two clients that share one take each other's replies.

    Args:
        key: the key that signs the kernel's messages.
    """
    return _BoundedSession(key=key)


@dataclass(slots=True)
class Execution:
    """One cell on its way through the kernel."""

    collector: OutputCollector
    reply: _Message | None = None
    """The content of the kernel's reply; `None` until it comes, and always if it was lost."""
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the kernel has sent the last output of the cell."""
    flood: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when far too much output came, or a message that was too large."""
    started: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the kernel begins the cell: an earlier interrupt has no effect."""
    messages: int = 0
    dropped_bytes: int = 0
    """Least size of messages with which libzmq dropped the connection; a death breaks it, too."""
    keeps_ledger: bool = True
    """Whether a kernel of ours records what happens to the data."""


class ZmqChannels:
    """Both channels of a running kernel, read continuously and by nobody else."""

    def __init__(self, client: AsyncKernelClient) -> None:
        """Take over a client that has not been started.

        Args:
            client: the client, whose context comes from `new_context`.
        """
        self._client = client
        self._tasks: list[asyncio.Task[None]] = []
        self._replies: dict[str, asyncio.Future[_Message]] = {}
        self._running: tuple[str, Execution] | None = None
        self._welcome = asyncio.Event()
        self.on_comm: Callable[[str, _Message], None] = lambda *_: None
        """Called with kind and content of each message of a comm, from whichever cell."""

    async def open(self) -> None:
        """Connect, and return once the kernel answers and its outputs arrive here."""
        client = self._client
        client.start_channels(stdin=False, hb=False, control=False)
        for channel, handle in (
            (client.shell_channel, self._shell),
            (client.iopub_channel, self._iopub),
        ):
            monitor = channel.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            self._tasks.append(asyncio.create_task(self._read(channel.get_msg, handle)))
            self._tasks.append(asyncio.create_task(self._watch(monitor)))
        await self.settle()
        with contextlib.suppress(TimeoutError):  # an older ipykernel sends no welcome
            async with asyncio.timeout(_WELCOME_S):
                await self._welcome.wait()

    async def settle(self) -> None:
        """Return when the kernel has finished all earlier requests."""
        await self._request("kernel_info_request", {})

    async def execute(self, source: str, execution: Execution) -> None:
        """Run a cell; return when its reply and its last output have come.

        Args:
            source: the code.
            execution: collects what comes.
        """
        content = {
            "code": source,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        try:
            asked = {LEDGER: execution.keeps_ledger}
            execution.reply = await self._request("execute_request", content, execution, asked)
            await _until_idle(execution)
        finally:
            self._running = None

    async def evaluate(self, source: str, expression: str) -> _Message:
        """Return the reply to a silent cell, with the expression's value as `value`.

        Args:
            source: code that runs first.
            expression: what to evaluate afterwards.
        """
        content = {
            "code": source,
            "silent": True,
            "store_history": False,
            "user_expressions": {"value": expression},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        return await self._request("execute_request", content)

    async def answer_comm(self, comm_id: str, data: _Message) -> None:
        """Send a message through a comm that the kernel has opened."""
        message = self._client.session.msg("comm_msg", {"comm_id": comm_id, "data": data})
        await self._client.shell_channel.socket.send_multipart(
            self._client.session.serialize(message)
        )

    async def close(self) -> None:
        """Stop reading and close the sockets. Safe to call again."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()
        for channel in (self._client._shell_channel, self._client._iopub_channel):
            if channel is not None and channel.socket is not None:
                channel.socket.disable_monitor()
        self._client.stop_channels()

    async def _request(
        self,
        kind: str,
        content: _Message,
        execution: Execution | None = None,
        metadata: _Message | None = None,
    ) -> _Message:
        """Send a request and return the content of its reply."""
        session = self._client.session
        message = session.msg(kind, content, metadata=metadata)
        message_id = message["header"]["msg_id"]
        if execution is not None:
            self._running = (message_id, execution)
        future: asyncio.Future[_Message] = asyncio.get_running_loop().create_future()
        self._replies[message_id] = future
        try:
            # Not through the client's own methods: those send on a shadow of the socket, which
            # takes the wake-up for a reply away from the task that reads (edge-triggered).
            await self._client.shell_channel.socket.send_multipart(session.serialize(message))
            return await future
        finally:
            del self._replies[message_id]

    async def _read(
        self, receive: Callable[[], Awaitable[_Message]], handle: Callable[[_Message], None]
    ) -> None:
        while True:
            # The code in the kernel can send anything on these channels. What is not a valid
            # message is not an output, and must not end the reader.
            with contextlib.suppress(*MALFORMED):
                handle(await receive())

    def _shell(self, message: _Message) -> None:
        future = self._replies.get(message["parent_header"].get("msg_id"))
        if future is not None and not future.done():
            future.set_result(_content(message))

    def _iopub(self, message: _Message) -> None:
        kind = message["msg_type"]
        if kind == "iopub_welcome":
            self._welcome.set()
        content = _content(message)
        if kind in ("comm_open", "comm_msg", "comm_close"):
            self.on_comm(kind, content)
        if self._running is None:
            return
        message_id, execution = self._running
        if message["parent_header"].get("msg_id") != message_id:
            return
        execution.messages += 1
        if kind == "execute_input":
            execution.started.set()
        if kind == "status" and content["execution_state"] == "idle":
            execution.idle.set()
        if kind == _TOO_LONG:
            execution.collector.cut_bytes += content["bytes"]
        execution.collector.add(kind, content)
        if execution.collector.is_flooded:
            execution.flood.set()

    async def _watch(self, monitor: zmq.asyncio.Socket) -> None:
        """Notice a connection that libzmq dropped because a message was too large."""
        while True:
            await recv_monitor_message(monitor)
            if self._running is not None:
                execution = self._running[1]
                execution.dropped_bytes += _TAKEN_BYTES
                execution.flood.set()


def _content(message: _Message) -> _Message:
    """Return the content of a message after checking that it has the shape of its kind.

    Raises:
        ValueError: it has another shape.
    """
    kind = str(message["msg_type"])
    return check(kind, message["content"], _SHAPES.get(kind, {}))


async def _until_idle(execution: Execution) -> None:
    """Wait for the last output; give up when nothing more comes: it was lost in a flood."""
    while not execution.idle.is_set():
        seen = execution.messages
        try:
            async with asyncio.timeout(_SILENCE_S):
                await execution.idle.wait()
        except TimeoutError:
            if execution.messages == seen:
                return
