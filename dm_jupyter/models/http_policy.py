"""A model behind any OpenAI-compatible endpoint: hosted, vLLM, Ollama, llama.cpp."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.errors import (
    ContextFullError,
    EndpointRefusedError,
    EndpointUnreachableError,
    StreamBrokenError,
)
from dm_jupyter.core.plain_text import is_on_this_machine
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.call import AnswerStream, Call, build_call
from dm_jupyter.models.capabilities import (
    OPTIONAL_FIELDS,
    Capabilities,
    CapabilityMemory,
    is_out_of_range,
    largest_limit,
    named_field,
    refuses_prefill,
)
from dm_jupyter.models.endpoint_client import Endpoint, EndpointClient
from dm_jupyter.models.local.tickets import Need, RequestQueue, Ticket, tokens_of
from dm_jupyter.models.protocols import SampleRequest, Urgency
from dm_jupyter.models.sample_each import sample_each, with_seed_of

__all__ = ["PROBE_OPENING", "TOOL_PROBE", "HttpPolicy"]

PROBE_OPENING = "one two three"
"""Opening of an answer that tests whether the endpoint continues it."""
_PROBE = SampleRequest(
    (Message("user", "Count from one to nine in words, separated by spaces. Nothing else."),),
    prefill=PROBE_OPENING,
    stop=("ten",),
    stop_unopened=("ten",),
    max_tokens=16,
    temperature=0.0,
)
TOOL_PROBE = Tool("ready", "Say that you are ready.", {"type": "object", "properties": {}})
_ASK_FOR_CALL = SampleRequest(
    (Message("user", "Call the tool `ready` now."),),
    tools=(TOOL_PROBE,),
    max_tokens=256,
    temperature=0.0,
)
_ASK_WITHOUT_TOOLS = replace(_ASK_FOR_CALL, tools=())
_PROBES = (_PROBE, _ASK_FOR_CALL, _ASK_WITHOUT_TOOLS)
_ATTEMPTS = 4
"""Requests that may be refused while learning what an endpoint accepts, plus the answered one."""
_UNSUPPORTED = (400, 422, 501)
"""Statuses of endpoints for a request with a field that they don't accept."""
_WITHOUT_TOOLS = (404, 500)
"""Statuses of some endpoints for tools, if the message names them; otherwise another fault."""
_WITHOUT_PICTURES = (400, 404, 413, 415, 422, 500, 501)
"""Statuses of endpoints for pictures that they don't accept, or that are too large."""
_TOGETHER = ({"continue_final_message", "add_generation_prompt"}, {"temperature", "top_p"})
"""Fields that no endpoint refuses separately."""
_WITH_VALUES = ("temperature", "top_p", "seed")
"""Fields of which an endpoint may refuse one value and accept another."""
_EXTENSIONS = ("continue_final_message", "add_generation_prompt", "n", "logprobs")
"""Fields that are dropped first if a refusal names none."""
_FLAGS = _EXTENSIONS[:2]
"""Those of them that continue an opening."""
_CHECKS = 10
_CHECK_S = 0.1
"""A killed process breaks its connections shortly before its locks are free."""
_ENDED = (
    "the local model's server ended, most likely because memory ran out; ask again, and it is "
    "started again, or choose a smaller model"
)


class HttpPolicy:
    """A policy that samples from an endpoint.

    It is an async context manager, so that its connections are closed.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        memory: CapabilityMemory | None = None,
        queue: RequestQueue | None = None,
        urgency: Urgency = Urgency.QUESTION,
        is_served: Callable[[], bool] = lambda: True,
    ) -> None:
        """Create the policy without connecting.

        Args:
            endpoint: the address of the model.
            memory: stores what is learned of it; `None` stores nothing.
            queue: in which requests wait for a server of this machine; `None` sends each at once.
            urgency: the highest that a request can have there.
            is_served: whether the server of this machine still runs; true for any other endpoint.
        """
        self._endpoint = endpoint
        self._queue = queue
        self._urgency = urgency
        self._is_served = is_served
        self._memory = memory
        self._client = EndpointClient(endpoint)
        self._learning = asyncio.Lock()
        """Lock that makes concurrent samples wait while a capability is being tested."""
        self._crowded_tokens = sys.maxsize
        """Shortest conversation that left no room for thoughts in the context, in tokens."""
        known = memory.recall(endpoint.address, endpoint.model) if memory else None
        self._kept = self._capabilities = known or endpoint.capabilities

    @property
    def name(self) -> str:
        """The model's name."""
        return self._endpoint.model

    @property
    def is_on_this_machine(self) -> bool:
        """Whether requests stay on this machine."""
        return is_on_this_machine(self._endpoint.base_url)

    @property
    def is_served(self) -> bool:
        """Whether it can answer as far as is known; false if its server on this machine ended."""
        return self._is_served()

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the endpoint known so far."""
        return self._capabilities

    async def __aenter__(self) -> HttpPolicy:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    async def learn(self) -> Capabilities:
        """Return what the endpoint can do, after a tiny question or two if that is unknown.

        Only an endpoint without tools gets openings, so only there is their continuation tested.

        Raises:
            PolicyError: it does not answer.
        """
        async with self._learning:
            if self._capabilities.tools is None:
                await self._learn_tools()
            if not self._capabilities.tools and self._capabilities.continues_prefill is None:
                await self._learn_prefill()
        return self._capabilities

    async def describe(self) -> Capabilities:
        """Return what the endpoint can do, including what its list of models says of this one.

        Raises:
            PolicyError: it does not answer; an unavailable list is not a fault.
        """
        learned = await self.learn()
        for entry in await self._client.listed():
            if isinstance(entry, dict) and entry.get("id") == self.name:
                learned = learned.listed(entry)
        self._learned(learned)
        return learned

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return one turn, streamed piece by piece through `on_text`.

        Raises:
            EndpointUnreachableError: nothing listens there, even after all retries.
            EndpointRefusedError: it answered with an error: key, model name or request.
            ContextFullError: the conversation is longer than the model's context.
            StreamBrokenError: the answer broke off.
        """
        answers = await self._draw(request, on_text=on_text)
        return answers[0]

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Return `count` turns, sampled from one reading of the prompt if the endpoint can.

        Other endpoints get `count` requests, each with its own seed. A server of this machine
        samples as many turns together as it has slots.

        Raises:
            EndpointUnreachableError: nothing listens there, even after all retries.
            EndpointRefusedError: it answered with an error: key, model name or request.
            ContextFullError: the conversation is longer than the model's context.
            StreamBrokenError: an answer broke off.
        """
        drawn: list[Completion] = []
        while len(drawn) < count:
            left = count - len(drawn)
            some = min(left, self._queue.slots) if self._queue else left
            drawn += await self._several(with_seed_of(len(drawn), request), some)
        return drawn

    async def _several(self, request: SampleRequest, count: int) -> list[Completion]:
        drawn = await self._draw(request, count, logprobs=True)
        if len(drawn) == count:
            return drawn
        self._learned(self._capabilities.without("n"))
        return await self._draw(request, count, logprobs=True)

    async def _single(self, request: SampleRequest, *, logprobs: bool) -> Completion:
        return (await self._draw(request, logprobs=logprobs))[0]

    async def _draw(
        self,
        request: SampleRequest,
        count: int = 1,
        *,
        logprobs: bool = False,
        on_text: Callable[[str], None] = lambda _: None,
    ) -> list[Completion]:
        """Send a request, and repeat it without what the endpoint has refused."""
        await self._learn_for(request)
        known = self._capabilities
        left_out: set[str] = set()
        for attempt in range(_ATTEMPTS):
            if count > 1 and not _draws_several(request, self._capabilities):
                return await sample_each(partial(self._single, logprobs=logprobs), request, count)
            asked_with = self._capabilities.without(*left_out)
            call = self._call(request, asked_with, count, logprobs)
            try:
                async with self._end_named():
                    answers = await self._in_turn(request, call, count, on_text)
            except ContextFullError as error:
                if attempt == _ATTEMPTS - 1 or not self._fits_shorter(error, call, request):
                    raise
                continue
            except EndpointRefusedError as error:
                taught = _taught_by(error, call, attempt, self._capabilities)
                left_out |= _refused_values(error, call)
                # A concurrent request may have learned the same while this one was in flight.
                if attempt < _ATTEMPTS - 1 and taught.without(*left_out) != asked_with:
                    self._capabilities = taught
                    continue
                self._capabilities = known  # dropping these fields did not help
                raise
            self._learned(_shown_by(answers, call, self._capabilities))
            return answers.completions(call.prefill)
        raise AssertionError("the last attempt returns or raises")

    def _call(
        self, request: SampleRequest, known: Capabilities, count: int, logprobs: bool
    ) -> Call:
        """Return the request, without room for thoughts where the context has none."""
        call = build_call(self._endpoint.model, request, known, count, logprobs)
        if tokens_of(call.messages) < self._crowded_tokens:
            return call
        most = min(request.max_tokens, known.most_tokens or request.max_tokens)
        crowded = replace(known, most_tokens=most)
        return build_call(self._endpoint.model, request, crowded, count, logprobs)

    def _fits_shorter(self, error: ContextFullError, call: Call, request: SampleRequest) -> bool:
        """Whether the context may have room without that for thoughts; remember it if so."""
        limit = call.optional.get(self._capabilities.token_limit, 0)
        if not error.is_refusal or limit <= request.max_tokens:
            return False
        self._crowded_tokens = min(self._crowded_tokens, tokens_of(call.messages))
        return True

    async def _learn_for(self, request: SampleRequest) -> None:
        """Learn the capabilities that shape the request, unless it is a probe of them itself."""
        if request in _PROBES:
            return
        async with self._learning:
            if request.tools and self._capabilities.tools is None:
                await self._learn_tools()
            if request.prefill and self._capabilities.continues_prefill is None:
                await self._learn_prefill()

    def _learned(self, learned: Capabilities) -> None:
        self._capabilities = learned
        if self._memory is not None and learned != self._kept:
            self._memory.keep(self._endpoint.address, self._endpoint.model, learned)
        self._kept = learned

    async def _learn_prefill(self) -> None:
        """Send a request with an opening that makes sense only if the model continues it."""
        before = self._capabilities
        self._capabilities = replace(before, continues_prefill=True)
        try:
            answer = (await self._draw(_PROBE))[0]
        except BaseException:
            self._capabilities = before
            raise
        said = answer.text[len(answer.prefill) :].strip().lower()
        goes_on = bool(answer.prefill) and said.startswith("four")
        self._learned(replace(self._capabilities, continues_prefill=goes_on))

    async def _learn_tools(self) -> None:
        """Ask for a call of a tool that does nothing.

        Raises:
            PolicyError: it does not answer, or refuses the request without a tool, too.
        """
        try:
            (answer,) = await self._draw(_ASK_FOR_CALL)
            if answer.finish_reason == "length":  # it was thinking, and now gets room for that
                await self._draw(_ASK_FOR_CALL)
        except EndpointRefusedError as error:
            is_of_tools = error.status in _WITHOUT_TOOLS and "tool" in str(error)
            if error.status not in _UNSUPPORTED and not is_of_tools:
                raise
            await self._draw(_ASK_WITHOUT_TOOLS)  # raises if the tools were not the reason
        can_call = self._capabilities.tools is True
        self._learned(replace(self._capabilities, tools=can_call))

    @asynccontextmanager
    async def _end_named(self) -> AsyncIterator[None]:
        """Name the end of this machine's server as the reason of a failure, if it was."""
        try:
            yield
        except (EndpointUnreachableError, StreamBrokenError) as error:
            if self._queue is not None:
                for _ in range(_CHECKS):
                    if not self.is_served:
                        raise type(error)(_ENDED) from error
                    await asyncio.sleep(_CHECK_S)
            raise

    async def _in_turn(
        self, request: SampleRequest, call: Call, count: int, on_text: Callable[[str], None]
    ) -> AnswerStream:
        """Send the request when the server of this machine has room; a remote one queues itself."""
        if self._queue is None:
            return await self._client.asked(call, on_text)
        urgency = max(self._urgency, request.urgency)
        tokens = tokens_of(call.messages) + count * request.max_tokens
        is_repeatable = urgency is Urgency.BACKGROUND
        pieces: list[str] = []

        async def ask(ticket: Ticket) -> AnswerStream:
            pieces.clear()  # those of an answer that was preempted
            hear = pieces.append if is_repeatable else on_text
            return await self._client.asked(call, hear, ticket.writes)

        need = Need(urgency, count, tokens)
        answers = await self._queue.answered(need, ask, request.on_wait or (lambda _: None))
        if is_repeatable:
            on_text("".join(pieces))
        return answers


def _taught_by(
    error: EndpointRefusedError, call: Call, attempt: int, known: Capabilities
) -> Capabilities:
    """Return what is known after a refusal; unchanged if a retry makes no sense."""
    body = error.body
    if call.shows_pictures and error.status in _WITHOUT_PICTURES:
        return replace(known, images=False)
    if error.status not in _UNSUPPORTED or body is None:
        return known
    if call.prefill and refuses_prefill(body):
        return replace(known, continues_prefill=False)
    named = named_field(body, call.optional)
    is_of_value = named in _WITH_VALUES and is_out_of_range(body)
    if is_of_value or (call.tools and not named and "tool" in str(body)):
        return known
    is_limit = bool(named) and named == known.token_limit
    if is_limit and (most := largest_limit(body, call.optional[named])):
        return replace(known, most_tokens=most)
    fields = [named] if named else _suspects(call)
    if attempt or not fields:  # an endpoint that refuses two fields refuses more: drop all optional
        fields += [one for one in OPTIONAL_FIELDS if one in call.optional]
        opens = False if call.prefill else known.continues_prefill
        known = replace(known, continues_prefill=opens)
    for together in _TOGETHER:
        fields += together if together & set(fields) else ()
    return known.without(*fields)


def _refused_values(error: EndpointRefusedError, call: Call) -> set[str]:
    """Return the field whose value alone was refused, and which this request can do without.

    A temperature above 1 was somebody's choice, so its refusal stays one.
    """
    named = named_field(error.body, call.optional)
    if error.status not in _UNSUPPORTED or not is_out_of_range(error.body):
        return set()
    is_chosen = named == "temperature" and call.optional[named] > 1
    return set() if is_chosen else {named} & set(_WITH_VALUES)


def _suspects(call: Call) -> list[str]:
    """Return the fields that are dropped first if a refusal names none.

    Those that continue an opening are known to work once the probe has been answered.
    """
    proven = _FLAGS if call.prefill != PROBE_OPENING else ()
    return [one for one in _EXTENSIONS if one in call.optional and one not in proven]


def _shown_by(answers: AnswerStream, call: Call, known: Capabilities) -> Capabilities:
    """Return what is known after an answer."""
    learned = known
    if answers.reasoning_field:
        learned = replace(learned, reasoning_field=answers.reasoning_field)
    if call.tools and answers.has_calls:
        learned = replace(learned, tools=True)
    return learned


def _draws_several(request: SampleRequest, known: Capabilities) -> bool:
    """Whether one request can ask for several answers; vLLM refuses that at temperature 0."""
    is_greedy = request.temperature == 0 and known.takes("temperature")
    return known.takes("n") and not is_greedy
