"""Token ids in and out of llama.cpp's server, which runs the local model.

Undocumented behaviour of its `/completion`, as seen in build 11549:

- A stop string is missing in `content` and complete in `tokens`.
- At a stop string, the reply lacks as many log-probabilities as the string has tokens by itself.
- An id after which the text stops inside a character has no log-probability, and in a stream no id
  either. So a turn is requested without streaming.
- With `post_sampling_probs` off, a log-probability is the model's own: neither temperature, top-p
  nor a bias changes it. So a missing one is requested again, with a bias that forces its id.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointRefusedError, StreamBrokenError
from dm_jupyter.core.sampled_tokens import float_array, id_array
from dm_jupyter.models.local.tickets import Need, RequestQueue, Ticket
from dm_jupyter.models.protocols import SampleRequest, Urgency
from training.tokens.engine import SampledIds
from training.tokens.http import ModelServer, TokenId

__all__ = ["LlamaCppEngine"]

_WHOLE_DISTRIBUTION: Final = {
    "top_k": 0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""The server's defaults distort the distribution; only temperature and top-p may."""
_FORCED: Final = 1e9
"""A bias that no logit outweighs."""
_LIKELIEST: Final = (1_000, 1_000_000)
"""How many of the likeliest ids to search: the first usually suffices, the second is all."""
_Reply = TypeVar("_Reply")


@dataclass(frozen=True, slots=True)
class _Rendered:
    prompt: str


@dataclass(frozen=True, slots=True)
class _Tokens:
    tokens: list[TokenId]


@dataclass(frozen=True, slots=True)
class _Text:
    content: str


@dataclass(frozen=True, slots=True)
class _Logprob:
    id: TokenId
    logprob: float


@dataclass(frozen=True, slots=True)
class _ToldLogprob(_Logprob):
    top_logprobs: tuple[_Logprob, ...] = ()
    """Of the likeliest ids at this place."""


@dataclass(frozen=True, slots=True)
class _Logprobs:
    completion_probabilities: tuple[_ToldLogprob, ...] = ()
    """Missing if the server has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn(_Logprobs):
    content: str
    tokens: list[TokenId]
    stop_type: str
    stopping_word: str


class LlamaCppEngine:
    """A llama.cpp server as a `TokenEngine`. An async context manager."""

    def __init__(
        self, base_url: str, model: str, api_key: str = "", queue: RequestQueue | None = None
    ) -> None:
        """Prepare the engine; the first request connects.

        Args:
            base_url: The server's address, ending in `/v1`.
            model: The model's name.
            api_key: Bearer token of each request.
            queue: Where requests wait for the local model, which people share; `None` sends each
                immediately.
        """
        self._server = ModelServer(base_url, api_key, "Is it llama.cpp's own server?")
        self._model = model
        self._queue = queue

    async def __aenter__(self) -> Self:
        """Return the engine."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        await self._server.__aexit__(kind, error, trace)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    async def text_of_conversation(self, messages: Sequence[Message]) -> str:
        """Return the conversation rendered by the template in the model's file.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"messages": [message.to_json() for message in messages]}
        return (await self._server.reply("/apply-template", body, _Rendered)).prompt

    async def ids_of(self, text: str, *, is_start: bool) -> array[int]:
        """Return the ids of a text; at the start, including the vocabulary's first id if any.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"content": text, "add_special": is_start, "parse_special": True}
        return id_array((await self._server.reply("/tokenize", body, _Tokens)).tokens)

    async def text_of_ids(self, ids: array[int]) -> str:
        """Return the text of ids, special tokens included.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"tokens": ids.tolist()}
        return (await self._server.reply("/detokenize", body, _Text)).content

    async def sample_ids(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        """Return one turn, after the request has waited in the queue.

        Raises:
            PolicyError: The server can't be reached, refuses, or breaks off.
        """
        if self._queue is None:
            return await self._sampled(prompt, request)

        async def ask(ticket: Ticket) -> SampledIds:
            # Read the prompt alone, then write in parallel with others: without streaming, no
            # first token signals the end of reading.
            await self._completion(prompt, _Text, n_predict=0)
            ticket.writes()
            return await self._sampled(prompt, request)

        urgency = max(request.urgency, Urgency.BACKGROUND)
        need = Need(urgency, 1, len(prompt) + request.max_tokens)
        return await self._queue.answered(need, ask, request.on_wait or (lambda _: None))

    async def _sampled(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        turn = await self._completion(
            prompt,
            _Turn,
            stop=list(request.stop),
            n_predict=request.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
        )
        if turn.stop_type not in ("eos", "word", "limit"):
            raise StreamBrokenError(
                f"llama.cpp ended the turn before its end ({turn.stop_type}). Look at its log."
            )
        ids = id_array(turn.tokens)
        return SampledIds(
            ids=ids,
            logprobs=await self._logprobs(prompt, ids, turn.completion_probabilities),
            text=turn.content,
            finish_reason="length" if turn.stop_type == "limit" else "stop",
            stop=turn.stopping_word,
            is_closed=turn.stop_type == "eos",
        )

    async def _logprobs(
        self, prompt: array[int], ids: array[int], told: Sequence[_ToldLogprob]
    ) -> array[float]:
        """Return one for each id: from the reply if it has it, else by a request of its own."""
        known = _places([one.id for one in told], ids.tolist())
        found = float_array()
        for place, one in enumerate(ids):
            if place in known:
                found.append(told[known[place]].logprob)
            else:
                found.append(await self._logprob_after(prompt + ids[:place], one))
        return found

    async def _logprob_after(self, prompt: array[int], one: int) -> float:
        """Return the log-probability of one id after a prompt."""
        told = await self._forced(prompt, one, 1)
        if told is not None and told.id == one:
            return told.logprob
        # An incomplete character: the server lists it only among the likeliest of another id.
        letter = next(iter(await self.ids_of("a", is_start=False)), one)
        for count in _LIKELIEST:
            told = await self._forced(prompt, letter, count)
            for other in told.top_logprobs if told is not None else ():
                if other.id == one:
                    return other.logprob
        raise EndpointRefusedError(f"llama.cpp told no log-probability of the sampled id {one}.")

    async def _forced(self, prompt: array[int], one: int, count: int) -> _ToldLogprob | None:
        """Return the server's entry for an id after a prompt, with the likeliest alternatives."""
        bias = [[one, _FORCED]]
        reply = await self._completion(
            prompt, _Logprobs, n_predict=1, temperature=0.0, logit_bias=bias, n_probs=count
        )
        return next(iter(reply.completion_probabilities), None)

    async def _completion(self, prompt: array[int], kind: type[_Reply], **fields: Any) -> _Reply:
        body = {
            "prompt": prompt.tolist(),
            "stream": False,
            "return_tokens": True,
            "n_probs": 1,
            "post_sampling_probs": False,
            "cache_prompt": True,
            **_WHOLE_DISTRIBUTION,
            **fields,
        }
        return await self._server.reply("/completion", body, kind)


def _places(told: list[int], ids: list[int]) -> dict[int, int]:
    """Return where in the ids those of a reply are, as far as that is unambiguous.

    Returns:
        For each, its index in `ids`, mapped to its index in `told`. Those whose first and last
        possible indexes differ are left out.
    """
    first = _embedded(told, ids)
    last = [len(ids) - 1 - place for place in _embedded(told[::-1], ids[::-1])][::-1]
    both = zip(first, last, strict=True)
    return {place: number for number, (place, other) in enumerate(both) if place == other}


def _embedded(told: list[int], ids: list[int]) -> list[int]:
    """Return the first indexes at which `told` is a subsequence of `ids`; empty if it is not."""
    places: list[int] = []
    for place, one in enumerate(ids):
        if len(places) < len(told) and told[len(places)] == one:
            places.append(place)
    return places if len(places) == len(told) else []
