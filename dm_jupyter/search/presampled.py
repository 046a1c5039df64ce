"""Several turns sampled from one reading of the conversation, each then taken by `step`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import BatchPolicy, Policy, SampleRequest, Urgency
from dm_jupyter.models.sample_each import sample_each

__all__ = ["Presampled", "Searching", "sample_many"]


class Presampled:
    """A policy whose first turn is already sampled; the later ones come from the model."""

    def __init__(self, policy: Policy, completion: Completion) -> None:
        """Wrap the model and its first turn as a `Policy`.

        Args:
            policy: the model.
            completion: its first turn.
        """
        self._policy = policy
        self._completion: Completion | None = completion

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return the presampled turn, later a new one from the model."""
        completion, self._completion = self._completion, None
        if completion is None:
            return await self._policy.sample(request, on_text)
        on_text(completion.text)
        return completion


class Searching:
    """A policy for searches, with lower urgency than turns that a person waits for."""

    def __init__(self, policy: Policy) -> None:
        """Wrap the model as a `BatchPolicy`.

        Args:
            policy: the model.
        """
        self._policy = policy

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return one turn."""
        return await self._policy.sample(replace(request, urgency=Urgency.SEARCH), on_text)

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Return `count` turns."""
        return await sample_many(self._policy, replace(request, urgency=Urgency.SEARCH), count)


async def sample_many(policy: Policy, request: SampleRequest, count: int) -> list[Completion]:
    """Return `count` turns, in one request if the policy supports it.

    Raises:
        PolicyError: the model can't be sampled.
    """
    if isinstance(policy, BatchPolicy):
        return await policy.sample_many(request, count)
    return await sample_each(lambda one: policy.sample(one, lambda _: None), request, count)
