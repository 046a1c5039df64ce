"""Parts shared by the dialects: the task in words, alternating messages, and code fences."""

from __future__ import annotations

import re

from dm_jupyter.core import prompts
from dm_jupyter.core.dialect import Dialect, Message
from dm_jupyter.core.errors import UnrenderableTurnError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import RunCell, Trajectory, Turn, Void

__all__ = [
    "alternating",
    "block_end",
    "file_names",
    "in_fence",
    "rendered",
    "so_far",
    "system_text",
    "task_text",
    "unfenced",
]

_FENCED = re.compile(
    r"\A\s*```[ \t]*(?P<language>\w*)[ \t]*\n?(?P<body>.*?)(?:\n?```\s*)?\Z", re.DOTALL
)
_CLOSING = re.compile(r"^[ \t]*```|```[ \t]*$", re.MULTILINE)


def task_text(trajectory: Trajectory) -> str:
    """Return the text of the first user message: data, question, constraints, format."""
    task, assists = trajectory.task, trajectory.assists
    names = file_names(task)
    data = trajectory.data_context.text
    if not assists.profile:
        data = prompts.fill("task_files", files=names) if names else ""
    parts = [data, prompts.fill("task_question", question=task.question)]
    # After the question: the text before it is the same in all questions about the files.
    if assists.links and trajectory.data_context.links:
        parts.append(prompts.fill("task_links", links=trajectory.data_context.links))
    if task.constraints:
        parts.append(prompts.fill("task_constraints", constraints=task.constraints))
    if task.answer_format:
        parts.append(prompts.fill("task_format", format=task.answer_format))
    return "\n\n".join(part for part in parts if part) + so_far(trajectory)


def so_far(trajectory: Trajectory) -> str:
    """Return the digest that follows the task once the first turns are no longer shown."""
    if not trajectory.digest:
        return ""
    return "\n\n" + prompts.fill("task_so_far", digest=trajectory.digest)


def file_names(task: Task) -> str:
    """Return the bare names of the task's files, which the code of an evaluation reads."""
    return ", ".join(file.name for file in task.files)


def system_text(name: str, trajectory: Trajectory) -> str:
    """Return the system prompt of that name, with a note on SQL if the data has databases.

    Args:
        name: the prompt's name; `NAME_sql` is the note on SQL.
        trajectory: the run.
    """
    text = prompts.text_of(name)
    return (
        f"{text}\n\n{prompts.text_of(f'{name}_sql')}" if trajectory.data_context.databases else text
    )


def alternating(
    dialect: Dialect, system: str, task: str, trajectory: Trajectory
) -> tuple[Message, ...]:
    """Return the conversation: system, task, then each turn as sampled and its observation.

    Args:
        dialect: its `ending` follows each turn.
        system: the system prompt's text.
        task: the first user message.
        trajectory: the run so far.
    """
    messages = [Message("system", system), Message("user", task)]
    for step in trajectory.shown_steps:
        text = step.completion.text
        messages.append(Message("assistant", text + dialect.ending(text)))
        messages.append(Message("user", step.observation))
    return tuple(messages)


def unfenced(code: str) -> RunCell:
    """Return the code as a cell, without the fence around it; a `sql` fence makes it a query."""
    match = _FENCED.match(code)
    if match is None:
        return RunCell(code.strip("\n"))
    language = "sql" if match["language"].lower() == "sql" else "python"
    return RunCell(match["body"].strip("\n"), language)


def in_fence(cell: RunCell) -> str:
    """Return a cell in a fence of its language, which `unfenced` reads back."""
    return f"```{cell.language}\n{cell.source}\n```"


def block_end(text: str, start: int) -> int:
    """Return the end of the fenced block that begins at `start`, its closing fence included.

    A closing fence is at the start or the end of a line, so that a cell may contain one inside a
    line. If there is none, the next fence anywhere closes the block. An open block ends with the
    text.
    """
    if closing := _CLOSING.search(text, start + 3):
        return closing.end()
    end = text.find("```", start + 3)
    return len(text) if end < 0 else end + 3


def rendered(dialect: Dialect, turn: Turn, text: str) -> str:
    """Return the text of a turn, after checking that the dialect parses it to the same turn.

    Args:
        dialect: the dialect that wrote the text.
        turn: the turn that the text must express.
        text: the turn as the dialect would write it.

    Raises:
        UnrenderableTurnError: the dialect parses another turn, or the text is not in its format.
    """
    if isinstance(turn.action, Void):
        raise UnrenderableTurnError(f"{dialect.name} has no form for a turn that does nothing")
    if dialect.parse(text) == turn and dialect.is_well_formed(text):
        return text
    what = type(turn.action).__name__
    raise UnrenderableTurnError(
        f"{dialect.name} can't write this turn ({what}) so that it reads the same turn again: "
        "its text contains a mark of the dialect, or has blanks around it"
    )
