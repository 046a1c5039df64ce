"""The parent's end of a worker: sends cells, sorts what comes back, reads what programs print.

Covered: whatever the worker writes, memory here stays bounded and nothing is raised: a message
that is none ends the connection; the two streams keep the order that ipykernel gives them. Not
covered: the truth of a message; the order of what a cell and what a program that it started print
within the same moment.
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
"""What is no output: the streams go on over it."""
_Content = dict[str, Any]
HELD_S = 0.2
"""ipykernel sends what a stream has gathered so long after the first of it."""
HELD_CHARACTERS = 64 * 1024


class WorkerClient:
    """A socket and two pipes, read all the time and by nobody else; implements `CellChannel`."""

    def __init__(self, connection: socket.socket, pipes: dict[int, str]) -> None:
        """Starts to read.

        Args:
            connection: to the worker.
            pipes: descriptors of what its programs print, to the name of the stream.
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
        """The last that it printed before its first cell."""
        self.ready: asyncio.Future[tuple[int, _Content]] = (
            asyncio.get_running_loop().create_future()
        )
        """The worker's process id on this machine, and its layers."""
        self.on_fault: Callable[[str], None] = lambda _: None
        """Gets the reason when the worker breaks the connection off, or the rules."""
        connection.setblocking(False)
        # The system itself says which process sent the first message, in the numbers used here.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        loop = asyncio.get_running_loop()
        loop.add_reader(connection, self._read)
        for descriptor in pipes:
            loop.add_reader(descriptor, self._read_pipe, descriptor)

    async def settle(self) -> None:
        """Returns when the worker has finished all that was sent to it before."""
        await self._request("ping", {})

    async def fork(self, folder: str, descriptors: list[int]) -> str:
        """Asks the worker to fork itself; returns why it can't, empty when it did.

        Args:
            folder: for the new process to work in.
            descriptors: its end of the connection, then where it writes what programs print.

        Raises:
            OSError: the worker is gone.
        """
        async with self._forking:  # a worker takes all descriptors that have come for one fork
            reply = await self._request("fork", {"folder": folder}, descriptors=descriptors)
        return "" if reply["status"] == "ok" else str(reply.get("evalue") or "it could not")

    async def execute(self, source: str, execution: Execution) -> None:
        """Runs a cell; returns when its reply and its last output have come.

        Args:
            source: the code.
            execution: gathers what comes.
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
                with contextlib.suppress(OSError):  # it died: whoever waits hears of that
                    if descriptors:
                        socket.send_fds(self._connection, [data[:1]], descriptors)
                        data = data[1:]
                    await asyncio.get_running_loop().sock_sendall(self._connection, data)
            return await future
        finally:
            self._replies.pop(number, None)

    def finish(self) -> None:
        """Takes what is still there of a worker that has ended, as far as it goes."""
        if self._is_open:
            self._read_pipes()
            while self._is_open and self._read():
                self._read_pipes()
        self._order.flush_all()

    def close(self) -> None:
        """Stops reading and closes everything. Safe to call again."""
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
        """Reads some messages; returns whether there may be more."""
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
            # What can't be measured is no output: nested too deeply, or text of half a character.
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
    """Puts the pieces of standard output and standard error into ipykernel's order.

    A worker sends its lines as they are written: a line out, a line of errors, a line out. A
    kernel gathers each stream for a fifth of a second: two lines out, then the errors. Models are
    trained on the one and meet the other: both must read the same.
    """

    def __init__(self, emit: Callable[[str, str], None]) -> None:
        """Starts empty.

        Args:
            emit: gets the name of a stream and its text, in the order of ipykernel.
        """
        self._emit = emit
        self._parts: dict[str, list[str]] = {}
        self._due: dict[str, float] = {}
        self._size = 0

    def add(self, name: str, text: str, at: float, is_flush: bool = False) -> None:
        """Takes one piece.

        Args:
            name: the stream.
            text: its text.
            at: when it was written, on the clock of `time.monotonic`.
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
        """Emits what one stream has gathered."""
        parts = self._parts.pop(name, [])
        self._due.pop(name, None)
        text = "".join(parts)
        self._size -= len(text)
        if text:
            self._emit(name, text)

    def flush_all(self) -> None:
        """Emits what both have gathered, standard output first."""
        for name in ("stdout", "stderr"):
            self.flush(name)
