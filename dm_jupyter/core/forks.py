"""Turns of a run whose prompt does not extend the previous conversation.

A trainer that keeps the sampled tokens builds one row from a run whose prompts only grow. Three
things end such a row: a dialect that forgets turns, a digest of the first turns, and a chat
template that rewrites history. The next turn then forks and begins a row of its own.

Not covered: figures, which are shown with the last message only (`RunSettings.shows_pictures`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.trajectory import Trajectory

__all__ = ["RenderPrompt", "fork_points", "plain_prompt"]

RenderPrompt = Callable[[Sequence[Message]], str]
"""A chat template, which returns a conversation's prompt up to where the model's turn begins."""


def plain_prompt(messages: Sequence[Message]) -> str:
    """Return the prompt by a template that changes nothing; a fork in it is a fork in any."""
    shown = [f"<|{one.role}|>{one.content}{_calls(one)}<|end|>\n" for one in messages]
    return "".join([*shown, "<|assistant|>"])


def fork_points(trajectory: Trajectory, render: RenderPrompt = plain_prompt) -> tuple[int, ...]:
    """Return the turns, counted from 1, whose prompt does not extend the one before.

    If there are none, each prompt is the one before, the sampled turn, its ending and new
    messages, as text. Turn 0 is never a fork.

    Args:
        trajectory: the run.
        render: the chat template.

    Raises:
        UsageError: the trajectory's dialect does not exist.
    """
    dialect = dialect_named(trajectory.dialect)
    prompts = [render(dialect.messages(trajectory.before(at))) for at in range(trajectory.turns)]
    forks = []
    for at, step in enumerate(trajectory.steps[:-1]):
        text = step.completion.text
        if not prompts[at + 1].startswith(prompts[at] + text + dialect.ending(text)):
            forks.append(at + 1)
    return tuple(forks)


def _calls(message: Message) -> str:
    return "".join(f"{call.name}{call.arguments}" for call in message.calls)
