"""Runs a suite through the product's own loop and prints a table: `python -m training.evaluate`.

Every finished item is one line of `records.jsonl` at once, so that a run that was stopped goes on
where it was when the same command is given again. Unanswered items stay in the denominator.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import dataclass, field
from pathlib import Path

from dm_jupyter.agent.analysis import AnalysisSettings, analyze
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.models import open_policy
from dm_jupyter.agent.protocols import Policy
from dm_jupyter.config import model_choice
from dm_jupyter.core.errors import DmJupyterError, LocalModelError, PolicyError
from dm_jupyter.core.task import Task
from kernel_sandbox.errors import SandboxError
from training.records import EvalRecord, RecordLog
from training.summary import print_summary, write_summary
from training.tasks.registry import find_suite
from training.tasks.suite import EvalItem, Suite, draw

__all__ = ["EvalOptions", "evaluate"]


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What to run and where to keep it."""

    suite: Suite
    split: Path
    out: Path
    limit: int | None = None
    seed: int = 7
    """Of the draw of items; item by item, sampling starts from `run.seed`."""
    dialect: str = "markdown"
    run: RunSettings = field(default_factory=RunSettings)
    require: tuple[str, ...] = ()


async def evaluate(options: EvalOptions, policy: Policy) -> list[EvalRecord]:
    """Returns the records of all items drawn, those of an earlier, broken run included.

    Raises:
        RecordError: the split is not as the suite needs it.
        PolicyError: the model can't be reached; what is done so far is kept.
        SandboxError: the kernel can't start.
    """
    items = draw(options.suite.load(options.split), options.limit, options.seed)
    log = RecordLog(options.out / "records.jsonl")
    done = {record.id: record for record in log.read()}
    for number, item in enumerate(items, 1):
        if item.task.id not in done:
            record = await _run_item(item, options, policy)
            log.append(record)
            done[record.id] = record
        record = done[item.task.id]
        right = sum(record.right for record in done.values())
        verdict = "right" if record.right else record.failure
        print(
            f"{number}/{len(items)}  {record.id:<16} {verdict:<22} {record.turns} turns "
            f"{record.seconds:5.0f} s   {right} right so far",
            file=sys.stderr,
        )
    return [done[item.task.id] for item in items]


async def _run_item(item: EvalItem, options: EvalOptions, policy: Policy) -> EvalRecord:
    folder = options.out / "items" / item.task.id
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("result_*"):
        left.unlink()
    settings = AnalysisSettings(
        run=options.run,
        dialect=options.dialect,
        require=options.require,
        notebook=folder / "notebook.ipynb",
    )
    analysis = await analyze(_beside(item.task, folder), policy, settings, lambda _: None)
    if isinstance(analysis.fault, PolicyError | SandboxError):
        raise analysis.fault
    score = options.suite.score(item, analysis.trajectory.answer or "", folder)
    return EvalRecord.of(analysis.trajectory, score, item.label)


def _beside(task: Task, folder: Path) -> Task:
    """The task with its files linked into the folder, so that code calls them by bare names."""
    links = []
    for file in task.files:
        link = folder / file.name
        link.unlink(missing_ok=True)
        link.symlink_to(file.resolve())
        links.append(link)
    return Task(
        id=task.id,
        question=task.question,
        files=tuple(links),
        constraints=task.constraints,
        answer_format=task.answer_format,
        level=task.level,
        concepts=task.concepts,
        metadata=task.metadata,
    )


def _options(arguments: argparse.Namespace) -> EvalOptions:
    return EvalOptions(
        suite=find_suite(arguments.suite),
        split=arguments.split,
        out=arguments.out or Path("runs") / f"{arguments.suite}-{arguments.seed}",
        limit=arguments.limit,
        seed=arguments.seed,
        dialect=arguments.dialect,
        run=RunSettings(max_turns=arguments.max_turns, max_cells=arguments.max_turns),
        require=tuple(arguments.strict),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.evaluate", description=__doc__)
    parser.add_argument("suite", help="dabench, sql, xlsx, or package.module:ClassName")
    parser.add_argument("--split", type=Path, required=True, help="the folder of the split")
    parser.add_argument("--out", type=Path, help="folder of the run (default: runs/SUITE-SEED)")
    parser.add_argument("--limit", type=int, help="how many items to draw (default: all)")
    parser.add_argument("--seed", type=int, default=7, help="of the draw")
    parser.add_argument("--dialect", default="markdown", help="markdown, datamind or react")
    parser.add_argument("--max-turns", type=int, default=10)
    parser.add_argument("--strict", action="append", default=[], metavar="LAYER")
    parser.add_argument("--model", help="local (default), a .gguf file, or a name at --base-url")
    parser.add_argument("--base-url", help="an OpenAI-compatible endpoint")
    parser.add_argument("--api-key-file", type=Path)
    return parser


def _write_compact(records: list[EvalRecord], path: Path) -> None:
    """Writes the outcomes alone; copied to `records.jsonl`, a run on another machine goes on."""
    path.unlink(missing_ok=True)
    log = RecordLog(path)
    for record in records:
        log.append(record.compacted())


async def _main(arguments: argparse.Namespace) -> int:
    options = _options(arguments)
    choice = model_choice(arguments.model, arguments.base_url, arguments.api_key_file)
    options.out.mkdir(parents=True, exist_ok=True)
    async with open_policy(choice, lambda line: print(line, file=sys.stderr)) as policy:
        records = await evaluate(options, policy)
    write_summary(records, options.out / "summary.json")
    _write_compact(records, options.out / "compact.jsonl")
    print_summary(records)
    print(f"records: {options.out / 'records.jsonl'}")
    return 0


def main() -> int:
    """Runs the command; returns the exit code: 0, or 1 after a fault, which is printed."""
    arguments = _parser().parse_args()
    try:
        return asyncio.run(_main(arguments))
    except (DmJupyterError, LocalModelError, SandboxError, ValueError, OSError) as fault:
        print(f"evaluate: {fault}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
