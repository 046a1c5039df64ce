"""Several concurrent rollouts of one task; a fault of one leaves the others alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.agent.loop import RunSettings, begin, request_for, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.rollout import RolloutContext
from dm_jupyter.core.errors import (
    ContextFullError,
    DmJupyterError,
    PolicyError,
    StreamBrokenError,
)
from dm_jupyter.core.events import Event, RunFinished
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.models.protocols import Policy
from dm_jupyter.search.presampled import Presampled, sample_many
from kernel_sandbox.errors import SandboxError

__all__ = [
    "SEEDS_A_ROLLOUT",
    "GroupMember",
    "GroupReward",
    "PlannedRollout",
    "rollout",
    "rollout_all",
    "rollout_group",
    "shared_first_turns",
]

SEEDS_A_ROLLOUT = 1_000
"""Step between the seeds of two rollouts of a group: more than a run has turns."""
_FAULTS = (DmJupyterError, SandboxError, OSError)
GroupReward = Callable[[Candidate], Awaitable[float]]
"""The reward of a rollout; it never blocks the loop, and raises `DmJupyterError` for no verdict."""


@dataclass(frozen=True, slots=True)
class PlannedRollout:
    """A rollout before it runs."""

    policy: Policy
    settings: RunSettings
    folder: Path
    """Folder for the files that its code creates."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """The outcome of one rollout: a trajectory with its reward, or a fault, which is no reward."""

    candidate: Candidate | None
    """The ended rollout; `None` if it broke off."""
    notebook: HeadlessNotebook | None
    reward: float | None
    """Its reward; `None` if none was requested, or if there is a fault."""
    fault: Exception | None
    """Fault of the model's endpoint, the sandbox, a disk, or the scoring of a complete rollout."""

    @property
    def trajectory(self) -> Trajectory | None:
        """The complete run; `None` if it broke off."""
        return self.candidate.trajectory if self.candidate else None


async def rollout(
    context: RolloutContext, policy: Policy, settings: RunSettings, folder: Path
) -> tuple[Candidate, HeadlessNotebook]:
    """Run one rollout to its end, in its own notebook and state.

    Args:
        context: the task and where its cells run.
        policy: the model.
        settings: of the run.
        folder: receives the files that its code creates.

    Raises:
        DmJupyterError: the model can't be sampled, or a file can't be written.
        SandboxError: the sandbox broke.
        asyncio.CancelledError: cancelled; its cell has been stopped.
    """
    faults: list[Exception] = []

    def watch(event: Event) -> None:
        if isinstance(event, RunFinished) and event.fault is not None:
            faults.append(event.fault)
        context.emit(event)

    async with context.open_rollout() as opened:
        ended = await run(context.start, policy, opened, settings, watch)
        if faults:
            raise faults[0]
        finished = await opened.finish(ended, folder)
    return Candidate(finished, folder), opened.notebook


async def rollout_group(
    context: RolloutContext,
    policy: Policy,
    size: int,
    reward: GroupReward | None = None,
    stops_at: tuple[type[Exception], ...] = (),
) -> list[GroupMember]:
    """Return the outcomes of `size` rollouts of a task, in the order of their seeds.

    All are sampled with `context.run`, each from its own seed, and their first turns in one
    request. A fault ends only its own rollout.

    Args:
        context: the task and where its cells run; each member gets a folder in `context.folder`.
        policy: the model.
        size: how many.
        reward: of a rollout that has ended; `None` for no reward.
        stops_at: faults that are raised once all members have ended, instead of returned.

    Raises:
        ValueError: the size is below 1.
        Exception: a fault of `stops_at`.
        asyncio.CancelledError: cancelled; all cells have been stopped.
    """
    if size < 1:
        raise ValueError(f"a group has 1 rollout or more, got {size}")
    seeds = (context.run.seed + SEEDS_A_ROLLOUT * place for place in range(size))
    settings = [replace(context.run, seed=seed) for seed in seeds]
    try:
        policies = await shared_first_turns(context, policy, settings)
    except StreamBrokenError:
        policies = [policy] * size
    except PolicyError as fault:
        if isinstance(fault, stops_at):
            raise
        return [GroupMember(None, None, None, fault)] * size
    planned = [
        PlannedRollout(one, how, context.folder / str(place))
        for place, (one, how) in enumerate(zip(policies, settings, strict=True))
    ]
    return await rollout_all(context, planned, reward, stops_at)


async def rollout_all(
    context: RolloutContext,
    planned: Sequence[PlannedRollout],
    reward: GroupReward | None = None,
    stops_at: tuple[type[Exception], ...] = (),
) -> list[GroupMember]:
    """Return the outcomes of rollouts that run at the same time, in their order.

    Args:
        context: the task and where its cells run.
        planned: the rollouts.
        reward: see `rollout_group`.
        stops_at: see `rollout_group`.

    Raises:
        Exception: a fault of `stops_at`.
        asyncio.CancelledError: cancelled; all cells have been stopped.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_member(context, one, reward)) for one in planned]
    members = [task.result() for task in tasks]
    for member in members:
        if isinstance(member.fault, stops_at):
            raise member.fault
    return members


async def _member(
    context: RolloutContext, planned: PlannedRollout, reward: GroupReward | None
) -> GroupMember:
    """Run one rollout and catch its faults."""
    try:
        ended, notebook = await rollout(context, planned.policy, planned.settings, planned.folder)
    except _FAULTS as fault:
        return GroupMember(None, None, None, fault)
    if reward is None:
        return GroupMember(ended, notebook, None, None)
    try:
        return GroupMember(ended, notebook, await reward(ended), None)
    except _FAULTS as fault:
        return GroupMember(ended, notebook, None, fault)


async def shared_first_turns(
    context: RolloutContext, policy: Policy, settings: Sequence[RunSettings]
) -> list[Policy]:
    """Return a policy for each rollout; their first turns are sampled in one request.

    Args:
        context: the task.
        policy: the model.
        settings: of each rollout; they differ only in their seeds.

    Raises:
        PolicyError: the model can't be sampled.
    """
    if not settings:
        return []
    request = request_for(begin(context.start, policy, settings[0]), settings[0])
    try:
        drawn = await sample_many(policy, request, len(settings))
    except ContextFullError:  # each rollout meets it itself, and ends as a single one does
        return [policy] * len(settings)
    return [Presampled(policy, one) for one in drawn]
