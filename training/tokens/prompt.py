"""The ids of the next prompt: those of the last turn, and the ids of what is appended to it.

What was sampled is never read by a tokenizer again. The text of the conversation only decides
whether it still begins with what the model saw and said. Where it does, the new text after that
place becomes new ids; where the history was rewritten, the whole prompt does, and says so.

Rules for the place where a turn ends:

- Sampled ids stay, to the last one, whatever their text is.
- A stop string that was sampled is not appended again. The rest of the token in which it ended
  stays: the model wrote it.
- A turn that the model closed itself gets neither another mark nor the dialect's ending.

*Not covered*: vocabularies that put a space before each text they read, as SentencePiece may. What
is appended begins with a mark of the template in all others, and ids never merge across a mark.
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
    """The conversation through the template, then the opening of the turn."""
    is_forked: bool
    """Whether it does not continue the ids of the turn before, though there was one."""


async def build_prompt(engine: TokenEngine, request: SampleRequest) -> TokenPrompt:
    """Return the prompt of a turn.

    Args:
        engine: Knows the template and the vocabulary.
        request: The conversation, the opening, and the ids of the turn before.

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
    """Return what follows the sampled ids of a turn; `None` where the history was rewritten.

    Args:
        end: Where the turn ended.
        text: The conversation that follows, through the template.
        messages: The same before the template.
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
    """What the dialect appended to a turn, as the template shows it."""
    for shown in (ending, ending.rstrip()):
        if rest.startswith(shown):
            return shown
    return None


def _said_of(ending: str, end: TurnEnd) -> int:
    """How much of an ending the sampled ids say already, in characters."""
    pairs = enumerate(zip(ending, end.beyond, strict=False))
    shorter = min(len(ending), len(end.beyond))
    common = next((place for place, (one, other) in pairs if one != other), shorter)
    is_said = common == len(end.beyond) or common >= max(len(end.stop), 1)
    return common if is_said else 0
