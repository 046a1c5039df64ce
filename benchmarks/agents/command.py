"""Command that asks a model the same questions in several ways: options, runs and table."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agents.side_by_side import Shape, shape_of, side_by_side
from benchmarks.sandbox.table import Table
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.config import model_choice
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Policy, Urgency
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from kernel_sandbox.runners.pool_settings import PROFILES
from training.durable.folder import folder_lock
from training.durable.kept_policy import CALLS_FILE, KeptPolicy
from training.evaluation.arguments import positive
from training.evaluation.run import EvalOptions, resume_state_of
from training.records.records import EvalRecord, read_run
from training.suites.suite import Suite

__all__ = ["Command", "Way", "arguments_of"]


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask."""

    dialect: str
    assistance: Assistance


@dataclass(frozen=True, slots=True)
class Command:
    """A comparison: its questions, its ways to ask, and its table."""

    name: str
    """Prefix of its folders, files and messages."""
    suite: Suite
    ways: Mapping[str, Way]
    table: Callable[[Mapping[str, Sequence[EvalRecord]]], Table]
    """Builds the table from the records of each way; raises `ValueError` if there is none."""
    arguments: argparse.Namespace
    """As the parser of `arguments_of` returns them."""

    def run(self) -> int:
        """Run the command; return the exit code: 0, 1 after a fault, 130 when interrupted."""
        try:
            known = self.arguments.no_run
            table = self.table(self.recorded() if known else asyncio.run(self._measured()))
            print(table.to_markdown() if self.arguments.markdown else table.to_text())
        except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
            print(f"{self.name}: {fault}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"{self.name}: stopped. Run the same command to resume.", file=sys.stderr)
            return 130
        return 0

    async def measure(self, policy: Policy, pool: SandboxPool) -> dict[str, list[EvalRecord]]:
        """Run each way and return its records, including earlier ones.

        A request that several ways share is sent once, so that they do not differ by chance.

        Args:
            policy: the model.
            pool: where cells run; open.

        Raises:
            ManifestError: a folder contains a run with another model, prompt or setting.
            UsageError: a folder contains tries that this draw leaves out, or is in use.
            RecordError: the split does not have the form that the suite needs.
            PolicyError: the model can't be reached; the records so far are kept.
            SandboxError: no cell can be run; likewise.
            ValueError: a file of records is broken.
            OSError: a file can't be written.
        """
        out: Path = self.arguments.out
        with folder_lock(out, "comparison"):
            kept = KeptPolicy(policy, out / CALLS_FILE)
            kept.load()
            shapes = tuple(self._shape(name, policy) for name in self.ways)
            for shape in shapes:
                shape.claim()
            return dict(await side_by_side(shapes, kept, pool, _show, self.arguments.at_once))

    def recorded(self) -> dict[str, list[EvalRecord]]:
        """Return the existing records of the draw, from folders or else the compact files.

        A way that was never run is left out.

        Raises:
            RunError: records can't be read.
            RecordError: the split does not have the form that the suite needs.
        """
        found = {}
        for name in self.ways:
            options = self._options(name)
            own, compact = options.out / "records.jsonl", self._compact_file(name)
            path = own if own.exists() or compact is None else compact
            if path.exists():
                wanted = resume_state_of(options).wanted
                found[name] = [one for one in read_run(path) if one.key in wanted]
        return found

    async def _measured(self) -> dict[str, list[EvalRecord]]:
        given = self.arguments
        choice = model_choice(given.model, given.base_url, given.api_key_file)
        settings = PoolSettings(profile=Strictness(given.profile))
        async with AsyncExitStack() as stack:
            # The system ends the workers with the thread that started the pool, so open it first.
            pool = await stack.enter_async_context(SandboxPool(settings))
            opening = open_policy(choice, _say, Urgency.BACKGROUND, given.slots)
            policy = await stack.enter_async_context(opening)
            return await self.measure(policy, pool)

    def _options(self, name: str) -> EvalOptions:
        given, way = self.arguments, self.ways[name]
        turns = given.max_turns
        run = RunSettings(
            max_turns=turns,
            max_cells=turns,
            max_seconds=given.max_seconds,
            assistance=way.assistance,
        )
        return EvalOptions(
            suite=self.suite,
            split=given.split,
            out=given.out / self._stem(name),
            limit=given.limit,
            seed=given.seed,
            dialect=way.dialect,
            run=run,
        )

    def _stem(self, name: str) -> str:
        return f"{self.name}-{name}-{self.arguments.seed}"

    def _compact_file(self, name: str) -> Path | None:
        folder: Path | None = self.arguments.compact
        return folder / f"{self._stem(name)}.jsonl" if folder else None

    def _shape(self, name: str, policy: Policy) -> Shape:
        options = self._options(name)
        return shape_of(options, policy, self.arguments.profile, self._compact_file(name), name)


def arguments_of(
    module: str, description: str | None, out: Path, *, has_split: bool = True
) -> argparse.ArgumentParser:
    """Return a parser with the options of all such commands.

    Args:
        module: the argument of `python -m`.
        description: of the command.
        out: default folder of the runs.
        has_split: whether the questions are in a folder that the user names.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    if has_split:
        add("--split", type=Path, required=True, help="the folder of the split")
    add("--limit", type=positive, help="how many questions to draw (default: all)")
    add("--seed", type=int, default=7, help="of the draw")
    add("--out", type=Path, default=out, help="gets a folder for each way to ask")
    add("--compact", type=Path, metavar="FOLDER",
        help="keep outcomes alone in its .jsonl files, and go on from them")  # fmt: skip
    add("--max-turns", type=positive, default=10)
    add("--max-seconds", type=positive, default=1_800, help="of a question")
    add("--at-once", type=positive, default=1,
        help="tries that go on, and turns that are drawn, at the same time")  # fmt: skip
    add("--profile", choices=[one.value for one in PROFILES], default=Strictness.ROLLOUT.value)
    add("--policy", "--model", dest="model", metavar="MODEL",
        help="local (default), a .gguf file, or a name at --base-url")  # fmt: skip
    served = parser.add_mutually_exclusive_group()
    served.add_argument("--slots", type=positive,
        help="turns that a local model writes at the same time (default: 2)")  # fmt: skip
    served.add_argument("--base-url", help="an OpenAI-compatible endpoint")
    add("--api-key-file", type=Path)
    add("--no-run", action="store_true", help="the table of what is there, without a model")
    add("--markdown", action="store_true", help="a table to paste into a page")
    return parser


def _show(shape: Shape, record: EvalRecord) -> None:
    outcome = record.failure or "right"
    _say(f"{record.id:<14} {shape.name:<20} {outcome:<24} {record.turns:>2} turns "
         f"{record.seconds:5.0f} s")  # fmt: skip


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
