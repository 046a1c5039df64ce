"""Ids of the next prompt: those of the last turn, then the ids of the appended text.

Sampled text is never tokenised again. The text of the conversation only decides whether it still
begins with what the model saw and wrote. If so, only the text after that becomes new ids. If the
history was rewritten, the entire prompt is tokenised, and `is_forked` is set.

Rules for the end of a turn:

- All sampled ids stay, whatever their text is.
- A stop string that was sampled is not appended again. The rest of the token in which it ended
  stays, because the model wrote it.
- A turn that the model closed itself gets neither another closing token nor the dialect's ending.

*Not covered*: vocabularies that put a space before each text they read, as SentencePiece may. With
all others, appended text begins with a special token of the template, and ids never merge across
one.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.sampled_tokens import TurnEnd
from dm_jupyter.models.protocols import SampleRequest
from training.tokens.engine import TokenEngine

__all__ = ["TokenPrompt", "appended_text", "build_prompt"]


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """A prompt, as ids and as text."""

    ids: array[int]
    text: str
    """The conversation rendered by the template, then the prefill of the turn."""
    is_forked: bool
    """Whether there was a turn before whose ids it does not continue."""


async def build_prompt(engine: TokenEngine, request: SampleRequest) -> TokenPrompt:
    """Return the prompt of a turn.

    Args:
        engine: Knows the template and the vocabulary.
        request: The conversation, the prefill, and the ids of the turn before.

    Raises:
        PolicyError: The engine's server does not answer.
    """
    text = await engine.text_of_conversation(request.messages) + request.prefill
    before = request.before
    if before is not None:
        appended = appended_text(before.end, text, request.messages)
        if appended is not None:
            new = await engine.ids_of(appended, is_start=False) if appended else array("i")
            return TokenPrompt(before.ids + new, text, is_forked=False)
    ids = await engine.ids_of(text, is_start=True)
    has_turns = any(message.role == "assistant" for message in request.messages)
    return TokenPrompt(ids, text, is_forked=has_turns)


def appended_text(end: TurnEnd, text: str, messages: Sequence[Message]) -> str | None:
    """Return the text after the sampled ids of a turn; `None` if the history was rewritten.

    Args:
        end: The end of that turn.
        text: The conversation since then, rendered by the template.
        messages: The same conversation before rendering.
    """
    turns = [message.content for message in messages if message.role == "assistant"]
    if not turns or not end.begins(text):
        return None
    rest = text[end.chars :]
    ending = _ending_in(rest, turns[-1][end.turn_chars :])
    if ending is None:
        return None
    after = rest[len(ending) :]
    if end.is_closed:
        return after.removeprefix(end.beyond)
    return ending[_said_of(ending, end) :] + after


def _ending_in(rest: str, ending: str) -> str | None:
    """Return the dialect's ending of a turn as the template renders it, or `None`."""
    for shown in (ending, ending.rstrip()):
        if rest.startswith(shown):
            return shown
    return None


def _said_of(ending: str, end: TurnEnd) -> int:
    """Return how much of an ending the sampled ids already contain, in characters."""
    pairs = enumerate(zip(ending, end.beyond, strict=False))
    shorter = min(len(ending), len(end.beyond))
    common = next((place for place, (one, other) in pairs if one != other), shorter)
    is_said = common == len(end.beyond) or common >= max(len(end.stop), 1)
    return common if is_said else 0
