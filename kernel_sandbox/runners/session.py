"""A restricted kernel as an async context manager: run, interrupt, restart, close."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from kernel_sandbox.aio import AsyncResource, run_shielded
from kernel_sandbox.cells.cell import LOST_STATE, CellRun, RunningKernel
from kernel_sandbox.cells.screen import screen
from kernel_sandbox.confine.layers import LAYER_NAMES, Containment, Layer, LayerState
from kernel_sandbox.errors import ContainmentError, SessionClosedError
from kernel_sandbox.files.workspace import TOO_MANY_TO_COMPARE, Workspace, copy_files
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.jupyter.attached import reply_text
from kernel_sandbox.jupyter.live import LiveKernel
from kernel_sandbox.types import CellResult, CellStatus, FileChange, Limits

__all__ = ["CellSession", "KernelSession", "LiveProcess", "settled"]


class LiveProcess(RunningKernel, Protocol):
    """A kernel from its start to its end; a session creates one for each start."""

    @property
    def kernel_pid(self) -> int | None:
        """Its own process id on this machine; `None` before the start."""
        ...

    @property
    def containment(self) -> Containment:
        """The layers around it."""
        ...

    @property
    def layer(self) -> WorkspaceLayer | None:
        """The layer above its working folder, or `None` if there is none."""
        ...

    async def start(self) -> None:
        """Start the process; return when it accepts cells, and clean up if it can't start."""
        ...

    async def stop(self) -> None:
        """End it and remove what was private to it. Safe to call again."""
        ...


class CellSession(AsyncResource):
    """`CellRunner` for one restricted process, which a subclass starts.

    Covered: what `containment` lists as active. Not covered: all other layers. The code can forge
    its own outputs, so no score may trust what a kernel reports about itself.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        inputs: Mapping[str, Path] | None = None,
        require: Iterable[str] = (),
        *,
        screened: bool = True,
        keeps_ledger: bool = True,
    ) -> None:
        """Prepare a session; entering the context starts it.

        Args:
            limits: what the kernel may use.
            inputs: the files that the code may read, by the names that it uses for them.
            require: the layers that must be active, or the start fails.
            screened: whether a cell is screened before it runs; the layers do not depend on it.
            keeps_ledger: whether the kernel records what its cells do to the data.

        Raises:
            ContainmentError: `require` names a layer that does not exist.
        """
        self.limits = limits or Limits()
        self._inputs = dict(inputs or {})
        self._require = tuple(require)
        self._screened = screened
        self._keeps_ledger = keeps_ledger
        unknown = sorted(set(self._require) - set(LAYER_NAMES))
        if unknown:
            known = ", ".join(LAYER_NAMES)
            raise ContainmentError(f"no such layer: {', '.join(unknown)}; there are {known}")
        self._workspace: Workspace | None = None
        self._kernel: LiveProcess | None = None
        self._cell: CellRun | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False
        self.containment = Containment()
        """The layers around the last started kernel."""

    @abstractmethod
    def _launch(self) -> LiveProcess:
        """Return a kernel that is not started yet."""

    async def __aenter__(self) -> Self:
        """Start the kernel.

        Raises:
            KernelStartError: it did not start.
            ContainmentError: a required layer is not active.
            SessionClosedError: the session was started or closed before.
            WorkspaceError: an input or the working folder can't be used.
        """
        if self._is_closed or self._workspace is not None:
            raise SessionClosedError("a session starts once: make a new one")
        return await super().__aenter__()

    async def _open(self) -> None:
        async with self._lock:  # a concurrent `close` waits, and then ends what was started
            self._workspace = Workspace(self._inputs, self.limits.writable_dir)
            await self._start()

    @property
    def workspace(self) -> Workspace:
        """The working folder.

        Raises:
            SessionClosedError: the session was never started.
        """
        if self._workspace is None:
            raise SessionClosedError("the session was not started: use it in `async with`")
        return self._workspace

    @property
    def pid(self) -> int | None:
        """The kernel's process id on this machine; `None` while there is no kernel."""
        kernel = self._kernel
        return kernel.kernel_pid if kernel and not kernel.dead.is_set() else None

    async def run(self, source: str) -> CellResult:
        """Run one cell; a cell that dies or hits a limit gives a result, not an exception.

        Args:
            source: the code.

        Raises:
            SessionClosedError: the session is closed or was never started.
            KernelStartError: the kernel had died and its successor did not start.
            ContainmentError: the successor lacks a required layer.
            asyncio.CancelledError: the caller was cancelled. The cell has been stopped, and the
                variables are kept if the cell responded to the interrupt.
        """
        self._refuse_closed()
        refusal = screen(source) if self._screened else None
        if refusal is not None:
            return CellResult(CellStatus.DENIED, message=refusal.message)
        async with self._lock:
            self._refuse_closed()
            kernel, notice = await self._living()
            self._cell = CellRun(kernel, self.limits, keeps_ledger=self._keeps_ledger)
            try:
                result = await self._cell.run(source)
            finally:
                self._cell = None
            files = await self._changes(kernel)
            told = TOO_MANY_TO_COMPARE if files is None else ""
            message = f"{result.message} {told}".strip()
            result = replace(result, files=files or (), message=message)
            if result.state_lost:
                await self._stop()
            if not notice:
                return result
            return replace(result, message=f"{notice} {result.message}".strip())

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copy the files that cells created in the working folder; return the paths of the copies.

        Args:
            folder: the target, created if missing.

        Raises:
            SessionClosedError: the session is closed or was never started.
            WorkspaceError: a file can't be copied, or it takes the total above `disk_bytes`.
        """
        async with self._lock:
            self._refuse_closed()
            made = await asyncio.to_thread(self.workspace.new_files)
            return await copy_files(made, self.workspace.path, folder, self.limits.disk_bytes)

    async def interrupt(self) -> None:
        """Interrupt the running cell, if any."""
        if self._cell is not None:
            await self._cell.interrupt()

    async def restart(self) -> None:
        """End the kernel, and a cell that runs, and start an empty kernel.

        Raises:
            SessionClosedError: the session is closed or was never started.
            KernelStartError: the new kernel did not start.
            ContainmentError: the new kernel lacks a required layer.
        """
        self._refuse_closed()
        await self._kill()
        async with self._lock:
            self._refuse_closed()
            await self._stop()
            await self._start()

    async def close(self) -> None:
        """End the kernel and remove what was private to it. Safe to call again."""
        self._is_closed = True
        await run_shielded(self._close())

    async def _close(self) -> None:
        await self._kill()
        async with self._lock:
            await self._stop()
            if self._workspace is not None:
                self._workspace.remove()

    async def _changes(self, kernel: LiveProcess) -> tuple[FileChange, ...] | None:
        """Return what the last cell did to files, as far as it is known; `None`: too many."""
        return await settled(kernel.layer)

    def _refuse_closed(self) -> None:
        if self._is_closed or self._workspace is None:
            raise SessionClosedError("the session is closed, or was not started")

    async def _living(self) -> tuple[LiveProcess, str]:
        """Return the kernel to run on, and a notice if it is not the one that ran before."""
        kernel = self._kernel
        if kernel is not None and not kernel.dead.is_set():
            return kernel, ""
        was_told = kernel is None
        await self._stop()
        return await self._start(), "" if was_told else LOST_STATE

    async def _start(self) -> LiveProcess:
        kernel = self._launch()
        await kernel.start()
        self._kernel = kernel
        self.containment = kernel.containment.with_layers(_own_layers(self._screened))
        missing = self.containment.missing(self._require)
        if missing:
            await self._stop()
            text = "; ".join(f"{x.name} is {x.state}: {x.reason}" for x in missing)
            raise ContainmentError(f"required and not active: {text}")
        return kernel

    async def _kill(self) -> None:
        if self._kernel is not None:
            with contextlib.suppress(ProcessLookupError):
                await self._kernel.kill()

    async def _stop(self) -> None:
        if self._kernel is not None:
            await run_shielded(self._kernel.stop())
            self._kernel = None


async def settled(layer: WorkspaceLayer | None) -> tuple[FileChange, ...]:
    """Return what cells did to the files of a folder since the last call.

    Args:
        layer: the layer above the folder; `None` if there is none, and changes are unknown.
    """
    if layer is None:
        return ()
    await asyncio.to_thread(layer.settle)
    return layer.take_news()


class KernelSession(CellSession):
    """Session in one restricted Jupyter kernel."""

    def __init__(  # noqa: PLR0913 (those of a session, and how it is started)
        self,
        limits: Limits | None = None,
        inputs: Mapping[str, Path] | None = None,
        require: Iterable[str] = (),
        *,
        isolate: bool = True,
        screened: bool = True,
        overlay: Path | None = None,
        keeps_ledger: bool = True,
    ) -> None:
        """Prepare a session; entering the context starts it.

        Args:
            limits: what the kernel may use.
            inputs: the files that the code may read, by the names that it uses for them.
            require: the layers that must be active, or the start fails.
            isolate: whether to use namespaces if the machine has them.
            screened: whether a cell is screened before it runs; the layers do not depend on it.
            overlay: the folder of added packages that the code may import.
            keeps_ledger: whether the kernel records what its cells do to the data.

        Raises:
            ContainmentError: `require` names a layer that does not exist.
        """
        super().__init__(limits, inputs, require, screened=screened, keeps_ledger=keeps_ledger)
        self._isolate = isolate
        self._overlay = overlay

    async def evaluate(self, source: str, expression: str, timeout_s: float) -> str | None:
        """Return the `repr` of an expression after a silent cell, or `None` if it took too long.

        Args:
            source: code to run first; it leaves no trace in the history.
            expression: the expression to evaluate afterwards.
            timeout_s: how long to wait, in seconds.

        Raises:
            SessionClosedError: the session is closed or was never started.
        """
        self._refuse_closed()
        kernel = self._kernel
        if not isinstance(kernel, LiveKernel) or kernel.dead.is_set():
            return None
        try:
            async with asyncio.timeout(timeout_s), self._lock:
                return reply_text(await kernel.channel.evaluate(source, expression))
        except TimeoutError:
            return None

    async def _changes(self, kernel: LiveProcess) -> tuple[FileChange, ...] | None:
        """Return the changes; a private folder has no layer, and nobody else writes into it."""
        if kernel.layer is not None or not self.workspace.is_private:
            return await super()._changes(kernel)
        with contextlib.suppress(OSError):
            return await asyncio.to_thread(self.workspace.take_changes)
        return ()

    def _launch(self) -> LiveKernel:
        return LiveKernel(self.limits, self.workspace, self._isolate, self._overlay)


def _own_layers(screened: bool) -> tuple[Layer, ...]:
    """Return the layers that run in this process and apply to every cell that `run` runs."""
    reasons = {
        "memory_watchdog": "looks every 100 ms while a cell runs, and ends the kernel",
        "disk_watchdog": "counts what the kernel writes, every second, and ends it",
        "wall_clock": "SIGINT, then SIGKILL two seconds later",
        "output_limit": "counted as it comes; no message above 5 MiB is unpacked",
    }
    screening = (
        Layer("screen", LayerState.ACTIVE, "advice before a cell runs; contains nothing")
        if screened
        else Layer("screen", LayerState.OFF, "switched off by the caller")
    )
    layers = [Layer(name, LayerState.ACTIVE, reason) for name, reason in reasons.items()]
    return (*layers, screening)
