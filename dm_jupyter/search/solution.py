"""What a strategy returns: the run it chose, those beside it, and what they took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dm_jupyter.agent.candidates import Agree, Candidate, groups_of
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.core.trajectory import Trajectory

__all__ = ["Solution", "spent_on", "votes_to_json"]


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer to one task."""

    chosen: int
    """Place among the candidates."""
    candidates: tuple[Candidate, ...]
    """Runs that ended, in the order in which they did; not empty."""
    notebook: HeadlessNotebook | None
    """The chosen run's; `None` where it could not even begin."""
    tokens: int
    """Sampled for all of them together."""
    prompt_tokens: int
    """Read for all of them together."""
    cells: int
    """Run for all of them together."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """The votes or the tree, as JSON; empty for a single try."""

    @property
    def best(self) -> Candidate:
        """The chosen candidate."""
        return self.candidates[self.chosen]


def spent_on(trajectories: Sequence[Trajectory]) -> tuple[int, int, int]:
    """Returns the tokens sampled, the tokens read and the cells run in runs that share no turn."""
    return (
        sum(one.tokens for one in trajectories),
        sum(step.completion.prompt_tokens for one in trajectories for step in one.steps),
        sum(one.cells for one in trajectories),
    )


def votes_to_json(candidates: Sequence[Candidate], agree: Agree, chosen: int) -> dict[str, Any]:
    """Returns who voted for what: `{"kind": "vote", "groups": […], "chosen": …}`."""
    groups = [
        {"answer": candidates[group[0]].trajectory.answer, "count": len(group), "trials": group}
        for group in groups_of(candidates, agree)
    ]
    runs = [one.trajectory.to_json() for one in candidates]
    return {"kind": "vote", "groups": groups, "chosen": chosen, "runs": runs}
