"""Collect correct runs of a model to learn from: `python -m training.collect SUITE`.

The command makes several tries at each question of a training split, as `python -m
training.evaluate` does. It keeps the correct ones that a replay confirms. OUT/dataset receives
their conversations in each dialect, and a card. The same command resumes an interrupted collection.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import chain
from pathlib import Path

from dm_jupyter.config import model_choice
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.core.errors import DmJupyterError, LocalModelError, UsageError
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Urgency
from dm_jupyter.search.tree import SearchSettings
from kernel_sandbox.errors import SandboxError
from training.collect.card import CollectedEvaluation, card_of, print_funnel, read_source
from training.collect.dataset import dataset_files, write_collection
from training.collect.examining import (
    CollectedRun,
    Funnel,
    corrections,
    examine,
    failed_first_cells,
)
from training.collect.replaying import ReplayedRuns, replayed_runs
from training.collect.selecting import (
    Balance,
    Selection,
    balance_of,
    first_of_each_question,
    held_ids,
    in_one_dialect,
    shortest_of_equals,
)
from training.collect.wording import in_words
from training.durable.folder import folder_lock
from training.evaluate import evaluation_pool, run_evaluation
from training.evaluation.arguments import (
    add_run_options,
    evaluation_arguments,
    number_between,
    positive,
)
from training.export.replay import open_replays
from training.records.records import RecordLog
from training.suites.registry import find_suite
from training.suites.suite import Sample, draw

__all__ = ["main"]

_RUNS = "runs"
_RECORDS = "records.jsonl"
_FOLDERS = re.compile(r"(?<![\w:/])/(?:[^/]+/)+")
"""Folders before the last name of an absolute path."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.collect", description=__doc__)
    own = parser.add_argument_group("the collection")
    add = own.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="runs, replays and dataset")
    add("--tries", dest="k", type=positive, default=4, metavar="N",
        help="runs at each question (default: 4)")  # fmt: skip
    add("--dialect", dest="dialects", action="append", choices=tuple(DIALECTS), required=True,
        metavar="NAME", help="of the conversations; may be given several times")  # fmt: skip
    add("--run-dialect", dest="dialect", choices=tuple(DIALECTS), default="markdown",
        metavar="NAME", help="in which the runs are drawn (default: markdown)")  # fmt: skip
    add("--knowledge", type=Path, metavar="FILE",
        help="workflows told with the questions while runs are drawn; the conversations leave "
        "them out")  # fmt: skip
    add("--also", type=Path, action="append", default=[], metavar="DIR",
        help="an earlier collection or evaluation whose runs are pooled; repeatable")  # fmt: skip
    add("--one-dialect", action="store_true",
        help="write each run in one of the dialects, and added runs in all")  # fmt: skip
    add("--corrections", action="store_true",
        help="add right runs after the failed cell of another try at the question")  # fmt: skip
    add("--in-words", action="store_true",
        help="add right runs as answers in words to questions without a form, which the model "
        "writes")  # fmt: skip
    add("--unsolved", action="store_true",
        help="draw only at questions that no pooled run answers correctly")  # fmt: skip
    add("--no-draw", action="store_true", help="select among the runs that are there")
    add("--per-question", type=positive, default=2, metavar="N",
        help="runs of a question that are kept at most (default: 2)")  # fmt: skip
    add("--category-share", type=number_between(0, 1), default=0.12, metavar="S",
        help="largest share of a category (default: 0.12); with few categories, twice an even "
        "share")  # fmt: skip
    add("--held-share", type=number_between(0, 0.5), default=0.1, metavar="S",
        help="share that is held back by data file, for the held loss (default: 0.1)")  # fmt: skip
    add_run_options(parser)
    parser.set_defaults(temperature=SearchSettings().temperature)
    return parser


async def _main(arguments: argparse.Namespace, evaluation: argparse.Namespace) -> int:
    """Draw, select and write; return the number of runs that could not be replayed."""
    suite, out = find_suite(arguments.suite), arguments.out
    items = {item.task.id: item for item in suite.load(arguments.split)}
    drawn = draw(list(items.values()), arguments.limit, arguments.seed, arguments.levels)
    _refuse_unlicensed(drawn, arguments)
    folders = [_folder_of(folder) for folder in arguments.also]
    with folder_lock(out, "collection"):
        # Else the same model would repeat the pooled tries, seed by seed.
        evaluation.tries_before = sum(map(_tries, folders))
        if arguments.unsolved:
            evaluation.leave_out = _solved(folders)
            if all(item.task.id in evaluation.leave_out for item in drawn):
                raise UsageError("every question has a correct run already: leave --unsolved out")
        if not arguments.no_draw:
            await run_evaluation(evaluation)
        if (out / _RUNS / _RECORDS).exists():
            folders.insert(0, out / _RUNS)
        if not folders:
            raise UsageError(f"{out} holds no runs yet: leave --no-draw out, or add --also")
        funnel = Funnel()
        sources, runs = await _examined(folders, items, arguments.dialects, funnel)
        log, at_once = out / "replays.jsonl", arguments.at_once
        replayed, variants = ReplayedRuns([], []), list[CollectedRun]()
        async with AsyncExitStack() as stack:
            if runs:
                pool = await stack.enter_async_context(evaluation_pool(evaluation))
                opened = open_replays(suite, arguments.split, pool)
                replays = await stack.enter_async_context(opened)
                replayed = await replayed_runs(runs, replays, log, at_once)
            faults = list(replayed.faults)
            balance = _balanced(replayed, arguments, funnel)
            added = await _variants(balance.runs, folders, arguments)
            for runs in added:
                again = await replayed_runs(runs, replays, log, at_once)
                faults += again.faults
                variants += again.same
        held = held_ids(balance.runs, arguments.held_share, arguments.seed)
        selection = Selection(balance, held, variants)
        _write(selection, sources, items, arguments, funnel)
    for fault in faults:
        _say(f"not replayed: {fault}")
    return len(faults)


def _tries(folder: Path) -> int:
    """Return the largest number of tries at a question in an evaluation."""
    return max((record.trial + 1 for record in RecordLog(folder / _RECORDS).each()), default=0)


def _solved(folders: Sequence[Path]) -> set[str]:
    """Return the ids of the questions that a run of these evaluations answers correctly."""
    logs = [RecordLog(folder / _RECORDS).each() for folder in folders]
    return {record.id for log in logs for record in log if record.correct}


def _refuse_unlicensed(drawn: Sequence[Sample], arguments: argparse.Namespace) -> None:
    """Raise before any model call if the licences bar every question."""
    barred = sum(bool(item.task.metadata.get("evaluation_only")) for item in drawn)
    if barred == len(drawn):
        raise UsageError(
            f"no question of {arguments.split} may be learned from: the suite {arguments.suite} "
            "marks all of them as evaluation only. Name a training split with --split."
        )
    if barred:
        _say(f"{barred} of {len(drawn)} questions are evaluation only: their runs are left out")


def _folder_of(also: Path) -> Path:
    """Return the evaluation's folder in a collection's or an evaluation's folder."""
    for folder in (also / _RUNS, also):
        if (folder / _RECORDS).exists():
            return folder
    raise UsageError(f"--also {also}: neither it nor its {_RUNS} folder has a {_RECORDS}")


async def _examined(
    folders: Sequence[Path],
    items: Mapping[str, Sample],
    dialects: Sequence[str],
    funnel: Funnel,
) -> tuple[list[CollectedEvaluation], list[CollectedRun]]:
    """Return the evaluations, and their runs that meet every condition but the replay."""
    sources: list[CollectedEvaluation] = []
    runs: list[CollectedRun] = []
    first_trial = 0
    for folder in folders:
        for record in RecordLog(folder / _RECORDS).each():
            item = items.get(record.id)
            if item is None:
                raise UsageError(f"{folder} has runs at {record.id}, which the split lacks")
            run = await examine(record, item, folder, first_trial, dialects, funnel)
            runs += [run] if run is not None else []
        tries = _tries(folder)
        sources.append(read_source(folder, first_trial, tries))
        _refuse_other_questions(sources[0], sources[-1])
        first_trial += tries
    return sources, runs


def _refuse_other_questions(own: CollectedEvaluation, other: CollectedEvaluation) -> None:
    for name in ("suite", "questions"):
        mine, theirs = own.manifest.get(name), other.manifest.get(name)
        if mine and theirs and mine != theirs:
            raise UsageError(
                f"{other.run} contains runs of another split ({name} {theirs} there, {mine} here). "
                "Only runs on the same questions can be pooled."
            )


async def _variants(
    runs: Sequence[CollectedRun], folders: Sequence[Path], arguments: argparse.Namespace
) -> list[list[CollectedRun]]:
    """Return the variants of right runs that were asked for, a list of each kind."""
    added = []
    if arguments.corrections:
        logs = (RecordLog(folder / _RECORDS).each() for folder in folders)
        failed = failed_first_cells(chain.from_iterable(logs))
        added.append(await corrections(runs, failed, arguments.dialects))
    if arguments.in_words:
        given = arguments.model, arguments.base_url, arguments.api_key_file, arguments.adapter
        opening = open_policy(model_choice(*given), _say, Urgency.BACKGROUND, arguments.slots)
        replies, dialects = arguments.out / "replies", arguments.dialects
        async with opening as policy:
            added.append(await in_words(runs, policy, replies, dialects, arguments.at_once))
    return added


def _balanced(replayed: ReplayedRuns, arguments: argparse.Namespace, funnel: Funnel) -> Balance:
    """Return the selected runs; print the funnel.

    Raises:
        UsageError: no run is left.
    """
    shortest = shortest_of_equals(replayed.same)
    few = first_of_each_question(shortest, arguments.per_question)
    balance = balance_of(few, arguments.category_share, arguments.seed)
    stages = ("replayed", replayed.same), ("shortest", shortest), ("per question", few), (
        "balanced", balance.runs)  # fmt: skip
    for stage, runs in stages:
        funnel.count_all(stage, runs)
    print_funnel(funnel)
    if not balance.runs:
        reasons = (f"not replayed: {fault}" for fault in replayed.faults)
        raise UsageError(
            "\n".join(["no run met all conditions, so no dataset was written", *reasons])
        )
    return balance


def _write(
    selection: Selection,
    sources: Sequence[CollectedEvaluation],
    items: Mapping[str, Sample],
    arguments: argparse.Namespace,
    funnel: Funnel,
) -> None:
    """Write the dataset and its card."""
    runs = selection.balance.runs
    once = in_one_dialect(runs, arguments.seed) if arguments.one_dialect else runs
    written = [*once, *selection.variants]
    files = dataset_files(written, selection.held, arguments.dialects)
    metadata = [items[run.record.id].task.metadata for run in selection.balance.runs]
    licences = Counter(str(one.get("licence") or "not stated") for one in metadata)
    card = card_of(_command(arguments), sources, licences, funnel, selection, files)
    folder = arguments.out / "dataset"
    write_collection(files, card, folder)
    for file in files:
        print(f"{file.rows} rows, {len(file.content) / 1e6:.2f} MB: {folder / file.name}")
    print(f"card: {folder / 'card.md'}")


def _command(arguments: argparse.Namespace) -> str:
    """Return the given command without this machine's folders and secrets in an address."""
    words = sys.argv[1:]
    for address in filter(None, (arguments.base_url, arguments.judge_base_url)):
        words = [word.replace(address, shown_address(address)) for word in words]
    plain = [_FOLDERS.sub("", word) for word in words]
    return shlex.join(["python", "-m", "training.collect", *plain])


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def main() -> int:
    """Run the command; return the exit code: 0, 1 after a fault, 130 when interrupted."""
    parser = _parser()
    arguments = parser.parse_args()
    arguments.dialects = list(dict.fromkeys(arguments.dialects))
    if arguments.unsolved and not arguments.also:
        parser.error("--unsolved needs --also, the runs that may have solved a question")
    evaluation = evaluation_arguments(parser, arguments, out=arguments.out / _RUNS)
    try:
        faults = asyncio.run(_main(arguments, evaluation))
    except (DmJupyterError, LocalModelError, SandboxError, ValueError, OSError) as fault:
        print(f"collect: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("collect: stopped. Run the same command to resume.", file=sys.stderr)
        return 130
    if faults:
        print(
            f"collect: {faults} runs could not be replayed, so the dataset lacks them. Run the "
            "same command to try them again.",
            file=sys.stderr,
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
