"""What is held of kernels in the server's process; the kernels are real."""

import asyncio
import contextlib
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import RunCell
from dm_jupyter.data.kernel_tables import Alive
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.kernels.registry import KernelRegistry
from dm_jupyter.server.notebooks.approvals import Approvals
from dm_jupyter.server.notebooks.live_notebook import LiveNotebook
from dm_jupyter.server.protocol import Decide
from kernel_sandbox.cells.cell import LOST_STATE
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.types import Limits
from tests.waiting import PATIENCE_S, until

SQL = RunCell("SELECT amount FROM sold", "sql")


@pytest.fixture
async def managers(tmp_path: Path) -> AsyncIterator[AsyncMappingKernelManager]:
    managers = AsyncMappingKernelManager(connection_dir=str(tmp_path))
    yield managers
    await managers.shutdown_all(now=True)


def _held() -> int:
    """Descriptors and threads of this process."""
    return sum(1 for kind in ("fd", "task") for _ in Path("/proc/self", kind).iterdir())


async def test_a_kernel_that_is_shut_down_leaves_nothing(
    managers: AsyncMappingKernelManager,
) -> None:
    kernels = KernelRegistry(None, managers, Limits())
    told: list[str] = []
    kernels.on_death = lambda kernel_id, why: told.append(why)
    held = 0
    for number in range(3):
        kernel_id = await managers.start_kernel()
        attached = await kernels.attach(kernel_id)
        assert (await attached.run("1 + 1")).ok
        await managers.shutdown_kernel(kernel_id)
        if number == 0:  # what the first one loads stays
            await until(lambda: not kernels._attached, "the kernel is forgotten")
            await until(lambda: not kernels._deaths, "its death is no longer waited for")
            held = _held()
        with pytest.raises(KernelStartError, match="ended"):
            await attached.run("1 + 1")
    await until(lambda: _held() <= held, "nothing more is held than after the first")
    assert told == []
    await kernels.close()


async def test_a_kernel_that_died_is_told_of_once_and_its_successor_attached_to(
    managers: AsyncMappingKernelManager,
) -> None:
    kernels = KernelRegistry(None, managers, Limits())
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


async def test_a_kernel_ended_because_its_cell_would_not_stop_is_told_as_that(
    managers: AsyncMappingKernelManager,
) -> None:
    kernels = KernelRegistry(None, managers, Limits(wall_s=1.0))
    told: list[str] = []
    kernels.on_death = lambda kernel_id, why: told.append(why)
    attached = await kernels.attach(await managers.start_kernel())
    deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    result = await attached.run(deaf)
    assert "was killed" in result.message
    await until(lambda: told, "the death is told")
    assert told == ["the cell would not stop, so its kernel was ended; its variables are gone"]
    await kernels.close()


async def test_a_kernel_that_was_shut_down_is_named_and_has_nothing(
    managers: AsyncMappingKernelManager,
) -> None:
    kernels = KernelRegistry(None, managers, Limits())
    kernel_id = await managers.start_kernel()
    await kernels.attach(kernel_id)
    await managers.shutdown_kernel(kernel_id, now=True)
    await until(lambda: not kernels._attached, "the kernel is forgotten")
    with pytest.raises(KernelStartError, match="was shut down: start one"):
        await kernels.attach(kernel_id)
    assert kernels.directory.process_of(kernel_id) == ""
    assert await kernels.alive(kernel_id) == Alive()
    await kernels.close()


@dataclass
class Live:
    """A kernel that a person restarts, in a folder with a database."""

    managers: AsyncMappingKernelManager
    kernels: KernelRegistry
    kernel_id: str
    folder: Path

    def notebook(self, approvals: Approvals) -> LiveNotebook:
        """One that a run begins to write."""
        journal = Journal(self.folder)
        notebook = LiveNotebook(journal, self.kernels, self.kernel_id, approvals, lambda _: None)
        notebook.begin(Task("r", "How many?"), ("shop.db",), (), self.folder)
        return notebook

    async def restart(self) -> None:
        """Restarts the kernel, as the person does between two cells."""
        await self.managers.restart_kernel(self.kernel_id, now=True)


@pytest.fixture
async def live(managers: AsyncMappingKernelManager, tmp_path: Path) -> AsyncIterator[Live]:
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("CREATE TABLE sold AS SELECT 40 AS amount")
        connection.commit()
    kernels = KernelRegistry(None, managers, Limits())
    yield Live(managers, kernels, await managers.start_kernel(cwd=str(tmp_path)), tmp_path)
    await kernels.close()


async def test_a_restart_between_cells_is_told_once_and_sql_still_works(live: Live) -> None:
    notebook = live.notebook(Approvals("auto", is_restricted=False))
    assert (await notebook.run(SQL, "")).result.ok
    await live.restart()
    result = (await notebook.run(SQL, "")).result
    assert (result.ok, result.message) == (True, LOST_STATE)
    await live.restart()
    result = (await notebook.run(RunCell("result_2"), "")).result
    assert (result.error and result.error.name, result.message) == ("NameError", LOST_STATE)
    result = (await notebook.run(SQL, "")).result
    assert (result.ok, result.message) == (True, "")


async def test_a_restart_between_the_question_and_the_first_cell_is_told(live: Live) -> None:
    notebook = live.notebook(Approvals("auto", is_restricted=False))
    await live.restart()
    result = (await notebook.run(SQL, "")).result
    assert (result.ok, result.message) == (True, LOST_STATE)


async def test_a_kernel_that_ends_in_a_cell_is_not_told_of_again(live: Live) -> None:
    notebook = live.notebook(Approvals("auto", is_restricted=False))
    ends = RunCell("import os\nvars(os)['_ex' + 'it'](1)")
    assert (await notebook.run(ends, "")).result.state_lost
    await live.restart()
    result = (await notebook.run(SQL, "")).result
    assert (result.ok, result.message) == (True, "")


async def test_a_restart_while_a_cell_waits_is_told(live: Live) -> None:
    approvals = Approvals("ask", is_restricted=False)
    notebook = live.notebook(approvals)
    told = []
    for restarts in (False, True, False):
        running = asyncio.create_task(notebook.run(SQL, ""))
        await until(lambda: approvals._waiting, "the cell waits")
        if restarts:
            await live.restart()
        approvals.decide(Decide("r", notebook.written[0], "approve"))
        result = (await running).result
        told.append((result.ok, result.message))
    assert told == [(True, ""), (False, LOST_STATE), (True, "")]


@pytest.mark.slow
async def test_variables_are_asked_of_a_kernel_that_others_keep_busy(
    managers: AsyncMappingKernelManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dm_jupyter.server.kernels.registry._ALIVE_S", PATIENCE_S)
    kernels = KernelRegistry(None, managers, Limits())
    kernel_id = await managers.start_kernel()
    page = managers.get_kernel(kernel_id).client()
    page.start_channels(hb=False, stdin=False)
    await page.wait_for_ready()
    cells = asyncio.create_task(_run_cells(page))
    found = 0
    try:
        for _ in range(100):
            async with asyncio.timeout(2 * PATIENCE_S):
                found += bool((await kernels.alive(kernel_id)).values)
    finally:
        cells.cancel()
        await asyncio.wait([cells])
        page.stop_channels()
    assert found > 50
    await kernels.close()


async def _run_cells(page: AsyncKernelClient) -> None:
    """Sends cells as fast as a page could, and waits for none of its outputs."""
    while True:
        message_id = page.execute("count = globals().get('count', 0) + 1")
        while (await page.get_shell_msg())["parent_header"].get("msg_id") != message_id:
            pass


@pytest.mark.slow
@pytest.mark.parametrize("is_attached", [False, True])
async def test_a_kernel_that_never_answers_is_not_waited_for(
    managers: AsyncMappingKernelManager, is_attached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dm_jupyter.server.kernels.registry._ALIVE_S", 1.0)
    kernels = KernelRegistry(None, managers, Limits())
    kernel_id = await managers.start_kernel()
    page = managers.get_kernel(kernel_id).client()
    page.start_channels(hb=False, stdin=False)
    await page.wait_for_ready()
    if is_attached:
        await kernels.attach(kernel_id)
    page.execute("import time; time.sleep(600)")
    while (await page.get_iopub_msg())["msg_type"] != "execute_input":
        pass
    meter = asyncio.create_task(kernels.attach(kernel_id))  # waits for as long as it takes
    for _ in range(3):
        async with asyncio.timeout(PATIENCE_S):
            assert await kernels.alive(kernel_id) == Alive()
    await managers.get_kernel(kernel_id).interrupt_kernel()
    async with asyncio.timeout(PATIENCE_S):
        assert (await (await meter).run("1 + 1")).ok
        page.stop_channels()
        await kernels.close()
