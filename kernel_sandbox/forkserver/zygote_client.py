"""The parent's handle on a zygote: starts it, requests workers, receives how they end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_sandbox import environment
from kernel_sandbox.aio import AsyncResource, run_shielded
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.errors import KernelStartError, SessionClosedError
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.forkserver.zygote import DEFAULT_MODULES, ISOLATED
from kernel_sandbox.watch import processes

__all__ = ["ForkedWorker", "Zygote"]

WARM_TIMEOUT_S = 120.0
_EVENT_BYTES = 4096
_UNWANTED_S = 10.0
_LOG = "log"
_LOG_TAIL_BYTES = 2000


@dataclass(frozen=True, slots=True)
class ForkedWorker:
    """A process that the zygote forked: the worker itself, or the monitor around it."""

    pid: int
    orphans: int | None
    """The process that becomes the parent of what the worker leaves behind, if there is one."""
    ended: asyncio.Future[int]
    """Its exit status once it has ended; the status of a kill if its zygote died."""


class Zygote(AsyncResource):
    """One zygote for a pool of workers; one that dies is replaced when the next worker starts.

    Enter it in the thread that lives longest: the system ends a zygote with the thread that
    started it.
    """

    def __init__(self, modules: Sequence[str] = DEFAULT_MODULES, *, isolate: bool = True) -> None:
        """Create the handle; the process starts later.

        Args:
            modules: what to import before the first fork; missing modules are left out.
            isolate: whether to use namespaces if the machine has them.
        """
        self._isolate = isolate
        self._modules = tuple(modules)
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._control: socket.socket | None = None
        self._folder: PrivateFolder | None = None
        self._lock = asyncio.Lock()
        self._sending = asyncio.Lock()
        self._room = asyncio.Event()
        self._warm: asyncio.Future[None] | None = None
        self._number = 0
        self._starting: dict[int, asyncio.Future[tuple[int, int | None]]] = {}
        self._ended: dict[int, asyncio.Future[int]] = {}
        self._is_closed = False

    async def _open(self) -> None:
        """Start the process; return when its modules are imported.

        Raises:
            KernelStartError: it did not start.
            SessionClosedError: the handle was closed before.
        """
        await self._ensure()

    @property
    def pid(self) -> int | None:
        """The zygote's process id, not its monitor's; `None` while there is none."""
        return self._pid

    async def spawn(
        self, policy: ConfinementSpec, variables: Mapping[str, str], descriptors: Sequence[int]
    ) -> ForkedWorker:
        """Fork a worker.

        Args:
            policy: its confinement; the zygote fills in the parent process.
            variables: its complete environment.
            descriptors: its end of the connection, then its standard output and standard error.
                They stay open here.

        Raises:
            KernelStartError: no zygote can fork it.
            SessionClosedError: the zygote was closed.
        """
        await self._ensure()
        self._number += 1
        number, loop = self._number, asyncio.get_running_loop()
        started: asyncio.Future[tuple[int, int | None]] = loop.create_future()
        ended: asyncio.Future[int] = loop.create_future()
        self._starting[number], self._ended[number] = started, ended
        request = {
            "id": number,
            "policy": policy.to_text(),
            "environment": dict(variables),
        }
        try:
            await self._send(json.dumps(request).encode(), descriptors)
        except BaseException:
            self._withdraw(number)
            raise
        try:
            return ForkedWorker(*await asyncio.shield(started), ended)
        except asyncio.CancelledError:
            await run_shielded(_end_unwanted(started, ended))
            raise
        finally:
            self._starting.pop(number, None)

    def _withdraw(self, number: int) -> None:
        """Forget a request that was not sent."""
        started = self._starting.pop(number)
        self._ended.pop(number, None)
        if not started.cancel():
            started.exception()  # marks the exception as retrieved: the zygote ended

    async def _send(self, data: bytes, descriptors: Sequence[int]) -> None:
        """Send a request, once the zygote has read enough of the earlier ones."""
        async with self._sending:
            control = self._control
            while control is not None and control is self._control:
                try:
                    socket.send_fds(control, [data], list(descriptors))
                except BlockingIOError:
                    await self._writable(control)
                except OSError as error:
                    raise KernelStartError(_refusal(error, len(data))) from error
                else:
                    return
        raise KernelStartError("the zygote ended; try again")

    async def _writable(self, control: socket.socket) -> None:
        """Wait until the socket accepts more, or the zygote has ended."""
        loop = asyncio.get_running_loop()
        self._room.clear()
        loop.add_writer(control, self._room.set)
        try:
            await self._room.wait()
        finally:
            if control is self._control:
                loop.remove_writer(control)

    async def close(self) -> None:
        """End the zygote and every worker. Safe to call again."""
        self._is_closed = True
        await run_shielded(self._close())

    async def _close(self) -> None:
        async with self._lock:
            await self._end()

    async def _ensure(self) -> None:
        """Start the process unless it is running.

        Raises:
            KernelStartError: it did not start.
            SessionClosedError: the handle was closed.
        """
        async with self._lock:
            if self._is_closed:
                raise SessionClosedError("the zygote is closed")
            if self._control is not None:
                return
            await self._end()
            self._start()
            try:
                async with asyncio.timeout(WARM_TIMEOUT_S):
                    await self._until_warm()
            except TimeoutError as error:
                text = f"the zygote was not ready within {WARM_TIMEOUT_S:.0f} s"
                raise KernelStartError(text + self._log_tail()) from error

    def _start(self) -> None:
        self._folder = PrivateFolder(environment.runtime_base(), "dmz-")
        path = self._folder.path
        for name in ("home", "tmp"):
            (path / name).mkdir(mode=0o700)
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-m", "kernel_sandbox.forkserver.zygote"]
        kind = ISOLATED if self._isolate else "none"
        try:
            with (path / _LOG).open("wb") as log:
                self._process = subprocess.Popen(
                    [*command, str(theirs.fileno()), str(os.getpid()), kind, *self._modules],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=path,
                    env=environment.kernel_environment(path, path),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            control.close()
            raise KernelStartError(f"the zygote could not be started: {error}") from error
        finally:
            theirs.close()
        control.setblocking(False)
        self._control = control
        loop = asyncio.get_running_loop()
        self._warm = loop.create_future()
        loop.add_reader(control, self._hear, control)

    async def _until_warm(self) -> None:
        if self._warm is None:
            raise KernelStartError("the zygote was not started")
        await asyncio.wait((self._warm,))
        if self._warm.cancelled():
            raise KernelStartError("the zygote ended while it started" + self._log_tail())

    def _hear(self, control: socket.socket) -> None:
        try:
            data = control.recv(_EVENT_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._handle(json.loads(data))
        else:
            self._lost()

    def _handle(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "warm" and self._warm is not None and not self._warm.done():
            self._pid = event["pid"]
            self._warm.set_result(None)
        elif event["event"] == "started":
            starting = self._starting.get(event["id"])
            if starting is not None and not starting.done():
                starting.set_result((event["pid"], event["orphans"]))
            else:  # the caller has gone
                with contextlib.suppress(ProcessLookupError):
                    os.kill(event["pid"], signal.SIGKILL)
        elif event["event"] == "refused":
            self._ended.pop(event["id"], None)
            starting = self._starting.get(event["id"])
            if starting is not None and not starting.done():
                text = f"the zygote could not fork a worker: {event['reason']}"
                starting.set_exception(KernelStartError(text))
        elif event["event"] == "ended":
            ended = self._ended.pop(event["id"], None)
            if ended is not None and not ended.done():
                ended.set_result(event["status"])

    def _lost(self) -> None:
        """Clean up after a zygote that is gone, and every worker with it."""
        self._pid = None
        if self._control is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._control)
            loop.remove_writer(self._control)
            self._room.set()
            self._control.close()
            self._control = None
        if self._warm is not None and not self._warm.done():
            self._warm.cancel()
        for starting in self._starting.values():
            if not starting.done():
                starting.set_exception(KernelStartError("the zygote ended; try again"))
        ended, self._ended = self._ended, {}
        for future in ended.values():
            if not future.done():
                future.set_result(-signal.SIGKILL)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await processes.exited(process)
            process.wait()
        self._lost()
        if self._folder is not None:
            await asyncio.to_thread(processes.sweep, self._folder.path)
            self._folder.remove()
            self._folder = None

    def _log_tail(self) -> str:
        if self._folder is None:
            return ""
        data = (self._folder.path / _LOG).read_bytes()[-_LOG_TAIL_BYTES:]
        text = data.decode("utf-8", "replace").strip()
        return f". Last output:\n{text}" if text else ""


def _refusal(error: OSError, size_bytes: int) -> str:
    if error.errno == errno.EMSGSIZE:
        return (
            f"the worker's start request has {size_bytes} bytes, more than the system can send "
            "at once. Use fewer inputs or shorter paths."
        )
    return f"the zygote does not take the request: {error}"


async def _end_unwanted(
    started: asyncio.Future[tuple[int, int | None]], ended: asyncio.Future[int]
) -> None:
    """End a worker whose caller has gone; return when it no longer uses its folder."""
    with contextlib.suppress(TimeoutError, KernelStartError):
        async with asyncio.timeout(_UNWANTED_S):
            pid, _ = await started
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            await ended
