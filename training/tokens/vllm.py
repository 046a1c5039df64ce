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
from types import TracebackType
from typing import Any, Final, Self

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointRefusedError
from dm_jupyter.core.sampled_tokens import float_array, id_array
from dm_jupyter.models.protocols import SampleRequest
from training.tokens.chat_template import ChatTemplate
from training.tokens.engine import SampledIds
from training.tokens.http import ModelServer

__all__ = ["VllmEngine"]

_WHOLE_DISTRIBUTION: Final = {
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Without these, the server uses the model's `generation_config.json`."""


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
        self._server = ModelServer(base_url, api_key)
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
        return id_array(_ids(await self._server.reply("/tokenize", body), "tokens"))

    async def text_of_ids(self, ids: array[int]) -> str:
        """Return the text of ids, special tokens included.

        Raises:
            PolicyError: The server can't be reached or refuses.
        """
        body = {"model": self._model, "tokens": ids.tolist()}
        text = (await self._server.reply("/detokenize", body)).get("prompt")
        if not isinstance(text, str):
            raise _unknown("prompt")
        return text

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
        reply = await self._server.reply("/v1/completions", body)
        choices = reply.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            raise _unknown("choices")
        return _sampled(choices[0], prompt)


def _sampled(choice: dict[str, Any], prompt: array[int]) -> SampledIds:
    ids = id_array(_ids(choice, "token_ids"))
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
    if not isinstance(logprobs, list) or len(logprobs) != len(ids) or None in logprobs:
        raise _unknown("token_logprobs")
    if choice.get("prompt_token_ids", prompt.tolist()) != prompt.tolist():
        raise EndpointRefusedError("vLLM sampled after another prompt than the one it was given.")
    reason, stop = choice.get("finish_reason"), choice.get("stop_reason")
    return SampledIds(
        ids=ids,
        logprobs=float_array(logprobs),
        text=str(choice.get("text", "")),
        finish_reason="length" if reason == "length" else "stop",
        stop=stop if isinstance(stop, str) else "",
        is_closed=reason == "stop" and not isinstance(stop, str),
    )


def _ids(reply: dict[str, Any], name: str) -> list[int]:
    """Return a list of ids from a reply.

    Raises:
        EndpointRefusedError: It is missing.
    """
    found = reply.get(name)
    if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
        raise _unknown(name)
    return found


def _unknown(name: str) -> EndpointRefusedError:
    return EndpointRefusedError(
        f"The server's reply has no usable {name!r}. Exact tokens need vLLM 0.28 or newer."
    )
