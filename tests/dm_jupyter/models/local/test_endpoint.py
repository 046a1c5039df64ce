from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
import urllib.error
import urllib.request
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from dm_jupyter.models.local import endpoint as endpoint_module
from dm_jupyter.models.local.catalogue import LocalModel, resolve
from dm_jupyter.models.local.endpoint import (
    LocalEndpoint,
    ServerOptions,
    local_endpoint,
    running_endpoint,
)
from dm_jupyter.models.local.engine import SLOTS, obstacles
from dm_jupyter.models.local.errors import (
    EngineMissingError,
    ModelMissingError,
    ServerStartError,
)
from dm_jupyter.models.local.runtime import ServerFolder
from dm_jupyter.models.local.tickets import Need, Ticket, Urgency
from kernel_sandbox.packages.commands import install_extra, own_command
from tests.waiting import PATIENCE_S, until

PROGRAM = Path(__file__).with_name("tiny_server.py")
USER = """
import asyncio, sys
from dm_jupyter.models.local.endpoint import ServerOptions, local_endpoint
from pathlib import Path

async def main():
    options = ServerOptions(runtime_dir=Path(sys.argv[2]), command=tuple(sys.argv[3:]))
    async with local_endpoint(sys.argv[1], options) as endpoint:
        print(endpoint.base_url, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
def options(tmp_path: Path) -> ServerOptions:
    return ServerOptions(runtime_dir=tmp_path / "run", command=(sys.executable, str(PROGRAM)))


@pytest.fixture
def served(tmp_path: Path) -> LocalModel:
    return _behaves(tmp_path, "well")


def _behaves(folder: Path, how: str) -> LocalModel:
    path = folder / f"{how}.gguf"
    path.write_text(how)
    return resolve(str(path))


def _pid(model: LocalModel, options: ServerOptions) -> int:
    pid = ServerFolder.open(model, options.runtime_dir).server_pid()
    assert pid is not None
    return pid


async def _gone(pid: int) -> None:
    await until(lambda: not psutil.pid_exists(pid), f"process {pid} has ended")


def _status(endpoint: LocalEndpoint, key: str) -> int:
    request = urllib.request.Request(endpoint.base_url, headers={"Authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


async def test_server_lives_as_long_as_its_user(served: LocalModel, options: ServerOptions) -> None:
    said: list[str] = []
    async with local_endpoint(served, options, said.append) as endpoint:
        pid = _pid(served, options)
        assert await asyncio.to_thread(_status, endpoint, endpoint.api_key) == 200
        assert await asyncio.to_thread(_status, endpoint, "guess") == 401
        assert endpoint.model_name == served.name
        assert running_endpoint(served, options.runtime_dir) == endpoint
        assert said == [f"starting {served.title}", *said[1:]]
    await _gone(pid)
    assert running_endpoint(served, options.runtime_dir) is None
    assert not endpoint.key_file.exists()


async def test_key_is_secret(served: LocalModel, options: ServerOptions) -> None:
    async with local_endpoint(served, options) as endpoint:
        process = psutil.Process(_pid(served, options))
        assert len(endpoint.api_key) >= 43
        assert endpoint.api_key not in repr(endpoint)
        assert endpoint.api_key not in " ".join(process.cmdline())
        assert endpoint.api_key not in process.environ().values()
        folder = endpoint.key_file.parent
        assert endpoint.key_file.read_text() == endpoint.api_key
        for path in (endpoint.key_file, folder / "server.json", folder / "server.log"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for path in (folder, folder / "leases", folder.parent):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700


async def test_users_share_one_server(served: LocalModel, options: ServerOptions) -> None:
    async with AsyncExitStack() as late:
        async with local_endpoint(served, options) as first:
            second = await late.enter_async_context(local_endpoint(served, options))
            assert second == first
            pid = _pid(served, options)
        # The first has left, the second works on.
        assert await asyncio.to_thread(_status, second, second.api_key) == 200
        assert _pid(served, options) == pid
    await _gone(pid)


async def test_more_slots_have_a_context_each(served: LocalModel, options: ServerOptions) -> None:
    said: list[str] = []
    async with local_endpoint(served, replace(options, slots=4)) as endpoint:
        assert endpoint.slots == 4
        each = Need(Urgency.QUESTION, slots=1, tokens=endpoint.context_tokens)
        queue = endpoint.queue()
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            together = asyncio.Barrier(4)

            async def ask(ticket: Ticket) -> None:
                ticket.writes()
                await together.wait()

            for _ in range(4):
                group.create_task(queue.answered(each, ask))
        async with local_endpoint(served, replace(options, slots=8), said.append) as same:
            assert same == endpoint
    assert said == [f"{served.title} runs already, for 4 requests at a time: others wait"]


async def test_users_who_start_at_once_share_one_server(
    tmp_path: Path, options: ServerOptions
) -> None:
    slow = _behaves(tmp_path, "slow")
    keys: list[str] = []
    all_in = asyncio.Barrier(4)

    async def use() -> None:
        async with local_endpoint(slow, options) as endpoint:
            keys.append(endpoint.api_key)
            await all_in.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(use())
    assert len(set(keys)) == 1
    assert running_endpoint(slow, options.runtime_dir) is None


async def test_two_models_have_two_servers(tmp_path: Path, options: ServerOptions) -> None:
    one, two = _behaves(tmp_path, "one"), _behaves(tmp_path, "two")
    async with local_endpoint(one, options) as first, local_endpoint(two, options) as second:
        assert first.base_url != second.base_url
        assert await asyncio.to_thread(_status, second, first.api_key) == 401


async def test_killed_user_leaves_no_server(served: LocalModel, options: ServerOptions) -> None:
    user = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", USER, str(served.path), str(options.runtime_dir)),
        *options.command,
        stdout=asyncio.subprocess.PIPE,
    )
    assert user.stdout is not None
    assert (await user.stdout.readline()).startswith(b"http://127.0.0.1:")
    pid = _pid(served, options)
    user.kill()
    await user.wait()
    await _gone(pid)
    # And the next user gets a new one.
    async with local_endpoint(served, options) as endpoint:
        assert await asyncio.to_thread(_status, endpoint, endpoint.api_key) == 200


async def test_a_server_of_low_priority_is_raised_or_that_is_said(
    served: LocalModel, options: ServerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def refuse(*_: object) -> None:
        raise PermissionError

    async with local_endpoint(served, options):
        pid = _pid(served, options)
        os.setpriority(os.PRIO_PROCESS, pid, 15)
        with monkeypatch.context() as patched:
            patched.setattr(os, "setpriority", refuse)
            async with local_endpoint(served, options, said.append):
                assert os.getpriority(os.PRIO_PROCESS, pid) == 15
        assert len(said) == 1
        assert "low priority (nice 15)" in said[0]
        if os.geteuid() == 0:
            async with local_endpoint(served, options, said.append):
                assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)
            assert len(said) == 1


async def test_killed_server_is_replaced(served: LocalModel, options: ServerOptions) -> None:
    async with local_endpoint(served, options) as first:
        pid = _pid(served, options)
        assert first.is_served()
        os.kill(pid, signal.SIGKILL)
        await _gone(pid)
        assert not first.is_served()
        async with local_endpoint(served, options) as second:
            assert second.is_served()
            assert not first.is_served()
            assert second.api_key != first.api_key
            assert await asyncio.to_thread(_status, second, second.api_key) == 200


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("refuses", "could not start .exit code 1.*not a model"),
        ("crashes", "ran out of memory.*engine: crashes"),
        ("aborts", "signal 6"),
    ],
)
async def test_failed_start_shows_reason_and_log(
    how: str, why: str, tmp_path: Path, options: ServerOptions
) -> None:
    model = _behaves(tmp_path, how)
    with pytest.raises(ServerStartError, match=f"(?s){why}") as caught:
        async with local_endpoint(model, options):
            pass
    assert str(model.path) in str(caught.value)
    assert running_endpoint(model, options.runtime_dir) is None


async def test_hanging_start_ends_and_is_stopped(tmp_path: Path, options: ServerOptions) -> None:
    model = _behaves(tmp_path, "hangs")
    said: list[str] = []
    with pytest.raises(ServerStartError, match="did not answer within 2 s"):
        async with local_endpoint(model, replace(options, start_timeout_s=2.0), said.append):
            pass
    assert any("loading" in line for line in said)
    assert not ServerFolder.open(model, options.runtime_dir).is_alive()


async def test_cancelled_start_leaves_no_server(tmp_path: Path, options: ServerOptions) -> None:
    model = _behaves(tmp_path, "hangs")
    folder = ServerFolder.open(model, options.runtime_dir)

    async def use() -> None:
        async with local_endpoint(model, options):
            pass

    task = asyncio.create_task(use())
    await until(lambda: folder.server_pid() is not None, "the server has begun to start")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not folder.is_alive()


async def test_stubborn_server_is_killed(
    tmp_path: Path, options: ServerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint_module, "_STOP_TIMEOUT_S", 0.5)
    model = _behaves(tmp_path, "stubborn")
    async with local_endpoint(model, options):
        pid = _pid(model, options)
        assert psutil.pid_exists(pid)
    await _gone(pid)
    assert not psutil.pid_exists(pid)


async def test_server_that_does_not_answer_is_named(tmp_path: Path, options: ServerOptions) -> None:
    with pytest.raises(ServerStartError, match=r"process \d+\) runs but does not answer"):
        async with local_endpoint(_behaves(tmp_path, "deaf"), options):
            pass


async def test_cancelling_the_teardown_still_stops_the_server(
    served: LocalModel, options: ServerOptions
) -> None:
    leaving = asyncio.Event()

    async def use() -> None:
        async with local_endpoint(served, options):
            leaving.set()

    task = asyncio.create_task(use())
    await leaving.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not ServerFolder.open(served, options.runtime_dir).is_alive()


async def test_what_is_missing_is_said_in_the_order_in_which_it_can_be_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = ServerOptions(cache_dir=tmp_path)
    with pytest.raises(ModelMissingError) as no_file:
        async with local_endpoint("smollm2-135m", absent):
            pass
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(EngineMissingError) as no_engine:
        async with local_endpoint("smollm2-135m", absent):
            pass
    both = [(found.text, found.command) for found in obstacles("smollm2-135m", tmp_path)]
    assert both == [(error.value.text, error.value.command) for error in (no_engine, no_file)]
    assert no_engine.value.command == install_extra("local")
    folder = ("--cache-dir", str(tmp_path))
    assert no_file.value.command == own_command("model", "pull", "smollm2-135m", *folder)


@pytest.mark.parametrize("name", ["nonsense", "/nowhere/my.gguf"])
def test_a_model_that_is_none_is_the_only_thing_missing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    (found,) = obstacles(name)
    assert isinstance(found, ModelMissingError)
    assert name in found.text
    assert found.command == own_command("model", "list")


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="port"):
        ServerOptions(port=70_000)
    with pytest.raises(ValueError, match="slots must be 1 or more, not 0"):
        ServerOptions(slots=0)


async def test_state_says_what_was_asked_for(served: LocalModel, options: ServerOptions) -> None:
    async with local_endpoint(served, options) as endpoint:
        state = json.loads((endpoint.key_file.parent / "server.json").read_text())
        assert (endpoint.slots, endpoint.context_tokens) == (SLOTS, 8192)
        assert endpoint.api_key not in state.values()
