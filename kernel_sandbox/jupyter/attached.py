"""A kernel that somebody else started, such as a Jupyter server, and on which cells run as well.

Covered: clock time, output, interrupting; memory and processes where the provisioner is ours.
Not covered: what the other clients of the kernel run meanwhile. Cells queue behind theirs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager

from kernel_sandbox.cells import figures
from kernel_sandbox.cells.cell import CellRun
from kernel_sandbox.cells.outputs import Change
from kernel_sandbox.cells.zmq_channels import ZmqChannels, new_context, new_session
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.jupyter.provisioner import SandboxProvisioner
from kernel_sandbox.types import CellResult, Limits
from kernel_sandbox.watch import consumption, processes
from kernel_sandbox.watch.watchdog import Watchdog, out_of_memory
from kernel_sandbox.watch.watched_kernel import WatchedKernel

__all__ = ["AttachedKernel", "reply_text", "sandbox_of"]


_FIGURES_S = 5.0


def sandbox_of(manager: Any) -> SandboxProvisioner | None:
    """Returns the sandbox of a kernel; `None` where there is none, or it is switched off.

    Args:
        manager: of the kernel.
    """
    found = manager.provisioner
    return found if isinstance(found, SandboxProvisioner) and found.is_confined else None


def reply_text(reply: Mapping[str, Any]) -> str | None:
    """Returns the text of an expression's value; `None` where the reply has none.

    Args:
        reply: to a request that asked for one, `value`; nothing of it is trusted.
    """
    value: object = reply
    for name in ("user_expressions", "value", "data", "text/plain"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else None


def _figures_source() -> str:
    """Code that leaves no name behind in a person's kernel."""
    source = Path(figures.__file__).read_text("utf-8") + "\ntell_figures(_formatter)"
    own = "{'__name__': 'dm_jupyter_figures', '_formatter': get_ipython().display_formatter}"
    return f"exec({source!r}, {own})"


class AttachedKernel(WatchedKernel):
    """Implements `RunningKernel` on one process of a managed kernel, from `open` to `close`.

    After a restart it is `dead`: attach to the new process with a new one.
    """

    def __init__(self, manager: AsyncKernelManager, limits: Limits) -> None:
        """Connects nothing yet.

        Args:
            manager: of a started kernel; it stays the owner, and nothing here shuts it down.
            limits: of the cells that `run` runs. The process has those it was started with.
        """
        super().__init__()
        self._manager = manager
        self._provisioner = manager.provisioner
        self._process = getattr(self._provisioner, "process", None)
        self._ran_out: Callable[[], bool] = lambda: False
        self._sandbox: SandboxProvisioner | None = sandbox_of(manager)
        if self._sandbox is not None:
            self._ran_out = self._sandbox.out_of_memory()
        self.limits = limits
        self._tells_figures = False
        self._context = new_context()
        self._channel = ZmqChannels(
            manager.client(session=new_session(manager.session.key), context=self._context)
        )
        self._lock = asyncio.Lock()

    @property
    def is_restricted(self) -> bool:
        """Whether the kernel runs in our sandbox, and that is not switched off."""
        return self._sandbox is not None

    @property
    def layer(self) -> WorkspaceLayer | None:
        """The layer above the folder that the kernel works in; `None` where there is none."""
        return self._sandbox.layer if self._sandbox is not None else None

    @property
    def channel(self) -> ZmqChannels:
        """The channels."""
        return self._channel

    @property
    def exit_status(self) -> int | None:
        """How the process ended."""
        return None if self._process is None else self._process.poll()

    async def open(self) -> None:
        """Connects; returns when the kernel answers, which it does after what it is running.

        Raises:
            KernelStartError: it ended, or there is no process.
        """
        if self._process is None:
            raise KernelStartError("the notebook's kernel is not running: start it")
        self._tasks.append(asyncio.create_task(self._await_death()))
        await self._unless_dead(self._channel.open())
        kernel_pid = self._sandbox.kernel_pid if self._sandbox is not None else None
        if self._sandbox is not None and kernel_pid is not None:
            folders = self._sandbox.written_folders
            limits, pid = self._sandbox.limits, self._process.pid
            self._watch(Watchdog(pid, kernel_pid, limits, folders, self._ran_out))

    async def run(
        self, source: str, on_change: Callable[[Change], None] = lambda _: None
    ) -> CellResult:
        """Runs one cell after whatever the kernel does now.

        Args:
            source: the code.
            on_change: gets each change of the outputs, as it happens.

        Raises:
            KernelStartError: the kernel ended before the cell could begin.
            asyncio.CancelledError: the caller was cancelled; the cell has been stopped.
        """
        async with self._lock:
            if self.dead.is_set():  # its channels may be closed already
                raise KernelStartError("the notebook's kernel ended")
            await self._unless_dead(self._channel.settle())
            return await CellRun(self, self.limits, on_change).run(source)

    async def evaluate(self, source: str, expression: str, timeout_s: float) -> str | None:
        """Returns the `repr` of an expression after a silent cell; `None` if that took too long.

        Args:
            source: code to run first; it leaves no trace in the history.
            expression: what to evaluate then.
            timeout_s: how long to wait, the kernel's other work included.
        """
        try:
            async with asyncio.timeout(timeout_s), self._lock:
                content = await self._channel.evaluate(source, expression)
        except TimeoutError:
            return None
        return reply_text(content)

    async def tell_figures(self) -> None:
        """Has figures told in words, too; a restricted kernel does so by itself."""
        if self.is_restricted or self._tells_figures:
            return
        self._tells_figures = True
        await self.evaluate(_figures_source(), "None", _FIGURES_S)

    def usage(self) -> tuple[consumption.Usage, float]:
        """Returns what the kernel uses now, and its processor time in seconds."""
        pid = self._process.pid if self._process is not None else 0
        return consumption.measure_usage([pid], self.limits.memory_bytes), consumption.cpu_seconds(
            pid
        )

    async def interrupt(self) -> None:
        """Interrupts the kernel as its kernelspec asks."""
        await self._manager.interrupt_kernel()

    async def kill(self) -> None:
        """Ends the process; whoever manages the kernel may start another."""
        provisioner = self._provisioner
        is_same = provisioner is not None and provisioner is self._manager.provisioner
        if provisioner is not None and is_same and not self.dead.is_set():
            with contextlib.suppress(ProcessLookupError):
                await provisioner.kill()
        await self.dead.wait()

    async def close(self) -> None:
        """Lets go of the kernel, which runs on. Safe to call again."""
        await self._end_tasks()
        await self._channel.close()
        self._context.destroy(linger=0)

    async def _unless_dead(self, work: Any) -> None:
        """Waits for the work; gives up when the kernel dies or does not answer.

        Raises:
            KernelStartError: it died, or is no kernel that answers.
        """
        doing = asyncio.ensure_future(work)
        dying = asyncio.create_task(self.dead.wait())
        try:
            await asyncio.wait((doing, dying), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise KernelStartError("the notebook's kernel ended")
            doing.result()
        finally:
            doing.cancel()
            dying.cancel()

    async def _await_death(self) -> None:
        if self._process is not None:
            await processes.exited(self._process)
        if self._sandbox is not None and self._ran_out() and not self.violation:
            self.violation = out_of_memory(self._sandbox.limits)
        self.dead.set()
