"""Write the training set of a value model: `python -m training.collect_values RUN… --out FILE`.

The runs are searches that knew the right answers (`training.evaluate … --strategy search
--collect`). Of each task, over all its trees, at most 4 right and 4 wrong paths are taken. Each of
their nodes is written once, with its conversation and its final Q in the search. This follows
Jupiter (arXiv 2509.09245) and its released `post_analysis`, which takes fewer wrong paths if none
is right. Wrong paths with a cell that a limit ended are left out, and paths with the same text are
taken once. Questions for evaluation only are refused.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from training.durable.json_lines import write_lines
from training.records.failures import Failure
from training.records.records import EvalRecord, RunError, difference_in, read_run

__all__ = ["CollectError", "ValueExample", "examples_of", "main"]

PATHS = 4
"""Most paths of each kind, right and wrong."""
SEED = 42
"""Seed of the draw among paths; the released code's."""
_INTERRUPTED = frozenset({"timeout", "memory", "killed", "interrupted"})
"""Cell statuses that say little about the code: it may succeed on another machine or later."""
_Path = list[Mapping[str, Any]]
"""Nodes from the root to the end."""


class CollectError(ValueError):
    """No values may or can be collected from the records; the message says why."""


@dataclass(frozen=True, slots=True)
class ValueExample:
    """A state and its value at the end of the search."""

    task: str
    tree: int
    """Which of the task's searches, from 0."""
    node: int
    depth: int
    messages: list[dict[str, str]]
    """The state as a value model sees it (`shown_state`)."""
    value: float
    """Q, -1 to 1: the mean of the node's backed-up values, 0 for expansions, and rewards below."""
    visits: int
    reward: float | None
    """1 or -1 if the path ends here."""
    reward_sum: float
    """Sum of the rewards here and below. Divided by `reward_count`, it is the paper's target: the
    mean of rewards without the zeros that expansions add to `value`."""
    reward_count: int
    """Rewards here and below; never 0, because each path taken ends in one."""


def examples_of(records: Iterable[EvalRecord]) -> Iterator[ValueExample]:
    """Yield the examples of all trees, task by task.

    Raises:
        CollectError: a record has no tree with rewards, its question is for evaluation only, or
            another record of its id is of another question.
    """
    first_of: dict[str, EvalRecord] = {}
    trees: dict[str, list[dict[int, Mapping[str, Any]]]] = {}
    for record in records:
        if record.failure == Failure.FAULT:  # its data could not be read: no tree was grown
            continue
        if name := difference_in(first_of.setdefault(record.id, record), record):
            raise CollectError(
                f"{record.id} has another {name} in two of the runs; give runs of other questions "
                "in a command of their own"
            )
        with _attributed(record.id):
            _refuse_unfit(record)
            nodes = {node["id"]: node for node in record.search["nodes"]}
            trees.setdefault(record.id, []).append(nodes)
    for task, own in trees.items():
        with _attributed(task):
            examples = list(_of_task(task, own))
        yield from examples


@contextmanager
def _attributed(task: str) -> Iterator[None]:
    """Name the task if a stored tree is not whole."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ZeroDivisionError) as error:
        raise CollectError(
            f"{task}: a stored tree is damaged ({type(error).__name__}: {error}); take its line "
            "out of records.jsonl, and give the run's own command again"
        ) from error


def _refuse_unfit(record: EvalRecord) -> None:
    if not record.trajectory:
        raise CollectError(f"{record.id}: compact records hold no tree: give the run's own folder")
    if record.search.get("kind") != "search":
        raise CollectError(
            f"{record.id}: the record holds no tree; run `training.evaluate` with "
            "--strategy search --collect"
        )
    if not record.search.get("collected"):
        raise CollectError(
            f"{record.id}: the search did not know the right answers, or is from an older release. "
            "Run it again with --collect."
        )
    if record.trajectory["task"]["metadata"].get("evaluation_only"):
        raise CollectError(f"{record.id}: its licence allows evaluation only, no training")


def _of_task(task: str, trees: list[dict[int, Mapping[str, Any]]]) -> Iterator[ValueExample]:
    chance = random.Random(f"{SEED} {task}")  # noqa: S311  (no secret)
    taken: dict[tuple[int, int], _Path] = {}
    for is_right in (True, False):
        paths = list(_distinct_paths(trees, is_right))
        for tree, path in chance.sample(paths, min(PATHS, len(paths))):
            taken |= {(tree, node["id"]): path[: place + 1] for place, node in enumerate(path)}
    rewards = [_rewards_below(nodes) for nodes in trees]
    for (tree, _), path in sorted(taken.items()):
        node = path[-1]
        below = rewards[tree][node["id"]]
        yield ValueExample(
            task=task,
            tree=tree,
            node=node["id"],
            depth=node["depth"],
            messages=node["state"],
            value=node["value_sum"] / node["visits"],
            visits=node["visits"],
            reward=node["reward"],
            reward_sum=math.fsum(below),
            reward_count=len(below),
        )


def _rewards_below(nodes: Mapping[int, Mapping[str, Any]]) -> dict[int, list[float]]:
    """Return, for each node, the rewards of the paths through it."""
    found: dict[int, list[float]] = {number: [] for number in nodes}
    for node in nodes.values():
        for above in _path(nodes, node) if node["reward"] is not None else ():
            found[above["id"]].append(node["reward"])
    return found


def _distinct_paths(
    trees: list[dict[int, Mapping[str, Any]]], is_right: bool
) -> Iterator[tuple[int, _Path]]:
    """Yield the ended paths of one kind, each text once, with the numbers of their trees."""
    seen = set()
    for tree, nodes in enumerate(trees):
        for node in nodes.values():
            if node["reward"] is None or (node["reward"] > 0) is not is_right:
                continue
            path = _path(nodes, node)
            words = json.dumps([one["messages"] for one in path])
            if words not in seen and (is_right or not _was_interrupted(path)):
                seen.add(words)
                yield tree, path


def _was_interrupted(path: _Path) -> bool:
    return any(node.get("status") in _INTERRUPTED for node in path)


def _path(nodes: Mapping[int, Mapping[str, Any]], node: Mapping[str, Any]) -> _Path:
    path = [node]
    while path[-1]["parent"] is not None:
        path.append(nodes[path[-1]["parent"]])
    return path[::-1]


def main() -> int:
    """Run the command; return the exit code: 0, or 1 after a fault, which is printed."""
    parser = argparse.ArgumentParser(prog="python -m training.collect_values", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    try:
        records = [record for run in arguments.runs for record in read_run(run)]
        examples = list(examples_of(records))
        if not examples:
            raise CollectError("no path of these searches has a reward, so there is no example")
        write_lines(map(asdict, examples), arguments.out)
    except (CollectError, RunError, OSError) as fault:
        print(f"collect_values: {fault}", file=sys.stderr)
        return 1
    ends = [one.reward for one in examples if one.reward is not None]
    right = sum(reward > 0 for reward in ends)
    print(
        f"{len(examples)} states of {len(records)} searches, "
        f"{right} right and {len(ends) - right} wrong ends: {arguments.out}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
