"""The provisioner as Jupyter uses it: kernelspec, clamps, restart, interrupt, shutdown."""

import asyncio
import signal
import struct
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.multikernelmanager import AsyncMultiKernelManager
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from traitlets.config import Config

import kernel_sandbox
from kernel_sandbox import environment
from kernel_sandbox.confine.layers import Containment, LayerState
from kernel_sandbox.confine.spec import Report
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.jupyter.provisioner import SandboxProvisioner
from kernel_sandbox.watch import consumption, processes
from tests.waiting import PATIENCE_S

SPECS = Path(kernel_sandbox.__file__).parent


async def printed(client: AsyncKernelClient, code: str, on_text=lambda: None) -> str:
    texts = []

    def hook(message):
        content = message["content"]
        texts.append(content.get("text", "") + content.get("ename", ""))
        if texts[-1]:
            on_text()

    await client.execute_interactive(code, output_hook=hook, timeout=60)
    return "".join(texts).strip()


async def test_a_server_starts_restarts_interrupts_and_ends_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("SERVER_SECRET", "x")
    folder = tmp_path / "notebooks"
    folder.mkdir()
    config = Config()
    config.SandboxProvisioner.file_bytes = 10_000
    specs = KernelSpecManager(kernel_dirs=[str(SPECS)])
    kernels = AsyncMultiKernelManager(
        kernel_spec_manager=specs, connection_dir=str(tmp_path), config=config
    )
    kernel_id = await kernels.start_kernel(kernel_name="kernelspec", cwd=str(folder))
    manager = kernels.get_kernel(kernel_id)
    provisioner = manager.provisioner
    assert isinstance(provisioner, SandboxProvisioner)
    run_dir = provisioner.run_dir
    for _ in range(2):
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=60)
        code = "import os; print(os.getcwd(), 'SERVER_SECRET' in os.environ)"
        assert await printed(client, code) == f"{folder} False"
        assert (
            await printed(client, "f = open('a', 'wb', 0); f.write(b'x' * 20_000); f.write(b'x')")
            == "OSError"
        )
        assert provisioner.containment.is_active("rlimits")
        begun = asyncio.Event()
        sleeping = "import time; print('begun', flush=True); time.sleep(60)"
        running = asyncio.create_task(printed(client, sleeping, begun.set))
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()
        await manager.interrupt_kernel()
        assert await running == "begun\nKeyboardInterrupt"
        await provisioner.send_signal(0)
        client.stop_channels()
        first = provisioner.kernel_pid
        await manager.restart_kernel()
    assert provisioner.kernel_pid != first
    assert provisioner.run_dir == run_dir
    await kernels.shutdown_kernel(kernel_id)
    assert not run_dir.exists()
    assert not list(tmp_path.glob("kernel-*.json"))
    kernels.context.destroy(linger=0)


def test_the_entry_point_names_this_provisioner():
    spec = KernelSpec.from_resource_dir(str(SPECS / "kernelspec"))
    assert spec.display_name == "Python (restricted)"
    made = KernelProvisionerFactory.instance().create_provisioner_instance("id", spec, parent=None)
    assert isinstance(made, SandboxProvisioner)


def test_the_kernel_has_a_logo_for_launchers_and_one_for_notebooks():
    drawn = ET.parse(SPECS / "kernelspec" / "logo-svg.svg").getroot()
    assert drawn.get("viewBox") == "0 0 64 64"
    picture = (SPECS / "kernelspec" / "logo-64x64.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert struct.unpack(">II", picture[16:24]) == (64, 64)


def test_a_kernelspec_can_not_pass_the_administrators_maxima():
    config = Config()
    config.SandboxProvisioner.max_memory_bytes = 1000
    config.SandboxProvisioner.max_disk_bytes = 2000
    config.SandboxProvisioner.allow_network = False
    config.SandboxProvisioner.cpu_s = 7
    made = SandboxProvisioner(
        config=config,
        memory_bytes=10**9,
        disk_bytes=10**9,
        network=True,
        max_memory_bytes=10**10,
        max_disk_bytes=10**10,
        allow_network=True,
        isolate=False,
    )
    assert made.limits.memory_bytes == 1000
    assert made.limits.disk_bytes == 2000
    assert made.limits.network is False
    assert made.limits.cpu_s == 7
    assert made.isolate is True


@pytest.mark.parametrize("folder", ["/", None, "home"])
def test_a_home_is_never_the_working_folder(tmp_path, folder):
    made = SandboxProvisioner()
    asked = str(Path.home()) if folder == "home" else folder
    assert made._workspace(asked, tmp_path) == tmp_path / "work"
    assert bool(made.workspace_problem) is (asked is not None)
    (tmp_path / "notes").mkdir()
    assert made._workspace(str(tmp_path / "notes"), tmp_path) == tmp_path / "notes"


def test_a_kernel_that_works_elsewhere_says_so_in_its_layers(monkeypatch, tmp_path):
    made = SandboxProvisioner()
    made._workspace(str(Path.home()), tmp_path)
    monkeypatch.setattr(made, "report", lambda: Report(1, Containment()))
    layer = made.containment.get("private_workspace")
    assert layer.state is LayerState.REFUSED
    assert "not in the notebook's folder: it contains" in layer.reason


def test_a_link_that_a_kernel_laid_is_not_the_working_folder_of_the_next(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "work").symlink_to(tmp_path / "secrets")
    assert SandboxProvisioner()._workspace(None, tmp_path) == tmp_path / "work"
    assert (tmp_path / "work").resolve() == tmp_path / "work"
    assert (tmp_path / "secrets").is_dir()


async def test_before_a_start_there_is_nothing_to_do():
    made = SandboxProvisioner()
    await made.send_signal(signal.SIGINT)
    await made.kill()
    assert await made.wait() is None
    assert made.report() is None
    assert made.containment.layers == ()
    assert made.kernel_pid is None
    assert made.get_shutdown_wait_time(9.0) == 2.0


async def test_a_folder_too_long_for_a_socket_is_refused(monkeypatch, tmp_path):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    manager = AsyncKernelManager()
    made = SandboxProvisioner(parent=manager)
    with pytest.raises(KernelStartError, match="too long for a socket"):
        await made.pre_launch()


async def test_font_lists_are_handed_on(monkeypatch, open_session, tmp_path):
    (tmp_path / "fontlist-v0.json").write_text("{}")
    monkeypatch.setattr(environment, "font_caches", lambda: (tmp_path / "fontlist-v0.json",))
    session = await open_session()
    result = await session.run("import os; print(sorted(os.listdir(os.environ['MPLCONFIGDIR'])))")
    assert result.stdout == "['fontlist-v0.json', 'matplotlibrc']\n"


async def test_the_end_of_a_process_is_noticed_without_help_of_the_system(monkeypatch):
    def refuse(pid):
        raise OSError(38, "not here")

    monkeypatch.setattr(processes.os, "pidfd_open", refuse)
    process = subprocess.Popen(["sleep", "0.05"])  # noqa: ASYNC220 (its end is the point)
    async with asyncio.timeout(PATIENCE_S):
        await processes.exited(process)
    assert process.returncode == 0


def test_what_is_gone_uses_nothing():
    assert consumption.resident_bytes(2**22 + 1) == 0
    assert consumption.measure_usage([2**22 + 1], 0).processes == 0
    assert processes.find_kernel(2**22 + 1, 5) is None
    processes.end(2**22 + 1, is_monitor=False)
    assert processes.sweep(Path("/nowhere")) == 0
