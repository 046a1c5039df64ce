"""Capabilities: given up by root, by a user, in a namespace; and who inherits an orphan."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernel_sandbox.confine import privileges
from kernel_sandbox.confine.layers import LayerState
from kernel_sandbox.confine.syscall_numbers import current_architecture

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")

REPOSITORY = Path(__file__).resolve().parents[3]
NOBODY = 65534

# The modules are read before the user changes: the folders may be closed to that one.
PRELUDE = f"""
import ctypes, errno, json, os, signal, subprocess, sys, threading
sys.path.insert(0, {str(REPOSITORY)!r})
from pathlib import Path
from kernel_sandbox.confine import privileges
libc = ctypes.CDLL(None, use_errno=True)
def sets(thread="self"):
    lines = Path("/proc", thread, "status").read_text().splitlines()
    return {{x.split(":")[0]: int(x.split()[1], 16) for x in lines if x.startswith("Cap")}}
def answer(**found):
    print(json.dumps(found))
"""

DROP = """
layer = privileges.drop_capabilities()
again = privileges.drop_capabilities()
answer(layer=layer.to_json(), again=again.to_json(), sets=sets(),
       hostname=-libc.sethostname(b"x", 1) and ctypes.get_errno())
"""
BECOME_USER = f"""
if os.getuid() == 0:
    os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})
    libc.prctl(4, 1, 0, 0, 0)  # a change of user closes /proc/self, the map of users among it
"""
BECOME_ROOT_OF_A_NAMESPACE = """
uid = os.getuid()
if libc.unshare(0x10000000) != 0:
    answer(without=os.strerror(ctypes.get_errno())), sys.exit()
Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
"""


def run(code):
    """Runs code in a process of its own and returns what it answered."""
    command = [sys.executable, "-I", "-c", PRELUDE + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    if "without" in found:
        pytest.skip(f"no user namespace here: {found['without']}")
    return found


def assert_holds_nothing(found):
    assert found["layer"]["name"] == "capabilities"
    assert found["layer"]["state"] == found["again"]["state"] == "active"
    held = {name: bits for name, bits in found["sets"].items() if name != "CapBnd"}
    assert set(held) == {"CapInh", "CapPrm", "CapEff", "CapAmb"}
    assert set(held.values()) == {0}
    assert found["hostname"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has any")
def test_root_gives_up_all_and_the_bounding_set():
    found = run(DROP)
    assert_holds_nothing(found)
    assert found["sets"]["CapBnd"] == 0
    assert "no program can bring one" in found["layer"]["reason"]


def test_a_user_holds_none_and_keeps_the_bounding_set():
    found = run(BECOME_USER + DROP)
    assert_holds_nothing(found)
    kept = "the bounding set stays" in found["layer"]["reason"]
    assert kept == (found["sets"]["CapBnd"] != 0)


@pytest.mark.parametrize("before", ["", BECOME_USER], ids=["as it is", "user"])
def test_root_of_a_user_namespace_gives_up_all(before):
    found = run(before + BECOME_ROOT_OF_A_NAMESPACE + DROP)
    assert_holds_nothing(found)
    assert found["sets"]["CapBnd"] == 0


STARTED = """
shown = 'import pathlib; print(pathlib.Path("/proc/self/status").read_text())'
privileges.drop_capabilities()
done = subprocess.run(["/bin/sh", "-c", "cat /proc/self/status"], capture_output=True, text=True)
lines = [line.split() for line in done.stdout.splitlines() if line.startswith("Cap")]
answer(sets={name: int(bits, 16) for name, bits in lines})
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has any")
def test_a_program_that_root_starts_afterwards_has_none():
    assert set(run(STARTED)["sets"].values()) == {0}


AMBIENT = """
class Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
header, data = Header(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(ctypes.byref(header), data) == 0
data[2] = data[1]  # inheritable, as far as permitted
assert libc.capset(ctypes.byref(header), data) == 0
assert libc.prctl(47, 2, 0, 0, 0) == 0
before = sets()
layer = privileges.drop_capabilities()
answer(before=before["CapAmb"], after=sets()["CapAmb"], state=layer.state.value)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has any")
def test_ambient_capabilities_go_too():
    assert run(AMBIENT) == {"before": 1, "after": 0, "state": "active"}


THREADS = """
done = threading.Event()
thread = threading.Thread(target=done.wait)
thread.start()
layer = privileges.drop_capabilities()
done.set()
thread.join()
answer(layer=layer.to_json(), thread=thread.native_id)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has any")
def test_a_thread_that_keeps_some_is_named():
    found = run(THREADS)
    assert found["layer"]["state"] == "refused"
    assert f"thread {found['thread']} still has CapPrm, CapEff" in found["layer"]["reason"]


def test_only_the_calling_thread_changes():
    def held():
        status = Path("/proc/self/status").read_text()
        return [line for line in status.splitlines() if line.startswith("Cap")]

    before, found = held(), []
    thread = threading.Thread(target=lambda: found.append(privileges.drop_capabilities()))
    thread.start()
    thread.join()
    assert held() == before
    holds_some = "CapEff:\t0000000000000000" not in before
    assert (found[0].state is LayerState.REFUSED) == holds_some


BARRED = """
from kernel_sandbox.confine import seccomp
from kernel_sandbox.confine.syscall_numbers import current_architecture
from kernel_sandbox.confine.syscall_table import Rule, SyscallRule
privileges.drop_privileges()
rule = Rule("capset", SyscallRule[sys.argv[-1]])
assert seccomp.install(seccomp.assemble([rule], current_architecture())) == 0
answer(layer=privileges.drop_capabilities().to_json())
"""


@pytest.mark.skipif(
    current_architecture() is None, reason="the filter has no table for this machine"
)
@pytest.mark.parametrize(("verdict", "state"), [("EPERM", "refused"), ("ENOSYS", "absent")])
def test_a_system_that_does_not_drop_them_is_reported(verdict, state):
    assert run(BARRED.replace("sys.argv[-1]", repr(verdict)))["layer"]["state"] == state


def test_what_can_not_be_read_back_is_not_active(tmp_path, monkeypatch):
    """No /proc, and a thread that ended meanwhile; asked of this process, which stays as it is."""
    (tmp_path / "7").mkdir()
    monkeypatch.setattr(privileges, "_prctl", lambda option, argument=0: -1)
    monkeypatch.setattr(privileges, "_hold_none", lambda: 0)
    monkeypatch.setattr(privileges, "Path", lambda name: tmp_path)
    layer = privileges.drop_capabilities()
    assert layer.state is LayerState.REFUSED
    assert "not seen" in layer.reason
    (tmp_path / "7" / "status").write_text("CapEff:\t0000000000000001\nCapBnd:\t0\n")
    assert "thread 7 still has CapEff" in privileges.drop_capabilities().reason
    (tmp_path / "7" / "status").write_text("CapEff:\t0000000000000000\nCapBnd:\t0\n")
    assert privileges.drop_capabilities().state is LayerState.ACTIVE
    (tmp_path / "7" / "status").write_text("CapEff:\t0000000000000000\nCapBnd:\t1\n")
    assert "the bounding set stays" in privileges.drop_capabilities().reason


ORPHAN = """
accepted = privileges.become_subreaper()
reader, writer = os.pipe()
middle = os.fork()
if middle == 0:
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(7)
    os._exit(0)
os.waitpid(middle, 0)
os.close(writer)
_, status = os.waitpid(-1, 0)
answer(accepted=accepted, status=os.waitstatus_to_exitcode(status))
"""


def test_an_orphan_comes_to_the_subreaper():
    assert run(ORPHAN) == {"accepted": True, "status": 7}
