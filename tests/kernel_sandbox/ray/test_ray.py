"""A pool over a Ray cluster of several nodes, all on this machine; the slow ones need Ray."""

import asyncio
import importlib.util
import inspect
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from kernel_sandbox.errors import (
    PackageError,
    SandboxError,
    SessionClosedError,
    WorkspaceError,
)
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.packages.overlay import Overlay
from kernel_sandbox.packages.packages import AllowList, PackageInstaller
from kernel_sandbox.ray import ray_pool
from kernel_sandbox.ray.ray_host import RayHost
from kernel_sandbox.ray.ray_pool import NodeLostError, RayMissingError, RayPool
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool, StateRetention
from kernel_sandbox.types import CellStatus, Limits
from tests.waiting import until
from tests.wheels import index_variables, make_wheel

in_module_loop = pytest.mark.asyncio(loop_scope="module")
SETTINGS = PoolSettings(modules=(), trajectories_at_once=3, cells_at_once=2)
VARIABLES = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
NODE = {"include_dashboard": False, "object_store_memory": 100 << 20}


def needs_ray(test):
    is_missing = importlib.util.find_spec("ray") is None
    skip = pytest.mark.skipif(is_missing, reason="the extra `ray` is not installed")
    marked = pytest.mark.slow(skip(test))
    return in_module_loop(marked) if inspect.iscoroutinefunction(test) else marked


def value(result):
    return result.outputs[-1].data["text/plain"]


# Without Ray: what is said when it is missing, and the actor as a plain object.


@in_module_loop
async def test_a_missing_ray_is_told_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RayMissingError, match=r"pip install 'ray[<>]") as caught:
        async with RayPool():
            pass
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, SandboxError)


def test_the_module_is_imported_without_ray():
    code = "import sys, kernel_sandbox.ray.ray_pool; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest_asyncio.fixture(loop_scope="module")
async def host():
    host = RayHost(SETTINGS, Limits(), WorkerOptions())
    await host.start()
    yield host
    await host.end()


@in_module_loop
async def test_a_host_keeps_its_trajectories_by_their_numbers(host):
    await host.stage("d1", b"a\n7\n")
    await host.open(1, {"data.csv": "d1"})
    raw = await host.run(1, "x = open('data.csv').read()\nx")
    assert raw["outputs"][0]["data"] == {"text/plain": r"'a\n7\n'"}
    await host.branch(2, 1)
    assert (await host.run(2, "del x"))["status"] == "ok"
    assert (await host.run(1, "x[0]"))["status"] == "ok"
    assert (await host.metrics()).active == 2
    await host.restart(2)
    await host.interrupt(2)
    await host.close(2)
    await host.close(2)
    with pytest.raises(SessionClosedError, match="trajectory is closed"):
        await host.run(2, "1")
    assert (await host.metrics()).active == 1


@in_module_loop
async def test_a_trajectory_without_its_input_is_told_and_leaves_nothing(host):
    await host.open(1, {"data.csv": "d2"})
    with pytest.raises(WorkspaceError, match=r"'data.csv' is missing"):
        await host.run(1, "1")
    await host.close(1)
    assert (await host.metrics()).active == 0


@in_module_loop
async def test_a_host_gives_the_files_that_were_made_as_bytes(host, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await host.open(1, {})
    await host.run(1, "import os; os.mkdir('d'); open('d/a', 'w').write('b')")
    assert await host.collect(1) == {"d/a": b"b"}
    assert not list(tmp_path.glob("dm-made-*"))
    await host.close(1)
    with pytest.raises(SessionClosedError, match="trajectory is closed"):
        await host.collect(1)


@in_module_loop
async def test_a_host_installs_what_cells_lack_on_its_own_node(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    folder.mkdir()
    for name, text in index_variables(folder).items():
        monkeypatch.setenv(name, text)
    make_wheel(folder, "dm_alpha")
    overlays = tmp_path / "overlays"
    host = RayHost(SETTINGS, Limits(), WorkerOptions(), lambda: alpha_installer(overlays))
    with pytest.raises(SessionClosedError, match="not started"):
        await host.metrics()
    await host.start()
    try:
        await host.open(1, {})
        raw = await host.run(1, "import dm_alpha\ndm_alpha.version")
        assert raw["outputs"][-1]["data"]["text/plain"] == "'1.0'"
    finally:
        await host.end()
    taken = tmp_path / "taken"
    taken.write_text("")
    broken = RayHost(SETTINGS, Limits(), WorkerOptions(), lambda: alpha_installer(taken))
    with pytest.raises(PackageError, match="can't be made"):
        await broken.start()
    await broken.end()


def alpha_installer(overlays):
    return PackageInstaller(Overlay(overlays), AllowList({"dm_alpha": "dm-alpha"}))


# With Ray.


@pytest.fixture(scope="module")
def folder():
    """What the nodes use for temporary files; short, for the sockets."""
    folder = Path(tempfile.mkdtemp(prefix="t-", dir="/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster(folder):
    """Two nodes: one core and two cores."""
    with pytest.MonkeyPatch.context() as patch:
        variables = {**VARIABLES, "TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder)}
        for name, text in variables.items():
            patch.setenv(name, text)
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 1})
        cluster.add_node(**NODE, num_cpus=2)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(cluster):
    async with RayPool(SETTINGS, Limits(wall_s=60)) as pool:
        yield pool
    with pytest.raises(SessionClosedError):
        async with pool.runner():
            pass


ENDLESS = "x = 5\nopen('begun', 'w').close()\nwhile True: pass"


async def begun(folder):
    """Waits until the cell `ENDLESS` runs."""
    await until(lambda: list(folder.glob("dm-work-*/begun")), "the cell runs")


@needs_ray
async def test_trajectories_spread_over_the_nodes_by_their_cores(pool):
    async with AsyncExitStack() as stack:
        runners = [await stack.enter_async_context(pool.runner()) for _ in range(3)]
        assert [runner.node.cores for runner in runners] == [2, 1, 2]
        for number, runner in enumerate(runners):
            await runner.run(f"x = {number}")
        assert [value(await runner.run("x")) for runner in runners] == ["0", "1", "2"]
        metrics = await pool.metrics()
        assert metrics.total.active == 3
        assert sorted(node.active for node in metrics.nodes.values()) == [1, 2]
    assert (await pool.metrics()).total.active == 0


@needs_ray
async def test_every_node_makes_an_installer_of_its_own(cluster, tmp_path):
    folder = tmp_path / "index"
    folder.mkdir()
    variables = index_variables(folder)
    make_wheel(folder, "dm_alpha")

    def make():
        os.environ.update(variables)
        allowed = AllowList({"dm_alpha": "dm-alpha"})
        return PackageInstaller(Overlay(tmp_path / f"of-{os.getpid()}"), allowed)

    made = RayPool(SETTINGS, Limits(wall_s=60), make_installer=make)
    async with made as pool, AsyncExitStack() as stack:
        for runner in [await stack.enter_async_context(pool.runner()) for _ in range(3)]:
            assert value(await runner.run("import dm_alpha\ndm_alpha.version")) == "'1.0'"
    assert len(list(tmp_path.glob("of-*"))) == 2


@needs_ray
async def test_more_than_there_are_places_wait_for_one(pool):
    async with AsyncExitStack() as stack:
        taken = [await stack.enter_async_context(AsyncExitStack()) for _ in range(6)]
        for one in taken:
            await one.enter_async_context(pool.runner())
        waiting = asyncio.create_task(stack.enter_async_context(pool.runner()))

        async def is_queued():
            return (await pool.metrics()).total.queued > 0

        await until(is_queued, "one waits for a place")
        await taken[4].aclose()
        assert (await (await waiting).run("1")).ok
        assert (await pool.metrics()).total.active == 6


@needs_ray
async def test_a_content_is_staged_once_for_each_node(pool, folder, tmp_path):
    (tmp_path / "real.csv").write_text("a\n41\n1\n")
    async with AsyncExitStack() as stack:
        async with asyncio.TaskGroup() as group:
            opening = [
                group.create_task(
                    stack.enter_async_context(pool.runner({f"{n}.csv": tmp_path / "real.csv"}))
                )
                for n in range(4)
            ]
        for n, task in enumerate(opening):
            code = f"import pandas as pd\nprint(pd.read_csv('{n}.csv').a.sum())"
            assert (await task.result().run(code)).stdout == "42\n"
        staged = [path for path in folder.glob("dm-data-*/*") if path.stat().st_size == 7]
        assert len(staged) == 2
        assert len({path.parent for path in staged}) == 2
        assert list(staged[0].parent.iterdir()) == [staged[0]]


@needs_ray
async def test_an_input_that_is_missing_costs_no_place(pool, tmp_path):
    for _ in range(2 * 3 + 1):
        with pytest.raises(WorkspaceError, match=r"'a.csv' can't be read"):
            async with pool.runner({"a.csv": tmp_path / "a.csv"}):
                pass
    assert (await pool.metrics()).total.queued == 0


@needs_ray
async def test_files_come_from_the_node(pool, tmp_path):
    async with pool.runner() as runner:
        assert runner.containment.is_active("seccomp")
        await runner.run("import os; os.mkdir('d'); open('d/a', 'w').write('b')")
        assert await runner.collect(tmp_path / "made") == (tmp_path / "made/d/a",)
        assert (tmp_path / "made/d/a").read_text() == "b"
    with pytest.raises(SessionClosedError, match="trajectory is closed"):
        await runner.collect(tmp_path / "made")


CELLS = (
    "import sys\nx = [1, 2]\nprint('Łódź'); print('bad', file=sys.stderr)\nx",
    "from IPython.display import HTML, display\ndisplay(HTML('<b>1</b>'))",
    "x.append(3)\n1/0",
    "len(x",
    "import os\nos.system('ls')",
    "len(x)",
)


@needs_ray
async def test_results_are_those_of_a_local_pool(pool):
    before = (await pool.metrics()).total.kills
    async with SandboxPool(SETTINGS) as local, local.runner() as here, pool.runner() as there:
        for code in CELLS:
            results = [await runner.run(code) for runner in (here, there)]
            mine, theirs = (replace(one, seconds=0, peak_bytes=None) for one in results)
            assert mine == theirs
            assert min(one.seconds for one in results) >= 0
    assert theirs.outputs[0].data["text/plain"] == "3"
    assert (await pool.metrics()).total.kills == before  # a cell that was refused is none


@needs_ray
async def test_a_branch_goes_on_by_itself_on_the_same_node(pool):
    async with pool.runner() as runner:
        await runner.run("x = 1")
        async with runner.branch() as branch:
            await branch.run("x += 10")
            assert value(await branch.run("x")) == "11"
            assert branch.node is runner.node
        assert value(await runner.run("x")) == "1"
        with pytest.raises(SessionClosedError, match="trajectory is closed"):
            await branch.run("x")
        await runner.close()
        with pytest.raises(SessionClosedError):
            async with runner.branch():
                pass


@needs_ray
async def test_a_cancelled_caller_stops_the_cell_and_keeps_the_state(pool, folder):
    async with pool.runner() as runner:
        task = asyncio.create_task(runner.run(ENDLESS))
        await begun(folder)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await pool.metrics()).total.running == 0
        assert value(await runner.run("x")) == "5"


@needs_ray
async def test_a_fault_on_a_node_is_told_with_its_place(pool):
    async with pool.runner() as runner:
        with pytest.raises(SandboxError, match=r"'open' failed on node .*AttributeError"):
            await runner.node.call("open", 99, "no mapping")
        assert (await runner.run("1")).ok


@needs_ray
async def test_interrupt_and_restart_reach_the_node(pool, folder):
    async with pool.runner() as runner:
        task = asyncio.create_task(runner.run(ENDLESS))
        await begun(folder)
        await runner.interrupt()
        assert (await task).status is CellStatus.INTERRUPTED
        assert value(await runner.run("x")) == "5"
        await runner.restart()
        assert (await runner.run("x")).error.name == "NameError"


@needs_ray
async def test_a_caller_cancelled_while_it_opens_leaves_its_place(pool):
    for _ in range(7):
        opening = asyncio.create_task(pool.runner().__aenter__())
        await asyncio.sleep(0)  # it starts
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    metrics = await pool.metrics()
    assert (metrics.total.active, metrics.total.queued) == (0, 0)
    async with pool.runner() as runner:
        assert (await runner.run("1")).ok


@needs_ray
async def test_a_node_that_joins_is_used_and_one_that_dies_is_told(pool, cluster, folder):
    joined = cluster.add_node(**NODE, num_cpus=8)
    async with pool.runner() as there, there.branch() as branch:
        assert there.node.cores == 8
        task = asyncio.create_task(there.run(ENDLESS))
        await begun(folder)
        cluster.remove_node(joined, allow_graceful=False)
        with pytest.raises(NodeLostError, match=r"node .* is lost, .* Open them again"):
            await task
        with pytest.raises(NodeLostError):
            await branch.run("1")
        async with pool.runner() as elsewhere:
            assert elsewhere.node.cores < 8
            assert (await elsewhere.run("1")).ok
        metrics = await pool.metrics()
        assert len(metrics.nodes) == 2
        assert "is lost" in metrics.refused[there.node.id]


@needs_ray
async def test_a_pool_without_nodes_refuses_and_one_whose_nodes_live_recovers(cluster, monkeypatch):
    import ray

    settings = replace(SETTINGS, trajectories_at_once=1)
    async with RayPool(settings) as pool, pool.runner() as one, pool.runner() as two:
        waiting = [asyncio.create_task(pool.runner().__aenter__()) for _ in range(2)]
        for runner in (one, two):
            ray.kill(runner.node._actor)
            with pytest.raises(NodeLostError):
                await runner.run("1")
        with pytest.raises(NodeLostError, match="no node is left"):
            async with pool.runner():
                pass
        for task in waiting:
            with pytest.raises(NodeLostError, match="no node is left"):
                await task
        monkeypatch.setattr(ray_pool, "AGAIN_S", 0.0)
        async with pool.runner() as again:
            assert (await again.run("1")).ok
        assert again.node.id not in (await pool.metrics()).refused


@needs_ray
async def test_closing_ends_those_that_run_and_those_that_wait(cluster, folder):
    settings = replace(SETTINGS, trajectories_at_once=1)
    async with RayPool(settings) as pool, pool.runner() as one, pool.runner():
        waiting = [asyncio.create_task(pool.runner().__aenter__()) for _ in range(2)]
        task = asyncio.create_task(one.run(ENDLESS))
        await begun(folder)
        await pool.close()
        for failed in (task, *waiting):
            with pytest.raises(SessionClosedError):
                await failed
        with pytest.raises(SessionClosedError, match="pool is closed"):
            await one.run("1")


@needs_ray
async def test_each_node_runs_as_many_cells_as_it_has_cores_by_default(cluster):
    async with RayPool() as pool, pool.runner() as runner:
        assert (await runner.run("import pandas")).ok
        assert runner.node.cores == 2


@needs_ray
async def test_a_tree_is_branched_on_its_node_and_leaves_no_files(cluster, folder):
    before = set(folder.glob("dm*"))
    settings = replace(SETTINGS, strategy=StateRetention.SNAPSHOT)
    async with RayPool(settings) as pool, pool.runner() as runner:
        await runner.run("x = object()\nfirst = id(x)")
        async with runner.branch() as branch:
            assert value(await branch.run("id(x) == first")) == "True"
        assert (await pool.metrics()).total.replayed_cells == 0
        assert set(folder.glob("dm*")) - before
    assert set(folder.glob("dm*")) - before == set()  # those of killed ones go meanwhile


@needs_ray
async def test_what_keeps_a_node_from_starting_is_raised(cluster):
    limits = Limits(writable_dir=Path("/nowhere"))
    with pytest.raises(WorkspaceError, match="the working folder /nowhere is not"):
        async with RayPool(SETTINGS, limits):
            pass


@needs_ray
def test_a_ray_that_was_not_initialised_is_told():
    code = (
        "import asyncio\nfrom kernel_sandbox.ray.ray_pool import RayPool\n"
        "try: asyncio.run(RayPool().__aenter__())\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.startswith("SandboxError Ray is not initialised")


DRIVER = """
import asyncio, sys, ray
from kernel_sandbox.runners.pool import PoolSettings
from kernel_sandbox.ray.ray_pool import RayPool

async def main():
    ray.init(address=sys.argv[1], log_to_driver=False)
    async with RayPool(PoolSettings(modules=())) as pool, pool.runner() as runner:
        await runner.run("x = 1")
        cell = asyncio.create_task(runner.run("while True: pass"))
        while (await pool.metrics()).total.running == 0:
            await asyncio.sleep(0.05)
        print("runs", flush=True)
        await cell

asyncio.run(main())
"""


def sandboxes(cluster):
    """The zygotes on the nodes, and all below them."""
    found = []
    for node in cluster.list_all_nodes():
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        for process in raylet.children(recursive=True):
            if "kernel_sandbox.forkserver.zygote" in process.cmdline():
                found += [process, *process.children(recursive=True)]
    return set(found)


@needs_ray
def test_a_driver_that_is_killed_leaves_no_process(cluster):
    before = sandboxes(cluster)
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, cluster.address], stdout=subprocess.PIPE, text=True
    )
    with driver:
        assert driver.stdout.readline() == "runs\n"
        begun = sandboxes(cluster) - before
        assert len(begun) > 2
        os.kill(driver.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(begun, timeout=60)
    assert alive == []
