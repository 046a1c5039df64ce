"""Time until a branch of a state takes cells, by state size, compared with a new worker."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.sandbox.meter import MIB, Cost, Meter
from benchmarks.sandbox.pipeline import checked
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.forkserver.forking import BRANCHES
from kernel_sandbox.forkserver.snapshot_process import SnapshotProcess
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.snapshots import Snapshot, SnapshotTree
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import Limits

_HEAPS_MIB = (0, 256, 1024)
_LIMITS = Limits(memory_bytes=4096 * MIB)
_BOUND_MS = 50


@dataclass(slots=True)
class _Costs:
    forks: list[Cost] = field(default_factory=list)
    """Until the branch takes cells."""
    cells: list[Cost] = field(default_factory=list)
    """Until a cell has run in the branch."""
    anew: list[Cost] = field(default_factory=list)
    """Until a new worker has run the earlier cells and this one."""


async def measure(run: Run) -> Table:
    """Measure one size after the other; fork, cell and peer alternate."""
    rounds = run.repeats(15, 3)
    rows, notes = [], []
    async with Zygote() as zygote:
        for heap_mib in _HEAPS_MIB:
            costs = await _heap(zygote, heap_mib, rounds)
            fork_ms, cell_ms, anew_ms = map(_wall_ms, (costs.forks, costs.cells, costs.anew))
            walls = sorted(1000 * cost.wall_s for cost in costs.forks)
            rows.append(
                [
                    *(f"{heap_mib} MiB", f"{fork_ms:.1f}", f"{walls[-1]:.1f}"),
                    *(f"{_cpu_ms(costs.forks):.1f}", f"{cell_ms:.1f}"),
                    *(f"{_cpu_ms(costs.cells):.1f}", f"{anew_ms:.1f}"),
                    *(f"{_cpu_ms(costs.anew):.1f}", f"{anew_ms / cell_ms:.1f}"),
                ]
            )
            notes.append(verdict(f"branch at {heap_mib} MiB", fork_ms, _BOUND_MS, "ms"))
    columns = (
        *("heap", "takes cells ms", "longest", "CPU ms", "with a cell ms", "CPU ms"),
        *("new worker, cells again ms", "CPU ms", "new worker : branch"),
    )
    return Table(f"branch: medians of {rounds}", columns, rows, notes)


async def _heap(zygote: Zygote, heap_mib: int, rounds: int) -> _Costs:
    source = f"import numpy\nheap = numpy.ones({heap_mib} << 20, dtype='u1')"
    costs = _Costs()
    async with SnapshotTree(zygote, _LIMITS) as tree:
        result, node = await tree.run(tree.root, source)
        checked(result)
        for number in range(rounds + 1):
            async with tree.working(node):
                costs.forks.append(await _fork(node, number))
            costs.cells.append(await _cell(tree, node))
            costs.anew.append(await _again(zygote, source))
        if tree.replayed_cells:
            raise RuntimeError("a branch was not forked")
    for series in (costs.forks, costs.cells, costs.anew):
        del series[0]  # the first of each warms up
    return costs


async def _fork(node: Snapshot, number: int) -> Cost:
    if node.state is None:
        raise RuntimeError("the state is gone")
    folder = node.state.folder / BRANCHES / f"measured-{number}"
    meter = Meter()
    state = await SnapshotProcess.fork(node.state, folder, _LIMITS, node.state.ground)
    cost = meter.read()
    if state is None:
        raise RuntimeError("the state could not be forked")
    await state.stop()
    return cost


async def _cell(tree: SnapshotTree, node: Snapshot) -> Cost:
    meter = Meter()
    result, made = await tree.run(node, "x = 1")
    cost = meter.read()
    checked(result)
    await tree.end(made)
    return cost


async def _again(zygote: Zygote, source: str) -> Cost:
    meter = Meter()
    async with CellWorker(zygote, _LIMITS) as worker:
        checked(await worker.run(source))
        checked(await worker.run("x = 1"))
        return meter.read()


def _wall_ms(costs: Sequence[Cost]) -> float:
    return 1000 * statistics.median(cost.wall_s for cost in costs)


def _cpu_ms(costs: Sequence[Cost]) -> float:
    return 1000 * statistics.median(cost.cpu_s for cost in costs)
