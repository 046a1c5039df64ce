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
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path

from dm_jupyter.config import model_choice
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.core.errors import DmJupyterError, UsageError
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.models.local.catalogue import name_without_adapter
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
from training.durable.budget import BudgetMeter, Price, metered
from training.durable.folder import folder_lock
from training.evaluate import evaluation_pool, run_evaluation
from training.evaluation.arguments import (
    add_run_options,
    evaluation_arguments,
    number_between,
    positive,
)
from training.evaluation.run import SEEDS_A_TRIAL, fingerprint_of
from training.export.rerun import open_replays
from training.records.records import RecordLog
from training.suites.registry import find_suite
from training.suites.suite import Sample, draw

__all__ = ["main"]

_RUNS = "runs"
_RECORDS = "records.jsonl"
_FOLDERS = re.compile(r"(?<![\w:/])/(?:[^/]+/)+")
"""Folders before the last name of an absolute path."""
_QUESTIONS: Mapping[str, str] = {
    "suite": "suite",
    "split": "split",
    "questions": "content of the questions or labels",
}
"""What must be the same for a verdict to hold here, by the field of a run's manifest."""
_OF_OUT = "Give the suite and the --split of these runs, as it was, or choose another --out."
_OF_ALSO = "Leave it out of --also, or give the suite and the --split of these runs."


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
    questions = fingerprint_of(list(items.values()))
    mine = {"suite": suite.name, "split": arguments.split.resolve().name, "questions": questions}
    folders = [_folder_of(folder) for folder in arguments.also]
    sources = [_source(folder) for folder in folders]
    _refuse_other_questions(sources, mine, _OF_ALSO)
    with folder_lock(out, "collection"):
        evaluation.tries_before = _tries_before(sources, out / _RUNS)
        if arguments.unsolved:
            evaluation.leave_out = _solved(folders)
            if all(item.task.id in evaluation.leave_out for item in drawn):
                raise UsageError("every question has a correct run already: leave --unsolved out")
        if not arguments.no_draw:
            await run_evaluation(evaluation)
        if (out / _RUNS / _RECORDS).exists():
            folders.insert(0, out / _RUNS)
            sources.insert(0, _source(out / _RUNS))
            _refuse_other_questions(sources[:1], mine, _OF_OUT)
        if not folders:
            raise UsageError(f"{out} holds no runs yet: leave --no-draw out, or add --also")
        funnel = Funnel()
        sources = _numbered(sources)
        runs = await _examined(sources, items, arguments.dialects, funnel)
        log, at_once = out / "replays.jsonl", arguments.at_once
        replayed, variants = ReplayedRuns([], []), list[CollectedRun]()
        async with AsyncExitStack() as stack:
            if runs:
                pool = await stack.enter_async_context(evaluation_pool(evaluation))
                opened = open_replays(suite, arguments.split, pool)
                replays = await stack.enter_async_context(opened)
                replayed = await replayed_runs(runs, replays, log, at_once)
            faults = list(replayed.faults)
            funnel.timed_out = replayed.timed_out
            balance = _balanced(replayed, arguments, funnel)
            added = await _variants(balance.runs, folders, arguments)
            for runs in added:
                again = await replayed_runs(runs, replays, log, at_once)
                faults += again.faults
                funnel.timed_out += again.timed_out
                variants += again.same
        held = held_ids(balance.runs, arguments.held_share, arguments.seed)
        selection = Selection(balance, held, variants)
        _write(selection, sources, items, arguments, funnel)
    for fault in faults:
        _say(f"not replayed: {fault}")
    return len(faults)


def _source(folder: Path) -> CollectedEvaluation:
    """Return an evaluation as a source, with the largest number of its tries at a question."""
    log = RecordLog(folder / _RECORDS)
    return read_source(folder, 0, max((record.trial + 1 for record in log.each()), default=0))


def _numbered(sources: Sequence[CollectedEvaluation]) -> list[CollectedEvaluation]:
    """Return the sources with their tries numbered on from one to the next."""
    firsts = accumulate((one.tries for one in sources), initial=0)
    return [replace(one, first_trial=first) for one, first in zip(sources, firsts, strict=False)]


def _tries_before(pooled: Sequence[CollectedEvaluation], runs: Path) -> int:
    """Return how many tries have the seeds before those of this collection.

    Otherwise the same model would repeat the pooled tries, seed by seed. An evaluation that pooled
    others began with the seeds after theirs, also if only its own tries are pooled here. Runs of an
    older release began after the number of pooled tries, and go on there.

    Args:
        pooled: evaluations whose runs are selected from, too.
        runs: the folder of the collection's own runs, which need not exist.
    """
    count = sum(one.tries for one in pooled)
    if (runs / "run.json").exists() and _first_try(read_source(runs, 0, 0)) == count:
        return count
    return max(count, *(_first_try(one) + one.tries for one in pooled), 0)


def _first_try(source: CollectedEvaluation) -> int:
    """Return how many tries have the seeds before those of an evaluation."""
    return int(source.manifest.get("settings", {}).get("seed", 0)) // SEEDS_A_TRIAL


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
    sources: Sequence[CollectedEvaluation],
    items: Mapping[str, Sample],
    dialects: Sequence[str],
    funnel: Funnel,
) -> list[CollectedRun]:
    """Return the runs of evaluations that meet every condition but the replay."""
    runs: list[CollectedRun] = []
    for source in sources:
        for record in RecordLog(source.run / _RECORDS).each():
            item = items.get(record.id)
            if item is None:
                raise UsageError(f"{source.run} has runs at {record.id}, which the split lacks")
            run = await examine(record, item, source.run, source.first_trial, dialects, funnel)
            runs += [run] if run is not None else []
    return runs


def _refuse_other_questions(
    sources: Sequence[CollectedEvaluation], mine: Mapping[str, str], way_out: str
) -> None:
    """Raise if runs are on other questions than these; a field that they lack counts as equal.

    Args:
        sources: with their manifests, those of older releases without some fields.
        mine: suite, split, and hash of its questions and labels.
        way_out: ends the message.

    Raises:
        UsageError: a field differs.
    """
    for source in sources:
        if not source.manifest:
            _say(
                f"{source.run} contains runs but no run.json, so their questions can't be compared "
                "with the split's. Copy run.json along with the records if you can."
            )
        for name, value in mine.items():
            theirs = source.manifest.get(name) or value
            if name == "split" and source.manifest.get("questions"):
                continue  # the folder of the same questions may have another name here
            if theirs != value:
                raise UsageError(
                    f"{source.run} holds runs on another {_QUESTIONS[name]} ({theirs!r} there, "
                    f"{value!r} now). {way_out}"
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
        choice = model_choice(*given)
        if choice.is_local:
            # What an adapter learned from runs keeps a model from writing about them.
            choice = replace(choice, model=name_without_adapter(choice.model))
        opening = open_policy(choice, _say, Urgency.BACKGROUND, arguments.slots)
        replies, dialects = arguments.out / "replies", arguments.dialects
        price = Price(*arguments.price) if arguments.price else None
        async with opening as policy:
            with BudgetMeter(arguments.out / _RUNS, arguments.budget, price) as meter:
                meter.load(salvages=arguments.salvage)
                model = metered(policy, meter)
                added.append(await in_words(runs, model, replies, dialects, arguments.at_once))
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
    except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
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
