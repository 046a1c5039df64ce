"""The parent's end of a worker: sends cells, sorts what comes back, reads what programs print.

Covered: whatever the worker writes, memory here stays bounded and nothing is raised. An invalid
message ends the connection. The two streams keep the order that ipykernel gives them. Not covered:
the truth of a message, and the order of what a cell and its programs print at the same moment.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from kernel_sandbox.cells.outputs import OutputCollector
from kernel_sandbox.cells.zmq_channels import Execution
from kernel_sandbox.forkserver.frames import Decoder, FrameError, encode
from kernel_sandbox.ledger.facts import LEDGER

__all__ = ["StreamOrder", "WorkerClient"]

_READ_BYTES = 256 * 1024
_CREDENTIALS = struct.Struct("3i")
_LOG_CHARACTERS = 2000
_SILENT = ("started", "cut")
"""Kinds of message that are not output and do not interrupt the streams."""
_Content = dict[str, Any]
HELD_S = 0.2
"""Seconds after a stream's first text at which ipykernel sends what the stream has gathered."""
HELD_CHARACTERS = 64 * 1024


class WorkerClient:
    """A socket and two pipes, read all the time and by nobody else; implements `CellChannel`."""

    def __init__(self, connection: socket.socket, pipes: dict[int, str]) -> None:
        """Start to read.

        Args:
            connection: the socket to the worker.
            pipes: descriptors of what its programs print, mapped to the name of the stream.
        """
        self._connection = connection
        self._decoders = {
            descriptor: codecs.getincrementaldecoder("utf-8")("replace") for descriptor in pipes
        }
        self._pipes = dict(pipes)
        self._decoder = Decoder()
        self._order = StreamOrder(self._emit)
        self._replies: dict[int, asyncio.Future[_Content]] = {}
        self._running: tuple[int, Execution] | None = None
        self._number = 0
        self._sending = asyncio.Lock()
        self._forking = asyncio.Lock()
        self._pid: int | None = None
        self._is_open = True
        self.log = ""
        """The last text that it printed before it was ready."""
        self.ready: asyncio.Future[tuple[int, _Content]] = (
            asyncio.get_running_loop().create_future()
        )
        """The worker's process id on this machine, and its layers."""
        self.on_fault: Callable[[str], None] = lambda _: None
        """Called with the reason when the worker closes the connection or breaks its rules."""
        connection.setblocking(False)
        # The system reports which process sent the first message, by its id on this machine.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        loop = asyncio.get_running_loop()
        loop.add_reader(connection, self._read)
        for descriptor in pipes:
            loop.add_reader(descriptor, self._read_pipe, descriptor)

    async def settle(self) -> None:
        """Return when the worker has finished all earlier requests."""
        await self._request("ping", {})

    async def fork(self, folder: str, descriptors: list[int]) -> str:
        """Ask the worker to fork itself; return why it can't, or an empty string if it did.

        Args:
            folder: the working folder of the new process.
            descriptors: its end of the connection, then the pipes for what programs print.

        Raises:
            OSError: the worker is gone.
        """
        async with self._forking:  # a worker uses all descriptors that have come for one fork
            reply = await self._request("fork", {"folder": folder}, descriptors=descriptors)
        return "" if reply["status"] == "ok" else str(reply.get("evalue") or "it could not")

    async def execute(self, source: str, execution: Execution) -> None:
        """Run a cell; return when its reply and its last output have come.

        Args:
            source: the code.
            execution: collects what comes.
        """
        try:
            execution.reply = await self._request(
                "run", {"source": source, LEDGER: execution.keeps_ledger}, execution
            )
        except FrameError as error:
            reply = {"ename": "ValueError", "evalue": str(error), "traceback": [str(error)]}
            execution.collector.add("error", reply)
            execution.reply = {"status": "error", "ename": "ValueError"}
        finally:
            self._running = None
            execution.idle.set()

    async def _request(
        self,
        kind: str,
        content: _Content,
        execution: Execution | None = None,
        descriptors: list[int] | None = None,
    ) -> _Content:
        self._number += 1
        number = self._number
        data = encode(kind, {**content, "id": number})
        future: asyncio.Future[_Content] = asyncio.get_running_loop().create_future()
        self._replies[number] = future
        try:
            async with self._sending:
                if execution is not None:
                    self._running = (number, execution)
                with contextlib.suppress(OSError):  # it died, and its waiters learn of that
                    if descriptors:
                        socket.send_fds(self._connection, [data[:1]], descriptors)
                        data = data[1:]
                    await asyncio.get_running_loop().sock_sendall(self._connection, data)
            return await future
        finally:
            self._replies.pop(number, None)

    def finish(self) -> None:
        """Read what a worker that has ended left in the socket and the pipes."""
        if self._is_open:
            self._read_pipes()
            while self._is_open and self._read():
                self._read_pipes()
        self._order.flush_all()

    def close(self) -> None:
        """Stop reading and close everything. Safe to call again."""
        for descriptor in list(self._pipes):
            self._close_pipe(descriptor)
        if self._connection.fileno() >= 0:
            self._stop()
            self._connection.close()
        self.ready.cancel()

    def _stop(self) -> None:
        self._is_open = False
        asyncio.get_running_loop().remove_reader(self._connection)

    def _read(self) -> bool:
        """Read some messages; return whether there may be more."""
        self._read_pipes()  # what was printed before a message comes before it
        try:
            data = self._receive()
            for kind, content in self._decoder.feed(data):
                self._handle(kind, content)
        except BlockingIOError:
            return False
        except FrameError as fault:
            self._break_off(f"it sent {fault}")
            return False
        except OSError:
            data = b""
        if not data:
            self._break_off("")
        return bool(data)

    def _receive(self) -> bytes:
        if self.ready.done():
            return self._connection.recv(_READ_BYTES)
        room = socket.CMSG_SPACE(_CREDENTIALS.size)
        data, extra, _, _ = self._connection.recvmsg(_READ_BYTES, room)
        for level, kind, value in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self._pid = _CREDENTIALS.unpack(value)[0]
        return data

    def _break_off(self, reason: str) -> None:
        self._stop()
        self._order.flush_all()
        if reason and self._running is not None:
            self._running[1].flood.set()
        self.on_fault(reason)

    def _handle(self, kind: str, content: _Content) -> None:
        if kind == "stream":
            self._order.add(content["name"], content["text"], content["at"], content["is_flush"])
        elif kind == "ready":
            if not self.ready.done() and self._pid:
                self.ready.set_result((self._pid, content))
                self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        elif kind == "reply":
            self._order.flush_all()
            future = self._replies.get(content["id"])
            if future is not None and not future.done():
                future.set_result(content)
        elif self._running is not None:
            if kind not in _SILENT:
                self._order.flush_all()
            self._output(self._running[1], kind, content)

    def _output(self, execution: Execution, kind: str, content: _Content) -> None:
        execution.messages += 1
        if kind == "started":
            execution.started.set()
        elif kind == "cut":
            execution.collector.cut_bytes += content["bytes"]
        else:
            # Drop what can't be measured: nested too deeply, or text with half a character.
            with contextlib.suppress(ValueError, RecursionError):
                execution.collector.add(kind, content)
        _note_flood(execution, execution.collector)

    def _emit(self, name: str, text: str) -> None:
        if self._running is not None:
            execution = self._running[1]
            execution.collector.add("stream", {"name": name, "text": text})
            _note_flood(execution, execution.collector)

    def _read_pipes(self) -> None:
        for descriptor in list(self._pipes):
            self._read_pipe(descriptor)

    def _read_pipe(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        text = self._decoders[descriptor].decode(data, not data)
        if not self.ready.done():
            self.log = (self.log + text)[-_LOG_CHARACTERS:]
        elif text:
            self._order.add(self._pipes[descriptor], text, time.monotonic())
        if not data:
            self._close_pipe(descriptor)

    def _close_pipe(self, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        del self._pipes[descriptor]


def _note_flood(execution: Execution, collector: OutputCollector) -> None:
    if collector.is_flooded:
        execution.flood.set()


class StreamOrder:
    """Pieces of standard output and standard error, put into ipykernel's order.

    A worker sends its lines as they are written: a line out, a line of errors, a line out. A
    kernel gathers each stream for a fifth of a second: two lines out, then the errors. Models are
    trained on one and used with the other, so both must read the same.
    """

    def __init__(self, emit: Callable[[str, str], None]) -> None:
        """Start with no pieces.

        Args:
            emit: called with the name of a stream and its text, in the order of ipykernel.
        """
        self._emit = emit
        self._parts: dict[str, list[str]] = {}
        self._due: dict[str, float] = {}
        self._size = 0

    def add(self, name: str, text: str, at: float, is_flush: bool = False) -> None:
        """Add one piece.

        Args:
            name: the stream.
            text: its text.
            at: when it was written, in seconds of `time.monotonic`.
            is_flush: whether the program flushed the stream after it.
        """
        for due, late in sorted((due, late) for late, due in self._due.items()):
            if due <= at:
                self.flush(late)
        if text:
            self._parts.setdefault(name, []).append(text)
            self._due.setdefault(name, at + HELD_S)
            self._size += len(text)
        if is_flush:
            self.flush(name)
        if self._size > HELD_CHARACTERS:
            self.flush_all()

    def flush(self, name: str) -> None:
        """Emit what one stream has gathered."""
        parts = self._parts.pop(name, [])
        self._due.pop(name, None)
        text = "".join(parts)
        self._size -= len(text)
        if text:
            self._emit(name, text)

    def flush_all(self) -> None:
        """Emit what both streams have gathered, standard output first."""
        for name in ("stdout", "stderr"):
            self.flush(name)
