"""Ten notebooks, four at a time, through a pool of workers and through plain kernels.

Plain kernels are used in two ways. One way has one kernel for each notebook. The other starts a new
kernel for each request, which is one more cell of a notebook, and runs all cells again. This is
SandboxFusion's Jupyter mode (`sandbox/runtime/jupyter`), which Jupiter's tree search uses. The
notebooks are those on which our tests compare results. They compute little, so this measures the
overhead of running cells.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.sandbox.meter import Cost, Meter
from benchmarks.sandbox.peers import ask, plain_kernel
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool

_FOLDER = Path(__file__).parents[2] / "tests" / "kernel_sandbox" / "golden"
_NAMES = (
    *("classes", "dates", "displays", "frames", "generators"),
    *("interactivity", "namespace", "pickles", "unicode", "values"),
)
_QUICK = ("dates", "generators")
_PARALLEL = 4
_POOL, _KERNEL = "pool of workers", "a plain kernel a notebook"
_REQUEST = "a new plain kernel a request"

_Play = Callable[[Sequence[str]], Awaitable[list[bool]]]
"""Runs a notebook and returns, for each cell, whether it ran without an error."""


async def measure(run: Run) -> Table:
    """Measure in alternating rounds.

    Raises:
        RuntimeError: a cell succeeded in one way and failed in another.
    """
    names = _QUICK if run.is_quick else _NAMES
    notebooks = [_read(name) for name in names]
    rounds = run.repeats(3, 1)
    seen: dict[str, list[Cost]] = {}
    outcomes = set()
    async with SandboxPool(PoolSettings(cells_at_once=_PARALLEL)) as pool:

        async def ours(cells: Sequence[str]) -> list[bool]:
            async with pool.runner() as runner:
                return [(await runner.run(source)).ok for source in cells]

        ways: dict[str, _Play] = {_POOL: ours, _KERNEL: _one_kernel, _REQUEST: _kernel_a_request}
        for _ in range(rounds):
            for name, play in ways.items():
                cost, outcome = await _all(play, notebooks)
                seen.setdefault(name, []).append(cost)
                outcomes.add(json.dumps(outcome))
    if len(outcomes) > 1:
        raise RuntimeError("a cell ended well in one way and not in another")
    return _table(seen, sum(map(len, notebooks)), len(notebooks))


def _read(name: str) -> list[str]:
    cells = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return ["\n".join(lines) for lines in cells]


async def _all(play: _Play, notebooks: Sequence[Sequence[str]]) -> tuple[Cost, list[list[bool]]]:
    turns = asyncio.Semaphore(_PARALLEL)

    async def in_turn(cells: Sequence[str]) -> list[bool]:
        async with turns:
            return await play(cells)

    meter = Meter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(in_turn(cells)) for cells in notebooks]
    return meter.read(), [task.result() for task in tasks]


async def _one_kernel(cells: Sequence[str]) -> list[bool]:
    with TemporaryDirectory(prefix="dm-bench-") as folder:
        async with plain_kernel(Path(folder)) as client:
            return [await ask(client, source) for source in cells]


async def _kernel_a_request(cells: Sequence[str]) -> list[bool]:
    return [(await _one_kernel(cells[:number]))[-1] for number in range(1, len(cells) + 1)]


def _table(seen: dict[str, list[Cost]], cells: int, notebooks: int) -> Table:
    rates = {
        name: cells / statistics.median(x.wall_s for x in costs) for name, costs in seen.items()
    }
    cpu = {name: statistics.median(x.cpu_s for x in costs) / cells for name, costs in seen.items()}
    rows = [
        [
            *(name, f"{rate:.1f}", f"{rates[_POOL] / rate:.1f}", f"{1000 * cpu[name]:.0f}"),
            f"{cpu[name] / cpu[_POOL]:.1f}",
        ]
        for name, rate in rates.items()
    ]
    ratio = rates[_POOL] / rates[_REQUEST]
    notes = [
        verdict("cells/s over a kernel a request", ratio, 10, "x", at_least=True),
        f"{cells} cells of {notebooks} notebooks, every cell ended alike in all ways",
        "the zygote's start is left out; plain kernels are killed at the end",
    ]
    columns = ("way", "cells/s", "pool : it", "CPU ms a cell", "it : pool")
    title = f"notebooks: {_PARALLEL} at a time, medians of {len(seen[_POOL])}, alternating"
    return Table(title, columns, rows, notes)
