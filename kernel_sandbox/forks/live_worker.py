"""One live worker: forked by a zygote, with folders and a watchdog of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from kernel_sandbox import environment
from kernel_sandbox.contain.plan import Places, plan
from kernel_sandbox.containment import Containment
from kernel_sandbox.errors import KernelStartError, SandboxError
from kernel_sandbox.forks.forked import ForkedProcess
from kernel_sandbox.forks.zygote_client import WorkerProcess, Zygote
from kernel_sandbox.private_folder import PrivateFolder
from kernel_sandbox.run_folder import make_run_folder
from kernel_sandbox.teardown import shielded
from kernel_sandbox.types import Limits
from kernel_sandbox.watchdog import Watchdog
from kernel_sandbox.workspace import Workspace

__all__ = ["LiveWorker", "WorkerOptions"]

START_TIMEOUT_S = 60.0
_KILL_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker is started."""

    isolate: bool = True
    """Whether to use namespaces where the machine has them."""
    overlay: Path | None = None
    """A folder of added packages that its cells may import."""
    watched: bool = True
    """Whether its memory is watched; not where its forks are states, watched one by one."""


class LiveWorker(ForkedProcess):
    """A running worker; `start` and `stop` are called once each, by one owner."""

    def __init__(
        self,
        zygote: Zygote,
        limits: Limits,
        workspace: Workspace,
        options: WorkerOptions,
    ) -> None:
        """Starts nothing yet.

        Args:
            zygote: what forks it.
            limits: what the worker may use.
            workspace: where it works and what it reads.
            options: how to start it.
        """
        super().__init__()
        self._zygote = zygote
        self._limits = limits
        self._workspace = workspace
        self._options = options
        self._folder: PrivateFolder | None = None
        self._process: WorkerProcess | None = None
        self.containment = Containment()
        """The layers that hold around it."""

    async def start(self) -> None:
        """Forks the process and returns when it takes cells.

        Raises:
            KernelStartError: it ended, or did not answer in time.
            SessionClosedError: the zygote was closed.
        """
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
        except TimeoutError as error:
            await shielded(self.stop())
            message = f"the worker did not answer within {START_TIMEOUT_S:.0f} s"
            raise KernelStartError(message) from error
        except OSError as error:
            await shielded(self.stop())
            raise KernelStartError(f"the worker could not be started: {error}") from error
        except BaseException:
            await shielded(self.stop())
            raise

    async def _start(self) -> None:
        folder = self._folder = make_run_folder()
        workspace, options = self._workspace, self._options
        variables = environment.kernel_environment(workspace.path, folder.path)
        places = Places(workspace.path, folder.path, workspace.readable, overlay=options.overlay)
        policy = await asyncio.to_thread(
            plan, self._limits, places, tuple(variables), isolate=options.isolate
        )
        with self._connection() as descriptors:
            self._process = await self._zygote.spawn(policy, variables, descriptors)
        self._tasks.append(asyncio.create_task(self._await_death(self._process)))
        self.containment = Containment.from_json(await self._await_ready(self.wire))
        if options.watched and self.kernel_pid is not None:
            folders = (workspace.path, folder.path)
            self._watch(Watchdog(self.roots, self.kernel_pid, self._limits, folders))

    @property
    def roots(self) -> tuple[int, ...]:
        """The process that was started, and the one that gets what it leaves behind, if any."""
        process = self._process
        found = () if process is None else (process.pid, process.orphans)
        return tuple(pid for pid in found if pid is not None)

    @property
    def home(self) -> Path:
        """Its home folder.

        Raises:
            SandboxError: it was not started.
        """
        if self._folder is None:
            raise SandboxError("the worker was not started")
        return self._folder.path / "home"

    async def _await_death(self, process: WorkerProcess) -> None:
        self.exit_status = await asyncio.shield(process.ended)
        self._died()

    def _signal(self) -> None:
        """Kills the worker; its monitor then ends what it started, and itself."""
        super()._signal()
        process = self._process
        if self._handle < 0 and process is not None and not process.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """Ends the process with all that it started; returns when they are gone."""
        process = self._process
        if process is None or self.dead.is_set():
            return
        self._signal()
        try:
            async with asyncio.timeout(_KILL_WAIT_S):
                await self.dead.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            await self.dead.wait()

    async def stop(self) -> None:
        """Ends the worker and removes its private folder. Safe to call again."""
        await self.kill()
        await self._release()
        if self._folder is not None:
            self._folder.remove()
