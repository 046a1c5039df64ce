"""The bookkeeping of a search tree: which node is expanded next, and how values are backed up.

PUCT as in Jupiter (arXiv 2509.09245): `Q + c · P · sqrt(N_parent) / (1 + N)`. Q is the mean of the
values backed up to a node, its own and its descendants', and 0 before the first. Ended nodes are
never selected again, nor are nodes whose descendants have all ended.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

__all__ = ["SearchTree", "TreeNode"]


@dataclass(eq=False, slots=True)
class TreeNode:
    """A state of the search: the result of the turns on the path from the root."""

    number: int
    """Its index in the tree's list."""
    parent: TreeNode | None = None
    prior: float = 1.0
    """P, 0 to 1."""
    visits: int = 0
    value_sum: float = 0.0
    is_terminal: bool = False
    """Whether nothing follows."""
    reward: float | None = None
    """Reward of the run that it ended; `None` if it ended none or the reward is unknown."""
    children: list[TreeNode] = field(default_factory=list, repr=False)
    open_leaves: int = 1
    """Leaves below it, itself included, that can still be expanded."""

    @property
    def q(self) -> float:
        """The mean of its values and its descendants'; 0 before the first."""
        return self.value_sum / self.visits if self.visits else 0.0

    @property
    def depth(self) -> int:
        """Turns on the path from the root."""
        return sum(1 for _ in self.way_up()) - 1

    @property
    def share(self) -> Fraction:
        """Probability that a single run reaches this node, by what was sampled: 1 at the root."""
        return math.prod(
            (Fraction(1, len(one.parent.children)) for one in self.way_up() if one.parent),
            start=Fraction(1),
        )

    def weight(self, value: float | None) -> Fraction:
        """Return the weight in a vote of an answer that ends here.

        Without a value model it is the probability that a single run ends here. The children of one
        state are not independent opinions, and nothing favours the states that were expanded.

        Args:
            value: a value model's estimate of it; `None` without one.
        """
        return self.share if value is None else Fraction(1)

    def way_up(self) -> Iterator[TreeNode]:
        """Yield this node, its parent and so on, the root last."""
        node: TreeNode | None = self
        while node is not None:
            yield node
            node = node.parent

    def puct(self, exploration: float) -> float:
        """Return the score by which a parent chooses among its children.

        Args:
            exploration: c; 0 considers only the values.
        """
        around = self.parent.visits if self.parent else 0
        return self.q + exploration * self.prior * math.sqrt(around) / (1 + self.visits)


class SearchTree:
    """All nodes of one search."""

    def __init__(self, exploration: float, seed: int = 0) -> None:
        """Create a tree with only a root.

        Args:
            exploration: c.
            seed: of the random choice among children of equal score.
        """
        self._exploration = exploration
        self._random = random.Random(seed)  # noqa: S311  (no secret)
        self.root = TreeNode(0)
        self.nodes = [self.root]
        """Nodes in the order in which they were added; a node's number is its index."""

    def select(self) -> TreeNode | None:
        """Return the leaf to expand next; `None` if all have ended."""
        node = self.root
        if not node.open_leaves:
            return None
        while node.children:
            open_ones = [child for child in node.children if child.open_leaves]
            scores = [child.puct(self._exploration) for child in open_ones]
            best = max(scores)
            node = self._random.choice(
                [one for one, score in zip(open_ones, scores, strict=True) if score == best]
            )
        return node

    def add(self, parent: TreeNode, prior: float, *, is_terminal: bool) -> TreeNode:
        """Add and return a child; after its first child the parent is no longer a leaf.

        Args:
            parent: the node that is expanded.
            prior: P, the mean probability of the child's tokens.
            is_terminal: whether nothing follows it.
        """
        node = TreeNode(len(self.nodes), parent, prior, is_terminal=is_terminal)
        node.open_leaves = 0 if is_terminal else 1
        change = node.open_leaves - (0 if parent.children else parent.open_leaves)
        parent.children.append(node)
        self.nodes.append(node)
        for one in parent.way_up():
            one.open_leaves += change
        return node

    def end(self, leaf: TreeNode) -> None:
        """End a leaf that turned out not to be expandable."""
        leaf.is_terminal = True
        for one in leaf.way_up():
            one.open_leaves -= 1

    def back_up(self, node: TreeNode, value: float) -> None:
        """Back up a node's value to it and to all its ancestors.

        Args:
            node: the evaluated node.
            value: -1 to 1.
        """
        for one in node.way_up():
            one.visits += 1
            one.value_sum += value
