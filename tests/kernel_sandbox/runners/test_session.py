"""A session from start to close: results, limits, deaths, cancellation."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import psutil
import pytest

from kernel_sandbox import environment
from kernel_sandbox.confine import system_paths
from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.probe import Probe
from kernel_sandbox.errors import (
    ContainmentError,
    KernelStartError,
    SessionClosedError,
    WorkspaceError,
)
from kernel_sandbox.jupyter.live import LiveKernel
from kernel_sandbox.jupyter.provisioner import SandboxProvisioner
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import MIB, CellError, CellStatus, Display, Limits, Stream
from tests.kernel_sandbox.running import SLEEPING, begun
from tests.waiting import PATIENCE_S, until

both = pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
ONE_GIB = Limits(memory_bytes=1024 * MIB)


async def test_value_of_last_expression_is_a_display_with_count(open_session):
    session = await open_session()
    result = await session.run("1+1")
    assert result.ok
    assert result.outputs == (Display({"text/plain": "2"}, {}, 1),)
    assert result.execution_count == 1
    assert result.seconds > 0
    assert result.peak_bytes > 10 * MIB


async def test_variables_live_from_cell_to_cell_and_streams_keep_their_order(open_session):
    session = await open_session()
    await session.run("name = 'Łódź ☃ 數據'")
    code = (
        "import sys\nprint(name); print('a')\nsys.stdout.flush()\n"
        "print('bad', file=sys.stderr); sys.stderr.flush()\nprint('b')"
    )
    result = await session.run(code)
    assert result.outputs == (
        Stream("stdout", "Łódź ☃ 數據\na\n"),
        Stream("stderr", "bad\n"),
        Stream("stdout", "b\n"),
    )


async def test_an_exception_is_a_result_and_the_kernel_lives_on(open_session):
    session = await open_session()
    result = await session.run("x = 5\n1/0")
    assert result.status is CellStatus.ERROR
    assert isinstance(result.outputs[-1], CellError)
    assert result.error.name == "ZeroDivisionError"
    assert not result.state_lost
    assert (await session.run("x")).outputs[0].data["text/plain"] == "5"


async def test_syntax_error_is_reported_by_the_kernel(open_session):
    session = await open_session()
    result = await session.run("for")
    assert result.status is CellStatus.ERROR
    assert result.error.name == "SyntaxError"


async def test_figures_tables_and_magics_work(open_session):
    session = await open_session()
    table = await session.run("import pandas as pd\npd.DataFrame({'a': [1]})")
    assert "<table" in table.outputs[0].data["text/html"]
    figure = await session.run(
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()"
    )
    images = [o for o in figure.outputs if isinstance(o, Display) and "image/png" in o.data]
    assert len(images) == 1
    implicit = await session.run("_ = plt.plot([2, 1])")
    assert any("image/png" in output.data for output in implicit.outputs)


@pytest.mark.slow
async def test_the_analysis_stack_fits_into_the_default_limits(open_session):
    session = await open_session()
    code = (
        "import numpy as np, pandas as pd, pyarrow as pa\n"
        "from sklearn.linear_model import LinearRegression\n"
        "frame = pd.DataFrame({'x': np.arange(100.0), 'y': np.arange(100.0) * 3})\n"
        "table = pa.Table.from_pandas(frame)\n"
        "print(table.num_rows, round(LinearRegression().fit(frame[['x']], frame.y).coef_[0], 6))"
    )
    result = await session.run(code)
    assert result.stdout == "100 3.0\n"


async def test_clear_output_and_display_updates_are_followed(open_session):
    session = await open_session()
    code = (
        "from IPython.display import display, clear_output\n"
        "print('gone'); clear_output()\n"
        "h = display('first', display_id=True)\nh.update('second')\nprint('50%\\r100%')"
    )
    result = await session.run(code)
    assert result.outputs[0].data["text/plain"] == "'second'"
    assert result.stdout == "50%\r100%\n"
    waited = await session.run("print('old'); clear_output(wait=True); print('new')")
    assert waited.stdout == "new\n"


async def test_a_million_characters_arrive_whole(open_session):
    session = await open_session()
    result = await session.run("print('x' * 10**6)")
    assert len(result.stdout) == 10**6 + 1
    assert result.cut_bytes == 0


async def test_output_beyond_the_limit_is_cut_and_counted(open_session):
    session = await open_session(Limits(output_bytes=1000))
    result = await session.run("print('x' * 3000)\n1/0")
    assert result.status is CellStatus.ERROR
    assert len(result.stdout) == 1000
    assert result.cut_bytes == 2001
    assert "output were cut" in result.message
    assert result.error.name == "ZeroDivisionError"


async def test_a_flood_interrupts_the_cell_and_keeps_the_state(open_session):
    session = await open_session(Limits(output_bytes=10_000))
    result = await session.run("x = 7\nwhile True:\n    print('y' * 1000)")
    assert result.status is CellStatus.ERROR
    assert "interrupted" in result.message
    assert result.cut_bytes > 80_000
    assert not result.state_lost
    assert (await session.run("x")).ok


async def test_a_message_too_large_to_take_is_dropped_not_waited_for(open_session):
    session = await open_session(Limits(memory_bytes=1024 * MIB))
    await session.run("x = 7")
    result = await asyncio.wait_for(session.run("print('z' * (40 << 20))"), 60)
    assert result.cut_bytes >= 16 * MIB
    assert (await session.run("x")).outputs[0].data["text/plain"] == "7"


@pytest.mark.slow
async def test_a_reply_too_large_to_take_ends_the_cell(open_session):
    session = await open_session(Limits(memory_bytes=1024 * MIB))
    result = await session.run("x = 7\nraise ValueError('z' * (40 << 20))")
    assert result.status is CellStatus.ERROR
    assert "cut" in result.message
    assert (await session.run("x")).ok


async def test_a_refused_snippet_never_runs(open_session):
    session = await open_session()
    result = await session.run("open('trace', 'w').close()\nimport os\nos.system('ls')")
    assert result.status is CellStatus.DENIED
    assert "os.system() on line 3" in result.message
    assert session.workspace.new_files() == ()


async def test_asking_for_input_is_an_error_not_a_wait(open_session):
    session = await open_session()
    result = await session.run("ask = [input]\nask[0]('name? ')")
    assert result.status is CellStatus.ERROR
    assert result.error.name == "StdinNotImplementedError"


@both
async def test_a_cell_past_its_time_is_interrupted_and_the_state_kept(open_session, isolate):
    session = await open_session(Limits(wall_s=2.5), isolate=isolate)
    result = await session.run("x = 3\nimport time\nprint('on', flush=True)\ntime.sleep(60)")
    assert result.status is CellStatus.TIMEOUT
    assert "2.5 s" in result.message
    assert not result.state_lost
    assert result.stdout == "on\n"
    assert (await session.run("x")).ok


@pytest.mark.slow
async def test_a_cell_that_ignores_interrupts_is_killed(open_session):
    session = await open_session(Limits(wall_s=2.5))
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    result = await session.run(code)
    assert result.status is CellStatus.TIMEOUT
    assert result.state_lost
    assert result.cut_bytes == 0  # its end breaks the connection, but it printed nothing
    assert "killed" in result.message
    again = await session.run("1")
    assert again.ok
    assert again.execution_count == 1
    assert again.message == ""


@both
async def test_memory_above_the_limit_ends_the_kernel(open_session, isolate):
    session = await open_session(Limits(memory_bytes=300 * MIB), isolate=isolate)
    result = await session.run("hoard = [bytearray(32 << 20) for _ in range(60)]")
    assert result.status is CellStatus.MEMORY
    assert result.state_lost
    assert "300 MiB" in result.message
    assert result.cut_bytes == 0  # the connection broke, but nothing was printed
    assert result.peak_bytes > 300 * MIB
    assert (await session.run("1+1")).ok


@pytest.mark.slow
async def test_memory_of_several_processes_counts_together(open_session):
    session = await open_session(Limits(memory_bytes=400 * MIB))
    code = (
        "import multiprocessing, time\n"
        "def work(n):\n    hoard = bytearray(150 << 20)\n    time.sleep(30)\n"
        "context = multiprocessing.get_context('fork')\n"
        "pool = [context.Process(target=work, args=(i,)) for i in range(4)]\n"
        "for p in pool: p.start()\nfor p in pool: p.join()"
    )
    result = await session.run(code)
    assert result.status is CellStatus.MEMORY


async def test_one_allocation_that_can_not_fit_keeps_the_state(open_session):
    session = await open_session(ONE_GIB)
    result = await session.run("x = 1\nimport numpy as np\nnp.ones(10**10)")
    assert result.status is CellStatus.MEMORY
    assert not result.state_lost
    assert (await session.run("x")).ok


async def test_too_many_processes_end_the_kernel(open_session):
    session = await open_session(Limits(processes=20))
    code = (
        "import multiprocessing, time\ncontext = multiprocessing.get_context('fork')\n"
        "pool = [context.Process(target=time.sleep, args=(60,)) for _ in range(40)]\n"
        "try:\n    for p in pool: p.start()\n"
        "except OSError: pass  # the system refuses more, before the monitor has looked\n"
        "time.sleep(60)"
    )
    result = await session.run(code)
    assert result.status is CellStatus.KILLED
    assert "n_jobs=1" in result.message
    assert (await session.run("1+1")).ok


@both
@pytest.mark.parametrize(
    ("code", "sign"),
    [
        (
            "kill = getattr(__import__('os'), 'ki' + 'll')\nkill(os.getpid(), 9)",
            "ended from outside",
        ),
        ("p = 'ctypes'\n__import__(p).string_at(0)", "the kernel crashed"),
    ],
    ids=["kill", "segfault"],
)
async def test_a_kernel_that_dies_is_told_at_once(open_session, isolate, code, sign):
    session = await open_session(isolate=isolate)
    async with asyncio.timeout(PATIENCE_S):  # long before the cell's own time is over
        result = await session.run("import os\nprint('before', flush=True)\n" + code)
    assert result.status is CellStatus.KILLED
    assert sign in result.message
    assert result.state_lost
    assert result.cut_bytes == 0  # the connection breaks, too, but nothing was too long
    assert (await session.run("1+1")).execution_count == 1


@both
async def test_a_kernel_killed_from_outside_is_told_at_once(open_session, isolate):
    session = await open_session(isolate=isolate)
    running = asyncio.create_task(session.run(SLEEPING))
    await begun(running, session.workspace.path)
    assert psutil.Process(session.pid).name().startswith("python")
    os.kill(session.pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        result = await running
    assert result.status is CellStatus.KILLED


async def test_a_death_between_cells_is_told_with_the_next(open_session):
    session = await open_session()
    await session.run("x = 1")
    os.kill(session.pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        await session._kernel.dead.wait()
    assert session.pid is None
    result = await session.run("'x' in globals()")
    assert result.outputs[0].data["text/plain"] == "False"
    assert "empty one" in result.message


@pytest.mark.slow
async def test_processor_time_is_limited(open_session):
    session = await open_session(Limits(cpu_s=2))
    result = await session.run("while True: pass")
    assert result.status is CellStatus.KILLED
    assert "2 s of processor time" in result.message


async def test_a_file_too_large_is_an_error(open_session):
    session = await open_session(Limits(file_bytes=1 * MIB))
    result = await session.run("f = open('big', 'wb')\nf.write(b'0' * (4 << 20))\nf.flush()")
    assert result.error.name == "OSError"
    assert "File too large" in result.error.message


async def test_interrupt_ends_the_cell_only(open_session):
    session = await open_session()
    await session.interrupt()  # nothing runs: nothing happens
    running = asyncio.create_task(session.run(f"x = 1\n{SLEEPING}"))
    await begun(running, session.workspace.path)
    await session.interrupt()
    result = await running
    assert result.status is CellStatus.INTERRUPTED
    assert result.error.name == "KeyboardInterrupt"
    assert (await session.run("x")).ok


async def test_an_interrupt_that_a_library_reports_as_its_own_error_is_one(open_session):
    session = await open_session()
    code = f"try:\n{indent(SLEEPING, ' ')}\nexcept KeyboardInterrupt:\n raise OSError from None"
    running = asyncio.create_task(session.run(code))
    await begun(running, session.workspace.path)
    await session.interrupt()
    result = await running
    assert result.status is CellStatus.INTERRUPTED
    assert result.error.name == "OSError"


STOPPED = ["while True: pass", "import asyncio\nawait asyncio.sleep(60)", "1+1"]


@pytest.mark.parametrize("code", STOPPED, ids=["spins", "awaits", "short"])
async def test_interrupts_at_any_moment_keep_the_state(open_session, code):
    session = await open_session(Limits(wall_s=10))
    await session.run("x = 1")
    for delay_s in (0, 0.001, 0.003, 0.006):
        running = asyncio.create_task(session.run(code))
        await asyncio.sleep(delay_s)  # any moment will do
        await session.interrupt()
        assert (await running).status in (CellStatus.INTERRUPTED, CellStatus.OK)
        result = await session.run("print(x)")
        assert (result.stdout, result.message) == ("1\n", "")


@pytest.mark.parametrize("runs", [False, True], ids=["sent", "runs"])
async def test_cancelling_the_caller_stops_the_cell_and_keeps_the_state(open_session, runs):
    session = await open_session()
    await session.run("x = 1")
    running = asyncio.create_task(session.run(f"x = 2\n{SLEEPING}"))
    await (begun(running, session.workspace.path) if runs else asyncio.sleep(0))
    running.cancel()
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(asyncio.CancelledError):
            await running
    result = await session.run("print(x)")
    assert result.stdout in ("1\n", "2\n")
    assert result.message == ""


async def test_cells_sent_together_run_one_after_the_other(open_session):
    session = await open_session()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(session.run(f"print({i})")) for i in range(4)]
    assert [task.result().stdout for task in tasks] == ["0\n", "1\n", "2\n", "3\n"]


async def test_restart_gives_an_empty_kernel_and_ends_a_running_cell(open_session):
    session = await open_session()
    first = session.pid
    running = asyncio.create_task(session.run(f"x = 1\n{SLEEPING}"))
    await begun(running, session.workspace.path)
    await session.restart()
    assert (await running).state_lost
    assert session.pid not in (None, first)
    assert (await session.run("x")).error.name == "NameError"
    assert session.containment.is_active("rlimits")


async def test_close_is_safe_to_repeat_and_ends_a_running_cell(open_session):
    session = await open_session()
    running = asyncio.create_task(session.run(SLEEPING))
    await begun(running, session.workspace.path)
    await session.close()
    await session.close()
    assert (await running).status is CellStatus.KILLED
    with pytest.raises(SessionClosedError):
        await session.run("1")
    with pytest.raises(SessionClosedError):
        await session.restart()
    with pytest.raises(SessionClosedError, match="starts once"):
        await session.__aenter__()


async def test_a_session_that_was_not_started_says_so():
    session = KernelSession()
    with pytest.raises(SessionClosedError, match="not started"):
        await session.run("1")
    with pytest.raises(SessionClosedError, match="async with"):
        _ = session.workspace
    assert session.pid is None
    await session.interrupt()
    await session.close()


async def test_cancelling_the_start_leaves_nothing(open_session):
    starting = asyncio.create_task(open_session())
    base = environment.runtime_base()
    await until(lambda: list(base.iterdir()), "the start has made a folder")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting


async def test_required_layers_are_checked():
    with pytest.raises(ContainmentError, match="no such layer: moat"):
        KernelSession(require=("moat",))
    strict = KernelSession(require=("network_namespace", "screen"), isolate=False)
    with pytest.raises(ContainmentError, match="network_namespace is off"):
        await strict.__aenter__()
    async with KernelSession(require=("network_namespace",)) as session:
        assert session.containment.missing(("network_namespace",)) == ()


async def test_without_namespaces_the_session_runs_and_says_why(open_session, monkeypatch):
    reason = "no permission"
    refused = Probe(False, LayerState.REFUSED, reason)
    monkeypatch.setattr("kernel_sandbox.confine.plan.probe", lambda: refused)
    session = await open_session()
    assert (await session.run("1+1")).ok
    assert session.containment.get("pid_namespace") == Layer("pid_namespace", "refused", reason)
    assert session.containment.is_active("late_seccomp")


async def test_a_bad_input_is_named(tmp_path):
    with pytest.raises(WorkspaceError, match=r"'data\.csv' is missing"):
        await KernelSession(inputs={"data.csv": tmp_path / "no.csv"}).__aenter__()


async def test_a_kernel_that_does_not_come_up_says_its_last_words(open_session, monkeypatch):
    monkeypatch.setattr(SandboxProvisioner, "_readable", lambda self: (Path("/no/such"),))
    with pytest.raises(KernelStartError, match="Last output:"):
        await open_session()


async def test_a_kernel_that_is_too_slow_is_given_up(open_session, monkeypatch):
    monkeypatch.setattr("kernel_sandbox.jupyter.live.START_TIMEOUT_S", 0.05)
    with pytest.raises(KernelStartError, match="did not answer"):
        await open_session()


async def test_an_unstarted_kernel_has_no_channels(tmp_path):
    from kernel_sandbox.errors import SandboxError
    from kernel_sandbox.files.workspace import Workspace

    kernel = LiveKernel(Limits(), Workspace({}, tmp_path), isolate=True)
    with pytest.raises(SandboxError, match="not started"):
        _ = kernel.channel
    await kernel.stop()


PARENT = """
import asyncio, sys
from kernel_sandbox.runners.session import KernelSession
async def main():
    async with KernelSession(isolate=sys.argv[1] == "True") as session:
        print(session.pid, session._kernel.provisioner.run_dir, session.workspace.path, flush=True)
        await session.run("import time\\ntime.sleep(300)")
asyncio.run(main())
"""


@both
async def test_kernels_die_with_a_parent_that_is_killed(isolate):
    import shutil

    command = [sys.executable, "-c", PARENT, str(isolate)]
    parent = subprocess.Popen(  # noqa: ASYNC220 (only its end is waited for)
        command, stdout=subprocess.PIPE, text=True
    )
    kernel, *folders = (await asyncio.to_thread(parent.stdout.readline)).split()
    process = psutil.Process(int(kernel))
    assert process.is_running()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _, alive = await asyncio.to_thread(psutil.wait_procs, [process], PATIENCE_S)
    assert alive == []
    for folder in folders:  # a killed parent can't tidy up: the test does
        shutil.rmtree(folder)


async def test_a_folder_that_a_kernel_must_not_write_is_refused(
    tmp_path, open_session, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WorkspaceError, match="Give one below it"):
        await open_session(Limits(writable_dir=tmp_path))


async def test_a_project_with_its_environment_inside_is_worked_in(
    tmp_path, open_session, monkeypatch
):
    environment_folder = tmp_path / ".venv"
    environment_folder.mkdir()
    (environment_folder / "pyvenv.cfg").write_text("home = /")
    monkeypatch.setattr(system_paths, "interpreter_folders", lambda: (environment_folder,))
    session = await open_session(Limits(writable_dir=tmp_path))
    result = await session.run("open('new.csv', 'w').write('a')")
    assert result.ok
    assert session.workspace.new_files() == (tmp_path / "new.csv",)
    assert session.containment.is_active("private_workspace")
    with pytest.raises(WorkspaceError, match="can't be kept read-only"):
        await open_session(Limits(writable_dir=tmp_path), isolate=False)
