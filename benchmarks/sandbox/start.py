"""Start of a restricted ipykernel up to its first result, compared with jupyter_client's."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable

from benchmarks.sandbox.meter import Cost, Meter
from benchmarks.sandbox.peers import ask, plain_kernel
from benchmarks.sandbox.pipeline import checked
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.runners.session import KernelSession

_PLAIN, _ALL, _SOME = "plain ipykernel", "restricted, all layers", "restricted, no namespaces"


async def _plain() -> Cost:
    meter = Meter()
    async with plain_kernel() as client:
        await ask(client, "1+1")
        return meter.read()


async def _restricted(*, isolate: bool) -> Cost:
    meter = Meter()
    async with KernelSession(isolate=isolate) as session:
        checked(await session.run("1+1"))
        return meter.read()


async def measure(run: Run) -> Table:
    """Measure in alternating rounds."""
    kinds: dict[str, Callable[[], Awaitable[Cost]]] = {
        _PLAIN: _plain,
        _ALL: lambda: _restricted(isolate=True),
        _SOME: lambda: _restricted(isolate=False),
    }
    seen: dict[str, list[Cost]] = {name: [] for name in kinds}
    for kind in kinds.values():  # the first of each warms the file cache
        await kind()
    rounds = run.repeats(9, 2)
    for _ in range(rounds):
        for name, kind in kinds.items():
            seen[name].append(await kind())
    cpu_s = {name: statistics.median(x.cpu_s for x in costs) for name, costs in seen.items()}
    wall_s = {name: statistics.median(x.wall_s for x in costs) for name, costs in seen.items()}
    rows = [
        [
            *(name, f"{cpu_s[name] * 1000:.0f}", f"{cpu_s[name] / cpu_s[_PLAIN]:.2f}"),
            *(f"{wall_s[name] * 1000:.0f}", f"{wall_s[name] / wall_s[_PLAIN]:.2f}"),
        ]
        for name in kinds
    ]
    columns = ("kernel", "CPU ms", "ratio", "wall ms", "ratio")
    ratio = cpu_s[_ALL] / cpu_s[_PLAIN]
    notes = [
        verdict("processor time of a start against a plain one", ratio, 1.0, "x"),
        "from the start to the result of `1+1`, the client's own processor time included",
    ]
    return Table(f"start: medians of {rounds}, alternating", columns, rows, notes)
