"""32 trajectories of six pandas cells on a file of 10 MB: processor time and memory of each way.

Others run all code so far in a new interpreter for each cell. That is measured on a few
trajectories in the same run and reported per trajectory. Time and memory come from two passes,
because reading the memory of a hundred processes takes as long as a cell. Processor time is read
before the trajectories close, because the end of a process namespace discards that of its members.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sandbox.meter import MIB, Cost, Meter, PeakMemory
from benchmarks.sandbox.peers import fresh_interpreter
from benchmarks.sandbox.pipeline import CELLS, NAME, ROWS, checked, csv_file
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.runners.pool import PooledRunner, PoolSettings, SandboxPool, StateRetention

_FRESH = "new interpreter a cell"
_GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class _Figures:
    """Figures of one way, for `count` trajectories."""

    count: int
    cost: Cost
    peak_bytes: int
    rerun: int
    """Cells that were run again to rebuild a state."""

    @property
    def cpu_s(self) -> float:
        """Processor time of one trajectory."""
        return self.cost.cpu_s / self.count


async def measure(run: Run) -> Table:
    """Measure each way with a separate pool, the peer last."""
    count = 4 if run.is_quick else 32
    with csv_file(ROWS // 10 if run.is_quick else ROWS) as path:
        figures = {}
        for strategy in StateRetention:
            figures[str(strategy)] = await _ours(strategy, path, count)
        figures[_FRESH] = await _theirs(path, 1 if run.is_quick else 2)
    return _table(figures)


async def _ours(strategy: StateRetention, path: Path, count: int) -> _Figures:
    async with _pool(strategy) as pool:
        cost = await _play(pool, path, count)
        rerun = pool.metrics().replayed_cells
    async with _pool(strategy) as pool:
        with PeakMemory(pool.zygote.pid or 0) as memory:
            await _play(pool, path, count, memory)
    return _Figures(count, cost, memory.peak_bytes, rerun)


@asynccontextmanager
async def _pool(strategy: StateRetention) -> AsyncIterator[SandboxPool]:
    settings = PoolSettings(strategy=strategy)
    async with SandboxPool(settings) as pool:
        yield pool


async def _play(
    pool: SandboxPool, path: Path, count: int, memory: PeakMemory | None = None
) -> Cost:
    """Run all trajectories concurrently and close them when all are done."""
    all_done, may_close = asyncio.Barrier(count + 1), asyncio.Event()

    async def play() -> None:
        async with pool.runner({NAME: path}) as runner:
            await _cells(runner)
            await all_done.wait()
            await may_close.wait()

    meter = Meter()
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(play())
        await all_done.wait()
        cost = meter.read()
        if memory is not None:
            memory.look()
        may_close.set()
    return cost


async def _cells(runner: PooledRunner) -> None:
    for source in CELLS:
        checked(await runner.run(source))


async def _theirs(path: Path, count: int) -> _Figures:
    """Measure new interpreters, as many at once as our pools run cells."""
    turns = asyncio.Semaphore(PoolSettings().cells_at_once)

    async def play() -> None:
        for number in range(1, len(CELLS) + 1):
            async with turns:
                await fresh_interpreter("\n".join(CELLS[:number]), path.parent)

    async def all_of_them() -> Cost:
        meter = Meter()
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(play())
        return meter.read()

    cost = await all_of_them()
    with PeakMemory(os.getpid(), without_root=True) as memory:
        await all_of_them()
    rerun = count * sum(range(len(CELLS)))
    return _Figures(count, cost, memory.peak_bytes, rerun)


def _table(figures: dict[str, _Figures]) -> Table:
    fresh, persistent = figures[_FRESH], figures[str(StateRetention.PERSISTENT)]
    rows = [
        [
            *(name, str(x.count), f"{x.cpu_s:.2f}", f"{fresh.cpu_s / x.cpu_s:.1f}"),
            *(f"{x.cost.wall_s / x.count:.2f}", f"{x.peak_bytes / _GIB:.2f}", str(x.rerun)),
        ]
        for name, x in figures.items()
    ]
    columns = (
        *("kept between cells", "trajectories", "CPU s each", "new interpreter : it"),
        *("wall s each", "peak GiB of all", "cells run again"),
    )
    ratio = fresh.cpu_s / persistent.cpu_s
    notes = [
        verdict("processor time of a trajectory", persistent.cpu_s, 0.8, "s"),
        verdict("peak of memory", persistent.peak_bytes / _GIB, 5, "GiB"),
        verdict("new interpreters over a persistent state", ratio, 10, "x", at_least=True),
        "memory is the sum of proportional set sizes, the zygote included",
        f"{PoolSettings().cells_at_once} cells at once in each; the zygote's start is left out",
    ]
    return Table("trajectories: six pandas cells", columns, rows, notes)
