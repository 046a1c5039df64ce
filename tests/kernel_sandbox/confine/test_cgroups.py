"""Control groups with real processes, on whatever this machine has; nothing may be left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kernel_sandbox.confine import cgroup_tree, cgroups
from kernel_sandbox.confine.cgroup_tree import PREFIX, Place, places
from kernel_sandbox.confine.cgroups import Cgroup, delegate
from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.types import MIB, Limits
from tests.waiting import PATIENCE_S

LIMITS = Limits(memory_bytes=64 * MIB, processes=4)
NAME = f"test{os.getpid()}"
"""Of this process's groups: others on this machine may have some of theirs."""


def folders_left():
    """Our groups in every place where one may be made."""
    parents = {parent for place in places() for parent in place.parents}
    return {folder for parent in parents for folder in parent.glob(f"{PREFIX}{NAME}-*")}


@pytest.fixture
def group():
    """A group with limits; the test is skipped where there is none to be had."""
    found = delegate(NAME, LIMITS)
    if isinstance(found, Layer):
        pytest.skip(f"no control group here: {found.reason}")
    yield found
    found.remove()
    assert folders_left() == set()


@pytest.fixture
def started():
    """Starts Python processes that wait for a line before they run their code."""
    processes: list[subprocess.Popen[str]] = []

    def start(code, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", "import sys; sys.stdin.readline()\n" + code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:  # what it started may hold the pipe: nothing is read to its end
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def go(process):
    """Lets the process run its code and returns what it printed."""
    return process.communicate("\n", timeout=60)[0]


@pytest.mark.parametrize(
    "code",
    [
        "data = b'x' * (200 << 20); print('held')",
        "import os; fd = os.memfd_create('x')\n"
        "for _ in range(200): os.write(fd, bytes(1 << 20))\nprint('held')",
    ],
    ids=["heap", "memory_file"],
)
def test_memory_above_the_limit_ends_the_process(group, started, code):
    process = started(code)
    layer = group.add(process.pid)
    assert layer.state is LayerState.ACTIVE
    assert "processes and threads" in layer.reason
    assert not group.oom_killed()
    assert go(process) == ""
    assert process.returncode == -9
    assert group.oom_killed()
    group.remove()
    assert group.oom_killed()


def test_memory_within_the_limit_is_granted(group, started):
    process = started("data = b'x' * (20 << 20); print('held')")
    group.add(process.pid)
    assert go(process) == "held\n"
    assert not group.oom_killed()


def test_processes_above_the_limit_can_not_be_started(monkeypatch, group, started):
    monkeypatch.setattr(cgroups, "THREADS", 8)
    small = delegate(NAME, LIMITS)
    code = """
import os, signal
count = 0
try:
    while count < 100:
        if os.fork() == 0:
            signal.pause()
        count += 1
except BlockingIOError:
    print(count, flush=True)
"""
    process = started(code)
    small.add(process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    try:
        assert int(process.stdout.readline()) == LIMITS.processes + 8 - 1
    finally:
        small.remove()


def test_a_daemon_ends_with_the_group(group, started):
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(300)
    os._exit(0)
time.sleep(300)
"""
    process = started(code)
    group.add(process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    daemon = psutil.Process(int(process.stdout.readline()))
    group.kill()
    assert process.wait(PATIENCE_S) == -9
    daemon.wait(PATIENCE_S)
    group.remove()
    group.remove()  # again: nothing happens


def test_a_process_that_is_gone_is_not_called_limited(group, started):
    process = started("")
    go(process)
    assert group.add(process.pid).state is LayerState.REFUSED


ABANDON = """
from kernel_sandbox.confine.cgroups import delegate
from kernel_sandbox.types import Limits
print(delegate(sys.argv[1], Limits()).folders[0], flush=True)
sys.stdin.readline()
"""


def test_the_group_of_a_killed_owner_goes_with_the_next_one(group, started):
    process = started(ABANDON, NAME)
    process.stdin.write("\n")
    process.stdin.flush()
    folder = Path(process.stdout.readline().strip())
    second = delegate(NAME, LIMITS)
    assert folder.is_dir()  # its owner lives
    process.kill()
    process.wait()
    third = delegate(NAME, LIMITS)
    assert not folder.exists()
    assert all(one.is_dir() for one in (*group.folders, *second.folders))
    second.remove()
    third.remove()


ORDINARY = """
import json, os
from kernel_sandbox.confine.cgroups import delegate
from kernel_sandbox.types import Limits
os.setgid(65534)
os.setuid(65534)
found = delegate(sys.argv[1], Limits())
print(json.dumps(found.to_json()))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_an_ordinary_user_without_a_delegated_tree_gets_a_reason(started):
    layer = json.loads(go(started(ORDINARY, NAME)))
    assert layer["state"] in ("refused", "absent")
    assert layer["reason"]
    assert folders_left() == set()


def test_a_system_without_control_groups_is_absent(monkeypatch):
    monkeypatch.setattr(cgroups, "places", lambda: iter(()))
    assert delegate(NAME, LIMITS).state is LayerState.ABSENT
    with pytest.raises(ValueError, match="can't be named"):
        delegate("../test", LIMITS)


def test_a_place_without_the_controllers_is_refused_and_left_as_it_was(monkeypatch, tmp_path):
    found = [Place((tmp_path,), is_unified=unified) for unified in (True, False)]
    monkeypatch.setattr(cgroups, "places", lambda: iter(found))
    layer = delegate(NAME, LIMITS)
    assert layer.state is LayerState.REFUSED
    assert "no controller for memory and pids" in layer.reason
    assert "has no memory.limit_in_bytes" in layer.reason
    assert "systemd-run" in layer.reason
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def bare_group():
    """A real group of version 2, without controllers."""
    parent = next((place.parents[0] for place in places() if place.is_unified), None)
    if parent is None:
        pytest.skip("no control groups of version 2 here")
    folder = parent / f"{PREFIX}{NAME}-bare"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"version 2 is not for us: {error}")
    found = Cgroup((folder,), is_unified=True)
    yield found
    found.remove()
    assert not folder.exists()


def test_version_2_without_controllers_adds_and_ends_processes(bare_group, started):
    process = started("import time; time.sleep(300)")
    layer = bare_group.add(process.pid)
    assert layer.state is LayerState.ACTIVE
    assert "swap is not counted" in layer.reason
    assert not bare_group.oom_killed()
    bare_group.kill()
    assert process.wait(PATIENCE_S) == -9


def test_version_2_file_logic_in_a_plain_folder_hands_down_controllers(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory\n")
    with pytest.raises(PermissionError):
        cgroup_tree.enable(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    with pytest.raises(PermissionError):
        cgroup_tree.enable(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "cgroup.procs").touch()
    cgroup_tree.enable(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "memory pids\n"


def test_version_2_file_logic_in_a_plain_folder_sets_limits_and_reads_events(tmp_path):
    names = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cgroup.procs")
    for name in names:
        (tmp_path / name).touch()
    cgroups._limit((tmp_path,), cgroups._settings(LIMITS, is_unified=True))
    written = {name: (tmp_path / name).read_text() for name in names[:4]}
    assert written == dict(
        zip(names, (str(64 * MIB), "0", "1", str(4 + cgroups.THREADS)), strict=False)
    )
    (tmp_path / "memory.events").write_text("low 0\noom 2\noom_kill 1\n")
    found = Cgroup((tmp_path,), is_unified=True)
    assert found.oom_killed()
    assert "without swap" in found.add(os.getppid()).reason
    (tmp_path / "cgroup.procs").write_text("0\n")  # a process that we can't name: no signal
    (tmp_path / "cgroup.kill").touch()
    found.kill()
    assert (tmp_path / "cgroup.kill").read_text() == "1"
    assert (tmp_path / "pids.max").read_text() == "0"
    for file in tmp_path.iterdir():
        file.unlink()
    found.remove()
    assert not tmp_path.exists()
    tmp_path.mkdir()


def test_a_limit_that_is_not_kept_is_an_error(tmp_path):
    (tmp_path / "memory.max").symlink_to("/dev/null")
    with pytest.raises(OSError, match="did not take"):
        cgroups._limit((tmp_path,), {"memory.max": 1})


TREE = """
10:cpu,memory:/box/inner
9:pids:/elsewhere
0::/user/scope
"""
MOUNTS = """
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
35 31 0:32 /box /c/memory rw - cgroup cgroup rw,cpu,memory
36 31 0:33 /box /c/pids rw,nosuid shared:9 - cgroup cgroup rw,pids
41 31 0:38 / /c/unified rw - cgroup2 cgroup2 rw
"""


def test_the_tree_of_a_container_and_of_both_versions_is_found(monkeypatch):
    texts = {"/proc/self/cgroup": TREE.strip(), "/proc/self/mountinfo": MOUNTS.strip()}
    monkeypatch.setattr(cgroup_tree, "read_setting", lambda path: texts[str(path)])
    assert list(places()) == [
        Place((Path("/c/unified/user/scope"),), is_unified=True),
        Place((Path("/c/unified/user"),), is_unified=True),
        Place((Path("/c/unified"),), is_unified=True),
        Place((Path("/c/memory/inner"), Path("/c/pids")), is_unified=False),
    ]
    texts["/proc/self/mountinfo"] = ""
    assert list(places()) == []
    texts["/proc/self/cgroup"] = ""
    assert list(places()) == []


def test_removing_a_group_ends_all_that_is_in_it(group, started):
    processes = [started("import time; time.sleep(300)") for _ in range(5)]
    assert {group.add(process.pid).state for process in processes} == {LayerState.ACTIVE}
    group.remove()
    assert [process.wait(PATIENCE_S) for process in processes] == [-9] * 5
    assert folders_left() == set()
