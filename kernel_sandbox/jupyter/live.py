"""One live kernel: its process, its channels, its watchdog. Started once, ended once."""

from __future__ import annotations

import asyncio
import signal
import tempfile
import uuid
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.session import Session

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.cells.zmq_channels import ZmqChannels, new_context, new_session
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import KernelStartError, SandboxError
from kernel_sandbox.files.workspace import Workspace, unfit_folder
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.jupyter.provisioner import SandboxProvisioner
from kernel_sandbox.types import Limits
from kernel_sandbox.watch.watchdog import Watchdog, out_of_memory
from kernel_sandbox.watch.watched_kernel import WatchedKernel

__all__ = ["LiveKernel"]

START_TIMEOUT_S = 60.0
_LOG_TAIL_BYTES = 2000
_KERNELSPEC = Path(__file__).parents[1] / "kernelspec"


class LiveKernel(WatchedKernel):
    """A running kernel; `start` and `stop` are called once each, by one owner."""

    def __init__(
        self, limits: Limits, workspace: Workspace, isolate: bool, overlay: Path | None = None
    ) -> None:
        """Prepare the kernel; `start` starts it.

        Args:
            limits: what the kernel may use.
            workspace: where it works and what it reads.
            isolate: whether to use namespaces where the machine has them.
            overlay: the folder of added packages that the kernel may import.
        """
        super().__init__()
        self._limits = limits
        self._workspace = workspace
        self._context = new_context()
        self._manager = _manager(self._context)
        self.provisioner = _provisioner(self._manager, limits, workspace, isolate)
        self.provisioner.overlay = "" if overlay is None else str(overlay)
        self._manager.provisioner = self.provisioner
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the kernel)
        self._channel: ZmqChannels | None = None

    @property
    def channel(self) -> ZmqChannels:
        """The channels of the started kernel.

        Raises:
            SandboxError: it was not started.
        """
        if self._channel is None:
            raise SandboxError("the kernel was not started")
        return self._channel

    @property
    def exit_status(self) -> int | None:
        """The exit status of the process, if it has ended."""
        return self.provisioner.exit_status

    @property
    def containment(self) -> Containment:
        """The layers that are active around it."""
        return self.provisioner.containment

    @property
    def layer(self) -> WorkspaceLayer | None:
        """The layer above its working folder, or `None` if there is none."""
        return self.provisioner.layer

    @property
    def kernel_pid(self) -> int | None:
        """The kernel's own process id on this machine, not its monitor's."""
        return self.provisioner.kernel_pid

    async def interrupt(self) -> None:
        """Send an interrupt to the kernel and to what its cell started."""
        await self.provisioner.send_signal(signal.SIGINT)

    async def start(self) -> None:
        """Start the process and return when it accepts cells.

        Raises:
            KernelStartError: it ended, or did not answer in time.
            WorkspaceError: it can't have its working folder.
        """
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
        except TimeoutError as error:
            message = f"the kernel did not answer within {START_TIMEOUT_S:.0f} s"
            problem = KernelStartError(message + self._log_tail())
            await run_shielded(self.stop())
            raise problem from error
        except BaseException:
            await run_shielded(self.stop())
            raise

    async def _start(self) -> None:
        try:
            await self._manager.start_kernel(
                cwd=str(self._workspace.path), stdout=self._log, stderr=self._log
            )
        except OSError as error:
            raise KernelStartError(f"the kernel's process could not be started: {error}") from error
        if problem := self.provisioner.workspace_problem:
            raise unfit_folder(self._workspace.path, problem)
        self._tasks.append(asyncio.create_task(self._await_death()))
        self._channel = ZmqChannels(
            self._manager.client(session=new_session(self._manager.session.key))
        )
        opening = asyncio.create_task(self._channel.open())
        dying = asyncio.create_task(self.dead.wait())
        try:
            await asyncio.wait((opening, dying), return_when=asyncio.FIRST_COMPLETED)
            self._refuse_dead()
            opening.result()
        finally:
            opening.cancel()
            dying.cancel()
        kernel, root = self.provisioner.kernel_pid, self.provisioner.pid
        if kernel is None or root is None:
            raise KernelStartError("the kernel's process can't be found among those it started")
        folders = self.provisioner.written_folders
        ran_out = self.provisioner.out_of_memory()
        self._watch(Watchdog(root, kernel, self._limits, folders, ran_out))

    def _refuse_dead(self) -> None:
        if self.dead.is_set():
            status = self.provisioner.exit_status
            raise KernelStartError(f"the kernel ended with status {status}" + self._log_tail())

    def _log_tail(self) -> str:
        size = self._log.seek(0, 2)
        self._log.seek(max(0, size - _LOG_TAIL_BYTES))
        text = self._log.read().decode("utf-8", "replace").strip()
        return f". Last output:\n{text}" if text else ""

    async def _await_death(self) -> None:
        await self.provisioner.wait()
        if self.violation is None and self.provisioner.out_of_memory()():
            self.violation = out_of_memory(self._limits)
        self.dead.set()

    async def kill(self) -> None:
        """End the process and all that it started; return when they are gone."""
        await self.provisioner.kill()
        await self.dead.wait()

    async def stop(self) -> None:
        """End the kernel and remove its private folder. Safe to call again."""
        await self.provisioner.kill()
        await self._end_tasks()
        self.dead.set()
        if self._channel is not None:
            await self._channel.close()
        await self._manager.cleanup_resources(restart=False)
        self._context.destroy(linger=0)
        self._log.close()


class _Manager(AsyncKernelManager):
    """A manager without the control channel, on which nothing is sent here.

    That channel would connect before the kernel listens, and again 100 ms later. By then a cell
    may be running that has left no descriptor for it (see `CellFiles`).
    """

    def _connect_control_socket(self) -> None:
        """Connect nothing."""


def _manager(context: object) -> AsyncKernelManager:
    # The kernelspec of this package, found by its folder's name: none has to be installed.
    specs = KernelSpecManager(kernel_dirs=[str(_KERNELSPEC.parent)], ensure_native_kernel=False)
    return _Manager(
        kernel_id=str(uuid.uuid4()),
        kernel_name=_KERNELSPEC.name,
        kernel_spec_manager=specs,
        context=context,
        session=Session(key=uuid.uuid4().hex.encode()),
    )


def _provisioner(
    manager: AsyncKernelManager, limits: Limits, workspace: Workspace, isolate: bool
) -> SandboxProvisioner:
    provisioner = SandboxProvisioner(
        workspace.readable,
        (workspace.path,) if workspace.is_private else (),
        parent=manager,
        kernel_id=manager.kernel_id,
        kernel_spec=manager.kernel_spec,
        memory_bytes=limits.memory_bytes,
        cpu_s=limits.cpu_s,
        processes=limits.processes,
        file_bytes=limits.file_bytes,
        disk_bytes=limits.disk_bytes,
        network=limits.network,
    )
    provisioner.isolate = isolate
    return provisioner
