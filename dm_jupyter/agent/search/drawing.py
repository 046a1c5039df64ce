"""Several turns from one reading of the conversation, each then taken by `step`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from dm_jupyter.agent.protocols import BatchPolicy, Policy, SampleRequest
from dm_jupyter.core.errors import PolicyError, first_fault
from dm_jupyter.core.trajectory import Completion

__all__ = ["Drawn", "draw"]

_SEED_STRIDE = 7_919
"""Between the seeds of turns that are asked for one by one: far from those of later turns."""


class Drawn:
    """A policy whose first turns are drawn already; the later ones come from the model."""

    def __init__(self, policy: Policy, *completions: Completion) -> None:
        """Implements `Policy`.

        Args:
            policy: the model.
            completions: its first turns.
        """
        self._policy = policy
        self._completions = deque(completions)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Returns the next turn that was drawn, then what the model says."""
        if not self._completions:
            return await self._policy.sample(request, on_text)
        completion = self._completions.popleft()
        on_text(completion.text)
        return completion


async def draw(policy: Policy, request: SampleRequest, count: int) -> list[Completion]:
    """Returns `count` turns, in one request where the policy can.

    Raises:
        PolicyError: the model can't be sampled.
    """
    if isinstance(policy, BatchPolicy):
        return await policy.sample_many(request, count)
    seeds = [request.seed + _SEED_STRIDE * place for place in range(count)]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(policy.sample(replace(request, seed=seed), lambda _: None))
                for seed in seeds
            ]
    except* PolicyError as faults:
        raise first_fault(faults) from faults
    return [task.result() for task in tasks]
