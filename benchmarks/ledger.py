"""Cost of the ledger: the six cells of the trajectories' benchmark, with and without it.

    python -m benchmarks.ledger [--rounds N] [--quick]

Both workers are forks of one zygote, new in every round. They run side by side, cell by cell, and
alternate in which is first. Processor time is that of the worker alone, read before and after a
cell. The ratio of a cell is the median of its rounds' ratios. Cells without pandas show what adding
and removing the layers costs by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import time
from pathlib import Path

import pandas as pd

from benchmarks.sandbox.pipeline import CELLS, NAME, ROWS, checked, csv_file
from benchmarks.sandbox.table import Table, verdict
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker

_NAMES = ("read", "clean", "group", "merge", "regress", "resample")
_BARE = 200
"""Empty cells; a single one is too short to measure."""


def _cpu_s(worker: CellWorker) -> float:
    return time.clock_gettime((~(worker.pid or 0) << 3) | 2)  # clock_getcpuclockid(3)


async def _cell(worker: CellWorker, source: str) -> tuple[float, int]:
    """Return the processor seconds of a cell, and the number of facts noted."""
    began = _cpu_s(worker)
    result = checked(await worker.run(source))
    return _cpu_s(worker) - began, len(result.facts)


async def _round(zygote: Zygote, path: Path, *, noted_first: bool) -> list[tuple[float, float]]:
    """Return the seconds of each cell without and with the ledger; an empty cell comes last."""
    inputs = {NAME: path}
    found = []
    async with (
        CellWorker(zygote, inputs=inputs, keeps_ledger=False) as plain,
        CellWorker(zygote, inputs=inputs) as noted,
    ):
        for source in (*CELLS, *["pass"] * _BARE):
            cost = {}
            for worker in (noted, plain) if noted_first else (plain, noted):
                cost[worker], _ = await _cell(worker, source)
            found.append((cost[plain], cost[noted]))
    bare = found[len(CELLS) :]
    total = (sum(one for one, _ in bare) / _BARE, sum(other for _, other in bare) / _BARE)
    return [*found[: len(CELLS)], total]


async def _facts(zygote: Zygote, path: Path) -> list[int]:
    async with CellWorker(zygote, inputs={NAME: path}) as worker:
        return [(await _cell(worker, source))[1] for source in CELLS]


async def measure(rounds: int, rows: int) -> Table:
    """Measure in alternating rounds, after one that only warms the machine."""
    with csv_file(rows) as path:
        async with Zygote() as zygote:
            facts = await _facts(zygote, path)
            seen = [
                await _round(zygote, path, noted_first=bool(number % 2)) for number in range(rounds)
            ]
    lines, ratios = [], []
    for place, name in enumerate((*_NAMES, "an empty cell")):
        pairs = [one[place] for one in seen]
        plain, noted = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(other / one for one, other in pairs)
        if place < len(CELLS):
            ratios.append(ratio)
        count = str(facts[place]) if place < len(CELLS) else "0"
        lines.append(
            [name, f"{plain * 1e3:.2f}", f"{noted * 1e3:.2f}", f"{(ratio - 1) * 100:+.1f} %", count]
        )
    whole = [
        sum(noted for _, noted in one[: len(CELLS)]) / sum(plain for plain, _ in one[: len(CELLS)])
        for one in seen
    ]
    notes = [
        verdict("median over the cells", (statistics.median(ratios) - 1) * 100, 5, "%"),
        verdict("all six cells together", (statistics.median(whole) - 1) * 100, 5, "%"),
        f"{rounds} rounds, {rows:,} rows, pandas {pd.__version__}, Python "
        f"{platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
    ]
    columns = ("cell", "ms without", "ms with", "more", "facts")
    return Table("the ledger: processor time of a cell", columns, lines, notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rounds, rows = (2, ROWS // 10) if options.quick else (options.rounds, ROWS)
    print(asyncio.run(measure(rounds, rows)).to_text())


if __name__ == "__main__":
    main()
