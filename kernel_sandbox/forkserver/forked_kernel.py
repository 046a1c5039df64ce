"""A forked process that accepts cells over a socket, as a cell's run needs it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from kernel_sandbox.errors import KernelStartError, SandboxError
from kernel_sandbox.forkserver.worker_client import WorkerClient
from kernel_sandbox.watch.watchdog import LimitViolation
from kernel_sandbox.watch.watched_kernel import WatchedKernel

__all__ = ["ForkedKernel"]


class ForkedKernel(WatchedKernel):
    """A worker, or a state of one; implements `RunningKernel`."""

    def __init__(self) -> None:
        """Prepare the handle; nothing is connected yet."""
        super().__init__()
        self._handle = -1
        self._channel: WorkerClient | None = None
        self.kernel_pid: int | None = None
        """Its own process id on this machine, not its monitor's."""
        self.exit_status: int | None = None
        """Its exit status; 128 and more mean a signal; `None` if it is unknown."""

    @property
    def channel(self) -> WorkerClient:
        """The channel to the process.

        Raises:
            SandboxError: it was not started.
        """
        if self._channel is None:
            raise SandboxError("the worker was not started")
        return self._channel

    @property
    def is_alive(self) -> bool:
        """Whether it accepts cells."""
        return self.kernel_pid is not None and not self.dead.is_set()

    async def interrupt(self) -> None:
        """Send an interrupt to the process and to what its cell started."""
        if self.kernel_pid is not None and self.is_alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.kernel_pid, signal.SIGINT)

    @contextmanager
    def _connection(self) -> Iterator[list[int]]:
        """Create the channel; yield the descriptors of its other end, which close afterwards."""
        with ExitStack() as theirs, ExitStack() as ours:
            connection, other = socket.socketpair()
            theirs.callback(other.close)
            ours.callback(connection.close)
            reading, writing = {}, []
            for name in ("stdout", "stderr"):
                source, target = os.pipe()
                ours.callback(os.close, source)
                theirs.callback(os.close, target)
                os.set_blocking(source, False)
                reading[source] = name
                writing.append(target)
            self._channel = WorkerClient(connection, reading)
            self._channel.on_fault = self._take_fault
            ours.pop_all()  # the channel closes them
            yield [other.fileno(), *writing]

    async def _await_ready(self, channel: WorkerClient) -> dict[str, Any]:
        """Return the layers that the process reports, and store its process id."""
        dying = asyncio.create_task(self.dead.wait())
        try:
            await asyncio.wait((channel.ready, dying), return_when=asyncio.FIRST_COMPLETED)
        finally:
            dying.cancel()
        if not channel.ready.done():
            text = f". Last output:\n{channel.log.strip()}" if channel.log.strip() else ""
            raise KernelStartError(f"the worker ended with status {self.exit_status}{text}")
        pid, layers = channel.ready.result()
        try:
            self._handle = os.pidfd_open(pid)
        except OSError as error:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise KernelStartError(f"could not open a handle to the worker: {error}") from error
        self.kernel_pid = pid
        return layers

    def _take_fault(self, reason: str) -> None:
        """End a process whose connection is gone or broken: it can accept no more cells."""
        if reason and not self.dead.is_set():
            text = f"the kernel broke the rules of its connection and was ended: {reason}."
            self.violation = self.violation or LimitViolation("connection", text)
        self._signal()

    def _signal(self) -> None:
        """Kill the process."""
        if self._handle >= 0 and not self.dead.is_set():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _died(self) -> None:
        if self._channel is not None:
            self._channel.finish()
        self.dead.set()

    async def _release(self) -> None:
        """Close what belongs to the process, which has ended."""
        await self._end_tasks()
        self.dead.set()
        if self._channel is not None:
            self._channel.close()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
