"""Judge the answers of a finished evaluation: `python -m training.judge RUN_FOLDER`.

The verdicts go to `judged.jsonl` next to `records.jsonl`, which is never changed. The same command
resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Urgency
from training.durable.folder import folder_lock
from training.evaluation.scoring import ScoringPool
from training.judge.column import ColumnOptions, Reformatter, SecondColumn, judge_answers
from training.judge.judged import Agreement, JudgedRecord, agreement_of, judgeable
from training.marking.judge import Judge, judge_choice
from training.records.records import EvalRecord, suite_of
from training.suites.registry import find_suite

__all__ = ["main"]

_SCORE_SECONDS = 60.0
"""Limit of one score of a reformatted answer."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.judge", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="RUN_FOLDER", help="of the evaluation")
    parser.add_argument("--judge-model", required=True, metavar="NAME",
                        help="at --judge-base-url, or else local or a .gguf file")  # fmt: skip
    parser.add_argument(
        "--judge-base-url", default="", metavar="URL",
        help="an OpenAI-compatible endpoint (default: the judge is a local model)",
    )  # fmt: skip
    parser.add_argument("--judge-api-key-file", type=Path, metavar="FILE")
    parser.add_argument("--reformat", action="store_true", help="a second column: see the docs")
    parser.add_argument("--suite", help="for --reformat (default: the one that the run names)")
    parser.add_argument("--split", type=Path, help="for --reformat, where labels need the suite")
    parser.add_argument("--cache", type=Path, help="of replies (default: RUN_FOLDER/judge)")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="default 4")
    parser.add_argument("--max-tokens", type=int, default=1_000, metavar="N", help="of a reply")
    return parser


async def _judge(arguments: argparse.Namespace) -> None:
    records = judgeable(arguments.folder)
    choice = judge_choice(
        arguments.judge_model, arguments.judge_base_url, arguments.judge_api_key_file
    )
    async with AsyncExitStack() as stack:
        stack.enter_context(folder_lock(arguments.folder))
        policy = await stack.enter_async_context(open_policy(choice, urgency=Urgency.BACKGROUND))
        cache: Path = arguments.cache or arguments.folder / "judge"
        second = None
        if arguments.reformat:
            suite = find_suite(arguments.suite or suite_of(records[0]))
            items = suite.load(arguments.split) if arguments.split else []
            scorer = await stack.enter_async_context(ScoringPool(suite, _SCORE_SECONDS))
            reformatter = Reformatter(policy, cache, arguments.max_tokens)
            second = SecondColumn(reformatter, scorer, {item.task.id: item for item in items})
        judge = Judge(policy, cache, arguments.max_tokens)
        options = ColumnOptions(arguments.folder, judge, second, arguments.at_once)
        rows = await judge_answers(records, options, _show_row)
    _print(rows, records)
    print(f"verdicts: {arguments.folder / 'judged.jsonl'}")


def _show_row(row: JudgedRecord) -> None:
    verdict = "no verdict" if row.judged is None else "right" if row.judged else "wrong"
    rules = "right" if row.right else "wrong"
    print(f"{row.id:<20} judge {verdict:<12} rules {rules}", file=sys.stderr)


def _print(rows: Sequence[JudgedRecord], records: Sequence[EvalRecord]) -> None:
    console = Console()
    ours, strict = agreement_of(rows), agreement_of(rows, "strict")
    table = Table("rules", "answers", "both right", "judge only", "rules only", "both wrong",
                  "agree", "kappa")  # fmt: skip
    for name, one in (("ours", ours), ("strict", strict)):
        table.add_row(name, str(one.total), str(one.both_right), str(one.judge_only),
                      str(one.rules_only), str(one.both_wrong), *_figures(one))  # fmt: skip
    console.print(table)
    lines = [f"right: {_right_counts(rows, records)}"]
    if ours.differing:
        lines.append(f"judge and ours differ on: {', '.join(ours.differing)}")
    if ours.unscored:
        reason = next(row.error for row in rows if row.judged is None)
        lines.append(
            f"no verdict on {ours.unscored}; asked for again next time. The first: {reason}"
        )
    if any(row.reformat for row in rows):
        lines.append(_reformat_line(rows, len(records)))
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _figures(agreement: Agreement) -> tuple[str, str]:
    accuracy, kappa = agreement.accuracy, agreement.kappa
    return (
        "-" if accuracy is None else f"{accuracy:.1%}",
        "-" if kappa is None else f"{kappa:.2f}",
    )


def _right_counts(rows: Sequence[JudgedRecord], records: Sequence[EvalRecord]) -> str:
    silent = len(records) - len(rows)
    strict = sum(record.strict_correct for record in records)
    ours = sum(record.correct for record in records)
    judged = sum(row.judged is True for row in rows)
    return (
        f"strict {strict}, ours {ours}, judge {judged} of {len(records)} "
        f"({silent} without an answer are wrong, and not asked about)"
    )


def _reformat_line(rows: Sequence[JudgedRecord], total: int) -> str:
    failed = sum(bool(row.reformat_error) for row in rows)
    strict = sum(row.reformatted_strict is True for row in rows)
    ours = sum(row.reformatted_right is True for row in rows)
    changed = sum(row.reformatted not in {None, row.answer} for row in rows)
    return (
        f"reformatted: strict {strict}, ours {ours} of {total} ({changed} answers rewritten; "
        f"{failed} could not be and count as wrong here)"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0, 1 after a fault, which is printed, or 130."""
    given = _parser().parse_args(arguments)
    try:
        asyncio.run(_judge(given))
    except (DmJupyterError, ImportError, ValueError, TypeError, OSError) as fault:
        print(f"judge: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; give the same command again to resume", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
