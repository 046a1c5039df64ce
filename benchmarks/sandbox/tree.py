"""A search tree of 120 nodes, 40 expansions of three, at most six deep: snapshots and replay.

The tree is the same each time. Each node runs the cell of its depth on its parent's state. Replay
runs the earlier cells again, in a fork of the same warm zygote. Time and memory come from two
passes, and processor time is read before the tree closes; see `trajectories`. The same tree in bare
forks shows the share of the cells and of the system.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from benchmarks.sandbox.bare_forks import AGAIN, FORKS, bare_seconds
from benchmarks.sandbox.meter import MIB, Cost, Meter, PeakMemory
from benchmarks.sandbox.pipeline import CELLS, NAME, ROWS, checked, csv_file
from benchmarks.sandbox.table import Run, Table, verdict
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.pool import PoolSettings
from kernel_sandbox.runners.replay import ReplayRunner
from kernel_sandbox.runners.snapshots import SnapshotTree
from kernel_sandbox.runners.state_backends import SnapshotRunner
from kernel_sandbox.types import CellResult

_CHILDREN, _DEPTH = 3, len(CELLS)
_SNAPSHOTS, _REPLAY = "snapshots", "replay"
_GIB = 1024 * MIB


class _State(Protocol):
    """A state that can be branched: a runner of either kind."""

    async def run(self, source: str) -> CellResult: ...

    def branch(self) -> SnapshotRunner | ReplayRunner: ...


_Open = Callable[[Zygote, Path], AbstractAsyncContextManager[tuple[_State, Callable[[], int]]]]
"""Opens the root, and a function that returns how many cells were run again."""


@asynccontextmanager
async def _snapshots(zygote: Zygote, path: Path) -> AsyncIterator[tuple[_State, Callable[[], int]]]:
    async with SnapshotTree(zygote, inputs={NAME: path}) as tree:
        yield SnapshotRunner(tree), lambda: tree.replayed_cells


@asynccontextmanager
async def _replay(zygote: Zygote, path: Path) -> AsyncIterator[tuple[_State, Callable[[], int]]]:
    async with ReplayRunner(zygote, inputs={NAME: path}) as runner:
        yield runner, lambda: -1


def _shape(expansions: int) -> list[int]:
    """Return, for each expansion, the number of the expanded node; 0 is the root."""
    chance = random.Random(7)
    depths, open_nodes, chosen = [0], [0], []
    for _ in range(expansions):
        node = open_nodes.pop(chance.randrange(len(open_nodes)))
        chosen.append(node)
        for _ in range(_CHILDREN):
            if depths[node] + 1 < _DEPTH:
                open_nodes.append(len(depths))
            depths.append(depths[node] + 1)
    return chosen


async def measure(run: Run) -> Table:
    """Measure both ways, time first and memory second."""
    shape = _shape(4 if run.is_quick else 40)
    ways: dict[str, _Open] = {_SNAPSHOTS: _snapshots, _REPLAY: _replay}
    found: dict[str, tuple[Cost, int, int]] = {}
    with csv_file(ROWS // 10 if run.is_quick else ROWS) as path:
        for name, way in ways.items():
            async with Zygote() as zygote:
                cost, rerun = await _grow(zygote, way, path, shape)
            async with Zygote() as zygote:
                with PeakMemory(zygote.pid or 0) as memory:
                    await _grow(zygote, way, path, shape, memory)
            found[name] = (cost, memory.peak_bytes, rerun)
        bare = {way: bare_seconds(way, shape, _CHILDREN, path.parent) for way in (FORKS, AGAIN)}
    return _table(found, bare, shape)


async def _grow(
    zygote: Zygote,
    way: _Open,
    path: Path,
    shape: Sequence[int],
    memory: PeakMemory | None = None,
) -> tuple[Cost, int]:
    """Grow the tree, one expansion at a time; return its cost and the cells run again."""
    turns = asyncio.Semaphore(PoolSettings().cells_at_once)
    async with way(zygote, path) as (root, rerun):
        nodes: list[tuple[_State, int]] = [(root, 0)]
        meter = Meter()
        for parent in shape:
            above, depth = nodes[parent]
            made = [above.branch() for _ in range(_CHILDREN)]
            async with asyncio.TaskGroup() as group:
                for number, state in enumerate(made, start=len(nodes)):
                    source = f"{CELLS[depth]}\nway = {number}"
                    group.create_task(_run(state, source, turns))
            nodes += [(state, depth + 1) for state in made]
        cost = meter.read()
        if memory is not None:
            memory.look()
        again = rerun()
        return cost, again if again >= 0 else sum(depth - 1 for _, depth in nodes[1:])


async def _run(state: _State, source: str, turns: asyncio.Semaphore) -> None:
    async with turns:
        checked(await state.run(source))


def _table(
    found: dict[str, tuple[Cost, int, int]], bare: dict[str, float], shape: Sequence[int]
) -> Table:
    base_s = found[_REPLAY][0].cpu_s
    rows = [
        [
            *(name, f"{cost.cpu_s:.1f}", f"{base_s / cost.cpu_s:.1f}", f"{cost.wall_s:.1f}"),
            *(f"{peak / _GIB:.2f}", str(rerun)),
        ]
        for name, (cost, peak, rerun) in found.items()
    ]
    cost, peak, _ = found[_SNAPSHOTS]
    notes = [
        verdict(
            "processor time of replay over snapshots", base_s / cost.cpu_s, 4, "x", at_least=True
        ),
        verdict("peak of memory", peak / _GIB, 6, "GiB"),
        f"bare forks, unconfined: {bare[FORKS]:.1f} s; the cells again in bare forks: "
        f"{bare[AGAIN]:.1f} s, {bare[AGAIN] / bare[FORKS]:.1f} x",
        "memory is the sum of proportional set sizes, the zygote included",
    ]
    columns = ("way", "CPU s", "replay : it", "wall s", "peak GiB", "cells run again")
    return Table(f"tree: {len(shape) * _CHILDREN} nodes", columns, rows, notes)
