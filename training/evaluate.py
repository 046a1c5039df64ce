"""Run a suite through the product's own loop and print a table: `python -m training.evaluate`.

Every finished try is written to `records.jsonl` immediately, so the same command resumes an
interrupted run. Unanswered questions stay in the denominator.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from dm_jupyter.agent.loop import RunSettings, begin
from dm_jupyter.agent.rollout import Pool, settings_for
from dm_jupyter.agent.simplify import SIMPLIFY_PROMPT
from dm_jupyter.config import ModelChoice, model_choice, packages_folder
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.errors import DmJupyterError, UsageError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.opening import adapter_hash, open_policy, weights_hash
from dm_jupyter.models.protocols import Policy, Urgency
from dm_jupyter.search.strategies import React, Strategy, Vote
from dm_jupyter.search.tree import Search, SearchSettings
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.packages.overlay import Overlay
from kernel_sandbox.packages.packages import AllowList, PackageInstaller
from kernel_sandbox.runners.pool import PoolSettings
from kernel_sandbox.runners.pool import StateRetention as Keep
from training.durable.budget import BudgetMeter, Price, metered
from training.durable.json_lines import write_lines
from training.durable.kept_policy import CALLS_FILE, KeptPolicy
from training.durable.log import Salvaged
from training.durable.progress import WorkProgress
from training.evaluation.arguments import parsed_arguments
from training.evaluation.knowledge import read_knowledge
from training.evaluation.manifest import Manifest, ModelHashes, git_revision, versions
from training.evaluation.models import BoundedPolicy, ValueModel
from training.evaluation.pools import open_pool
from training.evaluation.run import (
    SEEDS_A_TRIAL,
    EvalOptions,
    ResumeState,
    evaluate,
    write_results,
)
from training.evaluation.summary import print_summary, write_summary
from training.marking.judge import Judge, judge_choice
from training.records.records import DAMAGED, EvalRecord
from training.suites.registry import find_suite
from training.suites.suite import JudgedSuite

__all__ = ["RunProgress", "evaluation_pool", "main", "run_evaluation"]

_UNKNOWN = (
    "{out} contains {count} tries but no run.json, so their settings can't be compared with these. "
    "Copy run.json along with the records if you can."
)
_UNHASHED = (
    "{out}/run.json is from an older release without hashes of the data files, so changes to them "
    "can't be detected. Hashes are kept from now on."
)
_CHECKOUT = Path(__file__).resolve().parent.parent


def _strategy(arguments: argparse.Namespace) -> Strategy:
    candidates = {} if arguments.temperature is None else {"temperature": arguments.temperature}
    match arguments.strategy:
        case "react":
            return React()
        case "vote":
            return Vote(arguments.tries, choose=arguments.choose, **candidates)
    settings = SearchSettings(
        candidates=arguments.tries,
        depth=arguments.max_turns,
        iterations=arguments.iterations,
        max_cells=arguments.sampled_cells,
        draws_again=arguments.draw_again,
        enough_answers=arguments.enough_answers,
        enough_votes=arguments.enough_votes,
        select=arguments.choose,
    )
    if arguments.collect:
        settings = settings.for_collecting()
    return Search(replace(settings, **candidates))


def _options(arguments: argparse.Namespace) -> EvalOptions:
    strategy = _strategy(arguments)
    name = f"{arguments.suite.rpartition(':')[2]}-{strategy.name}-{arguments.seed}"
    return EvalOptions(
        suite=find_suite(arguments.suite),
        split=arguments.split,
        out=arguments.out or Path("runs") / name,
        limit=arguments.limit,
        levels=tuple(arguments.levels),
        seed=arguments.seed,
        leaves_out=arguments.leave_out,
        trials=arguments.k,
        strategy=strategy,
        collects=arguments.collect,
        dialect=arguments.dialect,
        simplifies=arguments.simplify,
        knowledge=read_knowledge(arguments.knowledge) if arguments.knowledge else None,
        run=_run_settings(arguments),
        at_once=arguments.at_once,
        score_seconds=arguments.score_seconds,
        salvages=arguments.salvage,
    )


def _run_settings(arguments: argparse.Namespace) -> RunSettings:
    settings = RunSettings(
        max_turns=arguments.max_turns,
        max_cells=arguments.max_turns,
        max_tokens=arguments.max_tokens,
        max_seconds=arguments.max_seconds,
        turn_tokens=arguments.turn_tokens,
        seed=SEEDS_A_TRIAL * arguments.tries_before,
        assistance=arguments.assist or Assistance.for_dialect(arguments.dialect),
    )
    if arguments.temperature is None:
        return settings
    return replace(settings, temperature=arguments.temperature)


def _manifest(
    options: EvalOptions,
    arguments: argparse.Namespace,
    hashes: ModelHashes,
    policy: Policy,
    resume_state: ResumeState,
) -> Manifest:
    first = begin(Trajectory(Task("", ""), options.dialect), policy, options.run)
    told = dict(first.prompts)
    if options.simplifies:
        told[SIMPLIFY_PROMPT] = prompts.fingerprint(SIMPLIFY_PROMPT)
    strategy: dict[str, Any] = {"name": options.strategy.name}
    if isinstance(options.strategy, Search):
        strategy |= asdict(options.strategy.settings)
        if isinstance(options.strategy.values, ValueModel):
            strategy["value_model"] = options.strategy.values.name
    elif isinstance(options.strategy, Vote):
        strategy |= asdict(options.strategy)
        if options.strategy.choose == "vote":  # runs of older releases lack it and must resume
            del strategy["choose"]
    return Manifest(
        suite=options.suite.name,
        split=options.split.resolve().name,
        seed=options.seed,
        limit=options.limit,
        levels=list(options.levels),
        trials=options.trials,
        model=policy.name,
        weights=hashes.weights,
        adapter=hashes.adapter,
        knowledge=options.knowledge.sha256 if options.knowledge else "",
        dialect=options.dialect,
        prompts=told,
        strategy=strategy,
        settings=asdict(options.run),
        profile=arguments.profile,
        git=git_revision(_CHECKOUT),
        versions=versions(),
        questions=resume_state.questions,
        data=resume_state.data,
        judge=options.judge.name if options.judge else "",
        collects=options.collects,
        installs=arguments.install_packages,
    )


def evaluation_pool(arguments: argparse.Namespace) -> AbstractAsyncContextManager[Pool]:
    """Return the pool in which the cells of an evaluation run, built from its options."""
    keep = Keep.SNAPSHOT if arguments.strategy == "search" else Keep.PERSISTENT
    settings = PoolSettings(strategy=keep, profile=Strictness(arguments.profile))
    installer = partial(_installer, arguments.packages_lock) if arguments.install_packages else None
    return open_pool(arguments.pool, settings, arguments.cells_at_once, installer)


def _installer(lock: Path | None) -> PackageInstaller:
    """Return an installer of packages that cells lack; it consents to every listed package."""

    async def agree(_: Sequence[str]) -> bool:
        return True

    overlay = Overlay(packages_folder(), lock=lock)
    return PackageInstaller(overlay, AllowList.load(), agree, _say)


async def run_evaluation(
    arguments: argparse.Namespace,
    opened: Policy | None = None,
    hashes: ModelHashes | None = None,
) -> None:
    """Run or resume an evaluation and print its figures.

    Args:
        arguments: all options of this command.
        opened: the policy to evaluate, instead of the model that the options name.
        hashes: of the opened policy's model; `None` if unknown.

    Raises:
        DmJupyterError: the model, the judge or the folder can't be used, or the budget is spent.
        SandboxError: no cell can be run.
        ValueError: the suite, the split or the records are invalid.
        OSError: a file can't be read or written.
    """
    options = _options(arguments)
    choice = _choice(arguments, opened)
    options.out.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        # The system ends the workers with the thread that started the pool, so open it first.
        pool = await stack.enter_async_context(evaluation_pool(arguments))
        if opened is not None:
            policy, known = opened, hashes or ModelHashes()
        else:
            opening = open_policy(choice, _say, Urgency.BACKGROUND, arguments.slots)
            policy = await stack.enter_async_context(opening)
            weights = await asyncio.to_thread(weights_hash, choice)
            known = ModelHashes(weights, adapter_hash(choice))
        run = replace(settings_for(policy, options.run), shows_pictures=False)
        options = replace(options, run=run)
        options = await _judged(options, arguments, stack)
        options = await _valued(options, arguments, stack)
        price = Price(*arguments.price) if arguments.price else None
        meter = stack.enter_context(BudgetMeter(options.out, arguments.budget, price))
        calls = options.out / CALLS_FILE
        kept = KeptPolicy(metered(policy, meter), calls, partial(_draws_together, policy))
        bounded = BoundedPolicy(kept, arguments.samples_at_once)
        with RunProgress(options.suite.name) as progress:

            def start(resume_state: ResumeState) -> None:
                resume_state.refuse_others(options.out)
                kept.load(salvages=options.salvages)
                meter.load(salvages=options.salvages)
                if resume_state.done and not (options.out / "run.json").exists():
                    _say(_UNKNOWN.format(out=options.out, count=len(resume_state.done)))
                if resume_state.salvaged is not None:
                    _say(_salvage_line(options.out, resume_state.salvaged))
                manifest = _manifest(options, arguments, known, policy, resume_state)
                if not manifest.claim(options.out):
                    _say(_UNHASHED.format(out=options.out))
                progress.start(resume_state)

            records = await evaluate(options, bounded, pool, progress.show, start)
    _write(records, options.out, price)
    print_summary(records, price)
    if options.knowledge is not None:
        print("The questions came with their workflows, so these figures are not a score.")
    if options.collects:
        print("The search knew the right answers, so these figures are not a score.")
    print(f"records: {options.out / 'records.jsonl'}")


def _choice(arguments: argparse.Namespace, opened: Policy | None) -> ModelChoice:
    given = (arguments.model, arguments.base_url, arguments.api_key_file, arguments.adapter)
    if opened is None:
        return model_choice(*given)
    if any(given) or arguments.slots:
        raise UsageError(
            "the model is named before the suite: leave --model, --adapter and --base-url out, and "
            "--slots"
        )
    return ModelChoice()


def _draws_together(policy: Policy) -> bool:
    """Return whether the endpoint returns several turns in one answer, as far as known."""
    return not isinstance(policy, HttpPolicy) or policy.capabilities.takes("n")


async def _judged(
    options: EvalOptions, arguments: argparse.Namespace, stack: AsyncExitStack
) -> EvalOptions:
    """Return the options with the judge that the suite needs."""
    if not isinstance(options.suite, JudgedSuite):
        return options
    if options.collects:
        raise UsageError(f"{options.suite.name} is marked by a model, so --collect has no rewards")
    if not arguments.judge_model:
        raise UsageError(f"{options.suite.name} is marked by a model: name one with --judge-model")
    choice = judge_choice(
        arguments.judge_model, arguments.judge_base_url, arguments.judge_api_key_file
    )
    policy = await stack.enter_async_context(open_policy(choice, _say, Urgency.BACKGROUND))
    return replace(options, judge=Judge(policy, options.out / "judge"))


async def _valued(
    options: EvalOptions, arguments: argparse.Namespace, stack: AsyncExitStack
) -> EvalOptions:
    """Return the options with the value model of the search."""
    if not arguments.value_model or not isinstance(options.strategy, Search):
        return options
    values = await stack.enter_async_context(ValueModel(arguments.value_model))
    return replace(options, strategy=replace(options.strategy, values=values))


def _salvage_line(out: Path, salvaged: Salvaged) -> str:
    if not salvaged.damaged:
        return f"{out / 'records.jsonl'}: no damage, all {salvaged.kept} records are whole"
    return (
        f"{out / 'records.jsonl'}: kept {salvaged.kept} records, moved {salvaged.damaged} damaged "
        f"lines to {out / DAMAGED}; tries without a record are made again"
    )


def _write(records: list[EvalRecord], out: Path, price: Price | None) -> None:
    write_summary(records, out / "summary.json", price)
    write_results(records, out / "results.jsonl")
    # Outcomes only: copied to `records.jsonl`, they let a run resume on another machine.
    write_lines((asdict(record.compacted()) for record in records), out / "compact.jsonl")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def main(
    argv: Sequence[str] | None = None,
    policy: Policy | None = None,
    hashes: ModelHashes | None = None,
) -> int:
    """Run the command; return the exit code: 0, 1 after a fault, 130 when interrupted.

    Args:
        argv: its options; `None` takes those of this process.
        policy: to evaluate, instead of the model that the options name.
        hashes: of the policy's model; `None` if unknown.
    """
    arguments = parsed_arguments(__doc__, argv)
    try:
        asyncio.run(run_evaluation(arguments, policy, hashes))
    except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
        print(f"evaluate: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("evaluate: stopped. Run the same command to resume.", file=sys.stderr)
        return 130
    return 0


class RunProgress(WorkProgress):
    """Progress of an evaluation, with the number of right answers."""

    _right = 0

    def start(self, resume_state: ResumeState) -> None:
        """Show the state of the run."""
        self._right = sum(record.correct for record in resume_state.done.values())
        self.begin(len(resume_state.tries), len(resume_state.done), f"{self._right} right so far")

    def show(self, record: EvalRecord) -> None:
        """Show one more record."""
        self._right += record.correct
        name = f"{record.id} #{record.trial + 1}" if record.trial else record.id
        self.add(
            f"{name:<20} {record.failure or 'right':<22} {record.turns} turns "
            f"{record.seconds:5.0f} s",
            f"{self._right} right so far",
        )


if __name__ == "__main__":
    sys.exit(main())
