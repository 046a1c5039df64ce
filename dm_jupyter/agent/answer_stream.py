"""What an endpoint streams, put together again: one answer or several to the same prompt."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from dm_jupyter.agent.repetition import is_looping
from dm_jupyter.core.trajectory import Completion

__all__ = ["AnswerStream", "Reply"]


@dataclass(slots=True)
class Reply:
    """What has come of one answer so far."""

    pieces: list[str] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish_reason: str = ""
    seconds: float = 0.0

    def take(self, choice: Any) -> str:
        """Adds a piece of the stream; returns the text in it."""
        text: str = choice.delta.content or ""
        self.pieces.append(text)
        tokens = choice.logprobs.content if choice.logprobs else None
        self.logprobs += [token.logprob for token in tokens or ()]
        self.finish_reason = choice.finish_reason or self.finish_reason
        return text

    @property
    def mean_probability(self) -> float | None:
        """Geometric mean of the tokens' probabilities."""
        if not self.logprobs:
            return None
        return math.exp(sum(self.logprobs) / len(self.logprobs))


@dataclass(slots=True)
class AnswerStream:
    """The answers to one request, by their number, and what they cost."""

    replies: dict[int, Reply] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    started: float = field(default_factory=time.monotonic)

    def take(self, chunk: Any) -> str:
        """Adds a chunk of the stream; returns what it adds to the first answer."""
        if chunk.usage is not None:
            self.prompt_tokens = chunk.usage.prompt_tokens
            self.completion_tokens = chunk.usage.completion_tokens
        text = ""
        for choice in chunk.choices:
            reply = self.replies.setdefault(choice.index, Reply())
            if reply.finish_reason == "repetition":
                continue
            piece = reply.take(choice)
            text += piece if choice.index == 0 else ""
            if not reply.finish_reason and "\n" in piece and is_looping("".join(reply.pieces)):
                reply.finish_reason = "repetition"
            reply.seconds = time.monotonic() - self.started
        return text

    @property
    def is_whole(self) -> bool:
        """Whether every answer has come to an end."""
        return bool(self.replies) and all(one.finish_reason for one in self.replies.values())

    @property
    def is_looping(self) -> bool:
        """Whether nothing more is worth waiting for: all ended, and one by repeating itself."""
        return self.is_whole and "repetition" in {
            one.finish_reason for one in self.replies.values()
        }

    def completions(self, prefill: str) -> list[Completion]:
        """Returns the answers in order; the tokens of the prompt, read once, count to the first."""
        return [
            Completion(
                text=prefill + _whole_characters("".join(reply.pieces)),
                prefill=prefill,
                prompt_tokens=0 if place else self.prompt_tokens,
                completion_tokens=self._tokens(reply),
                seconds=reply.seconds,
                finish_reason=reply.finish_reason,
                mean_probability=reply.mean_probability,
            )
            for place, (_, reply) in enumerate(sorted(self.replies.items()))
        ]

    def _tokens(self, reply: Reply) -> int:
        if len(self.replies) == 1 and self.completion_tokens:
            return self.completion_tokens
        return len(reply.logprobs) or len(reply.pieces)  # a piece a token, near enough


def _whole_characters(text: str) -> str:
    """The text with the halves of characters joined that came in two pieces.

    A half that stays alone can be written to no file: it becomes the sign for what is unknown.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
