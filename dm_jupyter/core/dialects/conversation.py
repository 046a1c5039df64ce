"""What the dialects share: a task in words, a run as alternating messages, code out of fences."""

from __future__ import annotations

import re
from collections.abc import Callable

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.trajectory import Trajectory

__all__ = ["alternating", "task_text", "unfenced"]

_FENCED = re.compile(r"\A\s*```[ \t]*\w*[ \t]*\n?(.*?)(?:\n?```\s*)?\Z", re.DOTALL)


def task_text(trajectory: Trajectory) -> str:
    """Returns the task as the first user message gives it: data, question, constraints, format."""
    task = trajectory.task
    parts = [trajectory.brief.text, prompts.fill("task_question", question=task.question)]
    if task.constraints:
        parts.append(prompts.fill("task_constraints", constraints=task.constraints))
    if task.answer_format:
        parts.append(prompts.fill("task_format", format=task.answer_format))
    return "\n\n".join(part for part in parts if part)


def alternating(
    system: str, trajectory: Trajectory, restored: Callable[[str], str]
) -> tuple[Message, ...]:
    """Returns the whole conversation: system, task, then each turn and its observation.

    Args:
        system: the system prompt's text.
        trajectory: the run so far.
        restored: puts back the stop string that ended a turn.
    """
    messages = [Message("system", system), Message("user", task_text(trajectory))]
    for step in trajectory.steps:
        messages.append(Message("assistant", restored(step.completion.text)))
        messages.append(Message("user", step.observation))
    return tuple(messages)


def unfenced(code: str) -> str:
    """Returns code without the markdown fence that some models put around it."""
    match = _FENCED.match(code)
    return (match.group(1) if match else code).strip("\n")
