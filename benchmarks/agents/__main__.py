"""Holds our prompt against the ReAct shapes that others published: `python -m benchmarks.agents`.

The same model answers the same questions in each shape, through the same loop and the same
sandbox: InfiAgent's (`react-published`), Jupiter's and DataMind's tags (`datamind-published`).
They go without any of our help (`Assistance.none()`), as they were published. What stays for all is
the loop's limits, and that half a cell, cut at its limit of length, does not run.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.agents.side_by_side import Shape, shape_of, side_by_side
from benchmarks.agents.table import table_of
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.models import open_policy
from dm_jupyter.agent.protocols import Policy, Urgency
from dm_jupyter.config import model_choice
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.core.errors import DmJupyterError
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.pool import PoolSettings, SandboxPool
from kernel_sandbox.pool_settings import PROFILES
from kernel_sandbox.profile import Profile
from training.evaluation.arguments import positive
from training.evaluation.options import EvalOptions
from training.evaluation.read_run import read_run
from training.evaluation.records import EvalRecord
from training.evaluation.standing import standing_of
from training.tasks.dabench import DABench

__all__ = ["compare_shapes", "main", "parsed", "recorded"]

SHAPES = ("markdown", "react-published", "jupiter", "datamind-published")


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the options of a command line; `None` means this process's."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--split", type=Path, required=True, help="a folder of InfiAgent-DABench questions")
    add("--limit", type=positive, help="how many questions to draw (default: all)")
    add("--seed", type=int, default=7, help="of the draw")
    add("--out", type=Path, default=Path("runs/agents"), help="gets a folder for each prompt")
    add("--compact", type=Path, metavar="FOLDER",
        help="keep outcomes in its agents-PROMPT-SEED.jsonl, and go on from them")  # fmt: skip
    add("--prompts", nargs="+", choices=DIALECTS, default=SHAPES, metavar="PROMPT",
        help=f"of {', '.join(DIALECTS)}; the first is held against the others")  # fmt: skip
    add("--max-turns", type=positive, default=10)
    add("--at-once", type=positive, default=1,
        help="tries that go on, and turns that are drawn, at the same time")  # fmt: skip
    add("--profile", choices=[one.value for one in PROFILES], default=Profile.ROLLOUT.value)
    add("--policy", "--model", dest="model", metavar="MODEL",
        help="local (default), a .gguf file, or a name at --base-url")  # fmt: skip
    add("--base-url", help="an OpenAI-compatible endpoint")
    add("--api-key-file", type=Path)
    add("--no-run", action="store_true", help="the table of what is there, without a model")
    add("--markdown", action="store_true", help="a table to paste into a page")
    return parser.parse_args(words)


def _options(dialect: str, arguments: argparse.Namespace) -> EvalOptions:
    turns = arguments.max_turns
    return EvalOptions(
        suite=DABench(),
        split=arguments.split,
        out=arguments.out / dialect,
        limit=arguments.limit,
        seed=arguments.seed,
        dialect=dialect,
        run=RunSettings(
            max_turns=turns, max_cells=turns, assistance=Assistance.for_dialect(dialect)
        ),
    )


def _shape(dialect: str, arguments: argparse.Namespace, policy: Policy) -> Shape:
    options = _options(dialect, arguments)
    return shape_of(options, policy, arguments.profile, _compact_file(dialect, arguments))


def _compact_file(dialect: str, arguments: argparse.Namespace) -> Path | None:
    folder: Path | None = arguments.compact
    return folder / f"agents-{dialect}-{arguments.seed}.jsonl" if folder else None


def recorded(arguments: argparse.Namespace) -> dict[str, list[EvalRecord]]:
    """Returns what a run has left of the draw by prompt, from its folder or else the compact file.

    Raises:
        RunError: a prompt has no records, or they can't be read.
        RecordError: the split is not as the suite needs it.
    """
    found = {}
    for dialect in arguments.prompts:
        own = arguments.out / dialect / "records.jsonl"
        compact = _compact_file(dialect, arguments)
        wanted = standing_of(_options(dialect, arguments)).wanted
        records = read_run(own if own.exists() or compact is None else compact)
        found[dialect] = [one for one in records if one.key in wanted]
    return found


async def compare_shapes(
    arguments: argparse.Namespace, policy: Policy, pool: SandboxPool
) -> dict[str, list[EvalRecord]]:
    """Returns the records of each prompt by its name, those made earlier included.

    Args:
        arguments: as `parsed` returns them.
        policy: the model.
        pool: where cells run; open.

    Raises:
        ManifestError: a folder holds a run with another model, prompt or setting.
        UsageError: a folder holds tries that this draw leaves out.
        RecordError: the split is not as the suite needs it.
        PolicyError: the model can't be reached; what is done so far is kept.
        SandboxError: no cell can be run; likewise.
        ValueError: a file of records is broken.
        OSError: a file can't be written.
    """
    prompts = dict.fromkeys(arguments.prompts)
    shapes = tuple(_shape(dialect, arguments, policy) for dialect in prompts)
    for shape in shapes:
        shape.claim()
    return dict(await side_by_side(shapes, policy, pool, _show, arguments.at_once))


def _show(shape: Shape, record: EvalRecord) -> None:
    outcome = record.failure or "right"
    _say(f"{record.id:<14} {shape.name:<20} {outcome:<24} {record.turns:>2} turns "
         f"{record.seconds:5.0f} s")  # fmt: skip


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _run(arguments: argparse.Namespace) -> dict[str, list[EvalRecord]]:
    choice = model_choice(arguments.model, arguments.base_url, arguments.api_key_file)
    settings = PoolSettings(profile=Profile(arguments.profile))
    async with AsyncExitStack() as stack:
        # The system ends the workers with the thread that started the pool: it comes first.
        pool = await stack.enter_async_context(SandboxPool(settings))
        policy = await stack.enter_async_context(open_policy(choice, _say, Urgency.BACKGROUND))
        return await compare_shapes(arguments, policy, pool)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code: 0, 1 after a fault, 130 when interrupted."""
    arguments = parsed(words)
    try:
        records = recorded(arguments) if arguments.no_run else asyncio.run(_run(arguments))
        table = table_of(records)
        print(table.to_markdown() if arguments.markdown else table.to_text())
    except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
        print(f"agents: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("agents: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
