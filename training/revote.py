"""Split a run of votes or searches into its tries: `python -m training.revote RUN --split DIR`.

Each try of a vote and each answer of a search is scored on its own. They are then put to the vote
again, by the rules of this release. The choice is written to `RUN/tries/vote.jsonl`, or with
`--choose` to `mode.jsonl` or `value.jsonl`. The best of them, a right one if there is any, goes to
`RUN/tries/any.jsonl`.

The tries of a vote go to `RUN/tries/N.jsonl`, counted from 0. Try 0 equals a run without a vote, so
`python -m training.compare RUN/tries/0.jsonl RUN/tries/vote.jsonl` shows the vote's gain on the
same samples. A compact record contains no tries; those already in `RUN/tries` are kept for it.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dm_jupyter.agent.candidates import (
    Agree,
    Candidate,
    best_by_mode,
    best_by_value,
    best_by_vote,
)
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import DmJupyterError, TrajectoryError
from dm_jupyter.core.trajectory import Completion, Step, StopReason, Trajectory
from dm_jupyter.search.puct import TreeNode
from kernel_sandbox.types import CellResult, CellStatus
from training.durable.json_lines import write_lines
from training.evaluation.arguments import CHOICES, seconds
from training.evaluation.run import item_folder, outcome_of
from training.evaluation.scoring import ScoringError, ScoringPool
from training.metrics.accuracy import is_right, share_of
from training.metrics.tables import number_table, percent_range, wide_console
from training.records.failures import Failure
from training.records.records import EvalRecord, RunError, RunUsage, read_run, suite_of
from training.suites.registry import find_suite
from training.suites.suite import ItemScore, Sample

__all__ = ["Revote", "main", "revote", "stored_candidates"]

_NAMES = {"vote": "the vote", "mode": "the mode", "value": "by value", "any": "any of them"}
_Stored = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Revote:
    """A vote and its candidates."""

    tries: tuple[EvalRecord, ...]
    """Tries of a vote, each as a separate record; empty for a search or without tries."""
    best: EvalRecord
    """A right one if there is any, else the chosen one; at the cost of all."""
    chosen: EvalRecord
    """The choice by the current rules, at the cost of all."""


def revote(
    record: EvalRecord, item: Sample, scorer: ScoringPool, folder: Path, choose: str = "vote"
) -> Revote:
    """Repeat a vote among its tries, or hold one among the answers of a search.

    Args:
        record: of a vote or of a search, not a compact one.
        item: the question.
        scorer: of the suite; open. It scores the answers, always without a judge.
        folder: of the files of the tries, each in a folder named by its number.
        choose: `vote`, `mode` or `value`, as in `training.evaluate`.

    Raises:
        RunError: the record contains neither votes nor a tree, or no values for `value`.
        SuiteError: the suite made a mistake, or its process did not start.
    """
    if record.failure == Failure.FAULT:  # its data could not be read: nothing was tried
        return Revote((), record, record)
    candidates = stored_candidates(record, folder)
    scored = [_scored_alone(record, item, scorer, folder, one) for one in candidates]
    scored = scored or [replace(record, search={})]

    def agree(one: Candidate, other: Candidate) -> bool:
        return scorer.agree_now(item, outcome_of(one, folder), outcome_of(other, folder))

    try:
        chosen = scored[_chosen(candidates, agree, choose)]
    except ScoringError as error:
        chosen = replace(_without_verdict(scored[0], Failure.FAULT, error), answer=None)
    _refuse_lost_files(record, scored, folder)
    best = next((one for one in scored if one.strict_correct), chosen)
    is_vote = record.search["kind"] == "vote"
    return Revote(
        tuple(scored) if is_vote else (),
        _at_the_cost_of(record, best),
        _at_the_cost_of(record, chosen),
    )


def _chosen(candidates: Sequence[Candidate], agree: Agree, choose: str) -> int:
    if choose == "value":
        if any(one.value is None for one in candidates):
            raise RunError("its answers have no values: run the search with --value-model URL")
        return best_by_value(candidates)
    return (best_by_mode if choose == "mode" else best_by_vote)(candidates, agree)


def _scored_alone(
    record: EvalRecord, item: Sample, scorer: ScoringPool, folder: Path, candidate: Candidate
) -> EvalRecord:
    run = candidate.trajectory
    read = sum(step.completion.prompt_tokens for step in run.steps)
    spent = RunUsage(run.tokens, read, run.cells, run.seconds)
    try:
        score = scorer.score_now(item, outcome_of(candidate, folder))
    except ScoringError as error:
        unmarked = EvalRecord.of(item, record.trial, run, ItemScore(False, False), spent)
        return _without_verdict(unmarked, Failure.UNSCORED, error)
    return EvalRecord.of(item, record.trial, run, score, spent)


def _without_verdict(record: EvalRecord, failure: Failure, why: ScoringError) -> EvalRecord:
    wrong = replace(record, correct=False, strict_correct=False, parts={}, strict_parts={})
    return replace(wrong, grades={}, failure=failure, fault=str(why))


def _at_the_cost_of(whole: EvalRecord, one: EvalRecord) -> EvalRecord:
    return replace(
        one,
        tokens=whole.tokens,
        prompt_tokens=whole.prompt_tokens,
        sampled_cells=whole.sampled_cells,
        seconds=whole.seconds,
    )


def _refuse_lost_files(record: EvalRecord, tries: Sequence[EvalRecord], folder: Path) -> None:
    """Raise if lost files would make every answer wrong, since some suites score files.

    Raises:
        RunError: the vote was right, its files are gone, and no try is right any more.
    """
    if (
        record.strict_correct
        and not folder.is_dir()
        and not any(one.strict_correct for one in tries)
    ):
        raise RunError(f"{record.id}: its files are gone, so it can't be scored again: {folder}")


def main() -> int:
    """Run the command; return the exit code: 0, or 1 after a fault, which is printed."""
    parser = argparse.ArgumentParser(prog="python -m training.revote", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="its folder")
    parser.add_argument("--split", type=Path, required=True, help="the folder of the split")
    parser.add_argument("--suite", help="as in training.evaluate (default: what the run names)")
    parser.add_argument("--choose", choices=CHOICES, default="vote",
        help="how an answer is chosen, as in training.evaluate")  # fmt: skip
    parser.add_argument("--score-seconds", type=seconds, default=60.0, metavar="S",
        help="the longest that one score may take (default 60)")  # fmt: skip
    try:
        _take_apart(_Asked(**vars(parser.parse_args())))
    except (DmJupyterError, ValueError, OSError) as fault:
        print(f"revote: {fault}", file=sys.stderr)
        return 1
    return 0


@dataclass(frozen=True, slots=True)
class _Asked:
    """The options of the command."""

    run: Path
    split: Path
    suite: str | None
    choose: str
    score_seconds: float


def _take_apart(asked: _Asked) -> None:
    records = read_run(asked.run)
    folder = asked.run / "tries"
    known = _kept(folder, records, asked.choose)
    fresh = [record for record in records if record.trajectory or record.key not in known]
    known |= _scored(fresh, asked)
    held = [known[record.key] for record in records]
    count = max(len(one.tries) for one in held)
    tries = [one.tries or (one.chosen,) * count for one in held]
    rows = {str(place): [own[place] for own in tries if place < len(own)] for place in range(count)}
    rows |= {asked.choose: [one.chosen for one in held], "any": [one.best for one in held]}
    folder.mkdir(exist_ok=True)
    for name, row in rows.items():
        write_lines(map(asdict, row), folder / f"{name}.jsonl")
    _print(rows, records, asked.choose)
    print(f"records: {folder}")


def _scored(records: Sequence[EvalRecord], asked: _Asked) -> dict[tuple[str, int], Revote]:
    """Return the repeated vote of each record."""
    if not records:
        return {}
    if not records[0].trajectory:
        raise RunError("compact records hold no tries: give the run's own folder")
    suite = find_suite(asked.suite or suite_of(records[0]))
    items = {item.task.id: item for item in suite.load(asked.split)}
    scored = {}
    with closing(ScoringPool(suite, asked.score_seconds, longer_by="--score-seconds")) as scorer:
        for record in records:
            if record.id not in items:
                raise RunError(
                    f"{record.id} is not in {asked.split}: was the run made with another split?"
                )
            files = item_folder(asked.run, record.id, record.trial)
            item = items[record.id]
            scored[record.key] = revote(record, item, scorer, files, asked.choose)
    return scored


def _kept(
    folder: Path, records: Sequence[EvalRecord], choose: str
) -> dict[tuple[str, int], Revote]:
    """Return the results of an earlier call, all that a run resumed elsewhere still has."""
    tries: dict[tuple[str, int], list[EvalRecord]] = defaultdict(list)
    for place in range(len(list(folder.glob("[0-9]*.jsonl")))):
        for record in read_run(folder / f"{place}.jsonl"):
            tries[record.key].append(record)
    best, chosen = _by_key(folder / "any.jsonl"), _by_key(folder / f"{choose}.jsonl")
    kept = {}
    for record in records:
        own = tuple(tries[record.key])
        if (own and choose == "vote") or record.key in chosen:
            taken = chosen.get(record.key, record)
            right = next((one for one in own if one.strict_correct), taken)
            kept[record.key] = Revote(own, best.get(record.key, right), taken)
    return kept


def _by_key(file: Path) -> dict[tuple[str, int], EvalRecord]:
    return {record.key: record for record in read_run(file)} if file.exists() else {}


def _print(
    rows: Mapping[str, Sequence[EvalRecord]], as_run: Sequence[EvalRecord], choose: str
) -> None:
    """Print the share of questions that each answers right by the strict rules."""
    table = number_table("right by the benchmark's rules", ("",), ("runs", "right", "%", "95 %"))
    named = {_NAMES.get(name, f"try {name}"): one for name, one in rows.items()}
    if [one.answer for one in as_run] != [one.answer for one in rows[choose]]:
        named["as it was run"] = as_run
    for name, records in named.items():
        share = share_of(records, lambda record: is_right(record, "strict"))
        counts = (str(share.runs), f"{share.right:g}")
        table.add_row(name, *counts, f"{share.share:.1%}", percent_range(share.interval))
    wide_console().print(table)


def stored_candidates(record: EvalRecord, folder: Path) -> list[Candidate]:
    """Return the tries of a vote, or the answers of a search, in their original order.

    A search stores only the text of a path and how its cells ended, so its runs have no tokens,
    outputs or times.

    Args:
        record: not a compact one.
        folder: of their files, each in a folder named by its number.

    Raises:
        RunError: the record contains neither votes nor a tree, or incomplete ones.
    """
    kind = record.search.get("kind")
    try:
        if kind == "vote":
            runs = map(Trajectory.from_json, record.search["runs"])
            return [Candidate(run, folder / str(place)) for place, run in enumerate(runs)]
        if kind == "search":
            chosen = Trajectory.from_json(record.trajectory)
            return _answers(chosen, record.search["nodes"], folder)
    except (AttributeError, KeyError, TypeError, ValueError, TrajectoryError) as error:
        raise RunError(f"{record.id}, try {record.trial}: {error}") from error
    raise RunError(f"{record.id}, try {record.trial}: the record holds neither votes nor a tree")


def _answers(chosen: Trajectory, stored: Sequence[_Stored], folder: Path) -> list[Candidate]:
    """Return the paths of a tree that answered, each with its weight."""
    nodes: dict[int, TreeNode] = {}
    paths: dict[int, tuple[Step, ...]] = {}
    for one in stored:
        number, parent = one["id"], one["parent"]
        nodes[number] = node = TreeNode(number, None if parent is None else nodes[parent])
        paths[number] = ()
        if node.parent is not None:
            node.parent.children.append(node)
            paths[number] = (*paths[parent], _step(one, chosen.dialect))
    candidates = []
    for one in stored:
        if one["stop"] == StopReason.ANSWERED:
            run = replace(chosen, steps=paths[one["id"]], stop=StopReason.ANSWERED, stop_detail="",
                          answer=one["answer"], unsupported=())  # fmt: skip
            value = one.get("estimate")
            weight = nodes[one["id"]].weight(value)
            candidates.append(Candidate(run, folder / str(one["id"]), value, weight))
    return candidates


def _step(stored: _Stored, dialect: str) -> Step:
    said, *told = (message["content"] for message in stored["messages"])
    result = CellResult(CellStatus(stored["status"])) if stored["status"] else None
    turn = dialect_named(dialect).parse(said)
    return Step(Completion(said), turn, result, observation="".join(told))


if __name__ == "__main__":
    sys.exit(main())
