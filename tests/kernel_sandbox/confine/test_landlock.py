"""Landlock against processes that try to get round it; each one restricts itself for good."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from kernel_sandbox.confine import landlock
from kernel_sandbox.confine.layers import Layer, LayerState

ABI = landlock.abi()
needs_landlock = pytest.mark.skipif(ABI == 0, reason="this system has no Landlock")

# Everything that the code below uses is imported before the restriction.
PRELUDE = """
import errno, fcntl, json, os, shutil, signal, socket, subprocess, sys
from pathlib import Path
from kernel_sandbox.confine import landlock
from kernel_sandbox.confine.landlock import LandlockRules, restrict

base, uid = Path(sys.argv[1]), int(sys.argv[2])
inside, shown, outside = base / "inside", base / "shown", base / "outside"
system = tuple(Path(name) for name in ("/usr", "/bin", "/lib", "/lib64"))
rules = LandlockRules((shown,), (inside,), system=system)
if uid:
    os.setgid(uid)
    os.setuid(uid)

def attempt(action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def write(path, flags=os.O_WRONLY | os.O_CREAT):
    os.close(os.open(path, flags))
"""


@pytest.fixture
def base():
    """Three folders that anyone may write, each with a file and a folder."""
    folder = Path(tempfile.mkdtemp(prefix="t-"))  # the folders of pytest are closed to others
    for name in ("inside", "shown", "outside"):
        (folder / name / "deep").mkdir(parents=True)
        (folder / name / "file").write_text("text")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def in_child(base, code, uid=0):
    """What the code printed as JSON, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", PRELUDE + code, str(base), str(uid)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=[0, 65534], ids=["same_user", "nobody"])
def uid(request):
    if request.param and os.getuid() != 0:
        pytest.skip("only root can become another user")
    return request.param


@needs_landlock
def test_files_are_open_only_where_the_rules_say(base, uid):
    code = """
layer = restrict(rules)
found = {
    "read inside": attempt((inside / "file").read_text),
    "write inside": attempt((inside / "file").write_text, "new"),
    "make inside": attempt((inside / "made").write_text, "x"),
    "make a folder": attempt((inside / "folder").mkdir),
    "remove inside": attempt((inside / "made").unlink),
    "truncate inside": attempt(os.truncate, inside / "file", 1),
    "read shown": attempt((shown / "file").read_text),
    "list shown": attempt(os.listdir, shown / "deep"),
    "run": attempt(subprocess.run, ["/bin/true"]),
    "device": attempt(Path("/dev/null").write_text, "x"),
    "random": attempt(open, "/dev/urandom", "rb"),
}
print(json.dumps([layer.to_json(), sorted(k for k, v in found.items() if v != "done")]))
"""
    layer, refused = in_child(base, code, uid)
    assert layer["state"] == "active"
    assert f"ABI {ABI}" in layer["reason"]
    assert "UDP" in layer["reason"]
    assert refused == []


@needs_landlock
def test_nothing_else_is_open_by_any_path(base, uid):
    code = """
(inside / "link").symlink_to(outside / "file")
(inside / "folder_link").symlink_to(outside)
layer = restrict(rules)
secret = outside / "file"
fd = os.open(inside, os.O_RDONLY)
found = {
    "read": attempt(secret.read_text),
    "list": attempt(os.listdir, outside),
    "list the root": attempt(os.listdir, "/"),
    "dots": attempt((inside / ".." / "outside" / "file").read_text),
    "dots from a descriptor": attempt(lambda: os.open("../outside/file", os.O_RDONLY, dir_fd=fd)),
    "symlink": attempt((inside / "link").read_text),
    "symlinked folder": attempt(os.listdir, inside / "folder_link"),
    "write by symlink": attempt((inside / "link").write_text, "x"),
    "proc": attempt(Path(f"/proc/self/root{secret}").read_text),
    "cwd": attempt(lambda: (os.chdir(outside), open("file"))),
    "write shown": attempt((shown / "file").write_text, "x"),
    "make shown": attempt(write, shown / "new"),
    "make a folder": attempt((shown / "folder").mkdir),
    "make a link": attempt((outside / "l").symlink_to, "x"),
    "make a pipe": attempt(os.mkfifo, shown / "pipe"),
    "remove": attempt((shown / "file").unlink),
    "remove a folder": attempt((shown / "deep").rmdir),
    "run": attempt(subprocess.run, [str(inside / "file")]),
    "device": attempt(lambda: open("/dev/urandom", "rb").close() or open("/dev/tty", "rb")),
    "child": "EACCES" if subprocess.run(["/bin/cat", secret], stderr=-3).returncode else "done",
}
print(json.dumps(sorted(k for k, v in found.items() if v == "done")))
"""
    assert in_child(base, code, uid) == []
    assert (base / "outside" / "file").read_text() == "text"


@needs_landlock
def test_renaming_linking_and_truncating_do_not_cross_the_border(base, uid):
    code = """
layer = restrict(rules)
for name in ("a", "b"):
    (inside / name).write_text("x")
print(json.dumps({
    "within": attempt(os.rename, inside / "a", inside / "deep" / "a"),
    "link within": attempt(os.link, inside / "b", inside / "deep" / "b"),
    "out": attempt(os.rename, inside / "b", outside / "b"),
    "in": attempt(os.rename, outside / "file", inside / "stolen"),
    "link in": attempt(os.link, outside / "file", inside / "hard"),
    "link shown in": attempt(os.link, shown / "file", inside / "hard"),
    "truncate": attempt(os.truncate, outside / "file", 0),
    "open and truncate": attempt(write, shown / "file", os.O_WRONLY | os.O_TRUNC),
}))
"""
    found = in_child(base, code, uid)
    expected = "done" if ABI >= 2 else "EXDEV"
    assert (found.pop("within"), found.pop("link within")) == (expected, expected)
    if ABI < 3:
        found.pop("truncate")
    assert set(found.values()) <= {"EACCES", "EXDEV", "EPERM"}
    assert (base / "outside" / "file").read_text() == (base / "shown" / "file").read_text()


@needs_landlock
def test_a_single_file_may_be_a_rule_and_a_missing_path_is_skipped(base):
    code = """
only = LandlockRules((shown / "file", base / "none"), (inside / "file", base / "file" / "none"))
layer = restrict(only)
print(json.dumps([layer.state, attempt((shown / "file").read_text),
    attempt((inside / "file").write_text, "x"), attempt(os.listdir, shown),
    attempt((shown / "file").write_text, "x"), attempt(write, inside / "new")]))
"""
    assert in_child(base, code) == ["active", "done", "done", "EACCES", "EACCES", "EACCES"]


@needs_landlock
def test_a_path_with_a_link_in_it_opens_nothing_unless_it_is_of_the_system(base):
    (base / "inside" / "own").symlink_to(base / "outside")
    code = """
read, write = (outside / "file").read_text, (outside / "file").write_text
folder = inside / "own"
rules = LandlockRules((folder, folder / "deep"), (inside, folder), system=(inside / "link",))
layer = restrict(rules)
print(json.dumps([layer.state, attempt(read), attempt(write, "x"),
    attempt((shown / "file").read_text), attempt(os.listdir, outside / "deep")]))
"""
    (base / "inside" / "link").symlink_to(base / "shown")
    assert in_child(base, code) == ["active", "EACCES", "EACCES", "done", "EACCES"]


@needs_landlock
def test_restrictions_add_up_and_end_at_sixteen(base):
    code = """
first = restrict(LandlockRules((shown, outside), (inside,)))
second = restrict(LandlockRules((shown, Path("/")), (inside,)), outside / "file")
third = restrict(LandlockRules((Path("/"),), ()), inside / "file")
fourth = restrict(LandlockRules((shown,)), outside)
last = [restrict(LandlockRules((Path("/"),))) for _ in range(13)][-1]
print(json.dumps([layer.to_json() for layer in (first, second, third, fourth, last)]
    + [attempt((shown / "file").read_text), attempt((inside / "file").write_text, "x")]))
"""
    first, second, third, fourth, last, read, write = in_child(base, code)
    assert (first["state"], fourth["state"]) == ("active", "active")
    assert "can still be read" in second["reason"]
    assert "can still be read" in third["reason"]
    assert (last["state"], "16 restrictions" in last["reason"]) == ("refused", True)
    assert (read, write) == ("done", "EACCES")


@needs_landlock
def test_what_is_not_covered_is_so(base):
    code = """
handle = open(outside / "file", "r+")
restrict(rules)
handle.write("changed")
handle.close()
print(json.dumps([attempt(os.stat, outside / "file"), attempt(os.chmod, outside / "file", 0o600)]))
"""
    assert in_child(base, code) == ["done", "done"]
    assert (base / "outside" / "file").read_text() == "changed"


NETWORK = """
listener = socket.create_server(("127.0.0.1", 0))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind(b"\\0dm-test-%d" % os.getpid())
abstract.listen()
parent = os.getpid()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    restrict(LandlockRules((shown,), (inside,), network=NETWORK))
    found = [
        attempt(socket.socket().connect, listener.getsockname()),
        attempt(socket.socket().bind, ("127.0.0.1", 0)),
        attempt(socket.socket(socket.AF_UNIX).connect, abstract.getsockname()),
        attempt(os.kill, parent, 0),
        attempt(os.kill, os.getpid(), 0),
    ]
    os.write(writer, json.dumps(found).encode())
    os._exit(0)
os.waitpid(child, 0)
print(os.read(reader, 1000).decode())
"""


@needs_landlock
@pytest.mark.parametrize("network", [True, False])
def test_the_network_and_the_processes_outside(base, network):
    tcp, bind, abstract, kill, own = in_child(base, NETWORK.replace("NETWORK", str(network)))
    if ABI >= 4:
        assert (tcp, bind) == (("done",) * 2 if network else ("EACCES",) * 2)
    if ABI >= 6:
        assert (abstract, kill) == ("EPERM", "EPERM")
    assert own == "done"


@needs_landlock
@pytest.mark.skipif(ABI < 5, reason="ioctl is covered from ABI 5 on")
def test_a_device_that_is_opened_later_takes_no_ioctl(base):
    code = """
before = open("/dev/urandom", "rb")
restrict(rules)
after = open("/dev/urandom", "rb")
entropy = 0x80045200  # RNDGETENTCNT
print(json.dumps([attempt(fcntl.ioctl, handle, entropy, b"0000") for handle in (before, after)]))
"""
    assert in_child(base, code) == ["done", "EACCES"]


def in_thread(action):
    """What the action returned in a thread of its own: Landlock holds for that thread only."""
    results: list[Layer] = []
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    thread.join()
    return results[0]


@needs_landlock
def test_a_process_with_other_threads_is_not_called_restricted(base):
    rules = landlock.LandlockRules(
        (base / "shown", base / "none"), (base / "inside", base / "shown/file")
    )
    layer = in_thread(lambda: landlock.restrict(rules))
    assert layer.state is LayerState.REFUSED
    assert "threads stay free" in layer.reason
    assert list(Path("/").iterdir())
    open_root = in_thread(
        lambda: landlock.restrict(landlock.LandlockRules((Path("/"),), network=True))
    )
    assert "can still be read" in open_root.reason
    gone = in_thread(lambda: landlock.restrict(rules, base / "none"))
    assert "could not be read before either" in gone.reason


@needs_landlock
def test_the_limit_of_sixteen_is_named():
    layers = []

    def often():
        everything = landlock.LandlockRules((Path("/"),), (Path("/"),))
        layers.extend(landlock.restrict(everything) for _ in range(17))
        return layers[-1]

    assert "E2BIG" in in_thread(often).reason
    assert "E2BIG" not in layers[15].reason


def test_every_version_is_asked_only_for_what_it_knows():
    handled = [landlock._handled(version, network=False) for version in range(1, 8)]
    assert [one.files for one in handled] == [0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, *(0xFFFF,) * 3]
    assert [one.network for one in handled] == [0, 0, 0, 3, 3, 3, 3]
    assert [one.scopes for one in handled] == [0, 0, 0, 0, 0, 3, 3]
    assert landlock._handled(7, network=True).network == 0
    described = [landlock._describe(version, network=False) for version in (1, 5, 6)]
    assert "renaming between folders" in described[0]
    assert "truncating files outside, TCP, ioctl on devices, signals" in described[0]
    assert "signals and abstract unix sockets, UDP" in described[1]
    assert "signals" not in described[2]
    assert "TCP (left to other layers)" in landlock._describe(7, network=True)


@needs_landlock
@pytest.mark.parametrize("version", range(1, ABI + 1))
def test_rules_of_an_older_version_are_taken_and_hold(base, version):
    code = f"""
landlock.abi = lambda: {version}
layer = restrict(rules)
print(json.dumps([layer.state, attempt((outside / "file").read_text),
    attempt((inside / "new").write_text, "x"), attempt((shown / "file").write_text, "x")]))
"""
    assert in_child(base, code) == ["active", "EACCES", "done", "EACCES"]


def test_a_system_without_the_call_is_absent(monkeypatch):
    monkeypatch.setattr(landlock, "_CREATE_RULESET", 10_000)
    assert landlock.restrict(landlock.LandlockRules()).state is LayerState.ABSENT
    monkeypatch.setattr(sys, "platform", "darwin")
    assert landlock.abi() == 0


@needs_landlock
def test_a_refusal_names_the_error(monkeypatch):
    monkeypatch.setattr(landlock, "_RESTRICT_SELF", 10_000)
    layer = in_thread(lambda: landlock.restrict(landlock.LandlockRules()))
    assert layer.state is LayerState.REFUSED
    assert os.strerror(errno.ENOSYS) in layer.reason
    monkeypatch.setattr(landlock, "Path", lambda text: Path("/nowhere"))
    assert landlock._thread_count() == 0


@needs_landlock
def test_a_unix_socket_with_a_path_stays_reachable_and_is_said_to(base):
    path = base / "outside" / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        code = """
layer = restrict(rules)
print(json.dumps([layer.reason, attempt(
    socket.socket(socket.AF_UNIX).connect, str(outside / "s"))]))
"""
        reason, found = in_child(base, code)
    assert "unix sockets with a path" in reason
    assert found == "done"
