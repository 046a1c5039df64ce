"""What only a client of a kernel's own can do: name the cell, interrupt it, kill the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager

import dm_jupyter
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellStatus
from tests.dm_jupyter.magic.kernel import LOAD
from tests.endpoint import ScriptedEndpoint
from tests.waiting import until

COUNT = "print('rows', len(df))\n```"
WAIT = "import time\ntime.sleep(60)\n```"


class Notebook:
    """A person's kernel, and what it published."""

    def __init__(self, manager: AsyncKernelManager, client: AsyncKernelClient) -> None:
        self.manager, self.client = manager, client
        self.process = psutil.Process(manager.provisioner.pid)
        self.outputs: list[dict[str, Any]] = []

    def send(self, code: str, cell_id: str = "") -> str:
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        message = self.client.session.msg(
            "execute_request", content, metadata={"cellId": cell_id} if cell_id else None
        )
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    async def read_until(self, is_last: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                message: dict[str, Any] = await self.client.get_iopub_msg()
                self.outputs.append(message)
                if is_last(message):
                    return message

    async def finish(self, sent: str) -> None:
        await self.read_until(
            lambda m: (
                m["msg_type"] == "status"
                and m["content"]["execution_state"] == "idle"
                and m["parent_header"].get("msg_id") == sent
            )
        )

    async def run(self, code: str) -> None:
        await self.finish(self.send(code))

    @property
    def children(self) -> list[psutil.Process]:
        """What the kernel has started and not yet ended."""
        return self.process.children(recursive=True)


@pytest.fixture
async def notebook(folder: Path) -> AsyncIterator[Notebook]:
    manager = AsyncKernelManager(kernel_name="python3")
    await manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        notebook = Notebook(manager, client)
        await notebook.run(LOAD)
        yield notebook
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


def _shows(words: str) -> Callable[[dict[str, Any]], bool]:
    return lambda message: (
        message["msg_type"].endswith("display_data")
        and words in str(message["content"]["data"].get("text/plain"))
    )


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


async def test_the_cell_that_asks_is_named(notebook: Notebook) -> None:
    sent = notebook.send("%%analyze 'my people.csv'\nHow many?", cell_id="c1")
    opening = await notebook.read_until(lambda m: m["msg_type"] == "comm_open")
    content = opening["content"]
    assert (content["target_name"], content["data"]["cell_id"]) == ("dm-jupyter", "c1")
    reply = {"comm_id": content["comm_id"], "data": {"kind": "accepted", "run_id": "r1"}}
    notebook.client.shell_channel.send(notebook.client.session.msg("comm_msg", reply))
    await notebook.finish(sent)


@pytest.mark.slow
async def test_an_interrupt_stops_the_run_and_leaves_what_was_done(notebook: Notebook) -> None:
    with ScriptedEndpoint([COUNT, f"```python\n{WAIT}"]) as endpoint:
        options = f"--into output --base-url {endpoint.base_url} --model tiny"
        sent = notebook.send(f"%%analyze 'my people.csv' {options}\nHow many?")
        await notebook.read_until(_shows("running the cell · turn 2"))
        assert notebook.children
        await notebook.manager.interrupt_kernel()
        error = await notebook.read_until(lambda m: m["msg_type"] == "error")
        assert error["content"]["traceback"] == ["dm-jupyter: interrupted"]
        await notebook.finish(sent)
    assert not notebook.children
    assert any(_shows("rows 3")(message) for message in notebook.outputs)
    assert any(_shows("stopped · tiny at 127.0.0.1:")(message) for message in notebook.outputs)
    notebook.outputs.clear()
    await notebook.run("print('lives')")
    assert any(m["content"].get("text") == "lives\n" for m in notebook.outputs)


@pytest.mark.slow
async def test_a_killed_notebook_kernel_leaves_no_process(notebook: Notebook) -> None:
    with ScriptedEndpoint([WAIT]) as endpoint:
        options = f"--into output --base-url {endpoint.base_url} --model tiny"
        notebook.send(f"%%analyze 'my people.csv' {options}\nHow many?")
        await notebook.read_until(_shows("running the cell · turn 1"))
        started = notebook.children
        notebook.process.kill()
        assert started
        await until(lambda: not any(map(_lives, started)), "what it started has ended")


@pytest.mark.slow
async def test_in_a_restricted_kernel_it_says_what_to_do(folder: Path) -> None:
    # In a checkout, this package is not where the kernel may read unless it is told.
    checkout = Path(dm_jupyter.__file__).parents[1]
    inputs = {"people.csv": folder / "my people.csv"}
    async with KernelSession(inputs=inputs, overlay=checkout) as session:
        loaded = await session.run(LOAD)
        assert (loaded.status, loaded.outputs) == (CellStatus.OK, ())
        asked = await session.run("%%analyze people.csv\nHow many?")
    assert asked.error is not None
    (line,) = asked.error.traceback
    assert line.startswith("dm-jupyter: this kernel is restricted and reaches no model: ")
