"""Cells in a kernel that somebody else started: a restricted one, and one that is not."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from kernel_sandbox.cells.outputs import Added, Change
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.jupyter.attached import AttachedKernel
from kernel_sandbox.jupyter.provisioner import SandboxProvisioner
from kernel_sandbox.types import MIB, CellStatus, Limits, Stream
from tests.waiting import PATIENCE_S

SPECS = Path(__file__).parents[3] / "kernel_sandbox"
LIMITS = Limits(wall_s=60)
SHORT = Limits(wall_s=2)


async def _started(
    folder: Path, *, is_restricted: bool, profile: str = "interactive"
) -> AsyncKernelManager:
    if is_restricted:
        specs = KernelSpecManager(kernel_dirs=[str(SPECS)], ensure_native_kernel=False)
        manager = AsyncKernelManager(kernel_name="kernelspec", kernel_spec_manager=specs)
        manager.config.SandboxProvisioner.profile = profile
    else:
        manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "k"))
    await manager.start_kernel(cwd=str(folder))
    return manager


@pytest.fixture(params=[True, False], ids=["restricted", "plain"])
async def kernel(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[AttachedKernel]:
    manager = await _started(tmp_path, is_restricted=request.param)
    attached = AttachedKernel(manager, LIMITS)
    await attached.open()
    assert attached.is_restricted is request.param
    yield attached
    await attached.close()
    await manager.shutdown_kernel(now=True)


async def test_outputs_come_while_the_cell_runs(kernel: AttachedKernel) -> None:
    changes: list[Change] = []
    source = "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.1)\n1 + 1"
    result = await kernel.run(source, changes.append)
    assert result.status is CellStatus.OK
    assert (result.peak_bytes is not None) is kernel.is_restricted
    texts = [
        change.output.text
        for change in changes
        if isinstance(change, Added) and isinstance(change.output, Stream)
    ]
    assert "".join(texts) == "0\n1\n2\n"
    assert result.outputs[-1].to_nbformat()["data"]["text/plain"] == "2"


async def test_a_cell_past_its_time_is_interrupted_and_the_variables_stay(
    kernel: AttachedKernel,
) -> None:
    kernel.limits = SHORT
    result = await kernel.run("kept = 7\nimport time\ntime.sleep(30)")
    assert (result.status, result.state_lost) == (CellStatus.TIMEOUT, False)
    assert await kernel.evaluate("", "kept", PATIENCE_S) == "7"


async def test_a_cancelled_cell_is_stopped(kernel: AttachedKernel) -> None:
    begun = asyncio.Event()
    source = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
    running = asyncio.create_task(kernel.run(source, lambda _: begun.set()))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await kernel.run("1")).ok


async def test_an_expression_waits_no_longer_than_it_may(kernel: AttachedKernel) -> None:
    assert await kernel.evaluate("import json", "json.dumps([1])", PATIENCE_S) == "'[1]'"
    assert await kernel.evaluate("", "nowhere", PATIENCE_S) is None
    assert await kernel.evaluate("import time; time.sleep(1)", "1", 0.1) is None


async def test_what_it_uses_is_known(kernel: AttachedKernel) -> None:
    usage, cpu_s = kernel.usage()
    assert usage.memory_bytes > 2**20
    assert usage.processes >= 1
    assert cpu_s > 0


async def test_a_death_is_told_and_the_next_cell_refused(kernel: AttachedKernel) -> None:
    result = await kernel.run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert (result.status, result.state_lost) == (CellStatus.KILLED, True)
    assert kernel.dead.is_set()
    with pytest.raises(KernelStartError, match="ended"):
        await kernel.run("1")


async def test_a_kernel_that_ignores_the_interrupt_is_killed(kernel: AttachedKernel) -> None:
    source = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)"
    kernel.limits = SHORT
    result = await kernel.run(source)
    assert result.status is CellStatus.TIMEOUT
    assert result.state_lost
    assert kernel.exit_status not in (None, 0)


async def test_comms_are_heard_and_answered(kernel: AttachedKernel) -> None:
    opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    kernel.channel.on_comm = lambda kind, content: (
        opened.set_result(content["comm_id"]) if kind == "comm_open" else None
    )
    await kernel.run(
        "from comm import create_comm\nheard = []\nline = create_comm(target_name='t')\n"
        "line.on_msg(lambda message: heard.append(message['content']['data']))"
    )
    await kernel.channel.answer_comm(await opened, {"kind": "accepted"})
    assert await kernel.evaluate("", "heard", PATIENCE_S) == "[{'kind': 'accepted'}]"


async def test_a_manager_without_a_kernel_is_refused() -> None:
    attached = AttachedKernel(AsyncKernelManager(), LIMITS)
    with pytest.raises(KernelStartError, match="not running"):
        await attached.open()
    await attached.close()


async def test_what_is_switched_off_is_not_restricted_and_said_loudly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = await _started(tmp_path, is_restricted=True, profile="off")
    attached = AttachedKernel(manager, LIMITS)
    await attached.open()
    assert not attached.is_restricted
    assert (await attached.run("open('/etc/passwd').close()")).ok
    assert "without any restriction" in caplog.text
    await attached.close()
    await manager.shutdown_kernel(now=True)


async def test_the_disk_of_a_restricted_kernel_is_the_administrators(tmp_path: Path) -> None:
    manager = await _started(tmp_path, is_restricted=True)
    assert isinstance(manager.provisioner, SandboxProvisioner)
    manager.provisioner.disk_bytes = 20 * MIB
    attached = AttachedKernel(manager, Limits(wall_s=60))
    await attached.open()
    code = "import time\nopen('f', 'wb').write(b'x' * (40 << 20))\ntime.sleep(60)"
    result = await attached.run(code)
    assert result.status is CellStatus.KILLED
    assert "20 MiB" in result.message
    await attached.close()
    await manager.shutdown_kernel(now=True)


async def test_figures_are_told_in_words_and_no_name_is_left_behind(tmp_path: Path) -> None:
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4], label='n')\nplt.show()"
    manager = await _started(tmp_path, is_restricted=False)
    attached = AttachedKernel(manager, Limits(wall_s=60))
    await attached.open()
    try:
        before = (await attached.run("print(sorted(dir()))")).stdout
        await attached.tell_figures()
        await attached.tell_figures()
        assert (await attached.run("print(sorted(dir()))")).stdout.count("'") == before.count(
            "'"
        ) + 2
        shown = (await attached.run(draw)).outputs[-1].to_nbformat()["data"]
        assert "image/png" in shown
        assert "line 'n' of 2 points: lowest 3 at 1, highest 4 at 2" in shown["text/plain"]
    finally:
        await attached.close()
        await manager.shutdown_kernel(now=True)
