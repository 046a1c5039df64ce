"""What can differ between one family of OpenAI-compatible endpoints and another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["STANDARD_FIELDS", "Family"]

STANDARD_FIELDS = frozenset(
    [
        "model",
        "messages",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "n",
        "stop",
        "seed",
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "frequency_penalty",
        "presence_penalty",
        "user",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "reasoning_effort",
        "store",
        "metadata",
        "service_tier",
    ]
)
"""The request fields of OpenAI that most families at least know."""

ErrorShape = Literal[
    "openai", "anthropic", "google", "mistral", "groq", "vllm", "llama", "gateway", "litellm"
]
LastAssistant = Literal["continues", "answers", "refuses", "prefix", "flag"]
"""A final assistant message: continued, answered or refused; or continued only where the message
says `prefix: true`; or only where the request says `continue_final_message`."""


@dataclass(frozen=True, slots=True)
class Family:
    """The rules of one family."""

    name: str
    title: str
    docs: tuple[str, ...]
    """Where its rules are documented or reported."""
    model: str
    """A model that this family serves; the rules are that model's."""
    path: str = "/v1"
    lists_models: bool = True
    listed: Mapping[str, Any] = field(default_factory=dict)
    """What its list of models says of a model beside the usual."""

    known: frozenset[str] = STANDARD_FIELDS
    refuses_unknown: bool = False
    """Whether a field outside `known` is an error; otherwise it has no effect."""
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Fields that are an error, each with what its message adds."""
    only: Mapping[str, Any] = field(default_factory=dict)
    """Fields that may only have this value."""
    ignores: frozenset[str] = frozenset()
    """Fields that are taken and have no effect."""
    refused_together: tuple[frozenset[str], ...] = ()
    """Fields that are an error when all of them are there and not false."""
    both_flags_says: str = ""
    """What it says to `continue_final_message` without `add_generation_prompt: false`."""
    blank_stop_refused: bool = False
    refuses_names: bool = False
    """Whether a `name` in a message is an error."""
    greedy_says: str = ""
    """What it says to several answers at temperature 0."""
    most_tokens: int = 0
    """The largest `max_tokens` that it takes; 0 for any."""
    refusal_status: int = 400
    error: ErrorShape = "openai"
    unknown_says: str = "Unrecognized request argument supplied: {field}"
    refused_says: str = "Unsupported parameter: '{field}' is not supported with this model.{more}"
    only_says: str = (
        "Unsupported value: '{field}' does not support {value} with this model. "
        "Only the default ({only}) value is supported."
    )

    last_assistant: LastAssistant = "answers"
    last_assistant_says: str = ""
    echoes_prefill: bool = False
    """Whether a continuation begins with the opening that was sent."""

    reasoning: Literal["hidden", "reasoning", "reasoning_content", "think"] = "hidden"
    """Not sent, in a field of that name, or inside `<think>` in the text."""
    tools_refused: str = ""
    """What it says to a request with tools; empty: it calls tools."""
    arguments_in_pieces: bool = True
    """Whether a call's arguments come in pieces or in one chunk with its name."""
    tool_index: bool = True
    tool_finish: str = "tool_calls"

    usage: Literal["asked", "always", "never"] = "asked"
    usage_in: Literal["own chunk", "last chunk"] = "own chunk"
    """Its own chunk has no choices; the last chunk is the one with the finish reason."""
    usage_also_under: str = ""
    """A field of the chunk with the finish reason that always holds the usage too."""
    role_first: bool = True
    """Whether a chunk with the role alone opens the stream."""
    empty_choices_first: bool = False
    chunk_without_delta: bool = False
    """Whether a last chunk has a choice without a `delta`."""
    comment: str = ""
    """A comment between the events of the stream."""
    null_content: bool = False
    """Whether chunks without text say `content: null`."""
    ends_with_done: bool = True
    """No family here was found to leave `[DONE]` out; tests may replace it."""
