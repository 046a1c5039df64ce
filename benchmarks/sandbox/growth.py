"""Cells per second and memory with 1, 2, 4 ... 128 live trajectories that think between cells.

Each keeps a frame of 1 MB and thinks 0.5 to 1.5 seconds between two cells, the same times in each
run. There is no peer, because nothing else here can keep 128 states; see `trajectories`.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sandbox.meter import MIB, Meter, pss_bytes
from benchmarks.sandbox.pipeline import checked
from benchmarks.sandbox.table import Run, Table
from kernel_sandbox.runners.pool import PooledRunner, PoolSettings, SandboxPool

_MAKE = (
    "import numpy as np, pandas as pd\n"
    "df = pd.DataFrame({'key': np.arange(65_536) % 50, 'value': np.arange(65_536.0)})"
)
_CELL = "print(df.groupby('key')['value'].mean().sum())"
_THINK_S = (0.5, 1.5)


@dataclass(frozen=True, slots=True)
class _Point:
    live: int
    cells_per_s: float
    median_ms: float
    """From submitting a cell to its result, including the wait for its turn."""
    cpu_ms: float
    """Processor time of one cell."""
    pss_mib: float
    """Of the zygote and all workers."""


async def measure(run: Run) -> Table:
    """Open more and more trajectories in one pool and measure at each number."""
    most, seconds = (4, 2.0) if run.is_quick else (128, 15.0)
    points = []
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(SandboxPool(PoolSettings(trajectories_at_once=most)))
        runners: list[PooledRunner] = []
        live = 1
        while live <= most:
            while len(runners) < live:
                runner = await stack.enter_async_context(pool.runner())
                checked(await runner.run(_MAKE))
                runners.append(runner)
            points.append(await _point(pool, runners, seconds))
            live *= 2
        evictions = pool.metrics().evictions
    if run.plot is not None:
        _draw(points, run.plot)
    return _table(points, seconds, evictions)


async def _point(pool: SandboxPool, runners: list[PooledRunner], seconds: float) -> _Point:
    times: list[float] = []
    ends_at = time.perf_counter() + seconds

    async def live(runner: PooledRunner, chance: random.Random) -> None:
        await asyncio.sleep(chance.uniform(0, _THINK_S[1]))
        while time.perf_counter() < ends_at:
            began = time.perf_counter()
            checked(await runner.run(_CELL))
            ended = time.perf_counter()
            times.append(ended - began)
            await asyncio.sleep(min(chance.uniform(*_THINK_S), max(0.0, ends_at - ended)))

    meter = Meter()
    async with asyncio.TaskGroup() as group:
        for number, runner in enumerate(runners):
            group.create_task(live(runner, random.Random(number)))
    cost = meter.read()
    return _Point(
        len(runners),
        len(times) / cost.wall_s,
        1000 * sorted(times)[len(times) // 2],
        1000 * cost.cpu_s / len(times),
        pss_bytes(pool.zygote.pid or 0) / MIB,
    )


def _draw(points: list[_Point], path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415 (the table needs none)

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, (rate, memory) = plt.subplots(1, 2, figsize=(7.5, 2.8), layout="constrained")
    live = [point.live for point in points]
    rate.plot(live, [point.cells_per_s for point in points], marker="o", color="tab:blue")
    rate.set_ylabel("cells per second")
    memory.plot(live, [x.pss_mib / 1024 for x in points], marker="o", color="tab:green")
    memory.set_ylabel("memory of all (GiB)")
    for axes in (rate, memory):
        axes.set_xscale("log", base=2)
        axes.set_xticks(live, [str(number) for number in live])
        axes.set_xlabel("live trajectories")
        axes.set_ylim(0, 1.1 * axes.dataLim.ymax)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110, facecolor="white")
    plt.close(figure)


def _table(points: list[_Point], seconds: float, evictions: int) -> Table:
    rows = [
        [
            *(str(x.live), f"{x.cells_per_s:.1f}", f"{x.median_ms:.0f}", f"{x.cpu_ms:.1f}"),
            *(f"{x.pss_mib:.0f}", f"{x.pss_mib / x.live:.0f}"),
        ]
        for x in points
    ]
    columns = ("live", "cells/s", "median ms", "CPU ms a cell", "MiB of all", "MiB each")
    notes = [
        "memory is the sum of proportional set sizes, the zygote included",
        f"a trajectory thinks {_THINK_S[0]} to {_THINK_S[1]} s; {evictions} states evicted",
    ]
    return Table(f"growth: {seconds:g} s at each number", columns, rows, notes)
