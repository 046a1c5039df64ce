"""Compare two runs question by question: `python -m training.compare RUN_A RUN_B`.

A run is a folder with `records.jsonl`, or a file of such records. Shares and their difference cover
the questions that both runs have; the others are listed. Runs of other questions are refused, even
if their ids are the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from rich.table import Table
from rich.text import Text

from training.durable.atomic import write_json
from training.metrics.accuracy import Rules, is_right, share_of
from training.metrics.intervals import FEW_QUESTIONS
from training.metrics.paired import By, Pair, Pairing, difference_of, key_of, match, mcnemar_of
from training.metrics.tables import number_table, percent_range, wide_console
from training.records.records import EvalRecord, RunError, difference_in, read_object, read_run

__all__ = ["comparison_of", "main", "print_comparison", "verdict_lines"]

RUNS = ("a", "b")
_SAME_SPLIT = "compare runs of one suite and of the same release of a split"


def comparison_of(
    first: Sequence[EvalRecord],
    second: Sequence[EvalRecord],
    rules: Rules = "strict",
    by: By = "question",
    manifests: tuple[Mapping[str, Any], Mapping[str, Any]] = ({}, {}),
) -> dict[str, Any]:
    """Return every figure of a comparison as plain JSON values.

    Args:
        first: the records of run A.
        second: the records of run B.
        rules: whose rules decide whether an answer is right.
        by: whether to match all tries at a question together, or each with the other run's.
        manifests: the `run.json` of both runs, as far as known.

    Raises:
        RunError: the runs have no question, or no try, in common, or are of different questions
            with the same ids.
    """
    _refuse_other_split(*manifests)
    pairing = match(first, second, rules, by)
    if not pairing.pairs:
        what = "question" if by == "question" else "try at a question"
        raise RunError(
            f"the runs have no {what} in common: A begins with {first[0].id}, B with {second[0].id}"
        )
    _refuse_other_questions(pairing.pairs)
    return {
        "rules": rules,
        "matched_by": by,
        "runs": dict(zip(RUNS, _shares(pairing, rules, by), strict=True)),
        "difference": asdict(difference_of(pairing.pairs)),
        "mcnemar": asdict(mcnemar_of(pairing.pairs)) if pairing.is_balanced else None,
        "changed": [_change(pair) for pair in pairing.pairs if pair.change],
    }


def _refuse_other_split(first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    suites = [str(one.get("suite", "")) for one in (first, second)]
    if all(suites) and len(set(suites)) > 1:
        raise RunError(f"A is a run of the suite {suites[0]}, B of {suites[1]}: {_SAME_SPLIT}")
    texts = [one.get("questions") for one in (first, second)]
    if all(texts) and texts[0] != texts[1]:
        raise RunError(
            "the splits of A and B have different questions or labels, as the field `questions` of "
            f"run.json shows: {_SAME_SPLIT}. If questions were only added, name both records.jsonl."
        )


def _refuse_other_questions(pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        if name := difference_in(pair.first[0], pair.second[0]):
            raise RunError(f"{pair.id} has another {name} in A than in B: {_SAME_SPLIT}")


def _shares(pairing: Pairing, rules: Rules, by: By) -> list[dict[str, Any]]:
    sides = (
        ([r for pair in pairing.pairs for r in pair.first], pairing.only_first),
        ([r for pair in pairing.pairs for r in pair.second], pairing.only_second),
    )
    return [
        {
            **asdict(share_of(matched, lambda record: is_right(record, rules))),
            "unmatched": list(dict.fromkeys(key_of(record, by) for record in left)),
        }
        for matched, left in sides
    ]


def _change(pair: Pair) -> dict[str, Any]:
    """Return the outcome of a question in both runs, with the failures of its wrong tries."""
    found: dict[str, Any] = {"id": pair.id, "trial": pair.trial}
    for name, share, tries in zip(RUNS, pair.shares, (pair.first, pair.second), strict=True):
        found[name] = {
            "share": share,
            "runs": len(tries),
            "failures": sorted({r.failure for r in tries if not is_right(r, pair.rules)} - {""}),
        }
    return found


def print_comparison(comparison: Mapping[str, Any], names: tuple[str, str]) -> None:
    """Print the figures of a comparison (`comparison_of`).

    Args:
        comparison: the figures.
        names: of the first and the second run.
    """
    console = wide_console()
    console.print(_share_table(comparison, names))
    console.print("\n".join(verdict_lines(comparison)) + "\n")
    if comparison["changed"]:
        console.print(_changed_table(comparison))
    for letter in RUNS:
        left = [_name(*key) for key in comparison["runs"][letter]["unmatched"]]
        if left:
            text = f"only in {letter.upper()}, not compared ({len(left)}): {', '.join(left)}"
            console.print(Text(text))


def _share_table(comparison: Mapping[str, Any], names: tuple[str, str]) -> Table:
    title = (
        "right by the benchmark's rules"
        if comparison["rules"] == "strict"
        else "right by our rules"
    )
    table = number_table(title, ("", "run"), ("questions", "runs", "right", "%", "95 %"))
    for letter, name in zip(RUNS, names, strict=True):
        share = comparison["runs"][letter]
        counts = (str(share[field]) for field in ("questions", "runs", "right"))
        interval = percent_range(share["interval"])
        table.add_row(letter.upper(), Text(name), *counts, f"{share['share']:.1%}", interval)
    return table


def verdict_lines(comparison: Mapping[str, Any]) -> list[str]:
    """Return the paired difference and McNemar's test of a comparison as text."""
    difference, questions = comparison["difference"], comparison["runs"]["a"]["questions"]
    line = f"B less A: {difference['points']:+.1f} points"
    if difference["interval"] is None:
        line += "; no interval, as all questions changed alike"
    else:
        low, high = difference["interval"]
        line += f", 95 % {low:+.1f} to {high:+.1f} (paired bootstrap over {questions} questions)"
        if questions < FEW_QUESTIONS:
            line += f"\n  Of fewer than {FEW_QUESTIONS} questions it is too narrow."
    return [line, _test_line(comparison)]


def _test_line(comparison: Mapping[str, Any]) -> str:
    test = comparison["mcnemar"]
    if test is None:
        return "McNemar: none, as the runs didn't try every question equally often"
    share, is_by_try = comparison["runs"]["a"], comparison["matched_by"] == "try"
    count = f"{share['runs']} tries" if is_by_try else f"{share['questions']} questions"
    line = (
        f"McNemar: of {count} A is better at {test['b']}, B at {test['c']}; "
        f"p = {test['p_exact']:.3g} exact, {test['p_mid']:.3g} mid-p"
    )
    if is_by_try and share["runs"] > share["questions"]:
        line += "\n  Tries at one question resemble each other, so that p is too small."
    return line


def _changed_table(comparison: Mapping[str, Any]) -> Table:
    table = number_table(f"changed: {len(comparison['changed'])}", ("", "A", "B", "better"), ())
    for change in comparison["changed"]:
        better = "B" if change["b"]["share"] > change["a"]["share"] else "A"
        outcomes = (Text(_outcome(change[letter])) for letter in RUNS)
        table.add_row(Text(_name(change["id"], change["trial"])), *outcomes, better)
    return table


def _name(question: str, trial: int | None) -> str:
    return question if trial is None else f"{question}#{trial}"


def _outcome(side: Mapping[str, Any]) -> str:
    if side["runs"] > 1:
        return f"{round(side['share'] * side['runs'])} of {side['runs']} right"
    return "right" if side["share"] else "".join(side["failures"]) or "wrong"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.compare", description=__doc__)
    run_help = "a folder with records.jsonl, or a file of records"
    parser.add_argument("run_a", type=Path, metavar="RUN_A", help=run_help)
    parser.add_argument("run_b", type=Path, metavar="RUN_B", help=run_help)
    parser.add_argument(
        "--rules",
        choices=get_args(Rules),
        default="strict",
        help="the benchmark's (default), or ours",
    )
    parser.add_argument(
        "--by", choices=get_args(By), default="question", help="what to match (default: question)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser


def _manifest(run: Path) -> Mapping[str, Any]:
    return read_object(run / "run.json") if run.is_dir() else {}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0, or 1 after a fault, which is printed."""
    options = _parser().parse_args(arguments)
    names = str(options.run_a), str(options.run_b)
    try:
        first, second = read_run(options.run_a), read_run(options.run_b)
        manifests = _manifest(options.run_a), _manifest(options.run_b)
        comparison = comparison_of(first, second, options.rules, options.by, manifests)
        print_comparison(comparison, names)
        if options.json:
            write_json({"a": names[0], "b": names[1], **comparison}, options.json)
    except (RunError, OSError) as fault:
        print(f"compare: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
