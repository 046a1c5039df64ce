"""What a model is to everything above it: something that samples a turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.sampled_tokens import SampledTokens
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.local.tickets import Urgency

__all__ = ["BatchPolicy", "Policy", "SampleRequest", "Urgency"]


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One turn to sample."""

    messages: tuple[Message, ...]
    prefill: str = ""
    """The opening of the turn, which the model continues."""
    stop: tuple[str, ...] = ()
    stop_unopened: tuple[str, ...] = ()
    """In place of `stop`, where the endpoint can't continue an opening and so gets none."""
    tools: tuple[Tool, ...] = ()
    """What the model may call, in a dialect of calls."""
    temperature: float = 0.2
    top_p: float = 0.95
    max_tokens: int = 1_000
    seed: int = 0
    cuts_repetition: bool = True
    """Whether a turn that goes round in circles is cut."""
    thinks_in_text: bool = False
    """Whether `<think>` is a tag of the dialect: what stands in it is a part of the turn's text."""
    urgency: Urgency = Urgency.QUESTION
    """Who waits for it; a model of this machine that has several to answer goes by that."""
    before: SampledTokens | None = field(default=None, compare=False, repr=False)
    """The ids of the turn before, which a policy that works on ids continues; others ignore it."""
    on_wait: Callable[[int], None] | None = field(default=None, compare=False, repr=False)
    """Told how many requests go before this one, each time that it changes, and 0 at its turn."""


class Policy(Protocol):
    """A model. Called by `step` once a turn, never twice at a time for one trajectory.

    An implementation may not assume that the caller waits: a cancelled `sample` must end the
    request. It raises `PolicyError` for every fault of the endpoint and nothing else.
    """

    @property
    def name(self) -> str:
        """The model's name, recorded with the trajectory."""
        ...

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Returns one turn; `on_text` gets each piece of it as it comes, the opening included."""
        ...


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A model that draws several turns from one reading of the conversation. Called by a search."""

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Returns `count` turns, each with the probability that the model gave it, where known.

        It raises `PolicyError` for every fault of the endpoint and nothing else; all turns come,
        or none.
        """
        ...
