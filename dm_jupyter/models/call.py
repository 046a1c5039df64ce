"""One call of an endpoint: the request as it is sent, and the answer as it is streamed.

The request contains what is wanted, as far as the endpoint accepts it. The stream is reassembled
into one answer or several to the same prompt.

Covered: text, reasoning beside it or in `<think>`, and tool calls in pieces. Stop strings that the
endpoint does not accept. An opening that it repeats instead of continuing.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

from dm_jupyter.assist.repetition import is_looping
from dm_jupyter.core.dialects.tools import call_text, in_words
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.capabilities import HIDDEN, Capabilities
from dm_jupyter.models.protocols import SampleRequest

__all__ = ["AnswerStream", "Call", "Reply", "build_call"]

_EXTENSIONS = ("continue_final_message", "add_generation_prompt")
"""vLLM's names for continuing an assistant message; the client does not know them."""
_THINKING_FACTOR = 8
"""Factor on the token limit of a model that thinks, because thoughts count against it, too."""
_OPENED, _CLOSED = "<think>", "</think>"
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_REASONS = {
    **dict.fromkeys(("tool_calls", "function_call", "end_turn", "eos", "STOP"), "stop"),
    **dict.fromkeys(("max_tokens", "MAX_TOKENS", "model_length"), "length"),
}
"""Finish reasons of various model families, by the common name of each."""
_LOOK_EACH = 32
"""Pieces after which even an unfinished line is checked for repetition."""
_REPEATED_CHARS = 24
"""Characters of an opening that identify a repetition of it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request in the format of the chat interface."""

    model: str
    messages: tuple[dict[str, Any], ...]
    optional: dict[str, Any]
    """Fields that may be refused, including the length limit."""
    tools: tuple[dict[str, Any], ...]
    prefill: str
    """The opening that was actually sent."""
    own_stop: tuple[str, ...]
    """Stop strings that the endpoint does not accept: the answer is cut at them here."""
    cuts_repetition: bool = True
    """Whether a turn that repeats itself endlessly is cut."""
    thinks_in_text: bool = False
    """Whether the content of `<think>` stays in the text."""

    @property
    def shows_pictures(self) -> bool:
        """Whether it includes figures."""
        return any(isinstance(message["content"], list) for message in self.messages)

    def body(self) -> dict[str, Any]:
        """Return the arguments of the client's method."""
        fields: dict[str, Any] = {"model": self.model, "messages": list(self.messages)}
        fields |= {name: v for name, v in self.optional.items() if name not in _EXTENSIONS}
        extra = {name: self.optional[name] for name in _EXTENSIONS if name in self.optional}
        if self.tools:
            fields["tools"] = list(self.tools)
        return {**fields, "stream": True, "extra_body": extra or None}


def build_call(
    model: str, request: SampleRequest, known: Capabilities, count: int, logprobs: bool
) -> Call:
    """Return the request with everything that the endpoint accepts.

    Args:
        model: as the endpoint calls it.
        request: what is wanted.
        known: what the endpoint can do.
        count: turns to sample.
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
    in_text = request.thinks_in_text
    return Call(model, tuple(messages), optional, tools, prefill, own_stop, cuts, in_text)


@dataclass(slots=True)
class _ToolCall:
    """A tool call, as far as it has arrived."""

    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    """Of its arguments."""

    def take(self, call: Any) -> None:
        """Add a piece of the stream."""
        self.id = self.id or call.id or ""
        if call.function is not None:
            self.name = self.name or call.function.name or ""
            said = call.function.arguments or ""
            # Some gateways send the arguments as an object.
            self.pieces.append(said if isinstance(said, str) else json.dumps(said))


@dataclass(slots=True)
class Reply:
    """One answer, as far as it has arrived."""

    stop: tuple[str, ...] = ()
    thinks_in_text: bool = False
    """Whether the content of `<think>` is text."""
    is_speaking: bool = False
    """Whether the next pieces are text; until then they may turn out to be `<think>`."""
    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    reasoning_field: str = ""
    calls: list[_ToolCall] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str = ""
    seconds: float = 0.0
    _held: str = ""
    _is_after_thinking: bool = False

    def take(self, choice: Any) -> str:
        """Add a piece of the stream; return its text."""
        text = self._take_delta(choice.delta) if choice.delta is not None else ""
        tokens = choice.logprobs.content if choice.logprobs else None
        logprobs = [token.logprob for token in tokens or ()]
        self.logprobs += [one for one in logprobs if isinstance(one, float | int)]
        reason = str(choice.finish_reason or "")
        self.finish_reason = _REASONS.get(reason, reason) or self.finish_reason
        if text and self.stop:
            self._cut()
        return text

    def _take_delta(self, delta: Any) -> str:
        for name in _REASONING_FIELDS:
            if isinstance(thought := getattr(delta, name, None), str) and thought:
                self.thoughts.append(thought)
                self.reasoning_field = name
                break
        for call in delta.tool_calls or ():
            self._take_call(call)
        text = self._spoken(_text_of(delta))
        self.pieces.append(text)
        return text

    def _take_call(self, call: Any) -> None:
        """Add a piece to its call, which is the last one with its number.

        Some gateways number no call, or all of them 0: there a name, with another identity where
        calls are numbered, begins the next.
        """
        opened = next((one for one in reversed(self.calls) if one.index == call.index), None)
        begins = call.function is not None and bool(call.function.name)
        if opened is not None and begins and call.index is not None:
            begins = bool(call.id and opened.id and call.id != opened.id)
        if opened is None or begins:
            opened = _ToolCall(call.index)
            self.calls.append(opened)
        opened.take(call)

    def _spoken(self, text: str) -> str:
        """Return the text without the content of `<think>`."""
        if self._is_after_thinking:  # blank lines separate the two
            text = text.lstrip()
            self._is_after_thinking = not text
        if self.is_speaking or self.thinks_in_text or not text:
            return text
        self._held += text
        begun = self._held.lstrip()
        if begun.startswith(_OPENED):
            thought, mark, rest = begun[len(_OPENED) :].partition(_CLOSED)
            if not mark:
                return ""
            self.thoughts.append(thought.strip())
            self.reasoning_field = _OPENED
            rest = rest.lstrip()
            self._is_after_thinking = not rest
        elif _OPENED.startswith(begun):
            return ""
        else:
            rest = self._held
        self.is_speaking, self._held = True, ""
        return rest

    @property
    def _is_thinking(self) -> bool:
        """Whether the buffered text is a thought that has not ended."""
        return self._held.lstrip().startswith(_OPENED)

    def _cut(self) -> None:
        """End the answer at a stop string, as the endpoint would."""
        whole = "".join(self.pieces)
        ends = [at for one in self.stop if (at := whole.find(one)) >= 0]
        if ends:
            self.pieces, self.finish_reason = [whole[: min(ends)]], "stop"

    @property
    def has_text(self) -> bool:
        """Whether any text has arrived, be it of a thought."""
        return bool(self._held) or any(self.pieces)

    @property
    def text(self) -> str:
        """The turn so far: words, then calls."""
        _, words = self._split()
        calls = [call_text(one.name, "".join(one.pieces)) for one in self.calls]
        return "\n".join([*([words] if words or not calls else []), *calls])

    @property
    def reasoning(self) -> str:
        """The thoughts of the model, apart from the turn."""
        open_thought = self._held.lstrip().removeprefix(_OPENED) if self._is_thinking else ""
        return "".join([*self.thoughts, self._split()[0], open_thought]).strip()

    def _split(self) -> tuple[str, str]:
        """Return the thought that the prompt has opened, if there is one, and the words."""
        words = "".join(self.pieces) + ("" if self._is_thinking else self._held)
        if self.thinks_in_text or _OPENED in words or _CLOSED not in words:
            return "", words
        thought, _, words = words.rpartition(_CLOSED)
        return thought.strip(), words

    @property
    def mean_probability(self) -> float | None:
        """Geometric mean of the tokens' probabilities; `None` if unknown."""
        if not self.logprobs:
            return None
        return math.exp(sum(self.logprobs) / len(self.logprobs))


@dataclass(slots=True)
class AnswerStream:
    """The answers to one request, by their number, and their token usage."""

    stop: tuple[str, ...] = ()
    """Stop strings that the endpoint does not accept."""
    is_continued: bool = False
    """Whether the answers continue an opening."""
    cuts_repetition: bool = True
    """Whether an answer that repeats itself endlessly is cut."""
    thinks_in_text: bool = False
    """Whether the content of `<think>` is text."""
    replies: dict[int, Reply] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    started: float = field(default_factory=time.monotonic)

    def take(self, chunk: Any) -> str:
        """Add a chunk of the stream; return what it adds to the first answer."""
        if chunk.usage is not None:
            self.prompt_tokens = int(chunk.usage.prompt_tokens or 0)
            self.completion_tokens = int(chunk.usage.completion_tokens or 0)
        text = ""
        for choice in filter(None, chunk.choices or ()):
            fresh = Reply(self.stop, self.thinks_in_text, self.is_continued)
            index = int(choice.index or 0)
            reply = self.replies.setdefault(index, fresh)
            if reply.finish_reason and (self.stop or reply.finish_reason == "repetition"):
                continue
            piece = reply.take(choice)
            text += piece if index == 0 else ""
            is_due = "\n" in piece or len(reply.pieces) % _LOOK_EACH == 0
            is_due = is_due and self.cuts_repetition and not reply.finish_reason
            if is_due and is_looping("".join(reply.pieces)):
                reply.finish_reason = "repetition"
            reply.seconds = time.monotonic() - self.started
        return text

    @property
    def has_begun(self) -> bool:
        """Whether the model has written, thought or called anything, or ended."""
        return any(
            one.finish_reason or one.thoughts or one.calls or one.has_text
            for one in self.replies.values()
        )

    @property
    def is_whole(self) -> bool:
        """Whether every answer has ended."""
        return bool(self.replies) and all(one.finish_reason for one in self.replies.values())

    @property
    def is_enough(self) -> bool:
        """Whether nothing more is worth waiting for: all ended, and one of them was cut here."""
        cut_here = bool(self.stop) or "repetition" in {
            one.finish_reason for one in self.replies.values()
        }
        return cut_here and self.is_whole

    @property
    def reasoning_field(self) -> str:
        """Field in which the endpoint streamed the thoughts; empty if there were none."""
        for reply in self.replies.values():
            if reply.reasoning_field:
                return reply.reasoning_field
            if reply.finish_reason == "length" and not reply.text.strip():
                return HIDDEN
        return ""

    @property
    def has_calls(self) -> bool:
        """Whether an answer called a tool."""
        return any(one.calls for one in self.replies.values())

    def completions(self, prefill: str) -> list[Completion]:
        """Return the answers in order; the prompt, read once, counts toward the first."""
        return [
            self._completion(reply, prefill, is_first=not place)
            for place, (_, reply) in enumerate(sorted(self.replies.items()))
        ]

    def _completion(self, reply: Reply, prefill: str, *, is_first: bool) -> Completion:
        text = _whole_characters(reply.text)
        if prefill and text.lstrip().startswith(prefill.lstrip()[:_REPEATED_CHARS]):
            prefill, text = "", text.lstrip()  # repeated instead of continued
        return Completion(
            text=prefill + text,
            prefill=prefill,
            prompt_tokens=self.prompt_tokens if is_first else 0,
            completion_tokens=self._tokens(reply),
            seconds=reply.seconds,
            finish_reason=reply.finish_reason,
            mean_probability=reply.mean_probability,
            reasoning=_whole_characters(reply.reasoning),
        )

    def _tokens(self, reply: Reply) -> int:
        if len(self.replies) == 1 and self.completion_tokens:
            return self.completion_tokens
        return len(reply.logprobs) or len(reply.pieces)  # about one piece per token


def _text_of(delta: Any) -> str:
    """Return the text of a piece, which some families stream as a list of parts."""
    content = delta.content
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    said = content or getattr(delta, "refusal", None)
    return said if isinstance(said, str) else ""


def _whole_characters(text: str) -> str:
    """Return the text with surrogate pairs joined that arrived in two pieces.

    A lone half can't be written to a file, so it becomes the replacement character.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
