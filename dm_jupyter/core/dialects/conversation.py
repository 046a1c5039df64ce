"""What the dialects share: a task in words, a run as alternating messages, code out of fences."""

from __future__ import annotations

import re
from collections.abc import Callable

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory

__all__ = ["alternating", "file_names", "so_far", "task_text", "unfenced"]

_FENCED = re.compile(r"\A\s*```[ \t]*\w*[ \t]*\n?(.*?)(?:\n?```\s*)?\Z", re.DOTALL)


def task_text(trajectory: Trajectory) -> str:
    """Returns the task as the first user message gives it: data, question, constraints, format."""
    task, assists = trajectory.task, trajectory.assists
    names = file_names(task)
    data = trajectory.data_context.text
    if not assists.profile:
        data = prompts.fill("task_files", files=names) if names else ""
    parts = [data, prompts.fill("task_question", question=task.question)]
    # Behind the question: what comes before it is alike in all questions about the files.
    if assists.links and trajectory.data_context.links:
        parts.append(prompts.fill("task_links", links=trajectory.data_context.links))
    if task.constraints:
        parts.append(prompts.fill("task_constraints", constraints=task.constraints))
    if task.answer_format:
        parts.append(prompts.fill("task_format", format=task.answer_format))
    return "\n\n".join(part for part in parts if part) + so_far(trajectory)


def so_far(trajectory: Trajectory) -> str:
    """Returns what follows the task where the model is not shown its first turns any more."""
    if not trajectory.digest:
        return ""
    return "\n\n" + prompts.fill("task_so_far", digest=trajectory.digest)


def file_names(task: Task) -> str:
    """Returns the bare names of the task's files, by which the code of an evaluation reads them."""
    return ", ".join(file.name for file in task.files)


def alternating(
    system: str, task: str, trajectory: Trajectory, restored: Callable[[str], str]
) -> tuple[Message, ...]:
    """Returns the conversation: system, task, then each turn shown and its observation.

    Args:
        system: the system prompt's text.
        task: the first user message.
        trajectory: the run so far.
        restored: puts back the stop string that ended a turn.
    """
    messages = [Message("system", system), Message("user", task)]
    for step in trajectory.shown_steps:
        messages.append(Message("assistant", restored(step.completion.text)))
        messages.append(Message("user", step.observation))
    return tuple(messages)


def unfenced(code: str) -> str:
    """Returns code without the markdown fence that some models put around it."""
    match = _FENCED.match(code)
    return (match.group(1) if match else code).strip("\n")
