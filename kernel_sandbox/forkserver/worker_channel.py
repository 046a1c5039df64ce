"""The worker's end of the socket, and the standard streams that write to it."""

from __future__ import annotations

import io
import os
import signal
import socket
import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any, Literal

from kernel_sandbox.forkserver.frames import Decoder, FrameError, FrameMessage, encode

__all__ = ["TextStream", "WorkerChannel"]

PIECE_CHARACTERS = 8 * 1024
PROMPT_LINES = 200
"""Pieces of a cell that are sent line by line, to arrive even if the process is killed."""
PAUSE_S = 0.05
"""Seconds since the last piece after which a later line is sent at once."""
ERROR_CHARACTERS = 128 * 1024
"""Longest text of an error. The parent keeps half; many megabytes would not fit into a message."""

DESCRIPTORS_AT_ONCE = 3
_READ_BYTES = 64 * 1024
_HELD = (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD)


class WorkerChannel:
    """Channel whose messages are sent completely or not at all, whatever interrupts.

    A process that a cell has forked off owns no channel. What it sends is dropped, and its streams
    write to the file descriptors, which the parent reads too.
    """

    def __init__(self, connection: socket.socket) -> None:
        """Take over the socket.

        Args:
            connection: a blocking socket, so that a slow parent slows the worker down.
        """
        self.adopt(connection)

    def let_go(self) -> None:
        """Leave the connection to another process; the descriptor stays open."""
        self._connection.detach()

    def adopt(self, connection: socket.socket) -> None:
        """Make the current process the owner, with a connection of its own.

        Args:
            connection: as for the first owner.
        """
        self._connection = connection
        self._decoder = Decoder()
        self._arrived: list[FrameMessage] = []
        self._descriptors: list[int] = []
        self._owner = os.getpid()
        self._lock = threading.Lock()

    @property
    def is_owned(self) -> bool:
        """Whether the current process is the worker, and not one that it forked off."""
        return os.getpid() == self._owner

    def send(self, kind: str, content: Mapping[str, Any]) -> None:
        """Send one message; of one that is too long, report only the size.

        Args:
            kind: the kind of the message.
            content: content as `frames.encode` accepts it.

        Raises:
            OSError: the parent is gone.
            ValueError: the content can't be written as JSON.
        """
        if not self.is_owned:
            return
        try:
            data = encode(kind, content)
        except FrameError:
            data = encode("cut", {"bytes": _weight(content)})
        try:
            # A handler that raises in the middle of a message would cut it in two.
            signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
            with self._lock:
                self._connection.sendall(data)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)

    def send_error(self, name: str, message: str, lines: list[str]) -> None:
        """Send the exception that ended a cell.

        Args:
            name: its class.
            message: its text.
            lines: its traceback.

        Raises:
            OSError: the parent is gone.
        """
        texts = [message, *lines]
        lost = sum(max(0, len(text) - ERROR_CHARACTERS) for text in texts)
        if lost:
            self.send("cut", {"bytes": lost})
        message, *lines = (text[:ERROR_CHARACTERS] for text in texts)
        self.send("error", {"ename": name, "evalue": message, "traceback": lines})

    def receive(self) -> FrameMessage | None:
        """Return the next message, or `None` if the parent is gone.

        Raises:
            FrameError: what came is not a message.
            OSError: the socket was closed here.
        """
        while not self._arrived:
            data, descriptors, _, _ = socket.recv_fds(
                self._connection, _READ_BYTES, DESCRIPTORS_AT_ONCE
            )
            self._descriptors += descriptors
            if not data:
                return None
            self._arrived += self._decoder.feed(data)
        return self._arrived.pop(0)

    def take_descriptors(self) -> list[int]:
        """Return the descriptors that came with the messages so far; the caller owns them."""
        taken, self._descriptors = self._descriptors, []
        return taken


def _weight(content: Mapping[str, Any]) -> int:
    data = content.get("data", content)
    return sum(len(value) for value in data.values() if isinstance(value, str | bytes))


class TextStream(io.TextIOBase):
    """`sys.stdout` or `sys.stderr` of a worker."""

    encoding = "UTF-8"

    def __init__(self, channel: WorkerChannel, name: Literal["stdout", "stderr"]) -> None:
        """Create the stream.

        Args:
            channel: the channel that it sends to.
            name: which of the two streams it is.
        """
        self._channel = channel
        self.name = name
        self._descriptor = 1 if name == "stdout" else 2
        self._parts: list[str] = []
        self._size = 0
        self._begun = 0.0
        self._sent = 0.0
        self._pieces = 0

    def begin_cell(self) -> None:
        """Send lines one by one again."""
        self._pieces = 0

    def fileno(self) -> int:
        """Return the descriptor that other programs may write to; the parent reads it as well."""
        return self._descriptor

    def writable(self) -> bool:
        """Return `True`."""
        return True

    def write(self, text: str) -> int:
        """Write some text, which is sent at the end of the line or a little later.

        Args:
            text: the text, sent unchanged.

        Raises:
            TypeError: it is not a string.
            OSError: the parent is gone.
        """
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text)}")
        if not self._channel.is_owned:
            os.write(self._descriptor, text.encode("utf-8", "replace"))
            return len(text)
        now = monotonic()
        if not self._parts:
            self._begun = now
        self._parts.append(text)
        self._size += len(text)
        is_due = self._pieces < PROMPT_LINES or now - self._sent > PAUSE_S
        if self._size >= PIECE_CHARACTERS or (is_due and text.endswith("\n")):
            self._send(is_flush=False)
        return len(text)

    def flush(self) -> None:
        """Send what has been gathered, marked as flushed: programs may have printed, too.

        Raises:
            OSError: the parent is gone.
        """
        if self._channel.is_owned:
            self._send(is_flush=True)

    def drain(self) -> None:
        """Send what has been gathered; the parent flushes by itself before what comes next.

        Raises:
            OSError: the parent is gone.
        """
        if self._channel.is_owned and self._parts:
            self._send(is_flush=False)

    def _send(self, is_flush: bool) -> None:
        text, self._parts, self._size = "".join(self._parts), [], 0
        self._sent = monotonic()
        self._pieces += 1
        at = self._begun if text else self._sent
        size = 8 * PIECE_CHARACTERS  # a text of any length, a piece at a time
        for start in range(0, max(1, len(text)), size):
            piece = {"name": self.name, "text": text[start : start + size], "at": at}
            self._channel.send("stream", {**piece, "is_flush": is_flush})
