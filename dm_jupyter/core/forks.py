"""Where the conversation of a run is not the one before with more behind it.

A trainer that keeps the tokens that were sampled makes one row of a run whose prompts only grow.
A dialect that forgets turns, a digest of the first turns, or a chat template that rewrites history
ends such a row: the next turn forks, and begins a row of its own.

Not covered: figures, which are shown with the last message alone (`RunSettings.shows_pictures`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.trajectory import Trajectory

__all__ = ["RenderPrompt", "fork_points", "plain_prompt"]

RenderPrompt = Callable[[Sequence[Message]], str]
"""A chat template: the prompt of a conversation, up to where the model's turn begins."""


def plain_prompt(messages: Sequence[Message]) -> str:
    """Returns the prompt by a template that changes nothing: what forks in it does in any."""
    shown = [f"<|{one.role}|>{one.content}{_calls(one)}<|end|>\n" for one in messages]
    return "".join([*shown, "<|assistant|>"])


def fork_points(trajectory: Trajectory, render: RenderPrompt = plain_prompt) -> tuple[int, ...]:
    """Returns the turns, from 1 on, whose prompt is not the one before with more behind it.

    Where none is there, each prompt is the one before, the sampled turn, its ending and new
    messages, as text. Turn 0 never is one.

    Args:
        trajectory: the run.
        render: the chat template.

    Raises:
        UsageError: there is no dialect of the trajectory's name.
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
