"""Cells that try to get out, on a real kernel with all layers, and what holds without some."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import ipykernel
import psutil
import pytest

from kernel_sandbox.confine.probe import probe
from kernel_sandbox.conformance import selfcheck
from kernel_sandbox.types import CellStatus, Limits
from tests.waiting import until

pytestmark = pytest.mark.skipif(not probe().has_view, reason="namespaces do not work here")


async def outcome(session, code):
    """What the code printed, or the name of the exception that ended it."""
    result = await session.run(code)
    return result.error.name if result.error else result.stdout.strip()


async def test_files_processes_and_settings_are_out_of_reach(open_session, tmp_path, monkeypatch):
    monkeypatch.setenv("SERVICE_TOKEN", "secret-value")
    data, secret = tmp_path / "data.csv", tmp_path / "secret.txt"
    data.write_text("a\n1\n")
    secret.write_text("x")
    session = await open_session(inputs={"data.csv": data, str(data): data})
    assert await outcome(session, "print(open('data.csv').read())") == "a\n1"
    assert await outcome(session, f"print(open({str(data)!r}).read())") == "a\n1"
    for code in (
        "open('data.csv', 'w')",
        f"open({str(data)!r}, 'a')",
        "open('/x', 'w')",
        "open('/etc/x', 'w')",
        "open('/usr/x', 'w')",
        "open('/proc/sys/kernel/core_pattern', 'w')",
        "open('/proc/sys/kernel/pid_max', 'w')",
    ):
        assert await outcome(session, code) in ("OSError", "PermissionError"), code
    assert data.read_text() == "a\n1\n"
    for path in (secret, Path.home() / ".ssh", "/etc/passwd", f"/proc/{os.getpid()}/environ"):
        code = f"import os; print(os.path.exists({str(path)!r}) and open({str(path)!r}).read())"
        assert "secret-value" not in await outcome(session, code)
    assert await outcome(session, f"import os; print(os.path.exists({str(secret)!r}))") == "False"
    pids = await outcome(session, "print(len([n for n in os.listdir('/proc') if n.isdigit()]))")
    assert int(pids) == 2
    assert (
        await outcome(session, "print(any('secret-value' in v for v in os.environ.values()))")
        == "False"
    )


async def test_the_network_is_there_only_when_allowed(open_session):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        call = f"socket.create_connection(('127.0.0.1', {port}), 2).close()"
        code = f"import socket\n{call}\nprint('in')"
        closed = await open_session()
        assert await outcome(closed, code) == "ConnectionRefusedError"
        open_net = await open_session(Limits(network=True))
        assert await outcome(open_net, code) == "in"
        assert open_net.containment.get("network_namespace").state == "off"


async def test_a_file_in_the_folder_can_not_replace_a_module_at_boot(open_session, tmp_path):
    for name in ("random.py", "traitlets.py", "mine.py"):
        (tmp_path / name).write_text("value = 'from the folder'\n")
    session = await open_session(Limits(writable_dir=tmp_path))
    assert await outcome(session, "import random; print(random.randint(1, 1))") == "1"
    assert await outcome(session, "import mine; print(mine.value)") == "from the folder"
    assert await outcome(session, "open('new.txt', 'w').write('x'); print(1)") == "1"
    await session.close()
    assert (tmp_path / "new.txt").read_text() == "x"


DAEMON = """
import multiprocessing, os, time
context = multiprocessing.get_context("fork")
def daemon():
    os.setsid()
    second = context.Process(target=time.sleep, args=(300,))
    second.start()
    print(second.pid, flush=True)
    getattr(os, "_ex" + "it")(0)
first = context.Process(target=daemon)
first.start()
first.join()
"""


@pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
async def test_no_daemon_survives_the_session(open_session, isolate):
    session = await open_session(isolate=isolate)
    result = await session.run(DAEMON)
    assert result.ok
    run_dir = str(session._kernel.provisioner.run_dir)
    await session.close()
    left = []
    for process in psutil.process_iter():
        try:
            left += [process.pid for value in process.environ().values() if value == run_dir]
        except psutil.Error:
            continue
    assert left == []


@pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
async def test_what_a_forked_process_prints_is_seen_at_once(open_session, isolate):
    session = await open_session(isolate=isolate)
    code = (
        "import multiprocessing\n"
        "fork = multiprocessing.get_context('fork')\n"
        "child = fork.Process(target=print, args=('from a child',))\n"
        "child.start(); child.join()"
    )
    result = await session.run(code)
    assert result.seconds < 9  # a kernel that waits for its child to flush does so for 10 s
    shown = [result.stdout]

    async def shows_it():
        shown.append((await session.run("1")).stdout)
        return "from a child" in "".join(shown)

    await until(shows_it, "the line of the child is shown")


async def test_a_forged_message_does_not_end_the_session(open_session):
    session = await open_session()
    code = (
        "k = get_ipython().kernel\n"
        "k.session.send(k.iopub_socket, 'stream', {'name': 'stdout'}, parent=k.get_parent())\n"
        "k.session.send(k.iopub_socket, 'error', {'traceback': 5}, parent=k.get_parent())\n"
        "print('after')"
    )
    assert await outcome(session, code) == "after"
    assert await outcome(session, "print(2)") == "2"


@pytest.mark.slow
async def test_selfcheck_passes_with_namespaces_and_is_honest_without():
    checks = await selfcheck.selfcheck()
    assert [check for check in checks if not check.passed] == []
    containment, checks = await selfcheck.check_machine(isolate=False)
    assert not containment.is_active("read_only_view")
    passed = {check.name: check.passed for check in checks}
    assert passed["the network is out of reach"] == containment.is_active("late_seccomp")
    assert passed["memory above the limit ends the cell"]


def test_an_attempt_of_the_selfcheck_that_gets_through_changes_nothing(tmp_path, monkeypatch):
    """Made here by a process that nothing confines."""
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "secret.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        places = selfcheck._Places(tmp_path / "data.csv", tmp_path / "secret.txt", port)
        attempts = selfcheck._attempts(places)
        before = _state(tmp_path)
        for attempt in attempts.values():
            with suppress(PermissionError):  # of a user other than root
                exec(attempt)
    assert _state(tmp_path) == before
    assert "the interpreter can't be changed" in attempts


def _state(folder):
    """What an attempt could change: its folder, the interpreter's packages and a setting."""
    packages = Path(ipykernel.__file__).parent
    files = sorted({*folder.iterdir(), *packages.parent.iterdir(), *packages.glob("*.py")})
    stats = [(file, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    return stats, Path(selfcheck._SETTING).read_text()


@pytest.mark.slow
def test_selfcheck_prints_a_table(capsys):
    assert selfcheck.main() == 0
    printed = capsys.readouterr().out
    assert "layers active" in printed
    assert "pass  a file can be written" in printed


async def test_denied_status_needs_no_kernel(open_session):
    session = await open_session()
    assert (await session.run("!ls")).status is CellStatus.DENIED
