"""A search as it is stored: every node with its turn, its visits and its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.search.states import SearchState, shown_state

__all__ = ["tree_to_json"]


def tree_to_json(
    states: Sequence[SearchState], chosen: int, *, is_collected: bool
) -> dict[str, Any]:
    """Returns the tree: `{"kind": "search", "nodes": […], "chosen": …, "collected": …}`.

    Each node holds as `messages` what its own turn added; the root's are the prompt. Its `estimate`
    is what a value model thought of it, `None` without one. Where values
    are collected, it holds as `state` what a value model is shown of it: a dialect may show less
    than the turns of the path, and each of them otherwise than the model wrote it.

    Args:
        states: of all nodes, in the order of their numbers.
        chosen: number of the node whose answer was chosen.
        is_collected: whether the search was told which answers are right.
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
    """How the turn's own cell ended; `None` without one."""
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
