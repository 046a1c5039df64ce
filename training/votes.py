"""Takes a run of votes apart: `python -m training.votes RUN --split DIR`.

Each try of each vote is scored as if it had been alone, and written to `RUN/tries/N.jsonl`, the
first as 0. That one is the single try as it would have been, so that
`python -m training.compare RUN/tries/0.jsonl RUN` says what the vote gained on the same draws. Of
a compact record, which holds no tries, those that lie in `RUN/tries` already are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.trajectory import Trajectory
from training.evaluation.read_run import RunError, read_run
from training.evaluation.records import EvalRecord, Spent
from training.evaluation.run import item_folder
from training.evaluation.tables import number_table, percent_range, wide_console
from training.metrics.accuracy import is_right
from training.metrics.questions import share_of
from training.tasks.registry import find_suite
from training.tasks.suite import EvalItem, Outcome, Suite
from training.whole_file import write_lines

__all__ = ["main", "tries_of"]


def tries_of(record: EvalRecord, item: EvalItem, suite: Suite, folder: Path) -> list[EvalRecord]:
    """Returns the tries that a vote was held among, each as a record of its own.

    Args:
        record: of a vote, not a compact one.
        item: what was asked.
        suite: scores the answers; what needs a judge is scored without.
        folder: where the tries' files lie, each in a folder named by its number.

    Raises:
        RunError: the record holds no votes.
    """
    if record.search.get("kind") != "vote":
        raise RunError(f"{record.id}, try {record.trial}: the record holds no votes")
    found = []
    for place, raw in enumerate(record.search["runs"]):
        try:
            run = Trajectory.from_json(raw)
        except TrajectoryError as error:
            raise RunError(f"{record.id}, try {record.trial}: {error}") from error
        score = suite.score(item, Outcome(run.answer or "", folder / str(place)))
        read = sum(step.completion.prompt_tokens for step in run.steps)
        spent = Spent(run.tokens, read, run.cells, run.seconds)
        found.append(EvalRecord.of(item, record.trial, run, score, spent))
    return found


def main() -> int:
    """Runs the command; returns the exit code: 0, or 1 after a fault, which is printed."""
    parser = argparse.ArgumentParser(prog="python -m training.votes", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="its folder")
    parser.add_argument("--split", type=Path, required=True, help="the folder of the split")
    parser.add_argument("--suite", help="as in training.evaluate (default: what the run names)")
    arguments = parser.parse_args()
    try:
        _take_apart(arguments.run, arguments.split, arguments.suite)
    except (ValueError, OSError) as fault:
        print(f"votes: {fault}", file=sys.stderr)
        return 1
    return 0


def _take_apart(run: Path, split: Path, suite: str | None) -> None:
    records = read_run(run)
    folder = run / "tries"
    known = _kept(folder)
    fresh = [record for record in records if record.trajectory or record.key not in known]
    known |= _scored(fresh, run, split, suite)
    voted = [known[record.key] for record in records]
    rows = {f"try {place}": list(tries) for place, tries in enumerate(zip(*voted, strict=True))}
    folder.mkdir(exist_ok=True)
    for place, tries in enumerate(rows.values()):
        write_lines(map(asdict, tries), folder / f"{place}.jsonl")
    rows["any of them"] = [max(tries, key=lambda one: one.strict) for tries in voted]
    _print(rows | {"the vote": records})
    print(f"records: {folder}")


def _scored(
    records: Sequence[EvalRecord], run: Path, split: Path, name: str | None
) -> dict[tuple[str, int], list[EvalRecord]]:
    """The tries of each vote, scored."""
    if not records:
        return {}
    suite = find_suite(name or _suite_name(records[0]))
    items = {item.task.id: item for item in suite.load(split)}
    scored = {}
    for record in records:
        if record.id not in items:
            raise RunError(f"{record.id} is not in {split}: was the run made with another split?")
        files = item_folder(run, record.id, record.trial)
        scored[record.key] = tries_of(record, items[record.id], suite, files)
    return scored


def _kept(folder: Path) -> dict[tuple[str, int], list[EvalRecord]]:
    """The tries that were taken apart before: a run that goes on elsewhere has no others."""
    kept: dict[tuple[str, int], list[EvalRecord]] = defaultdict(list)
    for place in range(len(list(folder.glob("*.jsonl")))):
        for record in read_run(folder / f"{place}.jsonl"):
            kept[record.key].append(record)
    return dict(kept)


def _suite_name(record: EvalRecord) -> str:
    if not record.trajectory:
        raise RunError("compact records hold no tries: give the run's own folder")
    return str(record.trajectory["task"]["metadata"].get("suite"))


def _print(rows: Mapping[str, Sequence[EvalRecord]]) -> None:
    """Prints which share of the questions each is right on, by the strict rules."""
    table = number_table("right by the benchmark's rules", ("",), ("runs", "right", "%", "95 %"))
    for name, records in rows.items():
        share = share_of(records, lambda record: is_right(record, "strict"))
        counts = (str(share.runs), f"{share.right:g}")
        table.add_row(name, *counts, f"{share.share:.1%}", percent_range(share.interval))
    wide_console().print(table)


if __name__ == "__main__":
    sys.exit(main())
