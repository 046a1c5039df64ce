"""Lives per second, one cell each, with 1, 2 and 4 in parallel: worker and plain ipykernel."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Iterator

from benchmarks.sandbox.meter import Cost, Meter
from benchmarks.sandbox.peers import ask, plain_kernel
from benchmarks.sandbox.pipeline import checked
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker

_PARALLEL = (1, 2, 4)
_WORKER, _PLAIN = "cell worker", "plain ipykernel"
_Life = Callable[[], Awaitable[None]]


async def measure(run: Run) -> Table:
    """Measure in alternating rounds; a round has five times as many workers as kernels."""
    rounds = run.repeats(5, 1)
    seen: dict[tuple[str, int], list[Cost]] = {}
    async with Zygote() as zygote:

        async def worker() -> None:
            async with CellWorker(zygote) as session:
                checked(await session.run("1+1"))

        kinds: dict[str, tuple[int, _Life]] = {_WORKER: (20, worker), _PLAIN: (4, _plain)}
        for _, life in kinds.values():
            await life()
        for _ in range(rounds):
            for parallel in _PARALLEL:
                for name, (lives, life) in kinds.items():
                    cost = await _all(life, lives, parallel)
                    each = Cost(cost.wall_s / lives, cost.cpu_s / lives)
                    seen.setdefault((name, parallel), []).append(each)
    return _table(seen, rounds)


async def _plain() -> None:
    async with plain_kernel() as client:
        await ask(client, "1+1")


async def _all(life: _Life, lives: int, parallel: int) -> Cost:
    """Run `lives` lives, `parallel` of them at the same time."""
    waiting = iter(range(lives))

    async def one_by_one(left: Iterator[int]) -> None:
        for _ in left:
            await life()

    meter = Meter()
    async with asyncio.TaskGroup() as group:
        for _ in range(parallel):
            group.create_task(one_by_one(waiting))
    return meter.read()


def _table(seen: dict[tuple[str, int], list[Cost]], rounds: int) -> Table:
    rates = {key: 1 / statistics.median(x.wall_s for x in costs) for key, costs in seen.items()}
    rows = [
        [
            *(str(parallel), name, f"{rate:.1f}", f"{rate / rates[_PLAIN, parallel]:.1f}"),
            f"{1000 * statistics.median(x.cpu_s for x in seen[name, parallel]):.0f}",
        ]
        for (name, parallel), rate in sorted(rates.items(), key=lambda item: item[0][1])
    ]
    most = _PARALLEL[-1]
    ratio = rates[_WORKER, most] / rates[_PLAIN, most]
    notes = [
        verdict("workers at 4", rates[_WORKER, most], 20, "/s", at_least=True),
        verdict("workers at 4 over plain kernels", ratio, 8, "x", at_least=True),
        "plain kernels are killed at the end, which is faster than asking them to leave",
    ]
    columns = ("in parallel", "kind", "lives/s", "over plain", "CPU ms a life")
    return Table(f"throughput: medians of {rounds}, alternating", columns, rows, notes)
