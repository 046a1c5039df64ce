"""The states of a search: nodes with their runs, and what a value model reads of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.agent.rollout import Rollout
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.trajectory import Answer, StopReason, Trajectory
from dm_jupyter.search.puct import TreeNode

__all__ = ["SearchState", "shown_state"]


@dataclass(slots=True)
class SearchState:
    """A node of the tree and the run that it stands for."""

    node: TreeNode
    trajectory: Trajectory
    episode: Rollout
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
        weight = self.node.weight(self.value)
        return Candidate(self.trajectory, self.folder, self.value, weight)


def shown_state(trajectory: Trajectory) -> tuple[Message, ...]:
    """Returns what a value model reads of a state, when it is trained as when it is asked.

    It is the conversation as the model itself would go on from it, in its dialect; an answer that
    a cell has printed is the last message.
    """
    messages = dialect_named(trajectory.dialect).messages(trajectory)
    if not messages[-1].content:  # nothing was told after the last turn
        messages = messages[:-1]
    if trajectory.answer is None or isinstance(trajectory.steps[-1].turn.action, Answer):
        return messages
    return (*messages, Message("user", trajectory.answer))
