"""How a task is solved, by a single attempt or by several and a vote, and what that returns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from dm_jupyter.agent.candidates import (
    Agree,
    Candidate,
    best_by_mode,
    best_by_vote,
    groups_of,
    is_fit,
)
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.rollout import RolloutContext
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.models.protocols import Policy
from dm_jupyter.search.groups import (
    SEEDS_A_ROLLOUT,
    PlannedRollout,
    rollout,
    rollout_all,
    shared_first_turns,
)

__all__ = ["React", "Solution", "Strategy", "Vote"]


class Strategy(Protocol):
    """A way to solve a task. It keeps no state, and may serve many tasks at the same time."""

    @property
    def name(self) -> str:
        """The name that records use."""
        ...

    async def solve(self, context: RolloutContext, policy: Policy) -> Solution:
        """Return an answer, or the run that came closest.

        Args:
            context: the task and where its cells run.
            policy: the model.

        Raises:
            DmJupyterError: the model can't be sampled, or a file can't be written.
            SandboxError: the sandbox broke.
            asyncio.CancelledError: cancelled; all cells have been stopped.
        """
        ...


@dataclass(frozen=True, slots=True)
class React:
    """One run of the loop: think, run a cell, read, answer (ReAct, arXiv 2210.03629)."""

    name: str = "react"

    async def solve(self, context: RolloutContext, policy: Policy) -> Solution:
        """Return the one run; see `Strategy`."""
        candidate, notebook = await rollout(context, policy, context.run, context.folder)
        return Solution(0, (candidate,), notebook, *_spent_on([candidate.trajectory]))


@dataclass(frozen=True, slots=True)
class Vote:
    """N runs and their majority vote (self-consistency, arXiv 2203.11171).

    The first is identical to a single attempt, and its answer wins unless another has more votes.
    The others are sampled at a higher temperature, their first turns in one request.
    """

    count: int = 3
    temperature: float = 0.7
    """Temperature of all runs but the first."""
    name: str = "vote"
    choose: Literal["vote", "mode"] = "vote"
    """Choice among the answers: `mode` only counts them, `vote` also prefers the requested form."""
    enough: int | None = None
    """Runs to begin with; one is added at a time until this many agree or all have run.
    `None` begins with all of them."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Vote.count must be 1 or more, got {self.count}")
        if self.enough is not None and self.enough < 1:
            raise ValueError(f"Vote.enough must be 1 or more, got {self.enough}")
        if self.choose not in ("vote", "mode"):
            raise ValueError(f"Vote.choose must be vote or mode, got {self.choose!r}")

    async def solve(self, context: RolloutContext, policy: Policy) -> Solution:
        """Return the first of the runs with the majority answer; see `Strategy`."""
        ended: list[tuple[Candidate, HeadlessNotebook]] = []
        settled = False
        while not settled and len(ended) < self.count:
            wave = 1 if ended else self.enough or self.count
            ended += await self._wave(
                context, policy, len(ended), min(wave, self.count - len(ended))
            )
            candidates = tuple(candidate for candidate, _ in ended)
            # A suite may take long to compare two answers; the loop watches the sandbox meanwhile.
            settled = await asyncio.to_thread(self._is_settled, candidates, context.agree)
        chosen, record = await asyncio.to_thread(self._voted, candidates, context.agree)
        return Solution(
            chosen,
            candidates,
            ended[chosen][1],
            *_spent_on([one.trajectory for one in candidates]),
            record=record,
        )

    async def _wave(
        self, context: RolloutContext, policy: Policy, first: int, count: int
    ) -> list[tuple[Candidate, HeadlessNotebook]]:
        """Run `count` attempts at once, from index `first`; raise a fault when all have ended."""
        policies, settings = await self._tries(context, policy, range(first, first + count))
        planned = [
            PlannedRollout(one, how, context.folder / str(place))
            for place, (one, how) in enumerate(zip(policies, settings, strict=True), first)
        ]
        members = await rollout_all(context, planned, stops_at=(Exception,))
        return [(one.candidate, one.notebook) for one in members if one.candidate and one.notebook]

    def _is_settled(self, candidates: tuple[Candidate, ...], agree: Agree) -> bool:
        """Whether enough runs agree, in the requested form."""
        if self.enough is None:
            return len(candidates) >= self.count
        groups = groups_of(candidates, agree)
        return any(len(one) >= self.enough and is_fit(candidates[one[0]]) for one in groups)

    def _voted(self, candidates: tuple[Candidate, ...], agree: Agree) -> tuple[int, dict[str, Any]]:
        best = best_by_mode if self.choose == "mode" else best_by_vote
        chosen = best(candidates, agree)
        return chosen, _votes_to_json(candidates, agree, chosen)

    async def _tries(
        self, context: RolloutContext, policy: Policy, places: range
    ) -> tuple[list[Policy], list[RunSettings]]:
        """Return the policies and settings of the runs at some indices."""
        hot = replace(context.run, temperature=max(self.temperature, context.run.temperature))
        settings = [
            replace(hot, seed=context.run.seed + SEEDS_A_ROLLOUT * place) if place else context.run
            for place in places
        ]
        others = settings[0 if places.start else 1 :]
        first: list[Policy] = [policy] * (len(settings) - len(others))
        return [*first, *await shared_first_turns(context, policy, others)], settings


@dataclass(frozen=True, slots=True)
class Solution:
    """The answer to one task."""

    chosen: int
    """Index among the candidates."""
    candidates: tuple[Candidate, ...]
    """Runs that ended, in the order in which they did; not empty."""
    notebook: HeadlessNotebook | None
    """Notebook of the chosen run; `None` if it could not even begin."""
    tokens: int
    """Tokens sampled for all of them together."""
    prompt_tokens: int
    """Tokens read for all of them together."""
    cells: int
    """Cells run for all of them together."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """The votes or the tree, as JSON; empty for a single try."""

    @property
    def best(self) -> Candidate:
        """The chosen candidate."""
        return self.candidates[self.chosen]


def _spent_on(trajectories: Sequence[Trajectory]) -> tuple[int, int, int]:
    """Return the tokens sampled, the tokens read and the cells run in runs that share no turn."""
    return (
        sum(one.tokens for one in trajectories),
        sum(step.completion.prompt_tokens for one in trajectories for step in one.steps),
        sum(one.cells for one in trajectories),
    )


def _votes_to_json(candidates: Sequence[Candidate], agree: Agree, chosen: int) -> dict[str, Any]:
    """Return who voted for what: `{"kind": "vote", "groups": […], "chosen": …}`."""
    groups = [
        {"answer": candidates[group[0]].trajectory.answer, "count": len(group), "trials": group}
        for group in groups_of(candidates, agree)
    ]
    runs = [one.trajectory.to_json() for one in candidates]
    return {"kind": "vote", "groups": groups, "chosen": chosen, "runs": runs}
