"""A tree of states: what a fork keeps, what it can't keep, and what is built again."""

import asyncio
import os
import signal

import psutil
import pytest
import pytest_asyncio

from kernel_sandbox.errors import KernelStartError, SessionClosedError
from kernel_sandbox.forkserver import snapshot_process as live_state
from kernel_sandbox.forkserver.forking import BRANCHES, TEMPORARY
from kernel_sandbox.forkserver.snapshot_process import SnapshotProcess
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.snapshots import SnapshotTree
from kernel_sandbox.types import CellStatus, Limits
from kernel_sandbox.watch.state_budget import StateBudget
from tests.kernel_sandbox.running import BEGIN, places_of
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def zygote():
    async with Zygote(("numpy", "pandas", "sklearn.cluster")) as warm:
        yield warm


@pytest_asyncio.fixture(loop_scope="module")
async def tree(zygote):
    async with SnapshotTree(zygote, Limits(wall_s=20.0)) as made:
        yield made
    assert psutil.Process(zygote.pid).children(recursive=True) == []


async def printed(tree, node, source):
    result, after = await tree.run(node, source)
    assert result.ok, result
    return result.stdout, after


async def test_a_state_stays_as_it_was_whatever_runs_from_it(tree):
    _, base = await printed(tree, tree.root, "data = list(range(3))")
    for number in range(3):
        text, after = await printed(tree, base, f"data.append({number}); print(data)")
        assert text == f"[0, 1, 2, {number}]\n"
        assert after.depth == 2
    assert tree.replayed_cells == 0


async def test_branches_run_at_the_same_time(tree):
    _, base = await printed(tree, tree.root, "import os, time")
    place = tree._workspace.path
    wait = f"{BEGIN}\nwhile not os.path.exists('go'): time.sleep(0.01)\n"
    async with asyncio.TaskGroup() as group:
        runs = [group.create_task(tree.run(base, f"{wait}print({n})")) for n in range(4)]
        await until(lambda: len(places_of("begun", place)) == 4, "all four run")
        for folder in places_of("begun", place):
            (folder / "go").touch()
    assert [run.result()[0].stdout for run in runs] == ["0\n", "1\n", "2\n", "3\n"]


async def test_random_numbers_go_on_the_same_from_the_same_state(tree):
    _, base = await printed(tree, tree.root, "import numpy as np; rng = np.random.default_rng(1)")
    texts = {(await printed(tree, base, "print(rng.random())"))[0] for _ in range(3)}
    assert len(texts) == 1


OBSTACLES = {
    "thread": "import threading\nstop = threading.Event()\n"
    "t = threading.Thread(target=stop.wait, daemon=True); t.start()",
    "file": "f = open('notes.txt', 'w'); f.write('one '); f.flush()",
    "sqlite": "import sqlite3\ndb = sqlite3.connect('x.db'); db.execute('create table t (a)')",
    "pool": "from concurrent.futures import ThreadPoolExecutor\n"
    "pool = ThreadPoolExecutor(1); pool.submit(print).result()",
}
USES = {
    "thread": "print(t.is_alive())",
    "file": "f.write('two'); f.flush(); print(open('notes.txt').read())",
    "sqlite": "db.execute('insert into t values (1)')\n"
    "print(db.execute('select count(*) from t').fetchone()[0])",
    "pool": "print(pool.submit(lambda: 7).result(timeout=5))",
}
RESULTS = {"thread": "True\n", "file": "one two\n", "sqlite": "1\n", "pool": "7\n"}


@pytest.mark.parametrize("kind", OBSTACLES)
async def test_what_a_fork_would_break_is_built_again(tree, kind):
    _, base = await printed(tree, tree.root, OBSTACLES[kind])
    for _ in range(2):
        assert (await printed(tree, base, USES[kind]))[0] == RESULTS[kind]
    assert tree.replayed_cells > 0


@pytest.mark.parametrize(
    "code",
    [
        "import pandas as pd; df = pd.DataFrame({'a': range(1000)}); df.a.sum()",
        "import numpy as np; a = np.random.rand(300, 300); a @ a",
        "from sklearn.cluster import KMeans; KMeans(2, n_init=1).fit([[1], [2], [8], [9]])",
        "import pandas as pd, io; pd.read_csv(io.StringIO('a\\n1\\n'), engine='pyarrow')",
    ],
    ids=["pandas", "numpy", "sklearn", "pyarrow"],
)
async def test_libraries_work_on_both_sides_of_a_fork(tree, code):
    pytest.importorskip("pyarrow")
    _, base = await printed(tree, tree.root, code)
    _, after = await printed(tree, base, code)
    for node in (after, base):
        result, _ = await tree.run(node, code)
        assert result.ok, result.error


async def test_one_branch_can_neither_read_nor_change_another(tree):
    _, base = await printed(tree, tree.root, "import os\nhere = os.getcwd()")
    open_file = "open('mine.txt', 'w').write('secret'); print(os.getcwd())"
    path, _ = await printed(tree, base, open_file)
    for attempt in (
        f"open('{path.strip()}/mine.txt').read()",
        f"open('{path.strip()}/mine.txt', 'w')",
        f"os.listdir('{path.strip()}')",
        "open(here + '/new.txt', 'w')",
        "open('/tmp/shared.txt', 'w')",
    ):
        result, _ = await tree.run(base, attempt)
        assert result.error is not None, attempt
        assert result.error.name == "PermissionError", attempt
    text, _ = await printed(tree, base, "import tempfile\nprint(tempfile.mkstemp()[0] > 0)")
    assert text == "True\n"


async def test_a_link_to_all_branches_opens_none_of_them(tree):
    lay = f"import os\nos.symlink(os.getcwd().split('/{BRANCHES}')[0] + '/{BRANCHES}', 'all')"
    _, base = await printed(tree, tree.root, lay)
    path, _ = await printed(tree, base, "open('mine.txt', 'w').close(); print(os.getcwd())")
    result, _ = await tree.run(base, f"open({path.strip()!r} + '/mine.txt')")
    assert result.error is not None
    assert result.error.name == "PermissionError"


async def test_what_a_state_wrote_can_be_read_by_its_old_name_later(tree):
    _, base = await printed(
        tree, tree.root, "import os\nopen('a.txt', 'w').write('a')\npath = os.path.abspath('a.txt')"
    )
    _, deeper = await printed(tree, base, "open('b.txt', 'w').write('b')")
    text, _ = await printed(tree, deeper, "print(open(path).read(), sorted(os.listdir('.')))")
    assert text == "a ['.branches', 'a.txt', 'b.txt']\n"


async def test_inputs_are_there_in_every_state(zygote, tmp_path):
    (tmp_path / "in.csv").write_text("a\n5\n")
    async with SnapshotTree(zygote, inputs={"data.csv": tmp_path / "in.csv"}) as tree:
        node = tree.root
        for _ in range(3):
            text, node = await printed(tree, node, "print(open('data.csv').read())")
            assert text == "a\n5\n\n"


async def test_a_way_deeper_than_the_layers_of_the_system_goes_on(tree):
    node = tree.root
    for number in range(20):
        _, node = await printed(tree, node, f"x{number} = {number}")
    text, _ = await printed(tree, node, "print(x0 + x19)")
    assert text == "19\n"
    assert node.depth == 20


async def test_states_beyond_the_budget_end_and_come_back(zygote):
    budget = StateBudget(30 << 20)
    async with SnapshotTree(zygote, budget=budget) as tree:
        _, base = await printed(tree, tree.root, "x = 1")
        nodes = []
        for number in range(4):
            code = f"y = {number}; block = bytearray(b'1' * (10 << 20))"
            nodes.append((await printed(tree, base, code))[1])
        assert budget.evictions > 0
        assert budget.used_bytes <= budget.limit_bytes
        for number, node in enumerate(nodes):
            text, _ = await printed(tree, node, "print(x, y, len(block))")
            assert text == f"1 {number} {10 << 20}\n"
        assert tree.replayed_cells > 0


async def test_a_cell_that_kills_its_process_leaves_the_state_before(tree):
    _, base = await printed(tree, tree.root, "x = 1")
    result, after = await tree.run(base, "import os; getattr(os, 'ki' + 'll')(os.getpid(), 9)")
    assert result.status is CellStatus.KILLED
    assert "not kept" in result.message
    assert after is base
    assert (await printed(tree, base, "print(x)"))[0] == "1\n"


async def test_a_state_that_is_killed_from_outside_is_built_again(tree):
    _, base = await printed(tree, tree.root, "x = 1")
    psutil.Process(base.state.kernel_pid).kill()
    await base.state.dead.wait()
    assert (await printed(tree, base, "print(x)"))[0] == "1\n"


async def test_temporary_files_go_with_their_state(tree):
    code = "import tempfile\nfile = tempfile.NamedTemporaryFile(delete=False)\nfile.close()"
    _, base = await printed(tree, tree.root, code)
    _, after = await printed(tree, base, "x = 1")
    folder, kept = base.state.folder, after.state.folder
    assert len(list((folder / TEMPORARY).iterdir())) == 1
    await tree.end(base)
    assert not (folder / TEMPORARY).exists()
    assert kept.is_dir()
    assert (await printed(tree, after, "print(x)"))[0] == "1\n"


async def test_a_fork_that_hangs_leaves_no_task(tree, monkeypatch):
    _, base = await printed(tree, tree.root, "x = 1")
    monkeypatch.setattr(live_state, "FORK_TIMEOUT_S", 0.2)
    before, state = asyncio.all_tasks(), base.state
    os.kill(state.kernel_pid, signal.SIGSTOP)
    try:
        forked = await SnapshotProcess.fork(state, state.folder / "new", Limits(), state.context)
    finally:
        os.kill(state.kernel_pid, signal.SIGCONT)
    assert forked is None
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    monkeypatch.undo()
    assert (await printed(tree, base, "print(x)"))[0] == "1\n"


async def test_without_its_first_state_a_tree_can_not_go_on(zygote):
    async with SnapshotTree(zygote) as tree:
        await tree._first.kill()
        with pytest.raises(KernelStartError, match="first state"):
            await tree.run(tree.root, "1")
    with pytest.raises(SessionClosedError):
        await tree.run(tree.root, "1")


def programs(tree):
    """What runs in the tree and is no state."""
    return list(tree._context._orphans())


CHILD = """
import multiprocessing, time
fork = multiprocessing.get_context('fork')
fork.Process(target=time.sleep, args=(300,), daemon=True).start()
x = 1
"""
DAEMON = """
import os, time
fork = getattr(os, "fo" + "rk")  # past the screen
if fork() == 0:
    os.setsid()
    if fork() == 0:
        {work}
        time.sleep(300)
    getattr(os, "_ex" + "it")(0)
os.wait()
x = 1
"""
FOSTERED = "import ctypes\nassert getattr(ctypes, 'CD' + 'LL')(None).prctl(36, 1, 0, 0, 0) == 0"
"""The process becomes the parent of what those after it leave behind."""


@pytest.mark.parametrize("code", [CHILD, DAEMON.format(work="")], ids=["child", "daemon"])
async def test_a_program_that_goes_on_does_not_wait_unwatched(tree, code):
    _, base = await printed(tree, tree.root, code)
    assert base.state is None
    assert programs(tree) == []
    assert (await printed(tree, base, "print(x)"))[0] == "1\n"


@pytest.mark.parametrize("before", ["pass", FOSTERED], ids=["", "fostered"])
async def test_a_daemon_counts_for_the_cell_that_made_it(zygote, before):
    limits = Limits(wall_s=20.0, memory_bytes=400 << 20, processes=8)
    async with SnapshotTree(zygote, limits) as tree:
        _, base = await printed(tree, tree.root, before)
        hoard = "block = bytearray(b'1' * (600 << 20))"
        crowd = "any(fork() == 0 for _ in range(10))"
        for work, status in ((hoard, CellStatus.MEMORY), (crowd, CellStatus.KILLED)):
            code = f"{DAEMON.format(work=work)}\ntime.sleep(15)"
            result, after = await tree.run(base, code)
            assert (result.status, after) == (status, base), result.message
            await until(lambda: not programs(tree), "the daemon has ended")
        assert (await printed(tree, base, "print(1)"))[0] == "1\n"


async def test_a_sibling_and_what_it_starts_count_for_no_other(zygote):
    limits = Limits(wall_s=20.0, processes=8)
    code = (
        "import multiprocessing, time\nfork = multiprocessing.get_context('fork')\n"
        "child = fork.Process(target=time.sleep, args=(1,)); child.start(); child.join()"
    )
    async with SnapshotTree(zygote, limits) as tree:
        _, base = await printed(tree, tree.root, "x = 1")
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(tree.run(base, code)) for _ in range(10)]
        assert {run.result()[0].status for run in runs} == {CellStatus.OK}


FILL = """
import os, time
for number in range(40):
    with open(os.path.expanduser(f"{place}/file{{number}}"), "wb") as file:
        file.write(os.urandom(1 << 20))
"""


async def test_files_in_the_home_folder_count_for_all_cells_together(zygote):
    async with SnapshotTree(zygote, Limits(wall_s=20.0, disk_bytes=60 << 20)) as tree:
        _, base = await printed(tree, tree.root, FILL.format(place="~"))
        more = FILL.format(place="~/more") + "\ntime.sleep(15)"
        result, after = await tree.run(base, "import os; os.mkdir(os.path.expanduser('~/more'))")
        result, after = await tree.run(base, more)
        assert (result.status, after) == (CellStatus.KILLED, base)
        assert "60 MiB" in result.message
        # Longer than the watchdog's pause: it looks at the folders again.
        text, _ = await printed(tree, base, "import os, time; time.sleep(1.5)\nprint(1)")
        assert text == "1\n"  # there is room again


async def test_files_of_a_state_that_goes_on_count_all_together(zygote):
    async with SnapshotTree(zygote, Limits(wall_s=20.0, disk_bytes=60 << 20)) as tree:
        _, base = await printed(tree, tree.root, "log = open('log', 'w')")
        _, base = await printed(tree, base, FILL.format(place="."))
        more = FILL.format(place="./more") + "\ntime.sleep(15)"
        result, _ = await tree.run(base, f"import os; os.mkdir('more')\n{more}")
        assert result.status is CellStatus.KILLED
        assert "60 MiB" in result.message
