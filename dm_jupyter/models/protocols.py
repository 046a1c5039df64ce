"""The interface of a model to all higher layers: it samples a turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.sampled_tokens import SampledTokens
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.local.tickets import Urgency

__all__ = ["MOST_TEMPERATURE", "BatchPolicy", "Policy", "SampleRequest", "Urgency"]

MOST_TEMPERATURE = 2.0
"""Highest sampling temperature of a question; some endpoints take less."""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One turn to sample."""

    messages: tuple[Message, ...]
    prefill: str = ""
    """The opening of the turn, which the model continues."""
    stop: tuple[str, ...] = ()
    stop_unopened: tuple[str, ...] = ()
    """Stop strings that replace `stop` if the endpoint can't continue an opening and gets none."""
    tools: tuple[Tool, ...] = ()
    """Tools that the model may call, in a dialect with tool calls."""
    temperature: float = 0.2
    top_p: float = 0.95
    max_tokens: int = 1_000
    seed: int = 0
    cuts_repetition: bool = True
    """Whether a turn that repeats itself endlessly is cut."""
    thinks_in_text: bool = False
    """Whether `<think>` is a tag of the dialect, whose content is part of the turn's text."""
    urgency: Urgency = Urgency.QUESTION
    """Who waits for it; a model of this machine orders its requests by this."""
    before: SampledTokens | None = field(default=None, compare=False, repr=False)
    """Token ids of the previous turn, for a policy that continues ids; others ignore them."""
    on_wait: Callable[[int], None] | None = field(default=None, compare=False, repr=False)
    """Callback for the number of requests ahead, called at each change and with 0 at its turn."""


class Policy(Protocol):
    """A model. Called by `step` once per turn, never concurrently for one trajectory.

    An implementation may not assume that the caller waits: a cancelled `sample` must end the
    request. It raises `PolicyError` for every fault of the endpoint and nothing else.
    """

    @property
    def name(self) -> str:
        """The model's name, recorded with the trajectory."""
        ...

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return one turn; `on_text` receives each piece as it arrives, including the opening."""
        ...


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A model that samples several turns from one reading of the conversation, for a search."""

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Return `count` turns, each with the probability that the model gave it, if known.

        It raises `PolicyError` for every fault of the endpoint and nothing else. It returns all
        turns or none.
        """
        ...
