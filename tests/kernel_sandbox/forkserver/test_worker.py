"""A forked worker from start to close: results, limits, deaths, hostile bytes, what is left."""

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from kernel_sandbox.confine.cgroup_tree import PREFIX
from kernel_sandbox.confine.cgroups import delegate
from kernel_sandbox.confine.layers import Layer
from kernel_sandbox.errors import (
    ContainmentError,
    KernelStartError,
    SandboxError,
    SessionClosedError,
    WorkspaceError,
)
from kernel_sandbox.files.workspace import Workspace
from kernel_sandbox.forkserver.worker_process import WorkerOptions, WorkerProcess
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import MIB, Display, Limits, Stream
from kernel_sandbox.types import CellStatus as Status
from tests.kernel_sandbox.running import SLEEPING, begun
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def zygote(tmp_path_factory):
    tmp_path_factory.getbasetemp()  # made before the place for temporary files changes
    folder = tempfile.mkdtemp(prefix="t-", dir="/tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        async with Zygote(("numpy", "pandas", "no_such_module")) as warm:
            yield warm
        assert list(Path(folder).iterdir()) == []
    Path(folder).rmdir()


@pytest_asyncio.fixture(loop_scope="module")
async def open_worker(zygote):
    workers = []

    async def start(*args, **kwargs):
        worker = CellWorker(zygote, *args, **kwargs)
        workers.append(worker)
        return await worker.__aenter__()

    yield start
    for worker in workers:
        await worker.close()
    left = psutil.Process(zygote.pid).children(recursive=True)
    assert (await asyncio.to_thread(psutil.wait_procs, left, PATIENCE_S))[1] == []


def value(result):
    return result.outputs[-1].data["text/plain"]


async def test_value_streams_and_error_are_those_of_a_kernel(open_worker):
    worker = await open_worker()
    result = await worker.run("1+1")
    assert result.outputs == (Display({"text/plain": "2"}, {}, 1),)
    assert (result.ok, result.execution_count) == (True, 1)
    assert result.seconds > 0
    assert result.peak_bytes > 10 * MIB
    code = "import sys\nprint('Łódź ☃'); print('bad', file=sys.stderr); print('b')\n1/0"
    result = await worker.run(code)
    assert result.outputs[:2] == (Stream("stdout", "Łódź ☃\nb\n"), Stream("stderr", "bad\n"))
    assert (result.status, result.error.name) == (Status.ERROR, "ZeroDivisionError")
    assert not result.state_lost


async def test_libraries_are_there_before_a_cell_imports_them(open_worker):
    worker = await open_worker()
    result = await worker.run(
        "import sys\n'pandas' in sys.modules, 'no_such_module' in sys.modules"
    )
    assert value(result) == "(True, False)"


async def test_every_layer_that_this_machine_has_holds(open_worker):
    worker = await open_worker()
    assert worker.containment.missing(("rlimits", "seccomp", "no_new_privs", "environment")) == ()
    result = await worker.run("import os\nsorted(os.listdir('/proc/self/fd'))[:4], os.getpid()")
    assert value(result).startswith("(['0', '1', '2', '3'], ")
    assert psutil.Process(worker.pid).name().startswith("python")


async def test_workers_draw_different_random_numbers(open_worker):
    code = "import random, numpy\nrandom.random(), numpy.random.rand()"
    drawn = [value(await (await open_worker()).run(code)) for _ in range(2)]
    assert drawn[0] != drawn[1]


async def test_inputs_are_read_by_name_and_new_files_stay_in_the_workspace(open_worker, tmp_path):
    (tmp_path / "real.csv").write_text("a\n1\n")
    worker = await open_worker(inputs={"data.csv": tmp_path / "real.csv"})
    result = await worker.run("import pandas as pd\nprint(pd.read_csv('data.csv').a.sum())")
    assert result.stdout == "1\n"
    await worker.run("open('new.txt', 'w').write('x')")
    assert [path.name for path in worker.workspace.new_files()] == ["new.txt"]


async def test_a_worker_can_not_see_its_parent_or_reach_a_network(open_worker):
    worker = await open_worker(screened=False)
    result = await worker.run("import os\nlen([p for p in os.listdir('/proc') if p.isdigit()])")
    assert int(value(result)) <= 2
    code = "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=5)"
    assert (await worker.run(code)).error.name in ("OSError", "PermissionError")


async def test_what_programs_and_libraries_print_arrives_with_the_cell(open_worker):
    worker = await open_worker(screened=False)
    code = (
        "import os, subprocess\nprint('first', flush=True)\n"
        "subprocess.run(['echo', 'second'])\nprint('third', flush=True)\nos.write(2, b'\\xff!')"
    )
    result = await worker.run(code)
    # A program writes past the stream of the cell: only a parent that keeps up knows the order.
    assert sorted(result.stdout.split()) == ["first", "second", "third"]
    assert result.stderr == "\ufffd!"


async def test_prints_of_a_forked_process_arrive_and_break_nothing(open_worker):
    worker = await open_worker(screened=False)
    code = (
        "import multiprocessing\ncontext = multiprocessing.get_context('fork')\n"
        "pool = [context.Process(target=print, args=('x' * 5000,)) for _ in range(3)]\n"
        "for p in pool: p.start()\nfor p in pool: p.join()"
    )
    assert (await worker.run(code)).stdout.count("x") == 15_000
    result = await worker.run("import os\nif os.fork() == 0: print('child')\nelse: os.wait()")
    assert result.ok
    assert value(await worker.run("1+1")) == "2"


async def test_output_beyond_the_limit_is_cut_and_counted(open_worker):
    worker = await open_worker(Limits(output_bytes=1000))
    result = await worker.run("print('x' * 3000)\n1/0")
    assert (len(result.stdout), result.cut_bytes) == (1000, 2001)
    assert result.error.name == "ZeroDivisionError"


FLOODS = {
    "lines": "while True:\n    print('y' * 1000)",
    "descriptor": "import os\nwhile True:\n    os.write(1, b'y' * 1000)",
    "displays": "from IPython.display import display\nwhile True:\n    display('y' * 1000)",
}


@pytest.mark.parametrize("code", FLOODS.values(), ids=FLOODS)
async def test_a_flood_interrupts_the_cell_and_keeps_the_state(open_worker, code):
    worker = await open_worker(Limits(output_bytes=10_000))
    result = await worker.run(f"x = 7\n{code}")
    assert (result.status, result.state_lost) == (Status.ERROR, False)
    assert "interrupted" in result.message
    assert result.cut_bytes > 80_000
    assert value(await worker.run("x")) == "7"


LARGE = {
    "text": "print('z' * (40 << 20))",
    "display": "from IPython.display import HTML, display\ndisplay(HTML('z' * (20 << 20)))",
    "error": "raise ValueError('z' * (20 << 20))",
}


@pytest.mark.parametrize("code", LARGE.values(), ids=LARGE)
async def test_an_output_too_large_to_take_is_counted_and_the_state_kept(open_worker, code):
    worker = await open_worker()
    result = await worker.run(f"x = 7\n{code}")
    assert result.cut_bytes >= 16 * MIB
    assert not result.state_lost
    assert value(await worker.run("x")) == "7"


async def test_a_cell_too_long_to_send_is_an_error(open_worker):
    worker = await open_worker(screened=False)
    result = await worker.run("#" * (17 << 20))
    assert result.error.name == "ValueError"
    assert (await worker.run("1")).ok


async def test_a_refused_snippet_never_runs(open_worker):
    worker = await open_worker()
    assert (await worker.run("import os\nos.system('ls')")).status is Status.DENIED
    assert worker.containment.is_active("screen")


@both
async def test_a_cell_past_its_time_is_interrupted_and_the_state_kept(open_worker, isolate):
    worker = await open_worker(Limits(wall_s=2.5), isolate=isolate)
    result = await worker.run("x = 3\nimport time\nprint('on')\ntime.sleep(60)")
    assert (result.status, result.state_lost) == (Status.TIMEOUT, False)
    assert result.stdout == "on\n"
    assert result.error.name == "KeyboardInterrupt"
    assert value(await worker.run("x")) == "3"


@pytest.mark.slow
async def test_a_cell_that_ignores_interrupts_is_killed_and_its_lines_kept(open_worker):
    worker = await open_worker(Limits(wall_s=2.5))
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('on')\nwhile 1: pass"
    result = await worker.run(code)
    assert (result.status, result.state_lost) == (Status.TIMEOUT, True)
    assert result.stdout == "on\n"
    again = await worker.run("1")
    assert (again.ok, again.execution_count, again.message) == (True, 1, "")


@both
async def test_memory_above_the_limit_ends_the_worker(open_worker, isolate):
    worker = await open_worker(Limits(memory_bytes=300 * MIB), isolate=isolate)
    result = await worker.run("print('in')\nhoard = [bytearray(32 << 20) for _ in range(60)]")
    assert (result.status, result.state_lost) == (Status.MEMORY, True)
    assert "300 MiB" in result.message
    assert result.stdout == "in\n"
    assert (await worker.run("1+1")).ok


async def test_one_allocation_that_can_not_fit_keeps_the_state(open_worker):
    worker = await open_worker(Limits(memory_bytes=1024 * MIB))
    result = await worker.run("x = 1\nimport numpy as np\nnp.ones(10**10)")
    assert (result.status, result.state_lost) == (Status.MEMORY, False)
    assert (await worker.run("x")).ok


@pytest.mark.slow
async def test_processor_time_is_limited(open_worker):
    worker = await open_worker(Limits(cpu_s=2))
    result = await worker.run("while True: pass")
    assert "2 s of processor time" in result.message


DEATHS = {
    "kill": ("os.kill(os.getpid(), 9)", "ended from outside"),
    "segfault": ("import ctypes\nctypes.string_at(0)", "the kernel crashed"),
    "exit": ("os._exit(7)", "status 7"),
    "deaf": ("os.closerange(0, 100)", ""),
}


@both
@pytest.mark.parametrize(("code", "sign"), DEATHS.values(), ids=DEATHS)
async def test_a_worker_that_dies_is_told_at_once(open_worker, isolate, code, sign):
    worker = await open_worker(isolate=isolate, screened=False)
    async with asyncio.timeout(PATIENCE_S):  # long before the cell's own time is over
        result = await worker.run("import os\nprint('before')\n" + code)
    assert (result.status, result.state_lost) == (Status.KILLED, True)
    assert result.stdout == "before\n"
    assert sign in result.message
    assert (await worker.run("1+1")).execution_count == 1


async def test_a_worker_killed_from_outside_is_told_at_once_or_with_the_next_cell(open_worker):
    worker = await open_worker()
    running = asyncio.create_task(worker.run(SLEEPING))
    await begun(running, worker.workspace.path)
    os.kill(worker.pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        assert (await running).status is Status.KILLED
    await worker.run("x = 1")
    os.kill(worker.pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        await worker._kernel.dead.wait()
    assert worker.pid is None
    result = await worker.run("'x' in globals()")
    assert value(result) == "False"
    assert "empty one" in result.message


async def test_asking_to_exit_ends_the_worker_after_the_cell(open_worker):
    worker = await open_worker(screened=False)
    assert (await worker.run("exit")).ok
    async with asyncio.timeout(PATIENCE_S):
        await worker._kernel.dead.wait()
    assert "empty one" in (await worker.run("1")).message


HOSTILE = {
    "noise": "b'\\xff' * 100_000",
    "too long": "(2**31).to_bytes(4, 'big') + b'x' * 1000",
    "no json": "(3).to_bytes(4, 'big') + b'}{!'",
    "no object": "(2).to_bytes(4, 'big') + b'[]'",
    "too deep": "(200_000).to_bytes(4, 'big') + b'[' * 200_000",
    "too many": "(6_000_000).to_bytes(4, 'big') + b'[],' * 2_000_000",
    "wrong shape": (
        "(lambda m: len(m).to_bytes(4, 'big') + m)"
        '(b\'{"kind": "stream", "content": {"name": [], "text": 5}}\')'
    ),
    "fewer than no bytes cut": (
        "(lambda m: len(m).to_bytes(4, 'big') + m)"
        '(b\'{"kind": "cut", "content": {"bytes": -5}}\')'
    ),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
async def test_bytes_that_are_no_message_end_the_worker_and_nothing_else(open_worker, data):
    worker = await open_worker(screened=False)
    code = f"import os, time\ndata = {data}\nwhile data: data = data[os.write(3, data):]"
    result = await worker.run(f"{code}\ntime.sleep(60)")
    assert (result.status, result.state_lost) == (Status.KILLED, True)
    assert "broke the rules" in result.message
    assert value(await worker.run("1+1")) == "2"


FORGE = """
import json, os, time
def forge(kind, **content):
    data = json.dumps({"kind": kind, "content": content}).encode()
    os.write(3, len(data).to_bytes(4, "big") + data)
"""


async def test_forged_replies_end_the_cell_and_confuse_no_other(open_worker):
    worker = await open_worker(Limits(wall_s=5), screened=False)
    await worker.run(FORGE)
    forged = "[forge('reply', id=n, status='ok', execution_count=99) for n in range(-3, 3)]"
    result = await worker.run(f"x = 1\n{forged}\ntime.sleep(0.3)\nprint('late')")
    assert (result.ok, result.execution_count) == (True, 99)
    result = await worker.run("print('next', x)")
    assert "next 1" in result.stdout


async def test_forged_outputs_are_taken_as_outputs_and_no_more(open_worker):
    worker = await open_worker(Limits(output_bytes=10_000), screened=False)
    await worker.run(FORGE)
    code = (
        "forge('display_data', data={'text/html': 'y'}, metadata={})\n"
        "forge('ready', layers=[]); forge('started'); forge('cut', bytes=0)\n"
        "forge('run', id=1, source='x'); forge('update_display_data', data={}, metadata={})"
    )
    result = await worker.run(code)
    assert result.outputs == (Display({"text/html": "y"}, {}),)
    assert result.cut_bytes == 0
    result = await worker.run("forge('cut', bytes=10**9)\ntime.sleep(60)")
    assert result.cut_bytes == 10**9
    assert not result.state_lost


STOPPED = [
    "while True: pass",
    "import asyncio\nawait asyncio.sleep(60)",
    "1+1",
    "print('x' * 10**6)",
]


@pytest.mark.parametrize("code", STOPPED, ids=["spins", "awaits", "short", "writes"])
async def test_interrupts_at_any_moment_keep_the_state(open_worker, code):
    worker = await open_worker(Limits(wall_s=10))
    await worker.interrupt()  # nothing runs: nothing happens
    await worker.run("x = 1")
    for delay_s in (0, 0.001, 0.003, 0.006):
        running = asyncio.create_task(worker.run(code))
        await asyncio.sleep(delay_s)  # any moment will do
        await worker.interrupt()
        assert (await running).status in (Status.INTERRUPTED, Status.OK)
        result = await worker.run("print(x)")
        assert (result.stdout, result.message) == ("1\n", "")


INTERRUPTED = {
    "before its first line": (
        "import asyncio, signal\nloop = asyncio.get_running_loop()\n"
        "loop.call_soon(loop.call_soon, signal.raise_signal, signal.SIGINT)",
        "print('late')",
    ),
    "before it awaits": (
        "import asyncio, signal\nensure = asyncio.ensure_future\ndef pressed(cell):\n"
        "    asyncio.ensure_future = ensure\n    task = ensure(cell)\n"
        "    signal.raise_signal(signal.SIGINT)\n    return task\n"
        "asyncio.ensure_future = pressed",
        "import asyncio\nprint('late')\nawait asyncio.sleep(0)",
    ),
}


@pytest.mark.parametrize(("prepare", "code"), INTERRUPTED.values(), ids=INTERRUPTED)
async def test_a_cell_interrupted_before_it_runs_never_runs(open_worker, prepare, code):
    worker = await open_worker(screened=False)
    assert (await worker.run(f"x = 1\n{prepare}")).ok
    result = await worker.run(code)
    assert (result.status, result.stdout, result.state_lost) == (Status.ERROR, "", False)
    result = await worker.run("print(x)")
    assert (result.status, result.stdout) == (Status.OK, "1\n")


@pytest.mark.parametrize("runs", [False, True], ids=["sent", "runs"])
async def test_cancelling_the_caller_stops_the_cell_and_keeps_the_state(open_worker, runs):
    worker = await open_worker()
    await worker.run("x = 1")
    running = asyncio.create_task(worker.run(f"x = 2\n{SLEEPING}"))
    await (begun(running, worker.workspace.path) if runs else asyncio.sleep(0))
    running.cancel()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(asyncio.CancelledError):
            await running
    result = await worker.run("print(x)")
    assert result.stdout in ("1\n", "2\n")
    assert result.message == ""


async def test_cells_sent_together_run_one_after_the_other(open_worker):
    worker = await open_worker()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(worker.run(f"print({i})")) for i in range(4)]
    assert [task.result().stdout for task in tasks] == ["0\n", "1\n", "2\n", "3\n"]


async def test_many_workers_live_side_by_side(open_worker):
    async with asyncio.TaskGroup() as group:
        starts = [group.create_task(open_worker()) for _ in range(6)]
    workers = [start.result() for start in starts]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(w.run(f"x = {i}\nx")) for i, w in enumerate(workers)]
    assert [value(task.result()) for task in tasks] == [str(i) for i in range(6)]
    assert len({worker.pid for worker in workers}) == 6


async def test_restart_gives_an_empty_worker_and_ends_a_running_cell(open_worker):
    worker = await open_worker()
    first = worker.pid
    running = asyncio.create_task(worker.run(f"x = 1\n{SLEEPING}"))
    await begun(running, worker.workspace.path)
    await worker.restart()
    assert (await running).state_lost
    assert worker.pid not in (None, first)
    assert (await worker.run("x")).error.name == "NameError"


async def test_close_is_safe_to_repeat_and_ends_a_running_cell(open_worker):
    worker = await open_worker()
    running = asyncio.create_task(worker.run(SLEEPING))
    await begun(running, worker.workspace.path)
    await worker.close()
    await worker.close()
    assert (await running).status is Status.KILLED
    with pytest.raises(SessionClosedError):
        await worker.run("1")


async def test_cancelling_the_start_leaves_nothing(zygote):
    async with CellWorker(zygote):  # what is found out once is known from here on
        pass
    for delay_s in (0, 0.005, 0.02, 0.04):
        worker = CellWorker(zygote)
        starting = asyncio.create_task(worker.__aenter__())
        await asyncio.sleep(delay_s)  # any moment will do
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        if starting.cancelled():
            assert worker.pid is None
        await worker.close()
        left = psutil.Process(zygote.pid).children(recursive=True)
        assert (await asyncio.to_thread(psutil.wait_procs, left, PATIENCE_S))[1] == []


@pytest.mark.slow
async def test_requests_wait_for_a_zygote_that_is_busy(open_worker, zygote):
    os.kill(zygote.pid, signal.SIGSTOP)
    try:
        starting = [asyncio.create_task(open_worker()) for _ in range(60)]
        await until(lambda: len(zygote._starting) >= 60, "all have asked")
        assert zygote._sending.locked()  # its socket takes no more
        starting.pop().cancel()
    finally:
        os.kill(zygote.pid, signal.SIGCONT)
    assert len({(await worker).pid for worker in starting}) == 59


async def test_requests_that_wait_end_with_their_zygote():
    async with Zygote(()) as zygote:
        os.kill(zygote.pid, signal.SIGSTOP)
        workers = [CellWorker(zygote) for _ in range(40)]
        starting = [asyncio.create_task(worker.__aenter__()) for worker in workers]
        await until(lambda: len(zygote._starting) >= 40, "all have asked")
        os.kill(zygote.pid, signal.SIGKILL)
        for start in starting:
            with pytest.raises(KernelStartError, match="zygote ended; try again"):
                await start
        async with CellWorker(zygote) as worker:
            assert (await worker.run("1")).ok


async def test_required_layers_are_checked(zygote):
    with pytest.raises(ContainmentError, match="no such layer: moat"):
        CellWorker(zygote, require=("moat",))
    strict = CellWorker(zygote, require=("network_namespace",), isolate=False)
    with pytest.raises(ContainmentError, match="network_namespace is off"):
        await strict.__aenter__()


async def test_a_bad_input_is_named(zygote, tmp_path):
    with pytest.raises(WorkspaceError, match=r"'data\.csv' is missing"):
        await CellWorker(zygote, inputs={"data.csv": tmp_path / "no.csv"}).__aenter__()


async def test_more_inputs_than_a_request_holds_are_named(zygote, tmp_path):
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    names = [f"{number}-{'y' * 200}" for number in range(500)]
    for name in names:
        (folder / name).touch()
    many = {name: folder / name for name in names}
    with pytest.raises(KernelStartError, match=r"has \d+ bytes.*fewer inputs"):
        await CellWorker(zygote, inputs=many).__aenter__()


async def test_a_worker_that_does_not_come_up_says_its_last_words(zygote, tmp_path):
    workspace = Workspace({})
    workspace.remove()
    worker = WorkerProcess(zygote, Limits(), workspace, WorkerOptions())
    with pytest.raises(SandboxError, match="not started"):
        _ = worker.channel
    assert worker.finish_cell() is None
    workspace.path = tmp_path / "gone"
    with pytest.raises(KernelStartError, match=r"(?s)status 1.*FileNotFoundError"):
        await worker.start()
    await worker.stop()


async def test_a_worker_that_is_too_slow_is_given_up(open_worker, monkeypatch):
    monkeypatch.setattr("kernel_sandbox.forkserver.worker_process.START_TIMEOUT_S", 0.001)
    with pytest.raises(KernelStartError, match="did not answer"):
        await open_worker()


@both
async def test_a_daemon_does_not_outlive_its_worker(open_worker, isolate, zygote):
    worker = await open_worker(isolate=isolate, screened=False)
    code = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n"
        "        os._exit(0)\n    time.sleep(300)\nos.wait()"
    )
    everything = psutil.Process(zygote._process.pid)
    before = set(everything.children(recursive=True))
    assert (await worker.run(code)).ok
    assert len(set(everything.children(recursive=True)) - before) == 1
    await worker.close()
    assert set(everything.children(recursive=True)) < before


def descriptors(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


async def test_a_fork_that_fails_ends_no_other_worker():
    async with Zygote(()) as zygote, CellWorker(zygote) as other:
        await other.run("x = 1")
        pid, least = zygote.pid, descriptors(zygote.pid)
        had = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        refused = []
        for more in range(8):  # one step of the way to a worker after another fails
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (least + more, had[1]))
            try:
                async with CellWorker(zygote) as worker:
                    assert (await worker.run("1")).ok
            except KernelStartError as error:
                refused.append(str(error))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, had)
        assert any("could not fork a worker: [Errno 24]" in text for text in refused)
        assert (await other.run("print(x)")).stdout == "1\n"
        async with CellWorker(zygote) as worker:
            assert (await worker.run("1")).ok
        assert (zygote.pid, descriptors(pid)) == (pid, least)


async def test_without_its_jailer_a_zygote_goes_on():
    async with Zygote(()) as zygote, CellWorker(zygote) as worker:
        zygote_process = psutil.Process(zygote.pid)
        siblings = set(psutil.Process(zygote._process.pid).children()) - {zygote_process}
        if not siblings:
            pytest.skip("this machine has no jails")
        for jailer in siblings:
            jailer.kill()
        async with asyncio.timeout(PATIENCE_S):
            await worker._kernel.dead.wait()
        async with CellWorker(zygote) as another:
            assert (await another.run("print(1)")).stdout == "1\n"
            assert "namespace" in str(another.containment)
        assert zygote.pid == zygote_process.pid


async def test_a_zygote_that_dies_takes_its_workers_and_is_replaced():
    async with Zygote(()) as zygote:
        worker = CellWorker(zygote)
        async with worker:
            process = psutil.Process(worker.pid)
            os.kill(zygote.pid, signal.SIGKILL)
            async with asyncio.timeout(PATIENCE_S):
                await worker._kernel.dead.wait()
            _, alive = await asyncio.to_thread(psutil.wait_procs, [process], PATIENCE_S)
            assert alive == []
            result = await worker.run("1+1")
            assert (value(result), "empty one" in result.message) == ("2", True)
    with pytest.raises(SessionClosedError, match="zygote is closed"):
        await CellWorker(zygote).__aenter__()
    await zygote.close()


async def test_a_zygote_that_does_not_come_up_says_why(monkeypatch):
    monkeypatch.setattr("kernel_sandbox.forkserver.zygote_client.WARM_TIMEOUT_S", 0.01)
    with pytest.raises(KernelStartError, match="not ready"):
        await Zygote(()).__aenter__()
    monkeypatch.undo()
    with pytest.raises(KernelStartError, match=r"(?s)Last output:.*TypeError"):
        await Zygote((".relative",)).__aenter__()
    with pytest.raises(KernelStartError, match="could not be started"):
        await Zygote(("\ud800",)).__aenter__()


PARENT = """
import asyncio, sys
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.forkserver.zygote_client import Zygote
async def main():
    async with Zygote(()) as zygote, CellWorker(zygote, isolate=sys.argv[1] == "True") as worker:
        folders = [zygote._folder.path, worker._kernel._folder.path, worker.workspace.path]
        print(zygote.pid, worker.pid, worker._kernel._process.pid, *folders, flush=True)
        await worker.run("import time\\ntime.sleep(300)")
asyncio.run(main())
"""


@both
async def test_everything_dies_with_a_parent_that_is_killed(isolate):
    import shutil

    command = [sys.executable, "-c", PARENT, str(isolate)]
    parent = subprocess.Popen(  # noqa: ASYNC220 (only its end is waited for)
        command, stdout=subprocess.PIPE, text=True
    )
    told = (await asyncio.to_thread(parent.stdout.readline)).split()
    processes = [psutil.Process(int(pid)) for pid in told[:3]]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, PATIENCE_S)
    assert alive == []
    for folder in told[3:]:  # a killed parent can't tidy up: the test does
        shutil.rmtree(folder)


@both
async def test_a_worker_is_counted_however_long_that_takes_to_arrange(
    open_worker, isolate, monkeypatch
):
    """A worker is forked by its monitor, which a slow machine lets happen first."""
    if isinstance(group := delegate("probe", Limits()), Layer):
        pytest.skip(f"no control group here: {group.reason}")
    group.remove()
    spawn = Zygote.spawn

    async def spawn_and_wait(*arguments):
        process = await spawn(*arguments)
        await asyncio.sleep(0.3)  # the slow machine
        return process

    monkeypatch.setattr(Zygote, "spawn", spawn_and_wait)
    worker = await open_worker(isolate=isolate)
    assert PREFIX in Path(f"/proc/{worker.pid}/cgroup").read_text()


async def test_a_folder_that_a_worker_must_not_write_is_refused(open_worker, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WorkspaceError, match="Give one below it"):
        await open_worker(Limits(writable_dir=tmp_path))
