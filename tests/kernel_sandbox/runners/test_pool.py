"""A pool: places, turns, deadlines, memory, metrics."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import ContainmentError, SessionClosedError, WorkspaceError
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from kernel_sandbox.types import MIB, CellStatus, Limits
from kernel_sandbox.watch import consumption
from tests.kernel_sandbox.running import BEGIN, SLEEPING, begun
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
MODULES = ("numpy",)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool():
    settings = PoolSettings(cells_at_once=2, trajectories_at_once=3, modules=MODULES)
    async with SandboxPool(settings, Limits(wall_s=60.0, memory_bytes=700 * MIB)) as made:
        yield made
        assert psutil.Process(made.zygote.pid).children(recursive=True) == []


async def test_more_trajectories_than_places_wait_for_one(pool):
    order = []

    async def trajectory(number):
        async with pool.runner() as runner:
            order.append(number)
            assert (await runner.run(f"x = {number}")).ok
            assert (await runner.run("print(x)")).stdout == f"{number}\n"

    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(trajectory(number))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert pool.metrics().queued == 5
    assert order == list(range(8))
    assert pool.metrics().active == pool.metrics().queued == 0


async def test_no_more_cells_run_at_once_than_there_are_turns(pool):
    async with pool.runner() as a, pool.runner() as b, pool.runner() as c:
        for runner in (a, b, c):
            await runner.run("1")
        before = pool.metrics().cells
        wait = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"
        async with asyncio.TaskGroup() as group:
            for runner in (a, b, c):
                group.create_task(runner.run(wait))
            await until(lambda: pool.metrics().running == 2, "two cells run")
            assert pool.metrics().waiting == 1
            for runner in (a, b, c):
                (runner.backend._worker.workspace.path / "go").touch()
        assert pool.metrics().cells == before + 3


async def test_what_ended_a_cell_is_counted(pool):
    before = Counter(pool.metrics().kills)
    async with pool.runner() as runner:
        await runner.run("hoard = [bytearray(64 << 20) for _ in range(64)]")
        await runner.run("import os; os.system('ls')")
        await runner.run("1 / 0")
    assert Counter(pool.metrics().kills) - before == Counter(memory=1)
    assert pool.metrics().cells_per_s > 0


ENDED_BY = {
    "disk": "for n in range(40): open(str(n), 'wb').write(b'x' * (1 << 20))\nwhile True: pass",
    "processes": "import multiprocessing, time\nfork = multiprocessing.get_context('fork')\n"
    "[fork.Process(target=time.sleep, args=(99,)).start() for _ in range(9)]\ntime.sleep(99)",
    "output": "while True: print('x' * 10_000)",
    "timeout": "while True: pass",
    "connection": "import os\nos.write(3, b'no message' * 100)\nwhile True: pass",
    "processor": "import resource, signal\nresource.setrlimit(resource.RLIMIT_CPU, (1, 9))\n"
    "while True: pass",
    "death": "import os\ngetattr(os, 'ab' + 'ort')()",
}


@pytest.mark.slow
async def test_every_limit_is_counted_by_its_own_name():
    limits = Limits(wall_s=60.0, disk_bytes=20 * MIB, processes=8)
    others = [reason for reason in ENDED_BY if reason != "timeout"]
    for given, reasons in ((limits, others), (replace(limits, wall_s=1.0), ["timeout"])):
        async with SandboxPool(PoolSettings(modules=()), given) as pool, pool.runner() as runner:
            for reason in reasons:
                result = await runner.run(ENDED_BY[reason])
                assert result.ended_by == reason, result
            assert pool.metrics().kills == dict.fromkeys(reasons, 1)


async def test_a_trajectory_ends_at_its_deadline():
    settings = PoolSettings(deadline_s=90.5, modules=MODULES)
    async with SandboxPool(settings) as pool, pool.runner() as runner:
        assert (await runner.run("1")).ok
        runner._ends_at = time.monotonic() + 0.5
        result = await runner.run("import time; time.sleep(30)")
        assert result.status is CellStatus.TIMEOUT
        assert "took longer than its 90.5 s" in result.message
        assert (await runner.run("1")).status is CellStatus.TIMEOUT
        assert pool.metrics().kills == {"deadline": 1}


async def test_no_cell_begins_after_the_deadline(tmp_path):
    settings = PoolSettings(deadline_s=90.0, modules=MODULES)
    async with SandboxPool(settings) as pool, pool.runner() as runner:
        assert (await runner.run("1")).ok
        runner._ends_at = time.monotonic()
        late = await runner.run("open('late.txt', 'w').write('x')")
        assert late.status is CellStatus.TIMEOUT
        assert await runner.collect(tmp_path) == ()
        assert pool.metrics().cells == 1


async def test_memory_of_those_that_wait_is_taken_and_their_state_comes_back():
    settings = PoolSettings(live_bytes=60 * MIB, modules=MODULES)
    async with SandboxPool(settings) as pool, pool.runner() as a, pool.runner() as b:
        for runner, name in ((a, "a"), (b, "b")):
            code = f"name = {name!r}; block = b'x' * (40 << 20)"
            assert (await runner.run(code)).ok
        assert pool.metrics().evictions == 1
        assert pool.metrics().live_bytes <= 60 * MIB
        assert (await a.run("print(name, len(block))")).stdout == f"a {40 << 20}\n"
        assert (await b.run("print(name, len(block))")).stdout == f"b {40 << 20}\n"
        assert pool.metrics().replayed_cells == 2


async def died(runner, how):
    """Ends the process of a trajectory's state between two cells, in one of two ways."""
    worker = runner.backend._worker
    dead = worker._kernel.dead
    psutil.Process(worker.pid if how == "worker" else worker._zygote.pid).kill()
    async with asyncio.timeout(PATIENCE_S):
        await dead.wait()


@pytest.mark.parametrize("how", ["worker", "zygote"])
async def test_a_state_that_dies_between_two_cells_comes_back(how):
    async with SandboxPool(PoolSettings(modules=MODULES)) as pool, pool.runner() as runner:
        await runner.run("x = [1]\nopen('f.txt', 'w').write('here')")
        await died(runner, how)
        result = await runner.run("x.append(2); print(x, open('f.txt').read())")
        assert (result.stdout, result.message) == ("[1, 2] here\n", "")
        assert pool.metrics().replayed_cells == 1
        async with runner.branch() as other:
            assert (await other.run("print(x)")).stdout == "[1, 2]\n"


@pytest.mark.parametrize("listens", [True, False])
async def test_a_cell_that_was_cancelled_is_told_of_once_it_can_not_be_built_again(listens):
    clause = "KeyboardInterrupt" if listens else "BaseException"
    code = f"y = 2\nimport time\nwhile True:\n    try:\n        {BEGIN}\n        time.sleep(9)\n"
    code += f"    except {clause}: "
    async with SandboxPool(PoolSettings(modules=MODULES)) as pool, pool.runner() as runner:
        await runner.run("x = 1")
        running = asyncio.create_task(runner.run(code + ("raise" if listens else "pass")))
        await begun(running, runner.backend._worker.workspace.path)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (pool.metrics().live_bytes > 0) == listens
        if listens:
            assert (await runner.run("print(x, y)")).stdout == "1 2\n"
            await died(runner, "worker")
        result = await runner.run("print('x' in dir(), 'y' in dir())")
        assert result.stdout == "True False\n"
        assert "a cell had done that was stopped is gone" in result.message


async def test_the_quick_bound_of_a_states_memory_is_one():
    settings = PoolSettings(live_bytes=10**12, modules=MODULES)
    async with SandboxPool(settings) as pool, pool.runner() as runner:
        for code in ("1", "block = b'x' * (40 << 20)", "import numpy as np; a = np.ones(1 << 23)"):
            assert (await runner.run(code)).ok
            exact = consumption.private_bytes(runner.backend._worker.pid)
            assert exact - 2 * MIB <= pool.metrics().live_bytes <= exact + 60 * MIB
    assert consumption.private_bytes_at_most(None, None) == 0
    assert consumption.private_bytes_at_most(2**22 + 1, os.getpid()) == 0


async def test_a_cancelled_trajectory_leaves_its_place(pool):
    async def stuck():
        async with pool.runner() as runner:
            await runner.run("import time; time.sleep(600)")

    tasks = [asyncio.create_task(stuck()) for _ in range(3)]
    await until(lambda: pool.metrics().running == 2, "as many cells run as may")
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    async with asyncio.timeout(PATIENCE_S), pool.runner() as runner:
        assert (await runner.run("print(1)")).stdout == "1\n"


LITTLE_ROOM = """
import asyncio, resource, sys
from kernel_sandbox.errors import ContainmentError
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
async def main(soft, hard):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    async with SandboxPool(PoolSettings(modules=()), None) as pool, pool.runner() as runner:
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 6 * 256)
        print((await runner.run("import resource; print(resource.getrlimit(7))")).stdout)
try:
    asyncio.run(main(*map(int, sys.argv[1:])))
except ContainmentError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("soft", "hard", "said"),
    [
        (256, 4096, "True\n(512, 576)\n\n"),
        (256, 1024, "the limit of this process is 1024. Run fewer"),
    ],
)
async def test_a_pool_makes_room_for_its_open_files_or_refuses(soft, hard, said):
    run = partial(subprocess.run, capture_output=True, text=True, check=False)
    command = [sys.executable, "-c", LITTLE_ROOM, str(soft), str(hard)]
    done = await asyncio.to_thread(run, command)
    assert said in done.stdout, done.stderr


async def test_faults_are_named_and_cost_no_place(pool, tmp_path):
    for _ in range(4):
        async with pool.runner({"x.csv": tmp_path / "none.csv"}) as runner:
            with pytest.raises(WorkspaceError, match=r"x\.csv"):
                await runner.run("1")
    with pytest.raises(ValueError, match="cells_at_once must be positive"):
        PoolSettings(cells_at_once=0)
    with pytest.raises(ValueError, match="deadline_s must be positive"):
        PoolSettings(deadline_s=0)


async def test_a_pool_can_not_be_switched_off():
    with pytest.raises(ValueError, match="a pool confines its workers always"):
        PoolSettings(profile=Strictness.OFF)


async def test_a_closed_pool_takes_nothing(pool):
    never = SandboxPool(PoolSettings(modules=MODULES))
    with pytest.raises(SessionClosedError, match="closed, or was not started"):
        async with never.runner():
            pass
    async with SandboxPool(PoolSettings(modules=MODULES)) as brief, brief.runner() as runner:
        await runner.run("1")
        await brief.close()
        with pytest.raises(SessionClosedError):
            await runner.run("1")


async def test_a_trajectory_that_is_closed_while_it_starts_leaves_nothing(monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="t-", dir="/tmp"))
    async with SandboxPool(PoolSettings(modules=MODULES)) as pool, pool.runner() as runner:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        running = asyncio.create_task(runner.run("1"))
        async with asyncio.timeout(PATIENCE_S):
            while not pool.zygote._starting:
                await asyncio.sleep(0)  # a short moment: `until` may miss it
        await runner.close()
        with pytest.raises(SessionClosedError):
            await running
        assert list(folder.iterdir()) == []
        assert psutil.Process(pool.zygote.pid).children(recursive=True) == []
        assert pool.budget.used_bytes == 0
    folder.rmdir()


async def test_a_seat_that_is_closed_while_a_cell_runs_is_not_counted_again():
    async with SandboxPool(PoolSettings(modules=MODULES)) as pool, pool.runner() as runner:
        await runner.run("1")
        running = asyncio.create_task(runner.run(SLEEPING))
        await begun(running, runner.backend._worker.workspace.path)
        await runner.close()
        assert (await running).status is CellStatus.KILLED
        assert len(pool.budget._sizes) == 0


async def test_a_pool_closes_all_whatever_one_of_them_does(monkeypatch):
    pool = SandboxPool(PoolSettings(modules=MODULES))
    async with pool, pool.runner() as one, pool.runner() as two:
        for runner in (one, two):
            await runner.run("1")
        zygote = psutil.Process(pool.zygote.pid)
        folders = [runner.backend._worker.workspace.path for runner in (one, two)]

        async def fail():
            raise OSError("stuck")

        for runner in (one, two):  # whichever is first
            monkeypatch.setattr(runner.backend, "close", fail)
            closing = asyncio.create_task(pool.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises((OSError, asyncio.CancelledError)):
                await closing
            monkeypatch.undo()
        assert (await asyncio.to_thread(psutil.wait_procs, [zygote], PATIENCE_S))[1] == []
        assert not any(folder.exists() for folder in folders)


@pytest.mark.skipif(os.getuid() != 0, reason="the system counts an ordinary user's processes")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can count kernels apart")
async def test_without_namespaces_root_counts_processes_all_the_same():
    settings = PoolSettings(modules=MODULES)
    async with SandboxPool(settings, options=WorkerOptions(isolate=False)) as pool:
        assert any(map(pool.containment.is_active, ("cgroup", "pid_limit")))


async def test_a_machine_that_can_not_confine_is_refused_unless_asked_for(monkeypatch):
    absent = Layer("cgroup", LayerState.ABSENT, "none for the test")
    monkeypatch.setattr("kernel_sandbox.confine.fence.delegate", lambda *_: absent)
    monkeypatch.setattr("kernel_sandbox.confine.counting.unused_user", lambda: 0)
    monkeypatch.setattr("kernel_sandbox.confine.counting.tasks_of_user", lambda: 0)
    open_machine = WorkerOptions(isolate=False)
    with pytest.raises(ContainmentError, match="number of processes"):
        await SandboxPool(PoolSettings(modules=MODULES), options=open_machine).__aenter__()
    asked = PoolSettings(profile=Strictness.INTERACTIVE, modules=MODULES)
    async with SandboxPool(asked, options=open_machine) as pool, pool.runner() as runner:
        assert (await runner.run("1")).ok
