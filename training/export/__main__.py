"""Export the runs of an evaluation to a dialect: `python -m training.export RUN --dialect NAME`.

The command writes one line of JSON per run: its conversation in that dialect, ready to learn from.
It leaves out runs on questions whose licence forbids training. With `--replay` each run, including
those, runs again in a fresh sandbox. The command then reports how many give the same answer, and
why others do not.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.errors import (
    DataFileError,
    DmJupyterError,
    UnrenderableTurnError,
    UsageError,
)
from dm_jupyter.core.trajectory import Trajectory
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from kernel_sandbox.runners.pool_settings import PROFILES
from training.durable.at_once import each_at_once
from training.durable.json_lines import write_lines
from training.evaluation.arguments import positive
from training.evaluation.scoring import ScoringError
from training.export.conversation import conversation
from training.export.exporting import Export, export
from training.export.rerun import Replays, ReplayTimeoutError, open_replays
from training.records.records import EvalRecord, read_run
from training.suites.registry import find_suite

__all__ = ["main"]


@dataclass(frozen=True, slots=True)
class _Row:
    """A run of the evaluation and its export."""

    record: EvalRecord
    exported: Export | None
    problem: str = ""
    """Why it has no export, or how its replay differs."""

    @property
    def name(self) -> str:
        return f"{self.record.id} #{self.record.trial + 1}"

    @property
    def may_be_learned_from(self) -> bool:
        if self.exported is None:
            return False
        return not self.exported.trajectory.task.metadata.get("evaluation_only")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.export", description=__doc__)
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="folder of the evaluation")
    add("--dialect", required=True, choices=tuple(DIALECTS), metavar="NAME",
        help=", ".join(DIALECTS))  # fmt: skip
    add("--out", type=Path, metavar="FILE", help="default: RUN/export-NAME.jsonl")
    add("--replay", action="store_true", help="run the exported runs again; needs --split")
    add("--split", type=Path, help="the folder of the questions' split")
    add("--suite", help="of the questions (default: the one that the run names)")
    add(
        "--at-once", type=positive, default=1, metavar="N", help="runs at the same time (default 1)"
    )
    add("--profile", choices=[one.value for one in PROFILES], default=Strictness.ROLLOUT.value)
    return parser


async def _exported(record: EvalRecord, dialect: str) -> _Row:
    if not record.trajectory:
        return _Row(record, None, "the record is compact and contains no run")
    try:
        return _Row(record, await export(Trajectory.from_json(record.trajectory), dialect))
    except UnrenderableTurnError as error:
        return _Row(record, None, str(error))


def _line(row: _Row) -> dict[str, Any]:
    assert row.exported is not None  # noqa: S101
    tools = dialect_named(row.exported.trajectory.dialect).tools
    return {
        "id": row.record.id,
        "trial": row.record.trial,
        "dialect": row.exported.trajectory.dialect,
        "correct": row.record.correct,
        "strict_correct": row.record.strict_correct,
        "left_out": row.exported.left_out,
        "tools": [tool.to_json() for tool in tools],
        "messages": conversation(row.exported),
    }


@asynccontextmanager
async def _replays(arguments: argparse.Namespace) -> AsyncIterator[Replays]:
    if arguments.split is None:
        raise UsageError("--replay needs the data files: name their folder with --split")
    suite = find_suite(arguments.suite or _suite_name(arguments.run))
    settings = PoolSettings(profile=Strictness(arguments.profile))
    # The system ends the workers with the thread that started the pool, so open the pool first.
    async with (
        SandboxPool(settings) as pool,
        open_replays(suite, arguments.split, pool) as replays,
    ):
        yield replays


def _suite_name(run: Path) -> str:
    try:
        return str(json.loads((run / "run.json").read_text("utf-8"))["suite"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{run / 'run.json'} names no suite ({error}); add --suite") from error


async def _replayed(row: _Row, replays: Replays, run: Path) -> _Row:
    """Return the row with the difference that its replay showed."""
    if row.exported is None:
        return row
    try:
        problem = await replays.difference(row.record, row.exported, run)
    except (DataFileError, SandboxError, ScoringError, ReplayTimeoutError) as fault:
        problem = f"fault: {fault}"
    return replace(row, problem=problem)


async def _replay_all(rows: Sequence[_Row], arguments: argparse.Namespace) -> list[_Row]:
    done: dict[tuple[str, int], _Row] = {}

    async def replay(row: _Row) -> None:
        done[row.record.key] = await _replayed(row, replays, arguments.run)
        print(f"{row.name}: {done[row.record.key].problem or 'same'}", file=sys.stderr)

    async with _replays(arguments) as replays:
        await each_at_once(rows, arguments.at_once, replay)
    return [done[row.record.key] for row in rows]


async def _main(arguments: argparse.Namespace) -> None:
    records = read_run(arguments.run)
    rows = [await _exported(record, arguments.dialect) for record in records]
    out = arguments.out or arguments.run / f"export-{arguments.dialect}.jsonl"
    whole = [row for row in rows if row.exported is not None]
    licensed = [row for row in whole if row.may_be_learned_from]
    kept = [row for row in licensed if row.exported is not None and any(row.exported.learnable)]
    write_lines(map(_line, kept), out)
    print(f"{len(kept)} of {len(rows)} runs: {out}")
    if left := len(whole) - len(licensed):
        print(f"{left} left out: their questions' licence forbids to learn from them")
    if left := len(licensed) - len(kept):
        print(f"{left} left out: they have no turn to learn")
    for row in rows:
        if row.exported is None:
            print(f"{row.name} has no export: {row.problem}")
    if arguments.replay:
        _print_replays(await _replay_all(whole, arguments))


def _print_replays(rows: Sequence[_Row]) -> None:
    same = sum(not row.problem for row in rows)
    print(f"{same} of {len(rows)} gave the same answer from the same outputs")
    for problem, count in Counter(row.problem for row in rows if row.problem).most_common():
        print(f"{count:>5}  {problem}")


def main() -> int:
    """Run the command; return the exit code: 0, 1 after a fault, 130 when interrupted."""
    arguments = _parser().parse_args()
    try:
        asyncio.run(_main(arguments))
    except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
        print(f"export: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
