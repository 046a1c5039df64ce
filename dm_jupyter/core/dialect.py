"""A dialect maps model text to actions and back; nobody else parses what a model wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dm_jupyter.core.trajectory import Trajectory, Turn
from kernel_sandbox.types import CellResult

__all__ = ["Dialect", "Message", "Tool", "ToolCall"]


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments."""

    def to_json(self) -> dict[str, Any]:
        """The tool as chat endpoints take it."""
        function = {"name": self.name, "description": self.description}
        return {"type": "function", "function": {**function, "parameters": dict(self.parameters)}}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model made."""

    id: str
    """Ties the call to its result."""
    name: str
    arguments: str
    """JSON, as the model wrote it."""

    def to_json(self) -> dict[str, Any]:
        """The call as chat endpoints take it."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """What an assistant called."""
    call_id: str = ""
    """The call whose result a tool's message holds."""
    pictures: tuple[str, ...] = ()
    """Figures beside a user's words, as `data:` addresses."""

    def to_json(self) -> dict[str, Any]:
        """The message as chat endpoints take it."""
        message: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.pictures:
            shown = [{"type": "image_url", "image_url": {"url": url}} for url in self.pictures]
            message["content"] = [{"type": "text", "text": self.content}, *shown]
        if self.calls:
            message["tool_calls"] = [call.to_json() for call in self.calls]
        if self.call_id:
            message["tool_call_id"] = self.call_id
        return message


class Dialect(Protocol):
    """How one family of models is asked and how its text is read.

    Called by `step` only. An implementation is stateless and pure, and may not assume anything
    about the text it is given: `parse` and `is_well_formed` never raise. Of the help for a model it
    shows what the trajectory holds and `trajectory.assists` allows, and adds none by itself.

    What a model has sampled is shown again as it is, with its `ending` behind it: a trainer learns
    the tokens that were sampled. Where an implementation shows anything else, by design, it is not
    `is_append_only`, and `core.forks.fork_points` names the turns.
    """

    @property
    def name(self) -> str:
        """The name that trajectories record and settings choose by."""
        ...

    @property
    def answers_in_words(self) -> bool:
        """Whether an answer is plain words, without a mark that tells it from a thought.

        The words before a cell that only comes again are then the answer.
        """
        ...

    @property
    def thinks_in_text(self) -> bool:
        """Whether `<think>` is a tag of its own, so that no policy takes it out of the text."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call; empty for a dialect of plain text."""
        ...

    @property
    def is_append_only(self) -> bool:
        """Whether each prompt is the one before, the sampled turn, its `ending`, and new messages.

        Claimed for every run and all help, as long as no turn is folded into a digest.
        """
        ...

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Strings at which sampling of the next turn ends; the sampled text lacks them.

        `prefill` is the opening that is really put before it: none where the model can't go on
        from one.
        """
        ...

    @property
    def prompts(self) -> tuple[str, ...]:
        """Names of the prompts it uses."""
        ...

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """The conversation so far; it ends with the message that the model answers."""
        ...

    def prefill(self, trajectory: Trajectory) -> str:
        """The opening of the model's next turn; empty when it begins on its own."""
        ...

    def parse(self, text: str) -> Turn:
        """What a turn says: one thought and one action."""
        ...

    def ending(self, text: str) -> str:
        """What follows a sampled turn where it is shown again, such as a tag that a stop took."""
        ...

    def render(self, turn: Turn) -> str:
        """The turn as a model writes it to the letter: `parse` gives the same turn again.

        No dialect can hold a void turn, a thought or an answer with blanks around it, or a cell
        that begins or ends with an empty line; each says what else it can't.

        Raises:
            UnrenderableTurnError: the dialect can't hold this turn.
        """
        ...

    def is_well_formed(self, text: str) -> bool:
        """Whether a turn keeps to the dialect's format to the letter."""
        ...

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """The words in which the model learns what its cell did; `text` is already cut to size."""
        ...

    def void_reminder(self, trajectory: Trajectory) -> str:
        """The words in which the model learns that its turn held neither code nor answer."""
        ...

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """The answer, when the dialect takes it from what a cell printed and it is all there."""
        ...
