"""The filter of system calls: the system obeys it, and analyses do not notice it."""

import errno
import json
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_sandbox.confine import seccomp
from kernel_sandbox.confine.layers import LayerState
from kernel_sandbox.confine.syscall_numbers import AARCH64, X86_64, current_architecture
from kernel_sandbox.confine.syscall_table import FAMILIES
from tests.waiting import PATIENCE_S

REPOSITORY = str(Path(__file__).resolve().parents[3])

on_linux = pytest.mark.skipif(
    current_architecture() is None, reason="there is no table for this machine"
)

PRELUDE = """
import ctypes, json, os, socket, sys, threading
sys.path.insert(0, {repository!r})
from kernel_sandbox.confine import privileges, seccomp, syscall_table
from kernel_sandbox.confine.syscall_numbers import X86_64, current_architecture, number_here
from kernel_sandbox.confine.syscall_table import FAMILIES, Rule, SyscallRule
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
HERE = current_architecture()
def assemble(*rules):
    return seccomp.assemble(rules, HERE)
def call(call, *arguments):
    "The error number of a raw system call, by name or number; 0 when it went through."
    number = number_here(call) if isinstance(call, str) else call
    wide = [x if isinstance(x, bytes) else ctypes.c_long(x) for x in arguments]
    done = libc.syscall(ctypes.c_long(number), *wide)
    return ctypes.get_errno() if done < 0 else 0
def answer(**found):
    print(json.dumps(found))
"""


def run(code, *arguments):
    """Runs code in a process of its own and returns what it answered."""
    whole = PRELUDE.format(repository=REPOSITORY) + code
    command = [sys.executable, "-I", "-c", whole, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("machine", ["riscv64", "aarch64_be", "i686"])
def test_another_processor_has_no_filter(monkeypatch, machine):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    seccomp.prepare_programs()
    for layer in (seccomp.early(False), seccomp.late()):
        assert layer.state is LayerState.ABSENT
        assert "x86-64 and aarch64 only" in layer.reason
        assert machine in layer.reason


@pytest.mark.parametrize(("architecture", "is_tried"), [(X86_64, True), (AARCH64, False)])
def test_a_layer_says_where_its_table_was_tried(monkeypatch, architecture, is_tried):
    """The system's part is replaced here, as it would answer on such a machine."""
    installed, filters = [], [("0", 0), ("2", 1)]
    monkeypatch.setattr(seccomp, "current_architecture", lambda: architecture)
    monkeypatch.setattr(seccomp, "drop_privileges", lambda: None)
    monkeypatch.setattr(seccomp, "install", lambda program: installed.append(program) or 0)
    monkeypatch.setattr(seccomp, "_filters", lambda: filters[len(installed)])
    monkeypatch.setattr(seccomp, "_unshares", lambda: False)
    layer = seccomp.early(False)
    assert layer.state is LayerState.ACTIVE
    assert ("in an emulator only" in layer.reason) is not is_tried
    assert installed == [seccomp.early_program(False, architecture)]


@on_linux
def test_a_program_that_the_system_rejects_is_refused(monkeypatch):
    monkeypatch.setattr(seccomp, "late_program", lambda here: b"")
    layer = seccomp.late()
    assert (layer.name, layer.state) == ("late_seccomp", LayerState.REFUSED)
    assert str(errno.EINVAL) in layer.reason


DENIED = """
privileges.drop_capabilities()
names = [name for family in FAMILIES.values() for name in family if HERE.number(name)]
wild = (-1,) * 6
before = {name: call(name, *wild) for name in names}
layer = seccomp.early(False)
after = {name: call(name, *wild) for name in names}
status = open("/proc/self/status").read()
answer(layer=layer.to_json(), before=before, after=after, status=status)
"""


@on_linux
def test_every_family_of_calls_is_denied():
    found = run(DENIED)
    assert found["layer"]["state"] == "active"
    assert "Seccomp:\t2" in found["status"]
    assert set(found["before"].values()) != {errno.EPERM}
    assert set(found["after"].values()) == {errno.EPERM}
    missing = {"inotify_init", "iopl", "ioperm"} if current_architecture() is AARCH64 else set()
    named = {name for family in FAMILIES.values() for name in family}
    assert set(found["after"]) == named - missing


ARGUMENTS = """
folder = sys.argv[1].encode()
high = 1 << 40
reader, writer = os.pipe()
assert seccomp.early(sys.argv[2] == "online").state.value == "active"
new_user = 0x10000000
def node(name, mode, device):
    if HERE is X86_64:
        return call("mknod", folder + name, mode, device)
    return call("mknodat", -100, folder + name, mode, device)
def clone(flags):
    outcome = libc.syscall(ctypes.c_long(number_here("clone")), ctypes.c_ulong(flags), 0, 0, 0, 0)
    if outcome == 0:
        os._exit(0)
    if outcome > 0:
        os.waitpid(outcome, 0)
    return ctypes.get_errno() if outcome < 0 else 0
answer(denied={
    "clone": clone(new_user | 17),
    "clone with high bits": clone(high | new_user | 17),
    "sti": call("ioctl", 0, 0x5412, 0),
    "sti with high bits": call("ioctl", 0, high | 0x5412, 0),
    "sti, sign extended": call("ioctl", 0, -0x100000000 | 0x5412, 0),
    "linux": call("ioctl", 0, 0x541C, 0),
    "setd": call("ioctl", 0, 0x5423, 0),
    "pipe": call("fcntl", writer, 1031, 1 << 20),
    "lease": call("fcntl", writer, 1024, 1), "notice": call("fcntl", writer, 1026, 1),
    "shared memory": call("mmap", 0, 4096, 3, 0x21, -1, 0),
    "shared memory, validated": call("mmap", 0, 4096, 3, 0x23, -1, 0),
    "shared memory with flags": call("mmap", 0, 4096, 3, high | 0x4021, -1, 0),
    "mm": call("prctl", 35, 0, 0, 0, 0),
    "mm with high bits": call("prctl", high | 35, 0, 0, 0, 0),
    "character device": node(b"/c", 0o020600, 0x103),
    "block device": node(b"/b", 0o060600, 0x700),
    "device at": call("mknodat", -100, folder + b"/d", 0o020600, 0x103),
    "personality": call("personality", 0x0040000),
    **({"x32": call(0x40000000 | 39)} if HERE is X86_64 else {}),
    "packet": call("socket", 17, 3, 0), "vsock": call("socket", 40, 1, 0),
    "alg": call("socket", 38, 5, 0), "bluetooth": call("socket", 31, 5, 0),
    "raw": call("socket", 2, 3, 1),
    "raw with flags": call("socket", 10, 3 | 0o2000000, 58),
    "packet in disguise": call("socket", 2, 10, 0),
    "mptcp": call("socket", 2, 1, 262),
    "diagnosis": call("socket", 16, 3, 4),
    "pair": call("socketpair", 30, 1, 0, bytes(8)),
    "fast open": call("sendto", 0, b"x", 1, 0x20000000, 0, 0),
    "fast open in a message": call("sendmsg", 0, bytes(64), high | 0x20000000),
    "fast open in messages": call("sendmmsg", 0, bytes(64), 1, 0x20000000),
}, allowed={
    "clone": clone(17),
    "size of the pipe": call("fcntl", writer, 1032, 0),
    "memory": call("mmap", 0, 4096, 3, 0x22, -1, 0),
    "shared file": call("mmap", 0, 4096, 1, 0x01, os.open(sys.executable, 0), 0),
    "fifo": node(b"/f", 0o010600, 0),
    "file": node(b"/r", 0o100600, 0),
    "personality": call("personality", 0xFFFFFFFF),
    "unix": call("socket", 1, 1 | 0o2000000, 0), "tcp": call("socket", 2, 1, 6),
    "netlink": call("socket", 16, 3 | 0o2000000, 0),
    "pair": call("socketpair", 1, 2, 0, bytes(8)),
}, udp=call("socket", 2, 2, 0), clone3=call("clone3", bytes(88), 88), newer=call(470),
ipv6=call("socket", 10, 1, 0), flock=call("flock", writer, 2))
"""


@on_linux
@pytest.mark.parametrize("network", ["online", "offline"])
def test_arguments_decide_where_a_call_is_needed(tmp_path, network):
    found = run(ARGUMENTS, tmp_path, network)
    assert {name for name, error in found["denied"].items() if error != errno.EPERM} == set()
    assert {name for name, error in found["allowed"].items() if error} == set()
    assert found["udp"] == (0 if network == "online" else errno.EPERM)
    assert found["clone3"] == found["newer"] == found["flock"] == errno.ENOSYS
    assert found["ipv6"] in {0, errno.EAFNOSUPPORT}


INTERFACE = """
import mmap
assert seccomp.early(False).state.value == "active"
prot = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=prot)
page.write(bytes.fromhex("b814000000" "cd80" "c3"))  # getpid of the 32-bit interface
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""


@pytest.mark.skipif(current_architecture() is not X86_64, reason="its code is for x86-64")
def test_the_32_bit_interface_kills():
    code = PRELUDE.format(repository=REPOSITORY) + INTERFACE
    done = subprocess.run([sys.executable, "-I", "-c", code], check=False, timeout=60)
    # A system built without that interface ends the process with the other signal.
    assert -done.returncode in {signal.SIGSYS, signal.SIGSEGV}


WORK = """
assert seccomp.early(False).state.value == "active"
import asyncio, concurrent.futures, getpass, multiprocessing, subprocess
import numpy, pandas
sums = []
thread = threading.Thread(target=lambda: sums.append(int(numpy.arange(4).sum())))
thread.start(), thread.join()
child = os.fork()
if child == 0:
    os._exit(7)
context = multiprocessing.get_context("fork")
with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
    pooled = pool.submit(pow, 2, 5).result()
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
async def echo():
    shell = await asyncio.create_subprocess_exec("echo", "async", stdout=-1)
    return (await shell.communicate())[0].decode()
answer(
    sums=sums, pooled=pooled,
    forked=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
    frame=int(pandas.DataFrame({"a": [1, 2]}).a.sum()),
    shell=subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout,
    spawned=asyncio.run(echo()),
    inherited=subprocess.run(
        [sys.executable, "-c", "import ctypes; print(ctypes.CDLL(None).unshare(0))"],
        capture_output=True, text=True).stdout,
    devices=len(socket.if_nameindex()) > 0,
)
"""


@on_linux
def test_an_analysis_works_and_what_it_starts_is_filtered_too():
    found = run(WORK)
    assert found["sums"] == [6]
    assert (found["pooled"], found["forked"], found["frame"]) == (32, 7, 3)
    assert (found["shell"], found["spawned"]) == ("hi\n", "async\n")
    assert found["inherited"] == "-1\n"
    assert found["devices"]


THREADS = """
go, found = threading.Event(), []
def wait():
    go.wait()
    found.append(call("unshare", 0))
thread = threading.Thread(target=wait)
thread.start()
layer = seccomp.early(False)
go.set()
thread.join()
answer(state=layer.state.value, found=found)
"""


@on_linux
def test_threads_that_exist_are_covered():
    assert run(THREADS) == {"state": "active", "found": [errno.EPERM]}


DIVERGED = """
import struct
ready, done = threading.Event(), threading.Event()
privileges.drop_privileges()
program = ctypes.create_string_buffer(assemble())
def diverge():
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(program))
    assert call("seccomp", 1, 0, header) == 0
    ready.set()
    done.wait()
thread = threading.Thread(target=diverge)
thread.start()
ready.wait()
layer = seccomp.early(False)
done.set()
thread.join()
answer(layer=layer.to_json(), thread=thread.native_id, free=call("unshare", 0))
"""


@on_linux
def test_a_thread_that_can_not_take_the_filter_is_named():
    found = run(DIVERGED)
    assert found["layer"]["state"] == "refused"
    assert f"thread {found['thread']} " in found["layer"]["reason"]
    assert found["free"] == 0


SECOND = """
first = seccomp.early(False)
second = seccomp.install(assemble())
found = [call("unshare", 0), call("prctl", 22, 0, 0, 0, 0), call("socket", 2, 2, 0)]
third = seccomp.early(True)
answer(first=first.state.value, second=second, third=third.state.value, found=found,
       still=call("socket", 2, 2, 0))
"""


@on_linux
def test_a_second_filter_only_tightens():
    found = run(SECOND)
    assert (found["first"], found["second"], found["third"]) == ("active", 0, "active")
    assert found["found"] == [errno.EPERM, errno.EINVAL, errno.EPERM]
    assert found["still"] == errno.EPERM


WITHOUT = """
privileges.drop_privileges()
assert seccomp.install(assemble(Rule("seccomp", SyscallRule[sys.argv[1]]))) == 0
answer(layer=seccomp.early(False).to_json())
"""


@on_linux
@pytest.mark.parametrize(
    ("verdict", "state", "reason"),
    [("ENOSYS", "absent", "no seccomp"), ("EPERM", "refused", "(1)")],
)
def test_a_system_that_does_not_take_it_is_reported(verdict, state, reason):
    layer = run(WITHOUT, verdict)["layer"]
    assert layer["state"] == state
    assert reason in layer["reason"]


UNSEEN = """
seccomp.late_program = lambda here: assemble()
hollow = seccomp.late()
seccomp.Path = lambda name: __import__("pathlib").Path("/nowhere")
blind = seccomp.early(False)
answer(hollow=hollow.to_json(), blind=blind.to_json())
"""


@on_linux
def test_a_filter_that_is_not_seen_to_hold_is_not_active():
    found = run(UNSEEN)
    assert found["hollow"]["state"] == found["blind"]["state"] == "refused"
    assert "not seen" in found["hollow"]["reason"]


LATE_SERVER = """
import zmq
path = sys.argv[1]
context = zmq.Context()
replies = context.socket(zmq.REP)
replies.bind("ipc://" + path)
print(json.dumps(seccomp.late().to_json()), flush=True)
while (message := replies.recv()) != b"end":
    replies.send(message + b", " + str(call("socket", 1, 1, 0)).encode())
replies.send(b"bye")
context.destroy()
"""


@on_linux
def test_a_bound_socket_goes_on_answering_after_late(tmp_path):
    import zmq

    path = str(tmp_path / "s")
    code = PRELUDE.format(repository=REPOSITORY) + LATE_SERVER
    command = [sys.executable, "-I", "-c", code, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert json.loads(process.stdout.readline())["state"] == "active"
            for message in (b"one", b"two"):  # a connection each: it goes on accepting
                assert ask(zmq, path, message) == message + b", 1"
            assert ask(zmq, path, b"end") == b"bye"
            assert process.wait(timeout=PATIENCE_S) == 0
        finally:
            process.kill()


def ask(zmq, path, message):
    with zmq.Context() as context, context.socket(zmq.REQ) as requests:
        requests.linger = 0
        requests.rcvtimeo = 20_000
        requests.connect(f"ipc://{path}")
        requests.send(message)
        return requests.recv()


CLOSED = """
server = socket.create_server(("127.0.0.1", 0))
old = socket.create_server(("127.0.0.1", 0))
unix = socket.socket(socket.AF_UNIX)
if sys.argv[1] == "late":
    assert seccomp.late().state.value == "active"
def attempt(action):
    try:
        action()
    except OSError as error:
        return error.errno
    return 0
def redirect():
    old.shutdown(socket.SHUT_RD)
    old.sendto(b"x", 0x20000000, server.getsockname())
    server.accept()
def pair():
    one, other = socket.socketpair()
    one.send(b"x")
    assert other.recv(1) == b"x"
answer(
    redirect=attempt(redirect), pair=attempt(pair),
    connect=attempt(lambda: unix.connect("/nowhere")),
    datagrams=attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    netlink=attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
    bind=attempt(lambda: unix.bind(sys.argv[2] + "/u")),
    listen=attempt(lambda: server.listen()),
)
"""


@on_linux
def test_late_leaves_no_way_to_a_new_peer(tmp_path):
    free = run(CLOSED, "without", tmp_path)
    bound = run(CLOSED, "late", tmp_path)
    # Without `connect`, a listening socket really does reach another server.
    assert free.pop("redirect") in {0, errno.EOPNOTSUPP}
    assert free.pop("connect") == errno.ENOENT
    assert set(free.values()) == {0}
    assert bound.pop("pair") == 0
    assert set(bound.values()) == {errno.EPERM}
