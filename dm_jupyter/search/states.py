"""The states of a search: nodes with their runs, what a value model reads, what is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.agent.rollout import Rollout
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.trajectory import Answer, StopReason, Trajectory
from dm_jupyter.search.puct import TreeNode

__all__ = ["SearchState", "shown_state", "tree_to_json"]


@dataclass(slots=True)
class SearchState:
    """A node of the tree and the run that it represents."""

    node: TreeNode
    trajectory: Trajectory
    rollout: Rollout
    errors: int = 0
    """Consecutive cells, up to here, that raised."""
    folder: Path | None = None
    """Folder with the files of an answer, or of the path returned when none answered."""
    value: float | None = None
    """A value model's estimate of it."""

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
        weight = self.node.weight(self.value)
        return Candidate(self.trajectory, self.folder, self.value, weight)


def shown_state(trajectory: Trajectory) -> tuple[Message, ...]:
    """Return the messages a value model reads of a state, both in training and when asked.

    They are the conversation that the model itself would continue, in its dialect. An answer that a
    cell has printed is the last message.
    """
    messages = dialect_named(trajectory.dialect).messages(trajectory)
    if not messages[-1].content:  # nothing was observed after the last turn
        messages = messages[:-1]
    if trajectory.answer is None or isinstance(trajectory.steps[-1].turn.action, Answer):
        return messages
    return (*messages, Message("user", trajectory.answer))


def tree_to_json(
    states: Sequence[SearchState], chosen: int, *, is_collected: bool
) -> dict[str, Any]:
    """Return the tree: `{"kind": "search", "nodes": […], "chosen": …, "collected": …}`.

    The `messages` of a node are those that its own turn added; the root's are the prompt. Its
    `estimate` is that of a value model, `None` without one. If values are collected, its `state` is
    what a value model is shown of it. A dialect may omit turns of the path, and show a turn
    differently from how the model wrote it.

    Args:
        states: of all nodes, in the order of their numbers.
        chosen: number of the node whose answer was chosen.
        is_collected: whether the search knew which answers are correct.
    """
    ordered = sorted(states, key=lambda state: state.node.number)
    nodes = [_node_to_json(one) for one in ordered]
    if is_collected:
        for node, state in zip(nodes, ordered, strict=True):
            node["state"] = [message.to_json() for message in shown_state(state.trajectory)]
    return {"kind": "search", "nodes": nodes, "chosen": chosen, "collected": is_collected}


def _node_to_json(state: SearchState) -> dict[str, Any]:
    node = state.node
    return {
        "id": node.number,
        "parent": node.parent.number if node.parent else None,
        "depth": node.depth,
        "visits": node.visits,
        "value_sum": node.value_sum,
        "prior": node.prior,
        "reward": node.reward,
        "estimate": state.value,
        "terminal": node.is_terminal,
        "stop": state.trajectory.stop.value if state.trajectory.stop else None,
        "answer": state.trajectory.answer,
        "errors": state.errors,
        "status": _status(state),
        "messages": _messages(state),
    }


def _status(state: SearchState) -> str | None:
    """Return how the turn's own cell ended; `None` without one."""
    result = state.trajectory.steps[-1].result if state.node.parent is not None else None
    return result.status.value if result is not None else None


def _messages(state: SearchState) -> list[dict[str, str]]:
    trajectory = state.trajectory
    if state.node.parent is None:
        messages = dialect_named(trajectory.dialect).messages(trajectory)
        return [message.to_json() for message in messages]
    last = trajectory.steps[-1]
    turn = {"role": "assistant", "content": last.completion.text}
    told = [{"role": "user", "content": last.observation}] if last.observation else []
    return [turn, *told]
