"""Several tries behind the scenes before the one that a person sees."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.agent.episodes import Arena, Pool
from dm_jupyter.agent.protocols import Policy
from dm_jupyter.agent.search.candidates import groups_of
from dm_jupyter.agent.search.drawing import Drawn
from dm_jupyter.agent.search.strategies import Vote
from kernel_sandbox.pool import PoolSettings, SandboxPool
from kernel_sandbox.profile import Profile
from kernel_sandbox.types import Limits

__all__ = ["Rehearsal", "rehearse"]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What came of the tries."""

    policy: Policy
    """Says again what the chosen try said, turn by turn, and then what the model says."""
    tries: int
    agreeing: int
    """Tries that say what the chosen one says; 0 where none answered."""
    tokens: int
    """Sampled for all tries together."""


async def rehearse(
    arena_in: Callable[[Pool, Path], Arena],
    policy: Policy,
    tries: int,
    limits: Limits | None = None,
    profile: Profile = Profile.INTERACTIVE,
) -> Rehearsal:
    """Answers a task several times in fresh kernels, and returns what to do in the open notebook.

    The tries know the files alone: no variable of the open notebook, and nothing that they make
    outlives them. What the chosen one said is then taken again, cell by cell, where the person
    sees it; where a cell ends otherwise there, the model goes on from what it did.

    Args:
        arena_in: returns the task, briefed, for a pool and a folder that go away afterwards.
        policy: the model.
        tries: how many.
        limits: of each try.
        profile: `rollout` refuses a machine that can't confine the tries.

    Raises:
        DmJupyterError: the model can't be sampled.
        SandboxError: no kernel could be started.
        asyncio.CancelledError: cancelled; all tries have been stopped.
    """
    settings = PoolSettings(profile=profile)
    with tempfile.TemporaryDirectory(prefix="dm_jupyter-") as folder:
        async with SandboxPool(settings, limits) as pool:
            arena = arena_in(pool, Path(folder))
            solution = await Vote(tries).solve(arena, policy)
    groups = groups_of(solution.candidates, arena.agree)
    said = solution.best.trajectory
    return Rehearsal(
        policy=Drawn(policy, *(step.completion for step in said.steps)),
        tries=tries,
        agreeing=next((len(group) for group in groups if solution.chosen in group), 0),
        tokens=solution.tokens,
    )
