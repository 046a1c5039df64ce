"""Measure the evaluation itself: `python -m benchmarks.harness [trajectories|resume|nodes ...]`.

- trajectories: 1,000 questions of three cells each, with a model that answers immediately
- resume: reading a run of 10,000 records again, which is found complete
- nodes: selecting, adding and backing up a node of a search in a tree of 10,000
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.sandbox.table import Table, machine, verdict
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest
from dm_jupyter.search.puct import SearchTree
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from training.evaluation.run import EvalOptions, evaluate
from training.suites.dabench import DABench

QUESTIONS = 1_000
RECORDS = 10_000
NODES = 10_000
ROUNDS = 5
_CELLS = (
    "import pandas as pd\ndf = pd.read_csv('t.csv')\nprint(df.shape)",
    "groups = df.groupby('group')['amount'].mean()\nprint(groups)",
    "print(f'{groups.max():.2f}')",
)


_ROWS = [(f"g{row % 7}", row % 97) for row in range(2_000)]
_HIGHEST = max(
    f"{statistics.fmean(amount for name, amount in _ROWS if name == group):.2f}"
    for group, _ in _ROWS[:7]
)


class Instant:
    """A model that answers immediately: three cells, then the answer."""

    name = "instant"

    async def sample(self, request: SampleRequest, _: Callable[[str], None]) -> Completion:
        """Return the turn of the script."""
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn < len(_CELLS):
            text = (
                "Thought: next\nAction: python_code_sandbox\n"
                f"Action Input:\n```python\n{_CELLS[turn]}\n```"
            )
        else:
            text = f"Thought: done\nFinal Answer: @n[{request.messages[-1].content.split()[-1]}]"
        return Completion(text, "", 100, 30, 0.0)


def _split(folder: Path, questions: int) -> Path:
    (folder / "tables").mkdir(parents=True)
    with (folder / "tables" / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["group", "amount"])
        writer.writerows(_ROWS)
    with (folder / "questions.jsonl").open("w") as file:
        for number in range(questions):
            row = {
                "id": f"q{number}", "question": "What is the highest mean?", "format": "@n[n]",
                "file": "tables/t.csv", "label_pairs": [["n", _HIGHEST]],
            }  # fmt: skip
            file.write(json.dumps(row) + "\n")
    return folder


def _cpu_s() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


async def trajectories(folder: Path) -> Table:
    """Measure 1,000 trajectories of three cells, 8 at a time on two cores; once is long enough."""
    split = _split(folder / "split", QUESTIONS)
    options = EvalOptions(
        DABench(), split, folder / "out", dialect="react", at_once=4 * (os.cpu_count() or 1)
    )
    options.out.mkdir()
    started, cpu_s = time.perf_counter(), _cpu_s()
    async with SandboxPool(PoolSettings()) as pool:
        records = await evaluate(options, Instant(), pool)
    wall_s = time.perf_counter() - started
    right, cells = sum(one.correct for one in records), sum(one.cells for one in records)
    row = [str(len(records)), str(cells), str(right), f"{wall_s:.1f}",
           f"{len(records) / wall_s:.1f}", f"{_cpu_s() - cpu_s:.1f}"]  # fmt: skip
    columns = ["trajectories", "cells", "right", "wall s", "trajectories/s", "CPU s"]
    note = verdict("1,000 three-cell trajectories", wall_s, 120, "s")
    return Table("trajectories: a model that answers at once", columns, [row], [note])


async def resume(folder: Path) -> Table:
    """Measure reading 10,000 records with their trajectories again."""
    split = _split(folder / "split", RECORDS)
    options = EvalOptions(DABench(), split, folder / "out", limit=1, dialect="react")
    options.out.mkdir()
    pool = SandboxPool(PoolSettings())
    async with pool:
        await evaluate(options, Instant(), pool)
    _repeat(options.out / "records.jsonl")
    whole = EvalOptions(DABench(), split, options.out)
    spent = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        records = await evaluate(whole, Instant(), pool)  # a closed pool: nothing is left to run
        spent.append(time.perf_counter() - started)
        if len(records) != RECORDS:
            raise RuntimeError(f"{len(records)} records found")
    size = (options.out / "records.jsonl").stat().st_size / 1024**2
    median_s = statistics.median(spent)
    row = [f"{RECORDS:,}", f"{size:.0f}", f"{median_s:.2f}", f"{max(spent):.2f}"]
    note = verdict("resuming a run of 10,000 records", median_s, 2, "s")
    return Table("resume", ["records", "MiB", "median s", "longest s"], [row], [note])


def _repeat(path: Path) -> None:
    """Write the single record under the names of all questions."""
    fields = json.loads(path.read_text())
    with path.open("w") as file:
        for number in range(RECORDS):
            file.write(json.dumps({**fields, "id": f"q{number}"}) + "\n")


async def nodes(_: Path) -> Table:
    """Measure the cost of one more node in a tree of 10,000."""
    spent = []
    for seed in range(ROUNDS):
        tree = SearchTree(exploration=1.25, seed=seed)
        started = time.perf_counter()
        while len(tree.nodes) < NODES:
            leaf = tree.select()
            if leaf is None:
                break
            for place in range(3):
                child = tree.add(leaf, 0.2 + 0.3 * place, is_terminal=place == 2)
                tree.back_up(child, (0.0, -1.0, 1.0)[place])
        spent.append((time.perf_counter() - started) / len(tree.nodes) * 1_000)
    median_ms = statistics.median(spent)
    row = [f"{NODES:,}", f"{median_ms:.4f}", f"{max(spent):.4f}"]
    note = verdict("bookkeeping a node", median_ms, 1, "ms")
    return Table("nodes: select, add, back up", ["nodes", "ms a node", "longest"], [row], [note])


_BENCHMARKS = {"trajectories": trajectories, "resume": resume, "nodes": nodes}


def main() -> None:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.harness")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(_BENCHMARKS))
    names = parser.parse_args().names or list(_BENCHMARKS)
    print(machine(names), flush=True)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            table = asyncio.run(_BENCHMARKS[name](Path(folder)))
        print("", table.to_text(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
