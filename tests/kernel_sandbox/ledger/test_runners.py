"""The ledger in real kernels and real workers: the same facts from each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.jupyter.attached import AttachedKernel
from kernel_sandbox.ledger.facts import MOST_FACTS
from kernel_sandbox.runners.pool import SandboxPool
from kernel_sandbox.runners.pool_settings import PoolSettings, StateRetention
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellRunner, CellStatus, Limits

SPECS = Path(__file__).parents[3] / "kernel_sandbox"
LOAD = (
    "import pandas as pd\n"
    "df = pd.DataFrame({'c': ['GREAT BRITAIN'] * 12 + ['France'], 'v': range(13)})\n"
    "print(df[df.c == 'Great Britain'].v.sum())"
)
FORGED = (
    "import gc\n"
    "from kernel_sandbox.ledger.book import Book\n"
    "from kernel_sandbox.ledger.facts import Fact\n"
    "for book in [x for x in gc.get_objects() if isinstance(x, Book)]:\n"
    "    book._facts = [Fact('kept', 'x' * 9_000, before=-5, condition='y' * 9_000)] * 9_000\n"
)


@asynccontextmanager
async def _runner(kind: str, *, keeps: bool = True) -> AsyncIterator[CellRunner]:
    if kind == "kernel":
        async with KernelSession(Limits(), keeps_ledger=keeps) as session:
            yield session
        return
    settings = PoolSettings(strategy=StateRetention(kind), profile=Strictness.INTERACTIVE)
    options = WorkerOptions(keeps_ledger=keeps)
    async with SandboxPool(settings, options=options) as pool, pool.runner() as runner:
        yield runner


KINDS = ["kernel", *map(str, StateRetention)]


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_of_runner_gives_the_facts_of_its_cells(kind: str) -> None:
    async with _runner(kind) as runner:
        first = await runner.run(LOAD)  # pandas is loaded in the middle of it
        second = await runner.run("kept = df[df.c == 'France']")
        third = await runner.run("df[df.c == 'Spain']\n1 / 0")
    assert [(x.kind, x.operation, x.before, x.after) for x in first.facts] == [
        ("kept", "[]", 13, 0),
        ("nothing", "sum", 0, 0),
    ]
    assert first.facts[0].coverage[0].near == (("'GREAT BRITAIN'", 12),)
    assert [(x.after, x.condition) for x in second.facts] == [(1, "c == 'France'")]
    assert third.status is CellStatus.ERROR
    assert [x.condition for x in third.facts] == ["c == 'Spain'"]


@pytest.mark.parametrize("kind", ["kernel", "persistent"])
async def test_a_runner_that_keeps_no_ledger_notes_nothing(kind: str) -> None:
    async with _runner(kind, keeps=False) as runner:
        result = await runner.run(LOAD)
    assert (result.stdout, result.facts) == ("0\n", ())


@pytest.mark.parametrize("kind", ["kernel", "persistent"])
async def test_cells_that_await_and_cells_that_use_magics_are_noted(kind: str) -> None:
    async with _runner(kind) as runner:
        await runner.run(LOAD)
        awaited = await runner.run("import asyncio\nawait asyncio.sleep(0)\nx = df[df.v > 99]")
        timed = await runner.run("%time x = df[df.v > 99]")
    assert [x.condition for x in awaited.facts] == ["v > 99"]
    assert [x.condition for x in timed.facts] == ["v > 99"]


@pytest.mark.parametrize("kind", ["kernel", "persistent"])
async def test_a_forged_ledger_stays_small(kind: str) -> None:
    async with _runner(kind) as runner:
        result = await runner.run(FORGED)
        after = await runner.run("1 + 1")
    assert result.status is CellStatus.OK
    assert len(result.facts) <= MOST_FACTS
    assert all(len(fact.condition) <= 240 and fact.before is None for fact in result.facts)
    assert after.status is CellStatus.OK


async def test_the_cells_of_a_person_are_not_noted(tmp_path: Path) -> None:
    specs = KernelSpecManager(kernel_dirs=[str(SPECS)], ensure_native_kernel=False)
    manager = AsyncKernelManager(kernel_name="kernelspec", kernel_spec_manager=specs)
    await manager.start_kernel(cwd=str(tmp_path))
    try:
        attached = AttachedKernel(manager, Limits())
        await attached.open()
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready()
            first = await attached.run(LOAD)
            client.execute("none = df[df.v > 99]\nlayers = pd.DataFrame.query.__code__.co_filename")
            reply = await client.get_shell_msg(timeout=30)
            names = await attached.evaluate("", "layers", 10)
            second = await attached.run("none.v.sum()")
        finally:
            client.stop_channels()
            await attached.close()
    finally:
        await manager.shutdown_kernel(now=True)
    assert len(first.facts) == 2
    assert reply["content"]["status"] == "ok"
    assert "dm_jupyter_ledger" not in reply["content"]
    assert names is not None
    assert "dm_jupyter" not in names
    assert [(x.kind, x.condition) for x in second.facts] == [("nothing", "")]
