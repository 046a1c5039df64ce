"""The row in which each node of a tree is drawn: in the middle of its children's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from training.report.search import ShownNode

__all__ = ["rows_of"]


def rows_of(nodes: Sequence[ShownNode]) -> Mapping[int, float]:
    """Returns the row of each node by its id, from 0; no two of one depth share a row.

    Leaves take a row each, in the order of a walk that goes deep first.

    Args:
        nodes: of a tree, each parent before its children.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for node in nodes:
        if node.parent is not None:
            children[node.parent].append(node.id)
    rows: dict[int, float] = {}
    waiting = [nodes[0].id]
    free = 0
    while waiting:
        last = waiting[-1]
        missing = [child for child in children[last] if child not in rows]
        if missing:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        if below := [rows[child] for child in children[last]]:
            rows[last] = (below[0] + below[-1]) / 2
        else:
            rows[last] = float(free)
            free += 1
    return rows
