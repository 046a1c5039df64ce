"""How a task is solved: by a single try, or by several and a vote."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from dm_jupyter.agent.episodes import Arena
from dm_jupyter.agent.loop import RunSettings, begin, request_for, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.protocols import Policy
from dm_jupyter.agent.search.candidates import Agree, Candidate, best_by_mode, best_by_vote
from dm_jupyter.agent.search.drawing import Drawn, draw
from dm_jupyter.agent.search.solution import Solution, spent_on, votes_to_json
from dm_jupyter.core.errors import ContextFullError, DmJupyterError, first_fault
from dm_jupyter.core.events import Event, RunFinished
from kernel_sandbox.errors import SandboxError

__all__ = ["React", "Strategy", "Vote"]

_SEEDS_A_TRY = 1_000
"""Between the seeds of two tries: more than a run has turns."""


class Strategy(Protocol):
    """A way to solve a task. It holds no state, and may serve many tasks at the same time."""

    @property
    def name(self) -> str:
        """The name that records keep."""
        ...

    async def solve(self, arena: Arena, policy: Policy) -> Solution:
        """Returns an answer, or the run that came closest.

        Args:
            arena: the task and where its cells run.
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

    async def solve(self, arena: Arena, policy: Policy) -> Solution:
        """Returns the one run; see `Strategy`."""
        candidate, notebook = await _attempt(arena, policy, arena.run, arena.folder)
        return Solution(0, (candidate,), notebook, *spent_on([candidate.trajectory]))


@dataclass(frozen=True, slots=True)
class Vote:
    """N runs, and what most of them say (self-consistency, arXiv 2203.11171).

    The first is the single try as it would have been, and its answer stands where no other has
    more votes. The others are drawn hotter, their first turns in one request.
    """

    count: int = 3
    temperature: float = 0.7
    """Of all runs but the first."""
    name: str = "vote"
    choose: Literal["vote", "mode"] = "vote"
    """`mode` counts answers alone; `vote` also prefers those in the form asked for."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"Vote.count must be 1 or more, got {self.count}")
        if self.choose not in ("vote", "mode"):
            raise ValueError(f"Vote.choose must be vote or mode, got {self.choose!r}")

    async def solve(self, arena: Arena, policy: Policy) -> Solution:
        """Returns the first of the runs that say what most say; see `Strategy`."""
        policies, settings = await self._tries(arena, policy)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(_attempt(arena, one, how, arena.folder / str(place)))
                    for place, (one, how) in enumerate(zip(policies, settings, strict=True))
                ]
        except* (DmJupyterError, SandboxError) as faults:
            raise first_fault(faults) from faults
        ended = [task.result() for task in tasks]
        candidates = tuple(candidate for candidate, _ in ended)
        # A suite may take long to compare two answers: the loop watches the sandbox meanwhile.
        chosen, record = await asyncio.to_thread(self._voted, candidates, arena.agree)
        return Solution(
            chosen,
            candidates,
            ended[chosen][1],
            *spent_on([one.trajectory for one in candidates]),
            record=record,
        )

    def _voted(self, candidates: tuple[Candidate, ...], agree: Agree) -> tuple[int, dict[str, Any]]:
        best = best_by_mode if self.choose == "mode" else best_by_vote
        chosen = best(candidates, agree)
        return chosen, votes_to_json(candidates, agree, chosen)

    async def _tries(self, arena: Arena, policy: Policy) -> tuple[list[Policy], list[RunSettings]]:
        hot = replace(arena.run, temperature=max(self.temperature, arena.run.temperature))
        others = [
            replace(hot, seed=arena.run.seed + _SEEDS_A_TRY * place)
            for place in range(1, self.count)
        ]
        if not others:
            return [policy], [arena.run]
        request = request_for(begin(arena.start, policy, arena.run), others[0])
        try:
            drawn = await draw(policy, request, len(others))
        except ContextFullError:  # each try meets it by itself, and ends as a single one does
            return [policy] * self.count, [arena.run, *others]
        return [policy, *(Drawn(policy, one) for one in drawn)], [arena.run, *others]


async def _attempt(
    arena: Arena, policy: Policy, settings: RunSettings, folder: Path
) -> tuple[Candidate, HeadlessNotebook]:
    """One run from the beginning to its end, in an episode of its own."""
    faults: list[Exception] = []

    def watch(event: Event) -> None:
        if isinstance(event, RunFinished) and event.fault is not None:
            faults.append(event.fault)
        arena.emit(event)

    async with arena.episode() as episode:
        ended = await run(arena.start, policy, episode, settings, watch)
        if faults:
            raise faults[0]
        finished = await episode.finish(ended, folder)
    return Candidate(finished, folder), episode.notebook
