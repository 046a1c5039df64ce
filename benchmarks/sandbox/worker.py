"""Life of a cell worker: fork, first cell, 20 more, end; compared with a plain ipykernel's.

Processor time is a mean over all lives. For what a zygote has reaped, the system reports hundredths
of a second; the truncation errors do not add up.
"""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable

from benchmarks.sandbox.meter import Cost, Meter
from benchmarks.sandbox.peers import ask, plain_kernel
from benchmarks.sandbox.pipeline import checked
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker

_CELLS = 21
_WORKER, _PLAIN = "cell worker", "plain ipykernel"
_Costs = tuple[Cost, Cost]
"""Costs until the first result, and of the entire life."""


async def _worker(zygote: Zygote) -> _Costs:
    meter = Meter()
    async with CellWorker(zygote) as worker:
        checked(await worker.run("1+1"))
        first = meter.read()
        for _ in range(_CELLS - 1):
            checked(await worker.run("1+1"))
    return first, meter.read()


async def _plain() -> _Costs:
    meter = Meter()
    async with plain_kernel() as client:
        await ask(client, "1+1")
        first = meter.read()
        for _ in range(_CELLS - 1):
            await ask(client, "1+1")
    return first, meter.read()


async def measure(run: Run) -> Table:
    """Measure in alternating rounds; a round has five workers and one kernel."""
    warming = Meter()
    async with Zygote() as zygote:
        warm = warming.read()
        kinds: dict[str, tuple[int, Callable[[], Awaitable[_Costs]]]] = {
            _WORKER: (5, lambda: _worker(zygote)),
            _PLAIN: (1, _plain),
        }
        seen: dict[str, list[_Costs]] = {name: [] for name in kinds}
        for _, kind in kinds.values():
            await kind()
        rounds = run.repeats(10, 2)
        for _ in range(rounds):
            for name, (times, kind) in kinds.items():
                seen[name] += [await kind() for _ in range(times)]
    return _table(seen, warm)


def _table(seen: dict[str, list[_Costs]], warm: Cost) -> Table:
    figures = {name: _figures(costs) for name, costs in seen.items()}
    base = figures[_PLAIN]
    rows = [
        [
            f"{name} ({len(seen[name])})",
            *(f"{first_cpu:.0f}", f"{first_wall:.0f}", f"{base[1] / first_wall:.1f}"),
            *(f"{cpu:.0f}", f"{base[2] / cpu:.1f}", f"{wall:.0f}"),
        ]
        for name, (first_cpu, first_wall, cpu, wall) in figures.items()
    ]
    columns = (
        *("what (lives)", "first cell CPU ms", "wall ms", "plain : it"),
        *("life CPU ms", "plain : it", "wall ms"),
    )
    notes = [
        verdict("processor time of fork and first cell", figures[_WORKER][0], 60, "ms"),
        verdict("processor time of a life", figures[_WORKER][2], 250, "ms"),
        f"a life is a start, {_CELLS} cells of `1+1` and the end; wall times are medians",
        f"the zygote, once for all workers: {warm.cpu_s:.2f} s CPU, {warm.wall_s:.2f} s wall",
    ]
    return Table("worker: fork, first cell, life; alternating", columns, rows, notes)


def _figures(costs: list[_Costs]) -> tuple[float, float, float, float]:
    """Return milliseconds: processor and clock time until the first result, and of the life."""
    return (
        1000 * statistics.mean(first.cpu_s for first, _ in costs),
        1000 * statistics.median(first.wall_s for first, _ in costs),
        1000 * statistics.mean(life.cpu_s for _, life in costs),
        1000 * statistics.median(life.wall_s for _, life in costs),
    )
