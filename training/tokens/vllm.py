"""Token ids in and out of a vLLM server, through its OpenAI-compatible interface.

Written from its documentation (0.28 to 0.33). `/v1/completions` accepts a prompt of ids. With
`return_token_ids` it returns the sampled ids, including those of a stop string and the closing
token, with one log-probability each. The chat template is rendered on this side, as text, because
the server returns a rendered conversation only as ids.

Start the server with `--logprobs-mode raw_logprobs`, its default: the log-probabilities are then
the model's own, before temperature and top-p.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Annotated, Final, Self

import msgspec

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointRefusedError, StreamBrokenError
from dm_jupyter.core.sampled_tokens import float_array, id_array
from dm_jupyter.models.protocols import SampleRequest
from training.tokens.chat_template import ChatTemplate
from training.tokens.engine import SampledIds
from training.tokens.http import ModelServer, TokenId

__all__ = ["VllmEngine"]

_WHOLE_DISTRIBUTION: Final = {
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Without these, the server uses the model's `generation_config.json`."""


@dataclass(frozen=True, slots=True)
class _Tokens:
    tokens: list[TokenId]


@dataclass(frozen=True, slots=True)
class _Text:
    prompt: str


@dataclass(frozen=True, slots=True)
class _Logprobs:
    token_logprobs: list[float]


@dataclass(frozen=True, slots=True)
class _Choice:
    text: str
    token_ids: list[TokenId]
    logprobs: _Logprobs
    finish_reason: str | None
    stop_reason: str | int | None = None
    prompt_token_ids: list[TokenId] | None = None


@dataclass(frozen=True, slots=True)
class _Completion:
    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1, max_length=1)]


class VllmEngine:
    """A vLLM server as a `TokenEngine`. An async context manager."""

    def __init__(
        self, base_url: str, model: str, template: ChatTemplate, api_key: str = ""
    ) -> None:
        """Prepare the engine; the first request connects.

        Args:
            base_url: The server's address, ending in `/v1`.
            model: The model's name, or that of a loaded adapter.
            template: The model's chat template.
            api_key: Bearer token of each request.
        """
        self._server = ModelServer(base_url, api_key, "Exact tokens need vLLM 0.28 or newer.")
        self._model = model
        self._template = template

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
        """Return the conversation rendered by the template.

        Raises:
            ChatTemplateError: The template refuses such a conversation.
        """
        return self._template.text_of(messages)

    async def ids_of(self, text: str, *, is_start: bool) -> array[int]:  # noqa: ARG002
        """Return the ids of a text; the template writes the first special token itself.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return id_array((await self._server.reply("/tokenize", body, _Tokens)).tokens)

    async def text_of_ids(self, ids: array[int]) -> str:
        """Return the text of ids, special tokens included.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"model": self._model, "tokens": ids.tolist()}
        return (await self._server.reply("/detokenize", body, _Text)).prompt

    async def sample_ids(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        """Return one turn.

        Raises:
            PolicyError: The server can't be reached, refuses, or breaks off.
        """
        body = {
            "model": self._model,
            "prompt": prompt.tolist(),
            "stop": list(request.stop),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            "logprobs": 1,
            "return_token_ids": True,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            **_WHOLE_DISTRIBUTION,
        }
        reply = await self._server.reply("/v1/completions", body, _Completion)
        return _sampled(reply.choices[0], prompt)


def _sampled(choice: _Choice, prompt: array[int]) -> SampledIds:
    """Return the turn of a reply.

    Raises:
        StreamBrokenError: The server ended the turn before its end.
        EndpointRefusedError: The turn is of another prompt, or lacks log-probabilities.
    """
    if choice.finish_reason not in ("stop", "length"):
        raise StreamBrokenError(
            f"vLLM ended the turn before its end ({choice.finish_reason}). Look at its log."
        )
    if choice.prompt_token_ids not in (None, prompt.tolist()):
        raise EndpointRefusedError("vLLM sampled after another prompt than the one it was given.")
    if len(choice.logprobs.token_logprobs) != len(choice.token_ids):
        raise EndpointRefusedError("vLLM did not return one log-probability for each sampled id.")
    stop = choice.stop_reason if isinstance(choice.stop_reason, str) else ""
    return SampledIds(
        ids=id_array(choice.token_ids),
        logprobs=float_array(choice.logprobs.token_logprobs),
        text=choice.text,
        finish_reason=choice.finish_reason,
        stop=stop,
        is_closed=choice.finish_reason == "stop" and not stop,
    )
