"""Groups of rollouts with a scripted model and real workers: speed, memory, leftover processes.

Usage: `python -m benchmarks.rollouts --count 1000 --size 8`. The model answers immediately, so this
measures the loop, the sandbox and the scoring. It prints trajectories per second and the memory of
this process from a tenth of the work to its end. It also lists the processes that outlive it; there
must be none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.sandbox.table import Table
from dm_jupyter.agent.rollout import Pool, RolloutContext
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.protocols import SampleRequest
from dm_jupyter.search.groups import GroupMember, rollout_group
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings
from kernel_sandbox.runners.pool_settings import PROFILES
from training.durable.at_once import each_at_once
from training.durable.folder import folder_lock
from training.durable.kept_policy import CALLS_FILE, KeptPolicy
from training.durable.progress import WorkProgress
from training.evaluation.arguments import positive
from training.evaluation.pools import POOLS, open_pool
from training.evaluation.rewards import suite_reward
from training.evaluation.run import item_folder
from training.evaluation.scoring import ScoringPool
from training.records.groups import GroupLog, GroupRecord
from training.suites.dabench import DABench
from training.suites.suite import Sample

_CELLS = (
    "import csv\nrows = list(csv.DictReader(open('t.csv')))\nprint(rows[0])",
    "total = sum(int(row['a']) for row in rows)\nprint(total)",
)


_END_S = 10.0
"""Time for a process to end after the request to end."""


class Scripted:
    """A policy of two cells, then the sum; every other rollout of a group answers wrong."""

    name = "scripted"

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return the next turn."""
        turn = sum(message.role == "assistant" for message in request.messages)
        await asyncio.sleep(0)
        if turn < len(_CELLS):
            text = (
                "Thought: go on\nAction: python_code_sandbox\n"
                f"Action Input:\n```python\n{_CELLS[turn]}\n```"
            )
        else:
            text = f"Thought: done\nFinal Answer: @n[{6 if request.seed // 1_000 % 2 == 0 else 7}]"
        on_text(text)
        return Completion(text, "", 300, len(text.split()), 0.0)


@dataclass
class Watched:
    """Observations of this process while it works."""

    seconds: float = 0.0
    """Of the rollouts alone, without the start of the pool."""
    memory: list[int] = field(default_factory=list)
    """Resident bytes after each group."""
    below: dict[int, float] = field(default_factory=dict)
    """Descendant processes that were seen, with their start times."""
    _me: psutil.Process = field(default_factory=psutil.Process)

    def look(self) -> None:
        """Note the memory, and the descendant processes."""
        self.memory.append(self._me.memory_info().rss)
        for process in self._me.children(recursive=True):
            try:
                self.below[process.pid] = process.create_time()
            except psutil.NoSuchProcess:
                continue

    def left(self) -> list[psutil.Process]:
        """Return the processes that still run some seconds after this work."""
        seen = [one for pid, start in self.below.items() if (one := _process(pid, start))]
        return list(psutil.wait_procs(seen, timeout=_END_S)[1])


def _process(pid: int, start: float) -> psutil.Process | None:
    """Return the process, if it is still the same one."""
    try:
        process = psutil.Process(pid)
        return process if process.create_time() == start else None
    except psutil.NoSuchProcess:
        return None


def _split(folder: Path, groups: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "t.csv").write_text("a\n1\n2\n3\n")
    rows = [
        {"id": f"q{number}", "question": f"Question {number}: what is the sum of a?",
         "constraints": "",
         "format": "@n[n]", "file": "t.csv", "level": "easy", "concepts": [],
         "label_pairs": [["n", "6"]]}
        for number in range(groups)
    ]  # fmt: skip
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@dataclass(frozen=True, slots=True)
class _Means:
    """Open resources that all groups share."""

    out: Path
    policy: KeptPolicy
    pool: Pool
    scorer: ScoringPool
    reader: ProfileReader
    log: GroupLog

    async def group(self, item: Sample, size: int) -> list[GroupMember]:
        """Roll out a group."""
        folder = item_folder(self.out, item.task.id, 0)
        context = RolloutContext(item.task, self.pool, folder, dialect="react")
        reward = suite_reward(self.scorer, item)
        return await rollout_group(
            await context.with_data_context(self.reader), self.policy, size, reward
        )


async def _run(arguments: argparse.Namespace, out: Path, watched: Watched) -> GroupLog:
    suite, log = DABench(), GroupLog(out / "groups.jsonl")
    items = suite.load(_split(out / "split", -(-arguments.count // arguments.size)))
    kept = KeptPolicy(Scripted(), out / CALLS_FILE)
    kept.load()
    done = log.ids()
    waiting = [item for item in items if item.task.id not in done]
    settings = PoolSettings(profile=Strictness(arguments.profile))
    async with AsyncExitStack() as stack:
        # The system ends the workers with the thread that started the pool, so open it first.
        pool = await stack.enter_async_context(open_pool(arguments.pool, settings))
        scorer = await stack.enter_async_context(ScoringPool(suite, 60.0))
        reader = await stack.enter_async_context(ProfileReader())
        progress = stack.enter_context(WorkProgress("groups"))
        progress.begin(len(items), len(done))
        means = _Means(out, kept, pool, scorer, reader, log)

        async def roll_out(item: Sample) -> None:
            members = await means.group(item, arguments.size)
            log.append(GroupRecord.of(item.task.id, members))
            watched.look()
            progress.add(f"{item.task.id:<8} {_counts(members)}")

        started = time.monotonic()
        await each_at_once(waiting, arguments.groups_at_once, roll_out)
        watched.seconds = time.monotonic() - started
    return log


def _counts(members: Sequence[GroupMember]) -> str:
    rewards = [one.reward for one in members if one.reward is not None]
    faults = sum(one.fault is not None for one in members)
    return f"{len(rewards)} rewards, {sum(rewards):g} in all, {faults} faults"


def _table(
    arguments: argparse.Namespace, log: GroupLog, watched: Watched, left: Sequence[psutil.Process]
) -> Table:
    members = [member for group in log.each() for member in group.members]
    tenth = watched.memory[len(watched.memory) // 10 :]
    mib = [size / 2**20 for size in (tenth[0], tenth[len(tenth) // 2], tenth[-1])]
    made = len(watched.memory) * arguments.size
    rows = [
        ("trajectories", f"{made:,}"),
        ("trajectories/s", f"{made / watched.seconds:.1f}"),
        ("faults", str(sum(bool(member.fault) for member in members))),
        ("rewards of 1", str(sum(member.reward == 1 for member in members))),
        ("this process at 10, 55 and 100 %, MiB", ", ".join(f"{one:.0f}" for one in mib)),
        ("growth, MiB in 100 trajectories", f"{100 * (mib[2] - mib[0]) / max(1, 0.9 * made):+.2f}"),
        ("processes seen below this one", str(len(watched.below))),
        ("of these left behind", ", ".join(map(str, left)) or "none"),
    ]
    title = f"{arguments.count} rollouts in groups of {arguments.size}, pool {arguments.pool}"
    return Table(title, ("", "value"), rows)


def main() -> int:
    """Run the command; return the exit code: 1 if a process was left behind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollouts", description=__doc__)
    add = parser.add_argument
    add("--count", type=positive, default=1_000, help="rollouts in all")
    add("--size", type=positive, default=8, help="rollouts of a group")
    add("--groups-at-once", type=positive, default=2)
    add("--pool", choices=POOLS, default=POOLS[0])
    add("--profile", choices=[one.value for one in PROFILES], default=Strictness.ROLLOUT.value)
    add("--out", type=Path, help="resume from this folder (default: a temporary folder)")
    add("--markdown", action="store_true", help="a table to paste into a page")
    arguments = parser.parse_args()
    watched = Watched()
    with tempfile.TemporaryDirectory(prefix="rollouts-") as made:
        out = arguments.out or Path(made)
        with folder_lock(out, "benchmark"):
            log = asyncio.run(_run(arguments, out, watched))
        if not watched.memory:
            print("all rollouts are there already: choose another --out")
            return 0
        left = watched.left()
        table = _table(arguments, log, watched, left)
    print(table.to_markdown() if arguments.markdown else table.to_text())
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
