"""Generate tables with questions and computed answers: `python -m training.suites.generated`.

The output folder gets the splits `train`, `development` and `held`, which `training.evaluate` reads
with the suite `generated`. The same options produce the same files on every machine.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dm_jupyter.config import model_choice
from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Urgency
from training.suites.generated.dataset import (
    Dataset,
    Plan,
    generate,
    refuse_unusable,
    write_dataset,
)
from training.suites.generated.paraphrase import Paraphraser
from training.suites.generated.questions.templates import templates

__all__ = ["main"]

SHOWN = 5
"""Number of templates in the list of frequent answers."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.suites.generated", description=__doc__
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="a new or an empty folder")
    add("--tables", type=int, default=60, metavar="N", help="files (default: 60)")
    add("--per-table", type=int, default=34, metavar="N",
        help="questions about each file (default: 34)")  # fmt: skip
    add("--seed", type=int, default=1, help="of all draws (default: 1)")
    words = parser.add_argument_group("other words for the questions, by a model")
    add = words.add_argument
    add("--paraphrase", action="store_true", help="ask a model, and check what it says")
    add("--policy", "--model", dest="model", metavar="MODEL",
        help="local (default), a .gguf file, or a name at --base-url")  # fmt: skip
    add("--base-url", help="an OpenAI-compatible endpoint")
    add("--api-key-file", type=Path)
    add("--replies", type=Path, metavar="DIR",
        help="where replies are kept (default: OUT with -replies behind it)")  # fmt: skip
    add("--at-once", type=int, default=4, metavar="N", help="questions asked about at a time")
    return parser


def _run(arguments: argparse.Namespace) -> None:
    if arguments.at_once < 1:
        raise ValueError("no question would get other words: ask for --at-once 1 or more")
    refuse_unusable(arguments.out)
    plan = Plan(arguments.tables, arguments.per_table, arguments.seed)
    dataset = generate(plan, lambda done: _progress(done, plan.tables))
    if arguments.paraphrase:
        outcomes = asyncio.run(_paraphrased(dataset, arguments))
        print(_lines("other words", outcomes))
    write_dataset(dataset, arguments.out)
    print_report(dataset.tally.report())
    print(f"processor time: {time.process_time():.0f} s")
    print(f"written: {arguments.out}")


async def _paraphrased(dataset: Dataset, arguments: argparse.Namespace) -> Mapping[str, int]:
    choice = model_choice(arguments.model, arguments.base_url, arguments.api_key_file)
    replies = arguments.replies or arguments.out.with_name(f"{arguments.out.name}-replies")
    async with open_policy(choice, _say, Urgency.BACKGROUND) as policy:
        paraphraser = Paraphraser(policy, replies)
        await paraphraser.rewrite(dataset.entries, arguments.at_once)
    return paraphraser.outcomes


def print_report(report: Mapping[str, Any]) -> None:
    """Print the counts of a generation.

    Args:
        report: as `Tally.report` returns it.
    """
    print(f"questions: {report['questions']}, not made: {report['not_made']}")
    print(f"disagreements of the two programs: {report['disagreements']}")
    for name in ("split", "level", "steps", "file", "answer", "category"):
        print(_lines(f"by {name}", report[f"by_{name}"]))
    print(_lines("refused as ambiguous", report["refused_as_ambiguous"]))
    print(_lines("refused for other reasons", report["refused_for_other_reasons"]))
    frequent = list(report["most_frequent_answer"].items())[:SHOWN]
    print(f"most frequent answer, the first {len(frequent)} of {len(templates())} templates:")
    for name, one in frequent:
        print(f"  {name}: {one['times']} of {one['of']}, {one['answer'][:70]}")


def _lines(title: str, counts: Mapping[str, int]) -> str:
    width = max(map(len, counts), default=0)
    return "\n".join([f"{title}:", *(f"  {name:<{width}} {n:>6}" for name, n in counts.items())])


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} tables", end="\n" if done == total else "", file=sys.stderr)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 0, 1 after a fault, 130 when interrupted."""
    given = _parser().parse_args(arguments)
    try:
        _run(given)
    except (DmJupyterError, ImportError, ValueError, OSError) as fault:
        print(f"generated: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("generated: stopped, nothing was written", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
