"""What the dialects share: a task in words, a run as alternating messages, code out of fences."""

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


def system_text(name: str, trajectory: Trajectory) -> str:
    """Returns the system prompt of that name; where the data has databases, with a word on SQL.

    Args:
        name: of the prompt; `NAME_sql` is the word on SQL.
        trajectory: the run.
    """
    text = prompts.text_of(name)
    return (
        f"{text}\n\n{prompts.text_of(f'{name}_sql')}" if trajectory.data_context.databases else text
    )


def alternating(
    dialect: Dialect, system: str, task: str, trajectory: Trajectory
) -> tuple[Message, ...]:
    """Returns the conversation: system, task, then each turn as sampled and its observation.

    Args:
        dialect: says what follows a turn.
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
    """Returns the cell that code is, without the fence around it; a `sql` fence makes a query."""
    match = _FENCED.match(code)
    if match is None:
        return RunCell(code.strip("\n"))
    language = "sql" if match["language"].lower() == "sql" else "python"
    return RunCell(match["body"].strip("\n"), language)


def in_fence(cell: RunCell) -> str:
    """Returns a cell in a fence of its language, as `unfenced` reads it."""
    return f"```{cell.language}\n{cell.source}\n```"


def block_end(text: str, start: int) -> int:
    """Returns where the fenced block ends that begins at `start`; its closing fence included.

    A fence closes at the start or the end of a line, so that a cell may hold one inside a line;
    where there is none such, anywhere; an open block ends with the text.
    """
    if closing := _CLOSING.search(text, start + 3):
        return closing.end()
    end = text.find("```", start + 3)
    return len(text) if end < 0 else end + 3


def rendered(dialect: Dialect, turn: Turn, text: str) -> str:
    """Returns the text of a turn, once it is sure that the dialect reads the same turn in it.

    Args:
        dialect: whose text it is.
        turn: what it has to say.
        text: as the dialect would write it.

    Raises:
        UnrenderableTurnError: it reads another turn, or the text is not in its format.
    """
    if isinstance(turn.action, Void):
        raise UnrenderableTurnError(f"{dialect.name} has no form for a turn that does nothing")
    if dialect.parse(text) == turn and dialect.is_well_formed(text):
        return text
    what = type(turn.action).__name__
    raise UnrenderableTurnError(
        f"{dialect.name} can't write this turn ({what}) so that it reads the same turn again: "
        "what it says holds a mark of the dialect, or blanks around it"
    )
