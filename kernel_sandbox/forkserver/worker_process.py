"""One running worker, forked by a zygote, with its own folders and watchdog."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_sandbox import environment
from kernel_sandbox.aio import run_shielded
from kernel_sandbox.confine.fence import Fence
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.plan import KernelPaths, plan
from kernel_sandbox.confine.probe import probe
from kernel_sandbox.confine.run_folder import make_run_folder
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.confine.system_paths import unfit
from kernel_sandbox.errors import KernelStartError, SandboxError
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.files.workspace import Workspace, unfit_folder
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.forkserver.forked_kernel import ForkedKernel
from kernel_sandbox.forkserver.zygote_client import ForkedWorker, Zygote
from kernel_sandbox.types import Limits
from kernel_sandbox.watch.watchdog import Watchdog, out_of_memory

__all__ = ["ForkedWorker", "WorkerOptions"]

START_TIMEOUT_S = 60.0
_KILL_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options for starting a worker."""

    isolate: bool = True
    """Whether to use namespaces if the machine has them."""
    overlay: Path | None = None
    """A folder of added packages that its cells may import."""
    watched: bool = True
    """Whether its memory is watched; false if its forks are states, watched one by one."""
    group_bytes: int | None = None
    """Memory limit of its control group, bytes; `None` for the memory that it may use."""
    keeps_ledger: bool = True
    """Whether it records what its cells do to the data."""


class WorkerProcess(ForkedKernel):
    """A running worker; `start` and `stop` are called once each, by one owner."""

    def __init__(
        self,
        zygote: Zygote,
        limits: Limits,
        workspace: Workspace,
        options: WorkerOptions,
    ) -> None:
        """Prepare the worker; `start` starts it.

        Args:
            zygote: the zygote that forks it.
            limits: what the worker may use.
            workspace: its working folder and what it may read.
            options: how to start it.
        """
        super().__init__()
        self._zygote = zygote
        self._limits = limits
        self._workspace = workspace
        self._options = options
        self._folder: PrivateFolder | None = None
        self._process: ForkedWorker | None = None
        self._fence: Fence | None = None
        self._layer: WorkspaceLayer | None = None
        self.containment = Containment()
        """The layers around it."""

    async def start(self) -> None:
        """Fork the process; return when it accepts cells.

        Raises:
            KernelStartError: it ended, or did not answer in time.
            SessionClosedError: the zygote was closed.
            WorkspaceError: it can't have its working folder.
        """
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
        except TimeoutError as error:
            await run_shielded(self.stop())
            message = f"the worker did not answer within {START_TIMEOUT_S:.0f} s"
            raise KernelStartError(message) from error
        except OSError as error:
            await run_shielded(self.stop())
            raise KernelStartError(f"the worker could not be started: {error}") from error
        except BaseException:
            await run_shielded(self.stop())
            raise

    async def _start(self) -> None:
        folder = self._folder = make_run_folder()
        workspace, options = self._workspace, self._options
        variables = environment.kernel_environment(workspace.path, folder.path)
        places = KernelPaths(
            workspace.path,
            folder.path,
            workspace.readable,
            overlay=options.overlay,
            is_shared=not workspace.is_private,
        )
        fence, policy = await asyncio.to_thread(self._planned, places, tuple(variables))
        with self._connection() as descriptors:
            self._process = await self._zygote.spawn(policy, variables, descriptors)
        self._tasks.append(asyncio.create_task(self._await_death(self._process)))
        reported = Containment.from_json(await self._await_ready(self.channel))
        # Its monitor may have forked it before either was known, so each is added by itself.
        for pid in (self._process.pid, self.kernel_pid or 0):
            fence.add(pid)
        self.containment = reported.with_layers([fence.layer(reported)])
        if options.watched and self.kernel_pid is not None:
            layer = self.layer
            folders = (workspace.path if layer is None else layer.upper, folder.path)
            self._watch(Watchdog(self.roots, self.kernel_pid, self._limits, folders, fence.ran_out))

    def _planned(
        self, places: KernelPaths, names: tuple[str, ...]
    ) -> tuple[Fence, ConfinementSpec]:
        fence = self._fence = Fence(places.run_dir.name, self._limits, self._options.group_bytes)
        isolate = self._options.isolate
        has_view = isolate and probe().has_view
        if places.is_shared and (
            problem := unfit(places.workspace, places.run_dir, has_view=has_view)
        ):
            raise unfit_folder(places.workspace, problem)
        if places.is_shared and has_view:
            self._layer = WorkspaceLayer(
                places.workspace, Path(tempfile.gettempdir()), self._limits.disk_bytes
            )
            places = replace(places, layer=self._layer.path)
        policy = plan(self._limits, places, names, isolate=isolate, counts=fence.counts)
        fence.user_number = policy.user_number
        return fence, policy

    @property
    def layer(self) -> WorkspaceLayer | None:
        """The layer above its working folder, or `None` if there is none."""
        return self._layer if self.containment.is_active("workspace_layer") else None

    @property
    def roots(self) -> tuple[int, ...]:
        """The process that was started, and the one that inherits its orphans, if any."""
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

    async def _await_death(self, process: ForkedWorker) -> None:
        self.exit_status = await asyncio.shield(process.ended)
        if self.violation is None and self._fence is not None and self._fence.ran_out():
            self.violation = out_of_memory(self._limits)
        self._died()

    def _signal(self) -> None:
        """Kill the worker; its monitor then ends what it started, and itself."""
        super()._signal()
        process = self._process
        if self._handle < 0 and process is not None and not process.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """End the process and all that it started; return when they are gone."""
        process = self._process
        if process is None or self.dead.is_set():
            return
        self._signal()
        if self._fence is not None:
            await asyncio.to_thread(self._fence.end)
        try:
            async with asyncio.timeout(_KILL_WAIT_S):
                await self.dead.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            await self.dead.wait()

    async def stop(self) -> None:
        """End the worker and remove its private folder. Safe to call again."""
        await self.kill()
        await self._release()
        if self._fence is not None:
            await asyncio.to_thread(self._fence.remove)
        if self._layer is not None:
            await asyncio.to_thread(self._layer.finish)
        if self._folder is not None:
            self._folder.remove()
