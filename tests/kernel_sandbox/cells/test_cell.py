"""How a cell ended, where its kernel says too little of it."""

from __future__ import annotations

import asyncio
import signal

import pytest

from kernel_sandbox.cells.cell import CellRun
from kernel_sandbox.cells.zmq_channels import Execution
from kernel_sandbox.types import CellStatus, Limits


class SilentKernel:
    """Its connection breaks at once; its process ends by itself, or only when it is killed."""

    violation = None
    exit_status = signal.SIGKILL.value

    def __init__(self, *, dies_when_asked: bool) -> None:
        self.dead = asyncio.Event()
        self.channel = self
        self._dies_when_asked = dies_when_asked

    async def execute(self, source: str, execution: Execution) -> None:
        execution.collector.cut_bytes += 1_000
        execution.flood.set()
        await asyncio.Event().wait()

    async def settle(self) -> None:
        if self._dies_when_asked:
            self.dead.set()
        await asyncio.Event().wait()

    def begin_cell(self) -> None: ...

    def finish_cell(self) -> None: ...

    async def interrupt(self) -> None: ...

    async def kill(self) -> None:
        self.dead.set()


class ForgetfulKernel(SilentKernel):
    """The interrupt meets it between the code and the reply, which then never comes."""

    def __init__(self) -> None:
        super().__init__(dies_when_asked=False)
        self.has_ended = asyncio.Event()

    async def execute(self, source: str, execution: Execution) -> None:
        execution.started.set()
        await asyncio.Event().wait()

    async def settle(self) -> None:
        await self.has_ended.wait()

    async def interrupt(self) -> None:
        self.has_ended.set()


async def test_an_interrupted_cell_ends_though_its_reply_is_lost() -> None:
    cell = CellRun(ForgetfulKernel(), Limits(wall_s=60))
    running = asyncio.create_task(cell.run("1 + 1"))
    await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await cell.interrupt()
        result = await running
    assert result.status is CellStatus.INTERRUPTED
    assert not result.state_lost


@pytest.mark.parametrize(
    ("dies_when_asked", "ended_by", "word"),
    [(True, "death", "variables are gone"), (False, "output", "would not stop")],
)
async def test_a_kernel_that_ended_by_itself_is_not_told_as_too_much_output(
    dies_when_asked: bool, ended_by: str, word: str
) -> None:
    kernel = SilentKernel(dies_when_asked=dies_when_asked)
    result = await CellRun(kernel, Limits()).run("x = 1")
    assert (result.status, result.ended_by) == (CellStatus.KILLED, ended_by)
    assert word in result.message
