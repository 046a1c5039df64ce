"""A search as it is stored: every node with its turn, its visits and its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dm_jupyter.agent.episodes import Episode
from dm_jupyter.agent.search.candidates import Candidate
from dm_jupyter.agent.search.puct import Node
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.trajectory import StopReason, Trajectory

__all__ = ["State", "tree_to_json"]


@dataclass(slots=True)
class State:
    """A node of the tree and the run that it stands for."""

    node: Node
    trajectory: Trajectory
    episode: Episode
    errors: int = 0
    """Cells in a row, up to here, that raised."""
    folder: Path | None = None
    """Where the files lie of an answer, or of the path that stands for none."""
    value: float | None = None
    """What a value model thinks of it."""

    @property
    def has_answer(self) -> bool:
        """Whether the path has answered."""
        return self.trajectory.stop is StopReason.ANSWERED

    @property
    def was_given_up(self) -> bool:
        """Whether the path has ended without an answer."""
        return self.trajectory.stop is not None and not self.has_answer

    @property
    def candidate(self) -> Candidate:
        """The run, as something to choose."""
        return Candidate(self.trajectory, self.folder, self.value)


def tree_to_json(states: Sequence[State], chosen: int) -> dict[str, Any]:
    """Returns the tree: `{"kind": "search", "nodes": […], "chosen": …}`.

    Each node holds the messages that its own turn added; those of the whole path are the ones of
    the nodes on the way from the root, whose messages are the prompt.

    Args:
        states: of all nodes, in the order of their numbers.
        chosen: number of the node whose answer was chosen.
    """
    ordered = sorted(states, key=lambda state: state.node.number)
    return {"kind": "search", "nodes": [_node_to_json(one) for one in ordered], "chosen": chosen}


def _node_to_json(state: State) -> dict[str, Any]:
    node = state.node
    return {
        "id": node.number,
        "parent": node.parent.number if node.parent else None,
        "depth": node.depth,
        "visits": node.visits,
        "value_sum": node.value_sum,
        "prior": node.prior,
        "reward": node.reward,
        "terminal": node.is_terminal,
        "stop": state.trajectory.stop.value if state.trajectory.stop else None,
        "answer": state.trajectory.answer,
        "errors": state.errors,
        "status": _status(state),
        "messages": _messages(state),
    }


def _status(state: State) -> str | None:
    """How the turn's own cell ended; `None` without one."""
    result = state.trajectory.steps[-1].result if state.node.parent is not None else None
    return result.status.value if result is not None else None


def _messages(state: State) -> list[dict[str, str]]:
    trajectory = state.trajectory
    if state.node.parent is None:
        messages = dialect_named(trajectory.dialect).messages(trajectory)
        return [message.to_json() for message in messages]
    last = trajectory.steps[-1]
    turn = {"role": "assistant", "content": last.completion.text}
    told = [{"role": "user", "content": last.observation}] if last.observation else []
    return [turn, *told]
