"""What each rule of the help for a model is worth: `python -m benchmarks.assistance SUITE`.

The same model answers the same questions with the dialect's own help, without any of it, and with
each of its rules left out in turn; all with the same seeds, and in turns, so that a run that was
stopped has done as much of each. A rule's worth is what is lost without it, question by question.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from benchmarks.agents.side_by_side import Shape, shape_of, side_by_side
from benchmarks.sandbox.table import Table
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
from training.compare import comparison_of
from training.evaluation.arguments import positive
from training.evaluation.options import EvalOptions
from training.evaluation.read_run import read_run
from training.evaluation.records import EvalRecord
from training.evaluation.standing import standing_of
from training.evaluation.tables import percent_range
from training.tasks.registry import SUITES, find_suite

__all__ = ["main", "measure", "parsed", "recorded", "table_of"]

OWN, NONE = "default", "none"
_COLUMNS = (
    "help", "right", "%", "95 %", "lost", "95 %", "only default", "only it", "p", "tokens", "turns",
)  # fmt: skip
_NOTES = (
    "right by the benchmark's own rules; unanswered questions are wrong ones",
    "lost: points of the default's share less this one's (95 %: paired bootstrap over questions)",
    "only default, only it: questions that one of the two alone has right; p: McNemar, exact",
    "tokens sampled and turns: means of a question",
)


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the options of a command line; `None` means this process's."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.assistance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("suite", help=f"{', '.join(sorted(SUITES))}, or package.module:ClassName")
    add("--split", type=Path, required=True, help="the folder of the split")
    add("--limit", type=positive, help="how many questions to draw (default: all)")
    add("--seed", type=int, default=7, help="of the draw")
    add("--dialect", default="markdown", choices=DIALECTS, metavar="NAME",
        help=f"of {', '.join(DIALECTS)} (default: markdown)")  # fmt: skip
    add("--rules", nargs="+", choices=Assistance.names(), metavar="RULE",
        help="leave only these out (default: each that the dialect has)")  # fmt: skip
    add("--out", type=Path, default=Path("runs/assistance"), help="gets a folder for each run")
    add("--compact", type=Path, metavar="FOLDER",
        help="keep outcomes alone in its assistance-*.jsonl, and go on from them")  # fmt: skip
    add("--max-turns", type=positive, default=10)
    add("--at-once", type=positive, default=1, help="tries that go on at the same time")
    add("--profile", choices=[one.value for one in PROFILES], default=Profile.ROLLOUT.value)
    add("--policy", "--model", dest="model", metavar="MODEL",
        help="local (default), a .gguf file, or a name at --base-url")  # fmt: skip
    add("--base-url", help="an OpenAI-compatible endpoint")
    add("--api-key-file", type=Path)
    add("--no-run", action="store_true", help="the table of what is there, without a model")
    add("--markdown", action="store_true", help="a table to paste into a page")
    return parser.parse_args(words)


def _helps(arguments: argparse.Namespace) -> dict[str, Assistance]:
    """What is compared: all of the dialect's help, all but one rule of it, and none."""
    own = Assistance.for_dialect(arguments.dialect)
    rules = [name for name in arguments.rules or Assistance.names() if name in own.on()]
    return {OWN: own, **{name: own.without(name) for name in rules}, NONE: Assistance.none()}


def _options(name: str, given: Assistance, arguments: argparse.Namespace) -> EvalOptions:
    turns = arguments.max_turns
    return EvalOptions(
        suite=find_suite(arguments.suite),
        split=arguments.split,
        out=arguments.out / _file_name(name, arguments),
        limit=arguments.limit,
        seed=arguments.seed,
        dialect=arguments.dialect,
        run=RunSettings(max_turns=turns, max_cells=turns, assistance=given),
    )


def _file_name(name: str, arguments: argparse.Namespace) -> str:
    suite = arguments.suite.rpartition(":")[2]
    return f"assistance-{suite}-{name}-{arguments.seed}"


def _compact_file(name: str, arguments: argparse.Namespace) -> Path | None:
    folder: Path | None = arguments.compact
    return folder / f"{_file_name(name, arguments)}.jsonl" if folder else None


def _shape(name: str, given: Assistance, arguments: argparse.Namespace, policy: Policy) -> Shape:
    options = _options(name, given, arguments)
    return shape_of(options, policy, arguments.profile, _compact_file(name, arguments), name)


async def measure(
    arguments: argparse.Namespace, policy: Policy, pool: SandboxPool
) -> Mapping[str, list[EvalRecord]]:
    """Returns the records by what was left out, those made earlier included.

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
    helps = _helps(arguments).items()
    shapes = tuple(_shape(name, given, arguments, policy) for name, given in helps)
    for shape in shapes:
        shape.claim()
    return await side_by_side(shapes, policy, pool, _show, arguments.at_once)


def recorded(arguments: argparse.Namespace) -> dict[str, list[EvalRecord]]:
    """Returns what runs have left of the draw, from their folders or else the compact files.

    What was never run is left out.

    Raises:
        RunError: records can't be read.
        RecordError: the split is not as the suite needs it.
    """
    found = {}
    for name, given in _helps(arguments).items():
        options = _options(name, given, arguments)
        own, compact = options.out / "records.jsonl", _compact_file(name, arguments)
        path = own if own.exists() or compact is None else compact
        if path.exists():
            wanted = standing_of(options).wanted
            found[name] = [one for one in read_run(path) if one.key in wanted]
    return found


def table_of(records: Mapping[str, Sequence[EvalRecord]]) -> Table:
    """Returns the table of runs by what was left out; one holds all of the dialect's help.

    Questions that a run lacks are left out of all of them.

    Raises:
        ValueError: the runs have no question in common, or the one with all help is missing.
    """
    common = set.intersection(*({one.id for one in run} for run in records.values() or [[]]))
    if OWN not in records or not common:
        raise ValueError("there is nothing to compare: no question was answered in all runs")
    runs = {name: [one for one in run if one.id in common] for name, run in records.items()}
    rows = [_row(name, comparison_of(run, runs[OWN]), run) for name, run in runs.items()]
    return Table(f"{len(common)} questions", _COLUMNS, rows, _NOTES)


def _row(name: str, compared: Mapping[str, Any], run: Sequence[EvalRecord]) -> tuple[str, ...]:
    share, lost, test = compared["runs"]["a"], compared["difference"], compared["mcnemar"]
    against = ("",) * 5
    if name != OWN:
        interval = "{:+.1f} to {:+.1f}".format(*lost["interval"]) if lost["interval"] else ""
        points = f"{lost['points']:+.1f}"
        against = (points, interval, str(test["c"]), str(test["b"]), f"{test['p_exact']:.2g}")
    return (
        name if name in (OWN, NONE) else f"without {name}",
        f"{share['right']:g}",
        f"{100 * share['share']:.1f}",
        percent_range(share["interval"]),
        *against,
        f"{sum(one.tokens for one in run) / len(run):.0f}",
        f"{sum(one.turns for one in run) / len(run):.1f}",
    )


def _show(shape: Shape, record: EvalRecord) -> None:
    _say(
        f"{record.id:<14} {shape.name:<18} {record.failure or 'right':<24} {record.turns:>2} turns"
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def _run(arguments: argparse.Namespace) -> Mapping[str, list[EvalRecord]]:
    choice = model_choice(arguments.model, arguments.base_url, arguments.api_key_file)
    settings = PoolSettings(profile=Profile(arguments.profile))
    async with AsyncExitStack() as stack:
        # The system ends the workers with the thread that started the pool: it comes first.
        pool = await stack.enter_async_context(SandboxPool(settings))
        policy = await stack.enter_async_context(open_policy(choice, _say, Urgency.BACKGROUND))
        return await measure(arguments, policy, pool)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code: 0, 1 after a fault, 130 when interrupted."""
    arguments = parsed(words)
    try:
        records = recorded(arguments) if arguments.no_run else asyncio.run(_run(arguments))
        table = table_of(records)
        print(table.to_markdown() if arguments.markdown else table.to_text())
    except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
        print(f"assistance: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("assistance: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
