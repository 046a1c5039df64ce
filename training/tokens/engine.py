"""Interface for sampling ids, between the single token policy and whatever runs the model.

`LlamaCppEngine` and `VllmEngine` implement it for servers. `TransformersEngine`, which is in
`training.trainer.engine`, implements it for a model in this process. An engine knows one way to run
a model and nothing about conversations, turns or dialects.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dm_jupyter.core.dialect import Message
from dm_jupyter.models.protocols import SampleRequest

__all__ = ["SampledIds", "TokenEngine"]


@dataclass(frozen=True, slots=True)
class SampledIds:
    """One turn that an engine sampled after a prompt of ids."""

    ids: array[int]
    """All sampled ids, including those of a stop string and the token that closes the turn."""
    logprobs: array[float]
    """One for each id, before temperature and top-p."""
    text: str
    """Text of the ids, up to the stop string or the closing token."""
    finish_reason: str
    """`stop` or `length`."""
    stop: str = ""
    """The stop string that ended the turn; empty if something else did."""
    is_closed: bool = False
    """Whether the model closed its turn: the last id is the closing token."""


class TokenEngine(Protocol):
    """A server or library that runs a model on token ids; only `TokenPolicy` calls it.

    Every method raises `PolicyError` for a fault of the engine and nothing else. A cancelled call
    ends the work on it. An engine may not keep a conversation between two calls.
    """

    @property
    def model(self) -> str:
        """The model's name, recorded with the trajectory."""
        ...

    async def text_of_conversation(self, messages: Sequence[Message]) -> str:
        """Return the conversation rendered by the chat template, ready for the next turn."""
        ...

    async def ids_of(self, text: str, *, is_start: bool) -> array[int]:
        """Return the ids of a text; each special token of the template becomes one id.

        Args:
            text: The start of a prompt, or text that follows other ids.
            is_start: Whether it is the start, where the model may need a token of its own.
        """
        ...

    async def text_of_ids(self, ids: array[int]) -> str:
        """Return the text of ids, special tokens included; incomplete characters may vary."""
        ...

    async def sample_ids(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        """Return one turn after a prompt; the request gives sampling settings and stop strings."""
        ...
