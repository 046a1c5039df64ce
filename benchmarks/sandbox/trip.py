"""Round trip of `1+1` from sending to the last output: worker, restricted kernel, plain kernel."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from benchmarks.sandbox.meter import cpu_seconds
from benchmarks.sandbox.peers import ask, plain_kernel
from benchmarks.sandbox.pipeline import checked
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.session import CellSession, KernelSession
from kernel_sandbox.runners.worker import CellWorker

_TRIPS = 20
_WORKER, _KERNEL, _PLAIN = "cell worker", "restricted kernel", "plain ipykernel"


async def measure(run: Run) -> Table:
    """Measure batches of trips in alternating rounds, each kind always in one process."""
    async with AsyncExitStack() as stack:
        zygote = await stack.enter_async_context(Zygote())
        worker = await stack.enter_async_context(CellWorker(zygote))
        kernel = await stack.enter_async_context(KernelSession())
        client = await stack.enter_async_context(plain_kernel())
        kinds: dict[str, Callable[[], Awaitable[object]]] = {
            _WORKER: lambda: _run(worker),
            _KERNEL: lambda: _run(kernel),
            _PLAIN: lambda: ask(client, "1+1"),
        }
        wall: dict[str, list[float]] = {name: [] for name in kinds}
        cpu: dict[str, list[float]] = {name: [] for name in kinds}
        for kind in kinds.values():
            await _batch(kind)
        for _ in range(run.repeats(15, 3)):
            for name, kind in kinds.items():
                trips, cpu_ms = await _batch(kind)
                wall[name] += trips
                cpu[name].append(cpu_ms)
    return _table(wall, cpu)


async def _run(session: CellSession) -> None:
    checked(await session.run("1+1"))


async def _batch(act: Callable[[], Awaitable[object]]) -> tuple[list[float], float]:
    """Return the milliseconds of each trip, and the mean processor milliseconds of one."""
    cpu_s = cpu_seconds()
    trips = []
    for _ in range(_TRIPS):
        began = time.perf_counter()
        await act()
        trips.append(1000 * (time.perf_counter() - began))
    return trips, 1000 * (cpu_seconds() - cpu_s) / _TRIPS


def _table(wall: dict[str, list[float]], cpu: dict[str, list[float]]) -> Table:
    medians = {name: statistics.median(trips) for name, trips in wall.items()}
    rows = [
        [
            name,
            f"{medians[name]:.2f}",
            f"{statistics.quantiles(trips, n=20)[-1]:.2f}",
            f"{medians[_PLAIN] / medians[name]:.1f}",
            f"{statistics.median(cpu[name]):.2f}",
        ]
        for name, trips in wall.items()
    ]
    columns = ("kind", "median ms", "95 % ms", "plain : it", "CPU ms")
    note = verdict("round trip of a worker", medians[_WORKER], 2, "ms")
    trips = len(wall[_WORKER])
    return Table(f"trip: `1+1`, {trips} of each, alternating", columns, rows, [note])
