"""What a kernel can do to its own start: nothing, neither to this one nor to the next."""

import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_sandbox.confine import run_folder
from kernel_sandbox.confine.cgroup_tree import PREFIX
from kernel_sandbox.confine.cgroups import delegate
from kernel_sandbox.confine.fence import Fence
from kernel_sandbox.confine.layers import Containment, Layer, LayerState
from kernel_sandbox.confine.spec import Report
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.jupyter.launch_pipes import REPORT_BYTES, KernelEnds, LaunchPipes
from kernel_sandbox.types import Limits
from tests.kernel_sandbox.confine.test_contain import POLICY

BOTH = pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
ATTEMPT = """
import os, pathlib
run = pathlib.Path(os.environ["DM_SANDBOX_RUN_DIR"])
def attempt(act):
    try:
        act()
        print("went through")
    except OSError as error:
        print(type(error).__name__)
"""


@BOTH
async def test_a_kernel_can_not_replace_its_report_nor_its_sockets(open_session, isolate):
    kernel = await open_session(isolate=isolate)
    provisioner = kernel._kernel.provisioner
    before = provisioner.containment
    result = await kernel.run(f"""{ATTEMPT}
for name in ("report.json", "policy.json", "k-1"):
    attempt(lambda: os.mkfifo(run / f"{{name}}.new"))
    attempt(lambda: os.rename(run / name, run / "away"))
attempt(lambda: os.unlink(run / "k-1"))
attempt(lambda: os.symlink("/run/docker.sock", run / "home" / "k-1"))
""")
    assert result.stdout.split("\n")[:7].count("went through") == 0, result.stdout
    assert provisioner.containment == before
    assert not list(provisioner.run_dir.glob("*.json.new"))
    assert sorted(path.name for path in provisioner.run_dir.glob("k-*")) == [
        f"k-{number}" for number in range(1, 6)
    ]


@BOTH
async def test_nothing_that_a_kernel_leaves_runs_in_the_next(open_session, isolate):
    kernel = await open_session(isolate=isolate)
    result = await kernel.run(f"""{ATTEMPT}
start = pathlib.Path(os.environ["IPYTHONDIR"]) / "profile_default" / "startup" / "00-planted.py"
attempt(lambda: start.write_text("planted = 1"))
attempt(lambda: (start.parents[1] / "ipython_kernel_config.py").write_text("import this"))
for place in ("usercustomize.py", ".local/lib/python3.11/site-packages/x.pth", ".startup.py"):
    path = pathlib.Path.home() / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("import os; os.environ['PLANTED'] = '1'")
(pathlib.Path(os.environ["TMPDIR"]) / "left").write_text("x")
print(get_ipython().profile_dir.location)
""")
    assert result.stdout.split("\n")[:2].count("went through") == 0, result.stdout
    assert result.stdout.endswith("/ipython/profile_default\n")
    await kernel.restart()
    result = await kernel.run(
        "import os, pathlib\n"
        "print('planted' in globals(), 'PLANTED' in os.environ,"
        " sorted(x.name for x in pathlib.Path.home().iterdir()), os.listdir(os.environ['TMPDIR']))"
    )
    assert result.stdout == "False False ['matplotlib'] []\n", result.stdout


@BOTH
async def test_start_up_files_run_after_the_last_filter(open_session, isolate, monkeypatch):
    """Even one that came there in a way that nobody thought of."""

    def furnished(run_dir: Path) -> None:
        furnish(run_dir)
        plant = run_dir / "ipython" / "profile_default" / "startup" / "x.py"
        plant.write_text(
            "import socket\n"
            "try:\n"
            f"    socket.create_connection(('127.0.0.1', {port}), 1)\n"
            "    outcome = 'reached'\n"
            "except OSError as error:\n"
            "    outcome = type(error).__name__\n"
        )

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, furnish = listener.getsockname()[1], run_folder.furnish
        monkeypatch.setattr(run_folder, "furnish", furnished)
        kernel = await open_session(isolate=isolate)
        result = await kernel.run("print(outcome)")
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert result.stdout.strip() in ("ConnectionRefusedError", "PermissionError"), result


@pytest.fixture
def pipes(tmp_path):
    made = LaunchPipes(POLICY, str(tmp_path / "k"))
    yield made
    made.close()
    made.close()


REPORT = Report(7, Containment((Layer("screen", LayerState.OFF, "x"),)))


def test_a_report_is_read_without_waiting_and_once(pipes):
    assert pipes.report() is None
    line = REPORT.to_text().encode()
    os.write(pipes.theirs.report, line[:20])
    assert pipes.report() is None
    os.write(pipes.theirs.report, line[20:] + b"\n{}\n")
    assert pipes.report() == REPORT
    assert pipes.report() == REPORT


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"{\n",
        b"[]\n",
        b'{"pid": null, "layers": []}\n',
        b'{"pid": 1, "layers": [{"name": "x", "state": "fine", "reason": ""}]}\n',
        b'{"pid": 1, "layers": 5}\n',
        b"\xff\n",
        b"[" * 60_000 + b"\n",
    ],
)
def test_what_is_no_report_is_none(pipes, text):
    os.write(pipes.theirs.report, text)
    pipes.let_go()
    assert pipes.report() is None
    assert pipes.report() is None


def test_a_report_without_an_end_is_cut_off(pipes):
    os.set_blocking(pipes.theirs.report, False)
    for _ in range(2):
        os.write(pipes.theirs.report, b"x" * (REPORT_BYTES // 2 + 1))
        assert pipes.report() is None
    with pytest.raises(OSError, match="Broken pipe"):
        os.write(pipes.theirs.report, b"x")


def test_a_keeper_that_does_not_answer_is_waited_for_a_moment_only(pipes, monkeypatch):
    pipes._keeper.settimeout(0.05)
    assert not pipes.refresh()  # it comes back: the other end never answers
    pipes.let_go()
    assert not pipes.refresh()


def test_the_numbers_survive_a_command_line(pipes):
    assert KernelEnds.from_argument(pipes.theirs.to_argument()) == pipes.theirs
    assert len(pipes.inherited) == len(set(pipes.inherited)) == 8


def test_a_path_too_long_for_a_socket_leaves_nothing_open(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(KernelStartError, match="channels can't be made"):
        LaunchPipes(replace(POLICY, cpu_s=1), str(tmp_path / ("x" * 120)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@BOTH
async def test_a_kernel_is_counted_however_long_that_takes_to_arrange(
    open_session, isolate, monkeypatch
):
    """A kernel is forked by its monitor: not before that one stands where both are counted."""
    if isinstance(group := delegate("probe", Limits()), Layer):
        pytest.skip(f"no control group here: {group.reason}")
    group.remove()
    add = Fence.add

    def wait_and_add(fence, pid):
        time.sleep(1)  # the slow machine
        add(fence, pid)

    monkeypatch.setattr(Fence, "add", wait_and_add)
    kernel = await open_session(isolate=isolate)
    assert PREFIX in Path(f"/proc/{kernel._kernel.provisioner.kernel_pid}/cgroup").read_text()
