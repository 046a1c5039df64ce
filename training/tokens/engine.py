"""What samples ids: the seam between the one token policy and the servers that run models.

`llama_cpp.py` and `vllm.py` implement it. An engine knows one server's interface and nothing of
conversations, turns or dialects.
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
    """What a server sampled after a prompt of ids."""

    ids: array[int]
    """All of them, those of a stop string and of the mark that closes a turn included."""
    logprobs: array[float]
    """One for each id, before temperature and top-p."""
    text: str
    """What they say, without the stop string or the mark, and what follows in the last token."""
    finish_reason: str
    """`stop` or `length`."""
    stop: str = ""
    """The stop string that ended it; empty for another end."""
    is_closed: bool = False
    """Whether the model closed its turn: the last id is that mark."""


class TokenEngine(Protocol):
    """A server that runs a model, asked in ids. Called by `TokenPolicy` alone.

    Every method raises `PolicyError` for a fault of the server and nothing else. A cancelled call
    ends its request. Nothing of a conversation may be kept between two calls.
    """

    @property
    def model(self) -> str:
        """The model's name, recorded with the trajectory."""
        ...

    async def text_of_conversation(self, messages: Sequence[Message]) -> str:
        """Return the conversation through the model's chat template, ready for its next turn."""
        ...

    async def ids_of(self, text: str, *, is_start: bool) -> array[int]:
        """Return the ids of a text, in which the marks of the template are single ids.

        Args:
            text: What a prompt begins with, or what follows other ids.
            is_start: Whether it is the start: there the model may want a mark of its own.
        """
        ...

    async def text_of_ids(self, ids: array[int]) -> str:
        """Return what ids say, marks included; a character that is not whole may look like any."""
        ...

    async def sample_ids(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        """Return one turn after a prompt; of the request, how it is sampled and where it stops."""
        ...
