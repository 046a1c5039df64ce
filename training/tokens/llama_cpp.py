"""Ids in and out of llama.cpp's server, which runs the local model.

What its `/completion` does that its documentation leaves out, as seen in build 11549:

- A stop string is missing in `content` and whole in `tokens`.
- At a stop string the reply lacks as many log-probabilities as the string has tokens by itself.
- An id with which the text stops inside a character has no log-probability at all, and in a stream
  no id either. So a turn is asked for as a whole.
- With `post_sampling_probs` off, a log-probability is the model's own: neither temperature, top-p
  nor a bias changes it. So one that is missing is asked for again, with a bias that forces its id.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointRefusedError
from dm_jupyter.core.sampled_tokens import float_array, id_array
from dm_jupyter.models.local.tickets import Need, RequestQueue, Ticket
from dm_jupyter.models.protocols import SampleRequest, Urgency
from training.tokens.engine import SampledIds
from training.tokens.http import ModelServer

__all__ = ["LlamaCppEngine"]

_WHOLE_DISTRIBUTION: Final = {
    "top_k": 0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Its defaults cut the distribution and bend it; temperature and top-p alone are ours."""
_FORCED: Final = 1e9
"""A bias that no logit outweighs."""
_LIKELIEST: Final = (1_000, 1_000_000)
"""So many ids are looked through for one: the first mostly do, the second are all there are."""


class LlamaCppEngine:
    """A llama.cpp server as a `TokenEngine`. An async context manager."""

    def __init__(
        self, base_url: str, model: str, api_key: str = "", queue: RequestQueue | None = None
    ) -> None:
        """Connect to nothing yet.

        Args:
            base_url: Where the server answers, ending in `/v1`.
            model: The model's name.
            api_key: What requests carry.
            queue: In which requests wait for the local model, which people use, too; `None` sends
                each at once.
        """
        self._server = ModelServer(base_url, api_key)
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
        """Return the conversation through the template that the model's file holds.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"messages": [message.to_json() for message in messages]}
        return _text(await self._server.reply("/apply-template", body), "prompt")

    async def ids_of(self, text: str, *, is_start: bool) -> array[int]:
        """Return the ids of a text; at the start with the first id that the vocabulary asks for.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"content": text, "add_special": is_start, "parse_special": True}
        return _ids(await self._server.reply("/tokenize", body))

    async def text_of_ids(self, ids: array[int]) -> str:
        """Return what ids say, marks included.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        reply = await self._server.reply("/detokenize", {"tokens": ids.tolist()})
        return _text(reply, "content")

    async def sample_ids(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        """Return one turn, once it is this request's turn.

        Raises:
            PolicyError: The server can't be reached, refuses, or breaks off.
        """
        if self._queue is None:
            return await self._sampled(prompt, request)

        async def ask(ticket: Ticket) -> SampledIds:
            # Read alone, then written beside others: who gets a turn whole hears no first word.
            await self._completion(prompt, n_predict=0)
            ticket.writes()
            return await self._sampled(prompt, request)

        urgency = max(request.urgency, Urgency.BACKGROUND)
        need = Need(urgency, 1, len(prompt) + request.max_tokens)
        return await self._queue.answered(need, ask, request.on_wait or (lambda _: None))

    async def _sampled(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        reply = await self._completion(
            prompt,
            stop=list(request.stop),
            n_predict=request.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
        )
        ids = _ids(reply)
        stop_type = _text(reply, "stop_type")
        return SampledIds(
            ids=ids,
            logprobs=await self._logprobs(prompt, ids, reply.get("completion_probabilities", [])),
            text=_text(reply, "content"),
            finish_reason="length" if stop_type == "limit" else "stop",
            stop=_text(reply, "stopping_word"),
            is_closed=stop_type == "eos",
        )

    async def _logprobs(
        self, prompt: array[int], ids: array[int], told: list[dict[str, Any]]
    ) -> array[float]:
        """One for each id: those that the reply tells, and the others one by one."""
        known = _places([one["id"] for one in told], ids.tolist())
        found = float_array()
        for place, one in enumerate(ids):
            if place in known:
                found.append(told[known[place]]["logprob"])
            else:
                found.append(await self._logprob_after(prompt + ids[:place], one))
        return found

    async def _logprob_after(self, prompt: array[int], one: int) -> float:
        """The log-probability of one id after a prompt."""
        told = await self._forced(prompt, one, 1)
        if told is not None and told.get("id") == one:
            return float(told["logprob"])
        # It is no whole character: the server tells of it beside another id alone.
        (letter,) = await self.ids_of("a", is_start=False)
        for count in _LIKELIEST:
            told = await self._forced(prompt, letter, count)
            for other in told.get("top_logprobs", ()) if told is not None else ():
                if other["id"] == one:
                    return float(other["logprob"])
        raise _unknown("completion_probabilities")

    async def _forced(self, prompt: array[int], one: int, count: int) -> dict[str, Any] | None:
        """What the server tells of an id after a prompt, and of the likeliest at its place."""
        bias = [[one, _FORCED]]
        reply = await self._completion(
            prompt, n_predict=1, temperature=0.0, logit_bias=bias, n_probs=count
        )
        told = reply.get("completion_probabilities") or [None]
        return told[0] if isinstance(told[0], dict) else None

    async def _completion(self, prompt: array[int], **fields: Any) -> dict[str, Any]:
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
        return await self._server.reply("/completion", body)


def _places(told: list[int], ids: list[int]) -> dict[int, int]:
    """Where in the ids those are that a reply tells of, as far as that is beyond doubt.

    Returns:
        The place in `ids` of each, to its place in `told`. Those whose first and last possible
        places differ are left out.
    """
    first = _embedded(told, ids)
    last = [len(ids) - 1 - place for place in _embedded(told[::-1], ids[::-1])][::-1]
    both = zip(first, last, strict=True)
    return {place: number for number, (place, other) in enumerate(both) if place == other}


def _embedded(told: list[int], ids: list[int]) -> list[int]:
    """The first places at which all that is told follows each other; none where it doesn't."""
    places: list[int] = []
    for place, one in enumerate(ids):
        if len(places) < len(told) and told[len(places)] == one:
            places.append(place)
    return places if len(places) == len(told) else []


def _text(reply: dict[str, Any], name: str) -> str:
    value = reply.get(name)
    if not isinstance(value, str):
        raise _unknown(name)
    return value


def _ids(reply: dict[str, Any]) -> array[int]:
    value = reply.get("tokens")
    if not isinstance(value, list) or not all(isinstance(one, int) for one in value):
        raise _unknown("tokens")
    return id_array(value)


def _unknown(name: str) -> EndpointRefusedError:
    return EndpointRefusedError(
        f"The server's reply has no usable {name!r}. Is it llama.cpp's own server?"
    )
