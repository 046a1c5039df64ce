"""The kernels of open notebooks: found, attached to, watched, replaced when they die."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from jupyter_core.utils import ensure_async

from dm_jupyter.data.kernel_tables import (
    Alive,
    alive_from_text,
    variables_expression,
)
from dm_jupyter.server.kernels.packages import Packages
from dm_jupyter.server.kernels.staged_data import StagedData
from dm_jupyter.server.protocol import KernelMeter
from kernel_sandbox.cells.cell import describe_death
from kernel_sandbox.confine.layers import Containment, LayerState
from kernel_sandbox.confine.probe import layers_without_view, probe
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.jupyter.attached import AttachedKernel, sandbox_of
from kernel_sandbox.jupyter.provisioner import SandboxProvisioner
from kernel_sandbox.types import Limits

__all__ = ["KernelDirectory", "KernelRegistry", "NewSession", "NoKernelError"]

_log = logging.getLogger(__name__)
_REVIVAL_S = 20.0
_REVIVAL_POLL_S = 0.1
_VARIABLES_S = 2.0
_ALIVE_S = 8.0
"""Limit on asking a kernel: attaching waits for whatever the kernel is doing."""
_BUSY_LOOKS, _BUSY_POLL_S = 5, 0.05
_SHUT_DOWN = "the notebook's kernel was shut down: start one, then ask again"
_WOULD_NOT_STOP = "the cell would not stop, so its kernel was ended; its variables are gone"


class NoKernelError(Exception):
    """The notebook has no running kernel."""


@dataclass(frozen=True, slots=True)
class NewSession:
    """Settings of a restricted kernel on this server."""

    limits: Limits
    overlay: Path | None
    """Folder of added packages that its cells may import; `None` for none."""
    is_isolated: bool
    """Whether it gets its own namespaces if the machine has them."""


class KernelDirectory:
    """What the server's own tables know of the notebooks' kernels, without attaching to any."""

    def __init__(
        self, sessions: Any, managers: Any, limits: Limits, packages: Packages | None
    ) -> None:
        """Create the directory; `KernelRegistry` describes the arguments."""
        self._sessions = sessions
        self._managers = managers
        self._limits = limits
        self._packages = packages

    def manager(self, kernel_id: str) -> Any:
        """Return the server's manager of the kernel.

        Raises:
            KernelStartError: there is no such kernel (any more).
        """
        if kernel_id not in self._managers:  # jupyter_server's `get_kernel` raises an HTTPError
            raise KernelStartError(_SHUT_DOWN)
        return self._managers.get_kernel(kernel_id)

    async def kernel_of(self, notebook_path: str) -> str:
        """Return the id of the notebook's kernel.

        Raises:
            NoKernelError: the notebook has no kernel.
        """
        for session in await ensure_async(self._sessions.list_sessions()):
            if session["path"].lstrip("/") == notebook_path.lstrip("/") and session.get("kernel"):
                return str(session["kernel"]["id"])
        raise NoKernelError(f"{notebook_path} has no running kernel: start one")

    async def notebook_of(self, kernel_id: str) -> str:
        """Return the path of the notebook that the kernel belongs to.

        Raises:
            NoKernelError: no notebook has this kernel.
        """
        for session in await ensure_async(self._sessions.list_sessions()):
            if session.get("kernel") and session["kernel"]["id"] == kernel_id:
                return str(session["path"])
        raise NoKernelError("no notebook has this kernel")

    def is_restricted(self, kernel_id: str) -> bool:
        """Whether the kernel runs in the sandbox, and the sandbox is not switched off."""
        return sandbox_of(self.manager(kernel_id)) is not None

    @property
    def are_confined(self) -> bool:
        """Whether the server's settings leave the sandbox on."""
        return self._provisioner().is_confined

    def expected(self) -> Containment:
        """Return the layers that the settings give a new restricted kernel; blocks."""
        settings = self._provisioner()
        return probe().containment if settings.isolate else layers_without_view()

    def new_session_settings(self) -> NewSession:
        """Return the settings of this server's restricted kernels, for one beside a notebook."""
        settings = self._provisioner()
        cells = self._limits
        return NewSession(
            replace(settings.limits, wall_s=cells.wall_s, output_bytes=cells.output_bytes),
            Path(settings.overlay) if settings.overlay else None,
            is_isolated=settings.isolate,
        )

    def _provisioner(self) -> SandboxProvisioner:
        return SandboxProvisioner(config=self._managers.config)

    def workspace(self, kernel_id: str, notebook_folder: Path) -> Path:
        """Return the kernel's working folder."""
        provisioner = self.manager(kernel_id).provisioner
        inside = provisioner.workspace if isinstance(provisioner, SandboxProvisioner) else None
        return inside or notebook_folder

    def layer(self, kernel_id: str) -> WorkspaceLayer | None:
        """Return the layer above the kernel's working folder; `None` if it has none."""
        sandbox = sandbox_of(self.manager(kernel_id))
        return sandbox.layer if sandbox is not None else None

    async def open_gate(self, notebook_path: str) -> None:
        """Let the notebook's kernel write for the person, until a run's next cell."""
        with contextlib.suppress(NoKernelError, KernelStartError):
            layer = self.layer(await self.kernel_of(notebook_path))
            if layer is not None:
                layer.is_gated = False

    def packages(self, kernel_id: str) -> Packages | None:
        """Return the packages that the kernel sees and that can be extended; `None` for none."""
        sandbox = sandbox_of(self.manager(kernel_id))
        seen = sandbox.overlay if sandbox is not None else ""
        return self._packages if self._packages and seen == self._packages.site else None

    def containment(self, kernel_id: str) -> Containment:
        """Return the layers that restrict the kernel."""
        provisioner = self.manager(kernel_id).provisioner
        return (
            provisioner.containment
            if isinstance(provisioner, SandboxProvisioner)
            else Containment()
        )

    def process_of(self, kernel_id: str) -> str:
        """Return a name of the kernel's process, new after a restart; empty if it has none."""
        with contextlib.suppress(KernelStartError):
            process = getattr(self.manager(kernel_id).provisioner, "process", None)
            return f"{kernel_id} {process.pid}" if process is not None else ""
        return ""

    def limits(self, kernel_id: str) -> Limits:
        """Return the limits of the kernel, or of a run's cells if it has none of its own."""
        sandbox = sandbox_of(self.manager(kernel_id))
        return sandbox.limits if sandbox is not None else self._limits


class KernelRegistry:
    """The attachments to the notebooks' kernels, one for each process."""

    def __init__(
        self,
        sessions: Any,
        managers: Any,
        limits: Limits,
        packages: Packages | None = None,
    ) -> None:
        """Start without attachments.

        Args:
            sessions: the server's session manager.
            managers: the server's mapping of kernel managers.
            limits: the limits of the cells that runs run.
            packages: the added packages that restricted kernels see; `None` for none.
        """
        self._managers = managers
        self._limits = limits
        self.directory = KernelDirectory(sessions, managers, limits, packages)
        """The server's knowledge of the kernels."""
        self.data = StagedData(self.directory)
        """The data files that the kernels read."""
        self._attached: dict[str, AttachedKernel] = {}
        self._deaths: dict[str, asyncio.Task[None]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks of the kernels that are being attached to or released."""
        self.on_death: Callable[[str, str], None] = lambda *_: None
        """Callback with a kernel's id and why it ended, if nobody asked for that."""
        self.on_attached: Callable[[str, AttachedKernel], None] = lambda *_: None
        """Callback with a kernel's id and each new attachment to it."""
        self.on_run: Callable[[str], None] = lambda _: None
        """Callback with the id of a restricted kernel in which a run starts."""

    def begin_run(self, kernel_id: str) -> None:
        """Report a run to `on_run`; called before its first cell runs in the kernel."""
        if self.directory.is_restricted(kernel_id):
            self.on_run(kernel_id)

    async def attach(self, kernel_id: str) -> AttachedKernel:
        """Return an attachment to the kernel's live process; waits for one that restarts.

        Raises:
            KernelStartError: no process came up, or the kernel was shut down.
        """
        async with self._lock(kernel_id):  # one lock per kernel: a busy one blocks no other
            attached = self._attached.get(kernel_id)
            if attached is not None and not attached.dead.is_set():
                return attached
            if attached is not None:
                await self._let_go(kernel_id)
            return await self._open(kernel_id)

    def _lock(self, kernel_id: str) -> asyncio.Lock:
        return self._locks.setdefault(kernel_id, asyncio.Lock())

    async def _open(self, kernel_id: str) -> AttachedKernel:
        try:
            async with asyncio.timeout(_REVIVAL_S):
                # The server restarts it by itself, and does not report when.
                while not await self.directory.manager(kernel_id).is_alive():  # noqa: ASYNC110
                    await asyncio.sleep(_REVIVAL_POLL_S)
        except TimeoutError:
            raise KernelStartError("the notebook's kernel ended and did not come back") from None
        attached = AttachedKernel(self.directory.manager(kernel_id), self._limits)
        try:
            await attached.open()
        except BaseException:
            await attached.close()
            raise
        self._attached[kernel_id] = attached
        self.on_attached(kernel_id, attached)
        self._deaths[kernel_id] = asyncio.create_task(self._await_death(kernel_id, attached))
        return attached

    async def _await_death(self, kernel_id: str, attached: AttachedKernel) -> None:
        """Report why the kernel ended, and release it: nobody may ever ask for it again."""
        await attached.dead.wait()
        if kernel_id in self._managers:  # not shut down by the person
            self._tell_death(kernel_id, attached)
        async with self._lock(kernel_id):
            del self._attached[kernel_id]
            await attached.close()
            del self._deaths[kernel_id]

    def _tell_death(self, kernel_id: str, attached: AttachedKernel) -> None:
        if attached.violation is not None:
            self.on_death(kernel_id, f"{attached.violation.message} Its variables are gone.")
        elif attached.was_killed:
            self.on_death(kernel_id, _WOULD_NOT_STOP)
        elif attached.exit_status not in (None, 0):
            limits = self.directory.limits(kernel_id)
            self.on_death(kernel_id, describe_death(attached.exit_status, limits))

    async def meter(self, notebook_path: str) -> KernelMeter | None:
        """Return what the notebook's kernel uses; `None` while it has none that answers."""
        try:
            kernel_id = await self.directory.kernel_of(notebook_path)
            attached = await self.attach(kernel_id)
            limits = self.directory.limits(kernel_id)
            layers = self.directory.containment(kernel_id).layers
        except (NoKernelError, KernelStartError):
            return None
        usage, cpu_s = await asyncio.to_thread(attached.usage)
        layer = attached.layer
        is_run = layer is None or (layer.is_gated and layer.is_asked_about)
        news = () if layer is None or is_run else layer.take_news()
        return KernelMeter(
            notebook_path=notebook_path,
            kernel_id=kernel_id,
            is_restricted=attached.is_restricted,
            layers_active=tuple(x.name for x in layers if x.state is LayerState.ACTIVE),
            layers_missing=tuple(x.name for x in layers if x.state is not LayerState.ACTIVE),
            memory_bytes=usage.memory_bytes,
            memory_limit_bytes=limits.memory_bytes,
            cpu_s=cpu_s,
            cpu_limit_s=float(limits.cpu_s),
            processes=usage.processes,
            process_limit=limits.processes,
            files_left_out=tuple(change for change in news if change.state == "refused"),
        )

    async def variables(self, notebook_path: str) -> list[dict[str, Any]]:
        """Return the tables among the kernel's variables; none while it is busy."""
        try:
            kernel_id = await self.directory.kernel_of(notebook_path)
        except NoKernelError:
            return []
        return list((await self.alive(kernel_id)).tables)

    async def alive(self, kernel_id: str) -> Alive:
        """Return the kernel's variables; none while the server lists it as busy."""
        try:
            async with asyncio.timeout(_ALIVE_S):
                if await self._is_busy(kernel_id):
                    return Alive()
                attached = await self.attach(kernel_id)
                text = await attached.evaluate("", variables_expression(), _VARIABLES_S)
        except (KernelStartError, TimeoutError):
            return Alive()
        return alive_from_text(text or "")

    async def _is_busy(self, kernel_id: str) -> bool:
        """Whether the kernel is busy; its idle state may be reported a moment late."""
        for _ in range(_BUSY_LOOKS):
            if getattr(self.directory.manager(kernel_id), "execution_state", "") != "busy":
                return False
            await asyncio.sleep(_BUSY_POLL_S)
        return True

    async def close(self) -> None:
        """Release all kernels."""
        await self.data.close()
        while self._attached:
            await self._let_go(next(iter(self._attached)))
        if self._deaths:
            await asyncio.wait(self._deaths.values())

    async def _let_go(self, kernel_id: str) -> None:
        death = self._deaths.pop(kernel_id, None)
        if death is not None:
            death.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await death
        await self._attached.pop(kernel_id).close()
