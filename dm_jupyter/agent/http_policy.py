"""A model behind any OpenAI-compatible endpoint: hosted, vLLM, Ollama, llama.cpp."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from dm_jupyter.agent.answer_stream import AnswerStream
from dm_jupyter.agent.one_each import one_each
from dm_jupyter.agent.protocols import SampleRequest
from dm_jupyter.core.addresses import shown_address
from dm_jupyter.core.errors import (
    ContextFullError,
    EndpointRefusedError,
    EndpointUnreachableError,
    StreamBrokenError,
)
from dm_jupyter.core.trajectory import Completion

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Endpoint", "HttpPolicy"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers."""

    base_url: str = field(repr=False)
    """It may hold a password; messages show `address`."""
    model: str
    api_key: str = field(default="", repr=False)
    continues_prefill: bool = True
    """Whether it continues an assistant message at the end, as llama.cpp, vLLM and Ollama do."""
    retries: int = 4
    """How often a refused connection, a 429 or a 5xx is tried again, with growing pauses."""
    read_timeout_s: float = 300.0
    """Silence after which an answer counts as broken; a model on a CPU reads a prompt slowly."""

    @property
    def address(self) -> str:
        """Where it answers, without what may be secret."""
        return shown_address(self.base_url)


_WAYS_TO_ASK = ((True, True), (False, True), (False, False))
"""For several turns: all in one request or one each; with the tokens' probabilities or without."""


class HttpPolicy:
    """Samples from an endpoint. An async context manager, so that its connections are closed."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client: AsyncOpenAI | None = None
        self._way = 0  # of `_WAYS_TO_ASK`: the first that the endpoint has not refused

    @property
    def name(self) -> str:
        """The model's name."""
        return self._endpoint.model

    async def __aenter__(self) -> HttpPolicy:
        from openai import AsyncOpenAI, Timeout  # noqa: PLC0415  (0.8 s, not needed for --help)

        self._client = AsyncOpenAI(
            base_url=self._endpoint.base_url,
            api_key=self._endpoint.api_key or "none",
            max_retries=self._endpoint.retries,
            timeout=Timeout(self._endpoint.read_timeout_s, connect=10.0),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Returns one turn, streamed piece by piece through `on_text`.

        Raises:
            EndpointUnreachableError: nothing listens there, after all retries.
            EndpointRefusedError: it answered with an error: key, model name or request.
            ContextFullError: the conversation is longer than the model's context.
            StreamBrokenError: the answer broke off.
        """
        answers = await self._draw(request, on_text=on_text)
        return answers[0]

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Returns `count` turns, drawn from one reading of the prompt where the endpoint can.

        Others are asked `count` times, each with a seed of its own.

        Raises:
            EndpointUnreachableError: nothing listens there, after all retries.
            EndpointRefusedError: it answered with an error: key, model name or request.
            ContextFullError: the conversation is longer than the model's context.
            StreamBrokenError: an answer broke off.
        """
        while True:
            together, likely = _WAYS_TO_ASK[self._way]
            try:
                if together:
                    drawn = await self._draw(request, count, logprobs=likely)
                else:
                    drawn = await one_each(partial(self._single, logprobs=likely), request, count)
                if len(drawn) == count:
                    return drawn
            except EndpointRefusedError:
                if self._way == len(_WAYS_TO_ASK) - 1:
                    raise
            self._way += 1

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
        prefill = request.prefill if self._endpoint.continues_prefill else ""
        if prefill:
            on_text(prefill)
        answers = AnswerStream()
        more = {"n": count} if count > 1 else {}
        if logprobs:
            more["logprobs"] = True
        async with self._stream(request, prefill, more) as stream:
            await self._receive(stream, answers, on_text)
        return answers.completions(prefill)

    async def _receive(
        self, stream: Any, answers: AnswerStream, on_text: Callable[[str], None]
    ) -> None:
        """Reads the stream to its end."""
        import httpx2  # noqa: PLC0415  (the client may raise its errors as they are)
        import openai  # noqa: PLC0415

        broken = (
            f"the answer of {self._endpoint.model} at {self._endpoint.address} broke off before "
            "its end; ask again, or look at the server's log"
        )
        try:
            async for chunk in stream:
                text = answers.take(chunk)
                if text:
                    on_text(text)
                if answers.is_looping:
                    return
        except (openai.APIError, httpx2.HTTPError) as error:
            raise StreamBrokenError(f"{broken} ({type(error).__name__})") from error
        if not answers.is_whole:
            raise StreamBrokenError(broken)

    @asynccontextmanager
    async def _stream(
        self, request: SampleRequest, prefill: str, more: dict[str, Any]
    ) -> AsyncIterator[Any]:
        if self._client is None:
            raise RuntimeError("use HttpPolicy in an `async with` block")
        messages: list[Any] = [message.to_json() for message in request.messages]
        extra: dict[str, Any] = {}
        if prefill:
            messages.append({"role": "assistant", "content": prefill})
            # vLLM's names; others ignore them
            extra = {"continue_final_message": True, "add_generation_prompt": False}
        async with self._faults():
            stream = await self._client.chat.completions.create(
                model=self._endpoint.model,
                messages=messages,
                stop=list(request.stop) or None,
                temperature=request.temperature,
                top_p=request.top_p,
                max_tokens=request.max_tokens,
                seed=request.seed,
                stream=True,
                stream_options={"include_usage": True},
                extra_body=extra or None,
                **more,
            )
        try:
            yield stream
        finally:
            await stream.close()

    @asynccontextmanager
    async def _faults(self) -> AsyncIterator[None]:
        """Turns the client's exceptions into ours, each naming the endpoint and a way out."""
        import openai  # noqa: PLC0415

        where = f"{self._endpoint.model} at {self._endpoint.address}"
        try:
            yield
        except openai.APIStatusError as error:
            if error.status_code == 400 and "context" in str(error.body).lower():
                raise ContextFullError(f"{where}: {_reason(error)}") from error
            raise EndpointRefusedError(
                f"{where} answered {error.status_code}: {_reason(error)}"
                f"{_WAYS_OUT.get(error.status_code, '')}",
                error.status_code,
            ) from error
        except openai.APIConnectionError as error:
            raise EndpointUnreachableError(
                f"nothing answers for {where}; is the server running, and is --base-url right "
                "(it usually ends in /v1)?"
            ) from error


_WAYS_OUT = {
    401: " — set DM_JUPYTER_API_KEY or --api-key-file",
    403: " — this key may not use this model",
    404: " — check --model and --base-url",
    429: " — too many requests, and still after all retries; wait, or use another endpoint",
}


def _reason(error: Any) -> str:
    """The endpoint's own message, short, without what was sent."""
    body = error.body
    if isinstance(body, dict):
        message = body.get("message") or body.get("error") or body
        body = message.get("message", message) if isinstance(message, dict) else message
    return str(body or error.response.reason_phrase)[:300]
