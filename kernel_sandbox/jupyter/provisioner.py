"""The Jupyter kernel provisioner `dm-sandbox`, the only way to start a restricted kernel.

Covered: kernels of a kernelspec that names this provisioner, and those of `KernelSession`.
Not covered: every other kernel of the server. Nor are clock time, output and resident memory of a
cell: the cell's runner has to watch these (`KernelSession` does).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Bool, Enum, Float, Int, List, Unicode

from kernel_sandbox import environment
from kernel_sandbox.aio import run_shielded
from kernel_sandbox.confine.fence import Fence
from kernel_sandbox.confine.layers import Containment, Layer, LayerState
from kernel_sandbox.confine.plan import KernelPaths, plan
from kernel_sandbox.confine.probe import probe
from kernel_sandbox.confine.run_folder import furnish, make_run_folder
from kernel_sandbox.confine.spec import ConfinementSpec, Report
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.confine.system_paths import unfit
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.jupyter.launch_pipes import CHANNELS, LaunchPipes
from kernel_sandbox.types import Limits
from kernel_sandbox.watch import processes

__all__ = ["SandboxProvisioner"]

_NO_FENCE = Layer("cgroup", LayerState.OFF, "the kernel is not confined")
_ADMIN_ONLY = (
    "max_memory_bytes",
    "max_cpu_s",
    "max_processes",
    "max_file_bytes",
    "max_disk_bytes",
    "allow_network",
    "isolate",
    "profile",
)
_OFF = (
    'a kernel starts without any restriction, because SandboxProvisioner.profile is "off": its '
    "code can do all that this user can"
)
_KILL_WAIT_S = 5.0
_SOCKETS = "k"
"""Prefix of the names of a kernel's sockets."""
_DEFAULTS = Limits()


class SandboxProvisioner(LocalProvisioner):
    """A provisioner of sandboxed kernels, with their channels on sockets in a private folder."""

    memory_bytes = Int(_DEFAULTS.memory_bytes, help="Memory of the kernel, bytes.").tag(config=True)
    cpu_s = Int(_DEFAULTS.cpu_s, help="Processor time of the kernel, seconds.").tag(config=True)
    processes = Int(_DEFAULTS.processes, help="Processes of the kernel.").tag(config=True)
    file_bytes = Int(_DEFAULTS.file_bytes, help="Size of one file, bytes.").tag(config=True)
    disk_bytes = Int(_DEFAULTS.disk_bytes, help="Growth of its folders, bytes.").tag(config=True)
    packages = List(
        Unicode(), help="Importable packages that the kernel may read, wherever they are installed."
    ).tag(config=True)
    overlay = Unicode(help="Folder of added packages that the kernel may import.").tag(config=True)
    network = Bool(False, help="Whether the kernel may reach the network.").tag(config=True)

    max_memory_bytes = Int(64 * 1024**3, help="No kernelspec gets more.").tag(config=True)
    max_cpu_s = Int(24 * 3600, help="No kernelspec gets more.").tag(config=True)
    max_processes = Int(4096, help="No kernelspec gets more.").tag(config=True)
    max_file_bytes = Int(64 * 1024**3, help="No kernelspec gets more.").tag(config=True)
    max_disk_bytes = Int(64 * 1024**3, help="No kernelspec gets more.").tag(config=True)
    allow_network = Bool(True, help="Whether a kernelspec may ask for the network.").tag(
        config=True
    )
    isolate = Bool(True, help="Whether to put kernels into namespaces of their own.").tag(
        config=True
    )
    profile = Enum(
        [Strictness.INTERACTIVE.value, Strictness.OFF.value],
        Strictness.INTERACTIVE.value,
        help="How strictly kernels are confined; `off`: not at all.",
    ).tag(config=True)
    stop_wait_s = Float(
        2.0, help="Time for a graceful shutdown before the kernel is killed, seconds."
    ).tag(config=True)

    def __init__(
        self, inputs: Sequence[Path] = (), private: Sequence[Path] = (), **kwargs: Any
    ) -> None:
        """Create a provisioner.

        Args:
            inputs: real files that the kernel may read where they are.
            private: folders that are removed with the kernel, or that were created for it.
            **kwargs: what Jupyter passes, and the `config` of the kernelspec. A user can edit a
                kernelspec, and it overrides the server's own settings. Settings that only an
                administrator may change are therefore dropped from it.
        """
        for name in _ADMIN_ONLY:
            kwargs.pop(name, None)
        super().__init__(**kwargs)
        self.inputs = tuple(inputs)
        self.private_folders = tuple(private)
        self._folder: PrivateFolder | None = None
        self.exit_status: int | None = None
        self._pipes: LaunchPipes | None = None
        self._kernel_pid: int | None = None
        self._fence: Fence | None = None
        self._layer: WorkspaceLayer | None = None
        self._tending: asyncio.Task[None] | None = None
        self.workspace: Path | None = None
        """The folder in which the kernel works and which it may write, once it is started."""
        self.workspace_problem = ""
        """Why the kernel does not work in the notebook's folder; empty if it does."""

    @property
    def run_dir(self) -> Path | None:
        """The kernel's private folder, from the first start until the last end."""
        return self._folder.path if self._folder else None

    @property
    def written_folders(self) -> tuple[Path, ...]:
        """The folders in which the running kernel's files take up space."""
        layer = self.layer
        own = self.workspace if layer is None else layer.upper
        return tuple(folder for folder in (own, self.run_dir) if folder is not None)

    @property
    def is_confined(self) -> bool:
        """Whether anything confines the kernel."""
        return Strictness(self.profile) is not Strictness.OFF

    @property
    def limits(self) -> Limits:
        """The requested limits, reduced to what the administrator allows."""
        return Limits(
            memory_bytes=min(self.memory_bytes, self.max_memory_bytes),
            cpu_s=min(self.cpu_s, self.max_cpu_s),
            processes=min(self.processes, self.max_processes),
            file_bytes=min(self.file_bytes, self.max_file_bytes),
            disk_bytes=min(self.disk_bytes, self.max_disk_bytes),
            network=self.network and self.allow_network,
        )

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Prepare the private folder, the environment and the command line.

        The kernel manager calls it before each start, including a restart.

        Raises:
            KernelStartError: the private folder can't be made or filled.
        """
        if self._folder is None:
            self._folder = make_run_folder()
        else:
            await asyncio.to_thread(furnish, self._folder.path)
        run_dir = self._folder.path
        self._kernel_pid = self.exit_status = None
        self._use_sockets(run_dir)
        workspace = await asyncio.to_thread(self._workspace, kwargs.get("cwd"), run_dir)
        self.workspace = workspace
        variables = environment.kernel_environment(workspace, run_dir)
        if not self.is_confined:
            self.log.warning("%s", _OFF)
            variables[environment.OFF_VARIABLE] = "1"
        kwargs |= {"cwd": str(workspace), "env": variables}
        prepared: dict[str, Any] = await super().pre_launch(**kwargs)
        await self._finish_layer()
        places = KernelPaths(
            workspace,
            run_dir,
            self._readable(),
            self._packages(),
            self._overlay_folder(),
            is_shared=self.is_shared(workspace),
        )
        policy = await asyncio.to_thread(self._planned, places, tuple(prepared["env"]))
        self._close_pipes()
        self._pipes = LaunchPipes(policy, str(run_dir / _SOCKETS))
        return {
            **prepared,
            "cmd": [*prepared["cmd"], self._pipes.theirs.to_argument()],
            "pass_fds": self._pipes.inherited,
        }

    async def _finish_layer(self) -> None:
        tending, self._tending = self._tending, None
        if tending is not None:
            tending.cancel()
        layer, self._layer = self._layer, None
        if layer is not None:
            await run_shielded(asyncio.to_thread(layer.finish))

    @property
    def layer(self) -> WorkspaceLayer | None:
        """The layer above the folder of the running kernel, or `None` if it has none."""
        return self._layer if self.containment.is_active("workspace_layer") else None

    def _close_pipes(self) -> None:
        if self._pipes is not None:
            self._pipes.close()
            self._pipes = None

    def _planned(self, places: KernelPaths, names: tuple[str, ...]) -> ConfinementSpec:
        self._remove_fence()
        if places.is_shared and self.is_confined and self.isolate and probe().has_view:
            self._layer = WorkspaceLayer(
                places.workspace, Path(tempfile.gettempdir()), self.limits.disk_bytes
            )
            places = replace(places, layer=self._layer.path)
        if self.is_confined:
            self._fence = Fence(places.run_dir.name, self.limits)
        policy = plan(
            self.limits,
            places,
            names,
            isolate=self.isolate,
            confined=self.is_confined,
            counts=self._fence is not None and self._fence.counts,
        )
        if self._fence is not None:
            self._fence.user_number = policy.user_number
        return policy

    def _remove_fence(self) -> None:
        if self._fence is not None:
            self._fence.remove()
            self._fence = None

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the process, in a control group if the machine grants one.

        Args:
            cmd: the command line that `pre_launch` returned.
            **kwargs: what Jupyter passes on to the process.
        """
        try:
            info = await super().launch_kernel(cmd, **kwargs)
        finally:
            if self._pipes is not None:
                self._pipes.let_go()
        if self._fence is not None and self.process is not None:
            self._fence.add(self.process.pid)
        if self._pipes is not None:
            self._pipes.begin()
        if self._layer is not None and self._pipes is not None:
            self._layer.refresh = self._pipes.refresh
            self._tending = asyncio.create_task(self._layer.tend())
        return info

    def out_of_memory(self) -> Callable[[], bool]:
        """Return a predicate: whether the system ended this kernel because memory ran out.

        It keeps reporting on this kernel after another one has been started.
        """
        return self._fence.ran_out if self._fence is not None else lambda: False

    def _use_sockets(self, run_dir: Path) -> None:
        manager = self.parent
        if manager is None:
            return
        manager.transport, manager.ip = "ipc", str(run_dir / _SOCKETS)
        manager.connection_file = manager.connection_file or str(run_dir / "connection.json")
        for number, name in enumerate(CHANNELS, start=1):
            setattr(manager, f"{name}_port", number)

    def is_shared(self, workspace: Path) -> bool:
        """Return whether a working folder is a user's own, not private or made for the kernel."""
        private = (self.run_dir, *self.private_folders)
        return not any(one is not None and workspace.is_relative_to(one) for one in private)

    def _workspace(self, folder: str | None, run_dir: Path) -> Path:
        """Return the notebook's folder, or a private one if there is none, or it is unfit."""
        self.workspace_problem = ""
        if folder is not None:
            asked = Path(folder).resolve()
            has_view = self.is_confined and self.isolate and probe().has_view
            self.workspace_problem = unfit(asked, run_dir, has_view=has_view)
            if not self.workspace_problem:
                return asked
            self.log.warning("a kernel does not work in %s: %s", asked, self.workspace_problem)
        private = run_dir / "work"
        if private.is_symlink():  # an earlier kernel created it where no view protected the folder
            private.unlink()
        private.mkdir(exist_ok=True)
        return private

    def _overlay_folder(self) -> Path | None:
        """Return the folder of added packages; a kernel never sees one created after its start."""
        if not self.overlay:
            return None
        folder = Path(self.overlay)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.log.warning("kernels start without the packages in %s: %s", folder, error)
            return None
        return folder

    def _packages(self) -> tuple[Path, ...]:
        return tuple(map(_package_folder, self.packages))

    def _readable(self) -> tuple[Path, ...]:
        connection = (Path(self.parent.connection_file),) if self.parent else ()
        return (*self.inputs, *connection)

    def report(self) -> Report | None:
        """Return the launcher's report from inside the sandbox, once it is there; never wait."""
        return self._pipes.report() if self._pipes is not None else None

    @property
    def containment(self) -> Containment:
        """The layers that are active around the running kernel."""
        report = self.report()
        if report is None:
            return Containment()
        fence, around = self._fence, report.containment
        layer = fence.layer(around) if fence is not None else _NO_FENCE
        layers = [layer]
        if self.workspace_problem:
            reason = (
                f"not in the notebook's folder: {self.workspace_problem}. "
                "What cells write goes away with the kernel"
            )
            layers.append(Layer("private_workspace", LayerState.REFUSED, reason))
        return around.with_layers(layers)

    @property
    def kernel_pid(self) -> int | None:
        """The kernel's process id on this machine, not that of its monitor, which is `pid`."""
        report = self.report()
        if self._kernel_pid is None and report is not None and self.process is not None:
            self._kernel_pid = processes.find_kernel(self.process.pid, report.pid)
        return self._kernel_pid

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel and to what its cell started, wherever they run.

        Args:
            signum: the signal; 0 only checks whether the kernel lives, SIGKILL ends everything.
        """
        process = self.process
        if process is None:
            return
        if signum == signal.SIGKILL:
            if self._fence is not None:
                await asyncio.to_thread(self._fence.end)
            if process.poll() is None:
                processes.end(process.pid, is_monitor=self.is_confined)
        elif signum == 0:
            process.send_signal(0)
        elif (target := self.kernel_pid) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(target, signum)

    async def kill(self, restart: bool = False) -> None:  # noqa: ARG002 (Jupyter's signature)
        """Kill the kernel and all that it started, and wait until it is gone.

        Args:
            restart: whether another start follows; ignored.
        """
        process = self.process
        if process is None:
            return
        await self.send_signal(signal.SIGKILL)
        try:
            async with asyncio.timeout(_KILL_WAIT_S):
                await self.wait()
        except TimeoutError:
            process.kill()
        if not self.is_confined and self.run_dir is not None:
            await asyncio.to_thread(processes.sweep, self.run_dir)

    def get_shutdown_wait_time(self, recommended: float = 5.0) -> float:
        """Return how long a graceful shutdown may take, seconds.

        Args:
            recommended: what Jupyter would wait.
        """
        return min(recommended, self.stop_wait_s)

    async def wait(self) -> int | None:
        """Wait for the kernel to end, without polling if the system supports that."""
        if self.process is None:
            return self.exit_status
        await processes.exited(self.process)
        status = self.process.poll() if self.process else None
        if status is not None:
            self.exit_status = status
        await super().wait()
        return self.exit_status

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the private folder, unless another start follows.

        Args:
            restart: whether another start follows.
        """
        await super().cleanup(restart)
        await asyncio.to_thread(self._remove_fence)
        await self._finish_layer()
        if not restart and self._folder is not None:
            if not self.is_confined:
                await asyncio.to_thread(processes.sweep, self._folder.path)
            self._folder.remove()
            self._folder = None
        if not restart:
            self._close_pipes()


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name.partition(".")[0])
    if spec is None or spec.origin is None:
        raise KernelStartError(f"the kernelspec names a package that is not installed: {name}")
    return Path(spec.origin).parent
