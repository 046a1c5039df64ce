"""A policy that draws so many turns at a time, however many runs wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import Policy, SampleRequest
from dm_jupyter.models.sample_each import with_seed_of
from dm_jupyter.search.presampled import sample_many

__all__ = ["BoundedPolicy"]


class BoundedPolicy:
    """Implements `BatchPolicy`; a batch with more turns than there are places is split."""

    def __init__(self, policy: Policy, at_once: int) -> None:
        """Wraps a policy.

        Args:
            policy: the model.
            at_once: turns that are drawn at the same time.
        """
        self._policy = policy
        self._at_once = at_once
        self._places = asyncio.Semaphore(at_once)
        self._door = asyncio.Lock()  # two batches that each hold half of the places wait for ever

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Returns one turn when its place is free."""
        async with self._taken(1):
            return await self._policy.sample(request, on_text)

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Returns `count` turns, as many at a time as there are places."""
        drawn: list[Completion] = []
        while len(drawn) < count:
            some = min(self._at_once, count - len(drawn))
            async with self._taken(some):
                drawn += await sample_many(self._policy, with_seed_of(len(drawn), request), some)
        return drawn

    @asynccontextmanager
    async def _taken(self, count: int) -> AsyncIterator[None]:
        taken = 0
        try:
            async with self._door:
                for _ in range(count):
                    await self._places.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._places.release()
