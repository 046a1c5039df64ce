"""What is held of kernels in the server's process; the kernels are real."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from jupyter_client.multikernelmanager import AsyncMultiKernelManager

from dm_jupyter.server.kernels import Kernels
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.types import Limits


@pytest.fixture
async def managers(tmp_path: Path) -> AsyncIterator[AsyncMultiKernelManager]:
    managers = AsyncMultiKernelManager(connection_dir=str(tmp_path))
    yield managers
    await managers.shutdown_all(now=True)


def _held() -> int:
    """Descriptors and threads of this process."""
    return sum(1 for kind in ("fd", "task") for _ in Path("/proc/self", kind).iterdir())


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.05)


async def test_a_kernel_that_is_shut_down_leaves_nothing(managers: AsyncMultiKernelManager) -> None:
    kernels = Kernels(None, managers, Limits())
    told: list[str] = []
    kernels.on_death = lambda kernel_id, why: told.append(why)
    held = 0
    for number in range(3):
        kernel_id = await managers.start_kernel()
        attached = await kernels.attach(kernel_id)
        assert (await attached.run("1 + 1")).ok
        await managers.shutdown_kernel(kernel_id)
        if number == 0:  # what the first one loads stays
            await _until(lambda: not kernels._attached)
            await _until(lambda: not kernels._deaths)
            held = _held()
        with pytest.raises(KernelStartError, match="ended"):
            await attached.run("1 + 1")
    await _until(lambda: _held() <= held)
    assert told == []
    await kernels.close()


async def test_a_kernel_that_died_is_told_of_once_and_its_successor_attached_to(
    managers: AsyncMultiKernelManager,
) -> None:
    kernels = Kernels(None, managers, Limits())
    told: list[str] = []
    kernels.on_death = lambda kernel_id, why: told.append(why)
    kernel_id = await managers.start_kernel()
    first = await kernels.attach(kernel_id)
    os.kill(managers.get_kernel(kernel_id).provisioner.process.pid, signal.SIGKILL)
    await first.dead.wait()
    await managers.restart_kernel(kernel_id, now=True)
    second = await kernels.attach(kernel_id)
    assert second is not first
    assert (await second.run("1 + 1")).ok
    assert len(told) == 1
    assert "ended from outside" in told[0]
    assert "SIGKILL" not in told[0]
    await kernels.close()
    assert not kernels._deaths
