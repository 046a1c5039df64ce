"""The votes or the tree that an answer was chosen from, read from a record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.trajectory import Trajectory

__all__ = [
    "SearchError",
    "ShownNode",
    "StoredSearch",
    "Tree",
    "VoteCount",
    "VoteGroup",
    "search_from_json",
]


class SearchError(ValueError):
    """Stored votes or a stored tree is invalid."""


@dataclass(frozen=True, slots=True)
class VoteGroup:
    """Candidates with the same answer."""

    answer: str | None
    count: int
    trials: tuple[int, ...]
    """Indices of the candidates, from 0."""


@dataclass(frozen=True, slots=True)
class VoteCount:
    """The votes of all candidates."""

    groups: tuple[VoteGroup, ...]
    chosen: int
    """Index of the candidate whose answer was chosen."""
    runs: tuple[Trajectory, ...] = ()
    """The candidates."""


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node of a search tree: a path so far."""

    id: int
    parent: int | None
    depth: int
    visits: int
    value_sum: float
    prior: float
    reward: float | None
    terminal: bool
    answer: str | None
    errors: int
    messages: tuple[tuple[str, str], ...] = ()
    """Role and content of each message that its turn added; for the root, the prompt."""

    @property
    def value(self) -> float:
        """Mean of the values seen below it; 0 if it was never visited."""
        return self.value_sum / self.visits if self.visits else 0.0


@dataclass(frozen=True, slots=True)
class Tree:
    """A search tree; parents come before their children."""

    nodes: tuple[ShownNode, ...]
    chosen: int
    """Id of the node whose answer was chosen."""

    @property
    def best_path(self) -> tuple[int, ...]:
        """Ids from the root to the chosen node."""
        parents = {node.id: node.parent for node in self.nodes}
        path = [self.chosen]
        while (parent := parents[path[-1]]) is not None:
            path.append(parent)
        return tuple(reversed(path))


StoredSearch = VoteCount | Tree


def search_from_json(raw: Mapping[str, Any]) -> StoredSearch:
    """Return the votes or the tree in a record; additional fields are ignored.

    Raises:
        SearchError: a field is missing or of another type, or the nodes do not form a tree.
    """
    try:
        kind = raw["kind"]
        if kind == "vote":
            return _vote(raw)
        if kind == "search":
            return _tree(raw)
    except KeyError as error:
        raise SearchError(f"{error} is missing") from error
    except (AttributeError, TypeError, ValueError, OverflowError, TrajectoryError) as error:
        raise SearchError(f"{error}") from error
    raise SearchError(f"the kind is {kind!r}; expected 'vote' or 'search'")


def _vote(raw: Mapping[str, Any]) -> VoteCount:
    groups = tuple(
        VoteGroup(
            _words(group["answer"]), int(group["count"]), tuple(int(one) for one in group["trials"])
        )
        for group in raw["groups"]
    )
    runs = tuple(Trajectory.from_json(run) for run in raw.get("runs", ()))
    return VoteCount(groups, int(raw["chosen"]), runs)


def _tree(raw: Mapping[str, Any]) -> Tree:
    tree = Tree(tuple(_node(node) for node in raw["nodes"]), int(raw["chosen"]))
    _check_order(tree.nodes)
    if all(node.id != tree.chosen for node in tree.nodes):
        raise ValueError(f"the chosen node {tree.chosen} is not among the nodes")
    return tree


def _check_order(nodes: Sequence[ShownNode]) -> None:
    """Refuse nodes that are not a tree; with parents before children there can be no cycle."""
    seen: set[int] = set()
    for node in nodes:
        if node.id in seen:
            raise ValueError(f"node {node.id} occurs twice")
        if (node.parent is None) != (not seen):
            raise ValueError(f"node {node.id}: the first node, and no other, has no parent")
        if node.parent is not None and node.parent not in seen:
            raise ValueError(f"node {node.id}: its parent {node.parent} does not come before it")
        seen.add(node.id)


def _node(raw: Mapping[str, Any]) -> ShownNode:
    return ShownNode(
        id=int(raw["id"]),
        parent=None if raw["parent"] is None else int(raw["parent"]),
        depth=int(raw["depth"]),
        visits=int(raw["visits"]),
        value_sum=_finite(raw["value_sum"]),
        prior=_finite(raw["prior"]),
        reward=None if raw["reward"] is None else _finite(raw["reward"]),
        terminal=bool(raw["terminal"]),
        answer=_words(raw.get("answer")),
        errors=int(raw.get("errors", 0)),
        messages=tuple((str(one["role"]), str(one["content"])) for one in raw.get("messages", ())),
    )


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is no finite number")
    return number


def _words(value: Any) -> str | None:
    return None if value is None else str(value)
