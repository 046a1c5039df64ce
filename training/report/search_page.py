"""The votes or the tree behind an answer, as the page shows them.

Each leaf of a tree is drawn in a row of its own. An inner node is drawn midway between its first
and its last child.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from markupsafe import Markup

from training.report.search import ShownNode, Tree, VoteCount
from training.report.svg import add, cut, drawing, to_markup
from training.report.words import plain

__all__ = ["NodeRow", "TreePage", "VotePage", "VoteRow", "rows_of", "tree_page", "vote_page"]

_COLUMN = 120
_ROW = 30
_MARGIN = 36
_ANSWER_CHARS = 26
_ANSWER_WIDTH = 190
_MOST_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class VoteRow:
    """Candidates with the same answer."""

    answer: str | None
    count: int
    width: float
    """Width of its bar, in percent of the widest."""
    trials: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class VotePage:
    """Votes as groups of equal answers, the largest first."""

    candidates: int
    rows: tuple[VoteRow, ...]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as a row of the table below the drawing."""

    node: ShownNode
    answer: str
    is_best: bool
    messages: tuple[tuple[str, str], ...]
    """Role and content of each message of its turn."""


@dataclass(frozen=True, slots=True)
class TreePage:
    """A search tree."""

    svg: Markup
    rows: tuple[NodeRow, ...]


def vote_page(vote: VoteCount) -> VotePage:
    """Return votes as groups of equal answers, the largest first."""
    groups = sorted(vote.groups, key=lambda group: -group.count)
    most = max((group.count for group in groups), default=0)
    rows = tuple(
        VoteRow(
            answer=None if group.answer is None else plain(group.answer, _MOST_CHARS),
            count=group.count,
            width=100 * group.count / most if most else 0,
            trials=", ".join(str(trial + 1) for trial in group.trials),
            is_chosen=vote.chosen in group.trials,
        )
        for group in groups
    )
    return VotePage(sum(group.count for group in groups), rows)


def tree_page(tree: Tree) -> TreePage:
    """Return a tree as a drawing and as table rows; the chosen path is marked."""
    best = frozenset(tree.best_path)
    rows = tuple(
        NodeRow(
            node,
            plain(node.answer or "", _MOST_CHARS),
            node.id in best,
            tuple((role, plain(content)) for role, content in node.messages),
        )
        for node in tree.nodes
    )
    return TreePage(to_markup(_drawn(tree, best)), rows)


def _drawn(tree: Tree, best: frozenset[int]) -> Element:
    rows = rows_of(tree.nodes)
    depths = _depths(tree)
    width = _COLUMN * max(depths.values()) + 2 * _MARGIN + _ANSWER_WIDTH
    height = _ROW * (max(rows.values()) + 1)
    title = f"Search tree of {len(tree.nodes)} nodes; the path to node {tree.chosen} was chosen"
    svg = drawing(title, width, height)
    svg.set("class", "tree")
    places = {
        node.id: (_MARGIN + _COLUMN * depths[node.id], _ROW * (rows[node.id] + 0.5))
        for node in tree.nodes
    }
    for node in sorted(tree.nodes, key=lambda node: node.id in best):  # the chosen path on top
        if node.parent is not None:
            _edge(svg, places[node.parent], places[node.id], is_best=node.id in best)
    for node in tree.nodes:
        _node(svg, node, places[node.id], is_best=node.id in best)
    return svg


def _depths(tree: Tree) -> Mapping[int, int]:
    """Return depths counted along the parents; stored depths could make the drawing any size."""
    depths: dict[int, int] = {}
    for node in tree.nodes:
        depths[node.id] = 0 if node.parent is None else depths[node.parent] + 1
    return depths


def _edge(
    svg: Element, start: tuple[float, float], end: tuple[float, float], *, is_best: bool
) -> None:
    (x, y), (to_x, to_y) = start, end
    middle = (x + to_x) / 2
    path = f"M{x:.0f},{y:.1f} C{middle:.0f},{y:.1f} {middle:.0f},{to_y:.1f} {to_x:.0f},{to_y:.1f}"
    add(svg, "path", css="edge best" if is_best else "edge", d=path)


def _node(svg: Element, node: ShownNode, place: tuple[float, float], *, is_best: bool) -> None:
    x, y = place
    names = ["node", "best" if is_best else "", "errors" if node.errors else ""]
    mark = add(svg, "g", css=" ".join(filter(None, names)))
    add(mark, "title", _said(node))
    if node.terminal:
        add(mark, "rect", x=x - 8, y=y - 8, width=16, height=16, rx=2)
    else:
        add(mark, "circle", cx=x, cy=y, r=8)
    add(mark, "text", str(node.visits), css="visits", x=x, y=y + 3.5, text_anchor="middle")
    words = f"{node.value:+.2f}"
    if node.answer:
        words += f"  {cut(plain(node.answer, _MOST_CHARS), _ANSWER_CHARS)}"
    add(mark, "text", words, css="value", x=x + 12, y=y + 4 if node.terminal else y - 5)


def _said(node: ShownNode) -> str:
    parts = [
        f"node {node.id}",
        f"{node.visits} visits",
        f"mean value {node.value:.3f}",
        f"prior {node.prior:.3f}",
    ]
    if node.reward is not None:
        parts.append(f"reward {node.reward:.3f}")
    if node.errors:
        parts.append(f"{node.errors} errors")
    return ", ".join(parts)


def rows_of(nodes: Sequence[ShownNode]) -> Mapping[int, float]:
    """Return the row of each node by its id, from 0; no two nodes of one depth share a row.

    Each leaf takes a row, in depth-first order.

    Args:
        nodes: the nodes of a tree, each parent before its children.
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
