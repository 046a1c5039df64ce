"""The `Dialect` protocol, which maps model text to actions and back. Only dialects parse it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dm_jupyter.core.chat_marks import with_broken_marks
from dm_jupyter.core.trajectory import Trajectory, Turn
from kernel_sandbox.types import CellResult

__all__ = ["Dialect", "Message", "Tool", "ToolCall"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments."""

    def to_json(self) -> dict[str, Any]:
        """Return the tool in the form that chat endpoints accept."""
        function = {"name": self.name, "description": self.description}
        return {"type": "function", "function": {**function, "parameters": dict(self.parameters)}}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model made."""

    id: str
    """The identifier that links the call to its result."""
    name: str
    arguments: str
    """JSON, as the model wrote it."""

    def to_json(self) -> dict[str, Any]:
        """Return the call in the form that chat endpoints accept."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """The calls of an assistant message."""
    call_id: str = ""
    """The call whose result a tool message contains."""
    pictures: tuple[str, ...] = ()
    """Figures beside a user's words, as `data:` addresses."""

    def to_json(self) -> dict[str, Any]:
        """Return the message in the form that chat endpoints accept.

        Marks of chat templates that it quotes are broken, except in the model's own turns.
        """
        is_own = self.role == "assistant"
        text = self.content if is_own else with_broken_marks(self.content)
        message: dict[str, Any] = {"role": self.role, "content": text}
        if self.pictures:
            shown = [{"type": "image_url", "image_url": {"url": url}} for url in self.pictures]
            message["content"] = [{"type": "text", "text": text}, *shown]
        if self.calls:
            message["tool_calls"] = [call.to_json() for call in self.calls]
        if self.call_id:
            message["tool_call_id"] = self.call_id
        return message


class Dialect(Protocol):
    """How one family of models is prompted and how its text is parsed.

    Only `step` calls it. An implementation is stateless and pure, and may not assume anything
    about the text it is given: `parse` and `is_well_formed` never raise. It shows the help that
    the trajectory contains and `trajectory.assists` allows, and adds none of its own.

    A sampled turn is shown again unchanged, followed by its `ending`, because a trainer learns the
    tokens that were sampled. An implementation that shows anything else by design is not
    `is_append_only`, and `core.forks.fork_points` returns the turns.
    """

    @property
    def name(self) -> str:
        """The name that trajectories record and that settings select by."""
        ...

    @property
    def answers_in_words(self) -> bool:
        """Whether an answer is plain words, without a mark that separates it from a thought.

        If the model repeats its last cell, the words before that cell are then the answer.
        """
        ...

    @property
    def thinks_in_text(self) -> bool:
        """Whether `<think>` is a tag of the dialect, so that no policy removes it from the text."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model may call; empty for a plain-text dialect."""
        ...

    @property
    def is_append_only(self) -> bool:
        """Whether each prompt is the previous one, the sampled turn, its `ending`, new messages.

        This must be true for every run and all help, as long as no turn is folded into a digest.
        """
        ...

    def stop(self, trajectory: Trajectory, prefill: str) -> tuple[str, ...]:
        """Return the strings that end sampling of the next turn; the sampled text lacks them.

        Args:
            trajectory: the run so far.
            prefill: the opening that is really used; empty if the model can't continue from one.
        """
        ...

    @property
    def prompts(self) -> tuple[str, ...]:
        """Names of the prompts that the dialect uses."""
        ...

    def messages(self, trajectory: Trajectory) -> tuple[Message, ...]:
        """Return the conversation so far; its last message is the one that the model answers."""
        ...

    def prefill(self, trajectory: Trajectory) -> str:
        """Return the opening of the model's next turn; empty if the model begins it."""
        ...

    def parse(self, text: str) -> Turn:
        """Return the turn in a text: one thought and one action."""
        ...

    def ending(self, text: str) -> str:
        """Return what to append to a sampled turn, such as a closing tag that a stop removed."""
        ...

    def render(self, turn: Turn) -> str:
        """Return the turn exactly as a model writes it: `parse` returns the same turn.

        No dialect can express a void turn, or a thought or an answer with blanks around it. Nor can
        it express a cell that begins or ends with an empty line. Each implementation documents its
        other limits.

        Raises:
            UnrenderableTurnError: the dialect can't express this turn.
        """
        ...

    def is_well_formed(self, text: str) -> bool:
        """Whether a turn follows the dialect's format exactly."""
        ...

    def observation(self, trajectory: Trajectory, result: CellResult, text: str) -> str:
        """Return the message about what the cell did; `text` is its output, already shortened."""
        ...

    def void_reminder(self, trajectory: Trajectory) -> str:
        """Return the message for a turn that contained neither code nor answer."""
        ...

    def printed_answer(self, trajectory: Trajectory, result: CellResult) -> str | None:
        """Return the answer that a cell printed, if the dialect reads it there and it is complete.

        Otherwise return `None`.
        """
        ...
