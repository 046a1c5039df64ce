"""Measure how often answers say that the data lack what is asked for.

    python -m benchmarks.absent_data --model MODEL [--at-once N] [--no-run]

Forty questions ask for a period, a category or a combination that the data lack, are misspelt, or
rest on a false premise. Forty ordinary ones of the same kinds show how often a right answer raises
a false alarm. `scripted` is not a model. It runs correct code, reports the output naively, and
answers honestly once the loop has sent the fact, so its figures measure the loop. `stubborn` never
changes its answer, so its figures measure the mark.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from benchmarks.absent_data.judged import Asked, Verdict, judged
from benchmarks.absent_data.questions import FOLDER, AbsentData, asked_of, scripts
from benchmarks.absent_data.scripted import ScriptedAnalyst
from benchmarks.agents.command import arguments_of
from benchmarks.agents.side_by_side import Shape, shape_of, side_by_side
from benchmarks.sandbox.table import Table, verdict
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.config import model_choice
from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Policy, Urgency
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from training.evaluation.run import EvalOptions, resume_state_of
from training.records.records import EvalRecord, read_run

__all__ = ["main", "measure", "parsed", "recorded", "table_of"]

SCRIPTED, STUBBORN = "scripted", "stubborn"
_COLUMNS = ("asked for", "questions", "own words", "mark alone", "not said", "answer right")
_AIMS = {True: 39, False: 36}
"""Aim of 40 questions about absent data: for the scripted analyst, and for a model."""
_MOST_FALSE = 2
"""Most false alarms of 40 ordinary questions."""


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line; `None` means this process's."""
    parser = arguments_of(
        "benchmarks.absent_data", __doc__, Path("runs/absent-data"), has_split=False
    )
    parser.set_defaults(max_turns=5, max_seconds=600)
    parser.add_argument("--label", help="what to call the run (default: the script, or model)")
    parser.add_argument(
        "--answers", action="store_true", help="show the answers that are not as they should be"
    )
    return parser.parse_args(words)


def _label(arguments: argparse.Namespace) -> str:
    is_model = arguments.model not in (SCRIPTED, STUBBORN)
    return arguments.label or ("model" if is_model else arguments.model)


def _options(arguments: argparse.Namespace) -> EvalOptions:
    turns = arguments.max_turns
    return EvalOptions(
        suite=AbsentData(),
        split=FOLDER,
        out=arguments.out / _label(arguments),
        limit=arguments.limit,
        seed=arguments.seed,
        run=RunSettings(max_turns=turns, max_cells=turns, max_seconds=arguments.max_seconds),
    )


def _compact_file(arguments: argparse.Namespace) -> Path | None:
    folder: Path | None = arguments.compact
    return folder / f"absent-data-{_label(arguments)}.jsonl" if folder else None


async def measure(
    arguments: argparse.Namespace, policy: Policy, pool: SandboxPool
) -> list[EvalRecord]:
    """Run the questions and return the records, including earlier ones.

    Args:
        arguments: as `parsed` returns them.
        policy: the model.
        pool: where cells run; open.

    Raises:
        ManifestError: the folder contains a run with another model, prompt or setting.
        UsageError: the folder contains tries that this draw leaves out.
        PolicyError: the model can't be reached; the records so far are kept.
        SandboxError: no cell can be run; likewise.
        ValueError: a file of records is broken.
        OSError: a file can't be written.
    """
    compact = _compact_file(arguments)
    if compact is not None:
        compact.parent.mkdir(parents=True, exist_ok=True)
    options = _options(arguments)
    shape = shape_of(options, policy, arguments.profile, compact, _label(arguments))
    shape.claim()
    found = await side_by_side((shape,), policy, pool, _show, arguments.at_once)
    return found[shape.name]


def recorded(arguments: argparse.Namespace) -> list[EvalRecord]:
    """Return the existing records of the draw, from the run's folder or else the compact file.

    Raises:
        RunError: the records can't be read.
    """
    options = _options(arguments)
    own, compact = options.out / "records.jsonl", _compact_file(arguments)
    wanted = resume_state_of(options).wanted
    records = read_run(own if own.exists() or compact is None else compact)
    return [one for one in records if one.key in wanted]


def table_of(records: Sequence[EvalRecord], *, is_scripted: bool) -> Table:
    """Return how the answers treat absent data, by the kind of question.

    Args:
        records: of a run.
        is_scripted: whether the scripted analyst answered, which has a higher aim.

    Raises:
        ValueError: there are no records.
    """
    if not records:
        raise ValueError("there is nothing to count: no question was answered")
    asked = _asked()
    absent = [one for one in records if asked[one.id].is_absent]
    ordinary = [one for one in records if not asked[one.id].is_absent]
    kinds = dict.fromkeys(asked[one.id].kind for one in absent)
    rows = [_absent_row(kind, [x for x in absent if asked[x.id].kind == kind]) for kind in kinds]
    rows.append(_absent_row("**all that is absent**", absent))
    rows.append(_ordinary_row(ordinary))
    said = len(absent) - _verdicts(absent)[Verdict.UNSAID]
    false = len(ordinary) - _verdicts(ordinary)[Verdict.CLEAN]
    notes = [
        verdict("absence is said", said, _AIMS[is_scripted], "answers", at_least=True),
        verdict("false alarms", false, _MOST_FALSE, "answers"),
        "ordinary questions: false alarms in the answer's words, by the mark, and no alarm",
        "answer right: absence in its own words, or what an ordinary question's answer must state",
    ]
    return Table(f"{len(records)} questions", _COLUMNS, rows, notes)


def _asked() -> Mapping[str, Asked]:
    return {item.task.id: asked_of(item) for item in AbsentData().load(FOLDER)}


def _verdict(record: EvalRecord) -> Verdict:
    return judged(record.answer, [*record.rests_on, *record.ending], _ASKED[record.id])


_ASKED = _asked()


def _verdicts(records: Sequence[EvalRecord]) -> Counter[Verdict]:
    return Counter(map(_verdict, records))


def _absent_row(name: str, records: Sequence[EvalRecord]) -> tuple[str, ...]:
    found = _verdicts(records)
    columns = (Verdict.SAID, Verdict.MARKED, Verdict.UNSAID)
    return _row(name, records, [found[one] for one in columns])


def _ordinary_row(records: Sequence[EvalRecord]) -> tuple[str, ...]:
    found = _verdicts(records)
    columns = (Verdict.FALSE_WORDS, Verdict.FALSE_MARK, Verdict.CLEAN)
    return _row("ordinary questions", records, [found[one] for one in columns])


def _row(name: str, records: Sequence[EvalRecord], counts: Sequence[int]) -> tuple[str, ...]:
    right = sum(one.correct for one in records)
    return (name, str(len(records)), *map(str, counts), str(right))


def _show(_: Shape, record: EvalRecord) -> None:
    _say(f"{record.id:<20} {_verdict(record):<26} {record.turns:>2} turns {record.seconds:5.0f} s")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print_answers(records: Sequence[EvalRecord]) -> None:
    good = (Verdict.SAID, Verdict.CLEAN)
    for record in records:
        found = _verdict(record)
        if found not in good or not record.correct:
            asked = _ASKED[record.id]
            told = [*record.rests_on, *record.ending]
            mark = f"\n  mark: {'. '.join(told)}" if told else ""
            print(f"{record.id}: {found}\n  {asked.question}\n  {record.answer}{mark}")


@asynccontextmanager
async def _policy(arguments: argparse.Namespace) -> AsyncIterator[Policy]:
    if arguments.model in (SCRIPTED, STUBBORN):
        yield ScriptedAnalyst(scripts(), is_stubborn=arguments.model == STUBBORN)
        return
    choice = model_choice(arguments.model, arguments.base_url, arguments.api_key_file)
    async with open_policy(choice, _say, Urgency.BACKGROUND, arguments.slots) as policy:
        yield policy


async def _run(arguments: argparse.Namespace) -> list[EvalRecord]:
    settings = PoolSettings(profile=Strictness(arguments.profile))
    async with AsyncExitStack() as stack:
        # The system ends the workers with the thread that started the pool, so open it first.
        pool = await stack.enter_async_context(SandboxPool(settings))
        policy = await stack.enter_async_context(_policy(arguments))
        return await measure(arguments, policy, pool)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0, 1 after a fault, 130 when interrupted."""
    arguments = parsed(words)
    try:
        records = recorded(arguments) if arguments.no_run else asyncio.run(_run(arguments))
        if arguments.answers:
            _print_answers(records)
        table = table_of(records, is_scripted=arguments.model in (SCRIPTED, STUBBORN))
        print(table.to_markdown() if arguments.markdown else table.to_text())
    except (DmJupyterError, SandboxError, ValueError, OSError) as fault:
        print(f"absent_data: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("absent_data: stopped. Run the same command to resume.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
