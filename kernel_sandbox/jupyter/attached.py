"""A kernel that another owner started, such as a Jupyter server, and that runs our cells too.

Covered: clock time, output and interrupts; memory and processes if the provisioner is ours.
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
    """Return the sandbox of a kernel, or `None` if it has none or the sandbox is off.

    Args:
        manager: the manager of the kernel.
    """
    found = manager.provisioner
    return found if isinstance(found, SandboxProvisioner) and found.is_confined else None


def reply_text(reply: Mapping[str, Any]) -> str | None:
    """Return the text of an expression's value, or `None` if the reply has none.

    Args:
        reply: the untrusted reply to a request for the expression `value`.
    """
    value: object = reply
    for name in ("user_expressions", "value", "data", "text/plain"):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else None


def _figures_source() -> str:
    """Return code that leaves no name behind in a user's kernel."""
    source = Path(figures.__file__).read_text("utf-8") + "\ntell_figures(_formatter)"
    own = "{'__name__': 'dm_jupyter_figures', '_formatter': get_ipython().display_formatter}"
    return f"exec({source!r}, {own})"


class AttachedKernel(WatchedKernel):
    """A `RunningKernel` on one process of a managed kernel, from `open` to `close`.

    After a restart it is `dead`: attach to the new process with a new instance.
    """

    def __init__(self, manager: AsyncKernelManager, limits: Limits) -> None:
        """Prepare the attachment; `open` connects.

        Args:
            manager: the manager of a started kernel. It stays the owner; nothing here shuts the
                kernel down.
            limits: the limits of the cells that `run` runs. The process keeps those that it was
                started with.
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
        self.was_killed = False
        """Whether `kill` ended it: for a violation, or because a cell would not stop."""
        self._tells_figures = False
        self._context = new_context()
        self._channel = ZmqChannels(
            manager.client(session=new_session(manager.session.key), context=self._context)
        )
        self._lock = asyncio.Lock()

    @property
    def is_restricted(self) -> bool:
        """Whether the kernel runs in our sandbox and the sandbox is on."""
        return self._sandbox is not None

    @property
    def layer(self) -> WorkspaceLayer | None:
        """The layer above the kernel's working folder, or `None` if there is none."""
        return self._sandbox.layer if self._sandbox is not None else None

    @property
    def channel(self) -> ZmqChannels:
        """The channels of the kernel."""
        return self._channel

    @property
    def exit_status(self) -> int | None:
        """The exit status of the process, if it has ended."""
        return None if self._process is None else self._process.poll()

    async def open(self) -> None:
        """Connect, and return when the kernel answers, which it does after its current work.

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
        """Run one cell after the kernel's current work.

        Args:
            source: the code.
            on_change: called with each change of the outputs, as it happens.

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
        """Return the `repr` of an expression after a silent cell; `None` if that took too long.

        Args:
            source: code to run first; it leaves no trace in the history.
            expression: what to evaluate afterwards.
            timeout_s: how long to wait, the kernel's other work included, seconds.
        """
        try:
            async with asyncio.timeout(timeout_s), self._lock:
                content = await self._channel.evaluate(source, expression)
        except TimeoutError:
            return None
        return reply_text(content)

    async def tell_figures(self) -> None:
        """Make the kernel describe figures in words; a restricted kernel does so by itself."""
        if self.is_restricted or self._tells_figures:
            return
        self._tells_figures = True
        await self.evaluate(_figures_source(), "None", _FIGURES_S)

    def usage(self) -> tuple[consumption.Usage, float]:
        """Return the kernel's current usage, and its processor time in seconds."""
        pid = self._process.pid if self._process is not None else 0
        return consumption.measure_usage([pid], self.limits.memory_bytes), consumption.cpu_seconds(
            pid
        )

    async def interrupt(self) -> None:
        """Interrupt the kernel as its kernelspec asks."""
        await self._manager.interrupt_kernel()

    async def kill(self) -> None:
        """End the process; the kernel's manager may start another."""
        provisioner = self._provisioner
        is_same = provisioner is not None and provisioner is self._manager.provisioner
        if provisioner is not None and is_same and not self.dead.is_set():
            self.was_killed = True
            with contextlib.suppress(ProcessLookupError):
                await provisioner.kill()
        await self.dead.wait()

    async def close(self) -> None:
        """Disconnect from the kernel, which keeps running. Safe to call again."""
        await self._end_tasks()
        await self._channel.close()
        self._context.destroy(linger=0)

    async def _unless_dead(self, work: Any) -> None:
        """Wait for the work; give up when the kernel dies.

        Raises:
            KernelStartError: it died before the work was done.
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
