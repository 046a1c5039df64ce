"""One request as it is sent: what is wanted, as far as the endpoint takes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dm_jupyter.core.dialects.tools import in_words
from dm_jupyter.models.capabilities import Capabilities
from dm_jupyter.models.protocols import SampleRequest

__all__ = ["Call", "build_call"]

_EXTENSIONS = ("continue_final_message", "add_generation_prompt")
"""vLLM's names for continuing an assistant message; the client does not know them."""
_THINKING_FACTOR = 8
"""What a model thinks counts against the limit of its answer, too."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request in the words of the chat interface."""

    model: str
    messages: tuple[dict[str, Any], ...]
    optional: dict[str, Any]
    """Fields that may be refused, among them the limit of length."""
    tools: tuple[dict[str, Any], ...]
    prefill: str
    """The opening that was really sent."""
    own_stop: tuple[str, ...]
    """Stop strings that the endpoint does not take: the answer is cut at them here."""
    cuts_repetition: bool = True
    """Whether a turn that goes round in circles is cut."""

    @property
    def shows_pictures(self) -> bool:
        """Whether figures are sent along."""
        return any(isinstance(message["content"], list) for message in self.messages)

    def body(self) -> dict[str, Any]:
        """The arguments of the client's method."""
        fields: dict[str, Any] = {"model": self.model, "messages": list(self.messages)}
        fields |= {name: v for name, v in self.optional.items() if name not in _EXTENSIONS}
        extra = {name: self.optional[name] for name in _EXTENSIONS if name in self.optional}
        if self.tools:
            fields["tools"] = list(self.tools)
        return {**fields, "stream": True, "extra_body": extra or None}


def build_call(
    model: str, request: SampleRequest, known: Capabilities, count: int, logprobs: bool
) -> Call:
    """Returns the request with all that the endpoint takes.

    Args:
        model: as the endpoint calls it.
        request: what is wanted.
        known: what the endpoint can do.
        count: turns to draw.
        logprobs: whether their tokens' probabilities are wanted.
    """
    prefill = request.prefill if known.continues_prefill else ""
    stop = request.stop if prefill or not request.prefill else request.stop_unopened
    told = request.messages
    if request.tools and known.tools is False:
        told = in_words(told, request.tools)
    if known.images is False:
        told = tuple(replace(message, pictures=()) for message in told)
    messages = [message.to_json() for message in told]
    wanted: dict[str, Any] = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "seed": request.seed,
        "stream_options": {"include_usage": True},
    }
    if stop:
        wanted["stop"] = list(stop)
    if count > 1:
        wanted["n"] = count
    if logprobs:
        wanted["logprobs"] = True
    if prefill:
        messages.append({"role": "assistant", "content": prefill})
        wanted |= {"continue_final_message": True, "add_generation_prompt": False}
    optional = {name: value for name, value in wanted.items() if known.takes(name)}
    if known.token_limit:
        thinks = bool(known.reasoning_field) or known.token_limit == "max_completion_tokens"  # noqa: S105
        factor = _THINKING_FACTOR if thinks else 1
        tokens = request.max_tokens * factor
        optional[known.token_limit] = min(tokens, known.most_tokens or tokens)
    tools = tuple(tool.to_json() for tool in request.tools) if known.tools is not False else ()
    own_stop = stop if "stop" not in optional else ()
    cuts = request.cuts_repetition
    return Call(model, tuple(messages), optional, tools, prefill, own_stop, cuts)
