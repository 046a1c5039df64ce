"""One contract over every way to keep a state: kernel, worker, tree of states, text."""

import asyncio
import tempfile
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import SessionClosedError
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool, StateRetention
from kernel_sandbox.runners.replay import ReplayRunner
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.runners.snapshots import SnapshotTree
from kernel_sandbox.runners.state_backends import PersistentBackend, SnapshotRunner
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import MIB, CellStatus, Limits
from tests.kernel_sandbox.running import SLEEPING, begun

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = Limits(wall_s=60.0, memory_bytes=700 * MIB)
SHORT = replace(LIMITS, wall_s=2.5)
KEEPS_WHAT_WAS_STOPPED = ("kernel", "worker")
"""Declared: in the others, a cell that was stopped or killed leaves the state as it was before."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def zygote():
    async with Zygote(("numpy", "pandas")) as warm:
        yield warm


@pytest.fixture
def temporary(monkeypatch):
    """Where the working folders of this test are, whatever keeps the state."""
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


class Host:
    """What a backend needs of a pool, with no room for a state that waits."""

    def __init__(self, zygote, budget, limits):
        self.zygote, self.budget = zygote, budget
        self.limits, self.options, self.replayed_cells = limits, WorkerOptions(), 0


@asynccontextmanager
async def kernel(zygote, inputs, limits=LIMITS):
    async with KernelSession(limits, inputs) as runner:
        yield runner


@asynccontextmanager
async def worker(zygote, inputs, limits=LIMITS):
    async with CellWorker(zygote, limits, inputs) as runner:
        yield runner


@asynccontextmanager
async def evicted(zygote, inputs, limits=LIMITS):
    from kernel_sandbox.watch.state_budget import StateBudget

    class Evicting(PersistentBackend):
        async def run(self, source):
            result = await super().run(source)
            await self._host.budget.make_room()
            return result

    async with Evicting(Host(zygote, StateBudget(0), limits), inputs) as runner:
        yield runner


@asynccontextmanager
async def snapshot(zygote, inputs, limits=LIMITS):
    async with SnapshotTree(zygote, limits, inputs) as tree:
        yield SnapshotRunner(tree)


@asynccontextmanager
async def replay(zygote, inputs, limits=LIMITS):
    async with ReplayRunner(zygote, limits, inputs) as runner:
        yield runner


KINDS = {"kernel": kernel, "worker": worker, "evicted": evicted}
KINDS |= {"snapshot": snapshot, "replay": replay}
every = pytest.mark.parametrize("kind", KINDS)


@every
async def test_a_state_goes_on_from_cell_to_cell(zygote, kind, tmp_path):
    (tmp_path / "in.csv").write_text("a,b\n1,2\n3,4\n")
    async with KINDS[kind](zygote, {"data.csv": tmp_path / "in.csv"}) as runner:
        assert (await runner.run("import pandas as pd\ndf = pd.read_csv('data.csv')")).ok
        failed = await runner.run("total = df.b.sum()\nprint(total)\ndf.nothing")
        assert failed.status is CellStatus.ERROR
        assert failed.stdout == "6\n"
        assert failed.error.name == "AttributeError"
        assert (await runner.run("open('out.txt', 'w').write(str(total))")).ok
        shown = await runner.run("open('out.txt').read() + '!'")
        assert shown.outputs[-1].data["text/plain"] == "'6!'"
        assert shown.execution_count == 4
        assert not shown.message


@every
async def test_a_refused_cell_changes_nothing(zygote, kind):
    async with KINDS[kind](zygote, {}) as runner:
        assert (await runner.run("x = 1")).ok
        assert (await runner.run("import os; os.system('ls')")).status is CellStatus.DENIED
        assert (await runner.run("print(x)")).stdout == "1\n"


@every
async def test_a_cell_out_of_time_is_stopped(zygote, kind):
    async with KINDS[kind](zygote, {}, SHORT) as runner:
        assert (await runner.run("x = 1")).ok
        result = await runner.run("x = 2\nimport time\nwhile True: time.sleep(0.01)")
        assert result.status is CellStatus.TIMEOUT
        after = await runner.run("print(x)")
        assert after.stdout == ("2\n" if kind in KEEPS_WHAT_WAS_STOPPED else "1\n")
        told = result.message + after.message
        assert kind in KEEPS_WHAT_WAS_STOPPED or "not kept" in told or "is gone" in told


@every
async def test_memory_above_the_limit_ends_the_cell(zygote, kind):
    async with KINDS[kind](zygote, {}) as runner:
        assert (await runner.run("x = 1")).ok
        result = await runner.run("hoard = [bytearray(64 << 20) for _ in range(64)]")
        assert result.status is CellStatus.MEMORY
        after = await runner.run("print('x' in dir())")
        assert after.stdout == ("False\n" if result.state_lost else "True\n")


@every
async def test_an_interrupt_ends_the_cell(zygote, kind, temporary):
    async with KINDS[kind](zygote, {}) as runner:
        assert (await runner.run("x = 1")).ok
        await runner.interrupt()
        running = asyncio.create_task(runner.run(SLEEPING))
        await begun(running, temporary)
        await runner.interrupt()
        assert (await running).status is CellStatus.INTERRUPTED
        assert (await runner.run("print(x)")).stdout == "1\n"


@every
async def test_cancelling_ends_the_cell_and_keeps_the_state(zygote, kind, temporary):
    async with KINDS[kind](zygote, {}) as runner:
        assert (await runner.run("x = 1")).ok
        running = asyncio.create_task(runner.run(SLEEPING))
        await begun(running, temporary)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await runner.run("print(x)")).stdout == "1\n"


@every
async def test_restart_forgets_and_close_is_final(zygote, kind):
    async with KINDS[kind](zygote, {}) as runner:
        assert (await runner.run("x = 1")).ok
        await runner.restart()
        assert (await runner.run("print('x' in dir())")).stdout == "False\n"
        await runner.close()
        await runner.close()
        with pytest.raises(SessionClosedError):
            await runner.run("1")


@pytest.mark.parametrize("kind", ["evicted", "replay"])
async def test_what_comes_out_differently_the_second_time_is_told(zygote, kind):
    async with KINDS[kind](zygote, {}) as runner:
        await runner.run("import time\nprint(object())\nx = 1")
        assert not (await runner.run("y = 2")).message
        await runner.run("print(time.perf_counter())")
        result = await runner.run("print(x + y)")
        assert result.stdout == "3\n"
        assert "cell 3 (its output)" in result.message


@pytest.mark.parametrize("strategy", list(StateRetention))
async def test_branches_go_their_own_ways(tmp_path, strategy):
    settings = PoolSettings(strategy, profile=Strictness.ROLLOUT, modules=("numpy",))
    async with SandboxPool(settings, LIMITS) as pool, pool.runner() as trunk:
        await trunk.run("x = [1]\nopen('f.txt', 'w').write('trunk')")
        async with trunk.branch() as left, trunk.branch() as right:
            assert (await left.run("x.append(2); open('f.txt', 'a').write(' left')")).ok
            assert (await right.run("x.append(3)")).ok
            show = "print(x, open('f.txt').read())"
            assert (await left.run(show)).stdout == "[1, 2] trunk left\n"
            assert (await right.run(show)).stdout == "[1, 3] trunk\n"
            assert (await trunk.run(show)).stdout == "[1] trunk\n"
            assert pool.metrics().active == 3
        assert pool.metrics().active == 1
