"""The runs that an answer was chosen from, read back from a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.trajectory import Completion, Step, StopReason, Trajectory
from dm_jupyter.search.puct import TreeNode
from kernel_sandbox.types import CellResult, CellStatus
from training.records.read_run import RunError
from training.records.records import EvalRecord

__all__ = ["stored_candidates"]

_Stored = Mapping[str, Any]


def stored_candidates(record: EvalRecord, folder: Path) -> list[Candidate]:
    """Returns the tries of a vote, or the answers of a search, in the order in which they came.

    What a search keeps of a path is its words and how its cells ended: these runs have no tokens,
    no outputs and no times.

    Args:
        record: no compact one.
        folder: where their files lie, each in a folder named by its number.

    Raises:
        RunError: the record holds neither votes nor a tree, or not whole ones.
    """
    kind = record.search.get("kind")
    try:
        if kind == "vote":
            runs = map(Trajectory.from_json, record.search["runs"])
            return [Candidate(run, folder / str(place)) for place, run in enumerate(runs)]
        if kind == "search":
            chosen = Trajectory.from_json(record.trajectory)
            return _answers(chosen, record.search["nodes"], folder)
    except (KeyError, TypeError, ValueError, TrajectoryError) as error:
        raise RunError(f"{record.id}, try {record.trial}: {error}") from error
    raise RunError(f"{record.id}, try {record.trial}: the record holds neither votes nor a tree")


def _answers(chosen: Trajectory, stored: Sequence[_Stored], folder: Path) -> list[Candidate]:
    """The paths of a tree that answered, each with what it counts."""
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
