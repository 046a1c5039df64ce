"""What a run writes into a notebook besides cells: the question above, the answer below."""

from __future__ import annotations

import re

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from kernel_sandbox.types import CellResult, FileChange, Stream

__all__ = ["closing_words", "cut_words", "question_words"]

_MOST_FILES = 20
_CODE_OR_DOLLAR = re.compile(r"(?s)(?P<code>```.*?```|`[^`\n]*`)|(?<![\\$])\$(?=\d)")


def question_words(task: Task) -> str:
    """Returns the words above the first cell: the question and what came with it."""
    parts = [f"## {task.question.strip()}"]
    parts += [text for text in (task.constraints, task.answer_format) if text]
    if task.files:
        parts.append("Data: " + ", ".join(f"`{file.name}`" for file in task.files))
    return "\n\n".join(parts)


def closing_words(trajectory: Trajectory) -> str:
    """Returns the words below the last cell: the answer, or why there is none."""
    if trajectory.stop is StopReason.ANSWERED:
        words = f"## Answer\n\n{_plain_dollars(trajectory.answer or '')}"
        if trajectory.unsupported:
            words += f"\n\n> Not found in the outputs: {', '.join(trajectory.unsupported)}"
        return words + _files_of(trajectory)
    detail = f" ({trajectory.stop_detail})" if trajectory.stop_detail else ""
    words = f"## No answer\n\nThe run ended without one: {trajectory.stop}{detail}."
    return words + _files_of(trajectory)


def _plain_dollars(answer: str) -> str:
    """The answer with its amounts of money marked: two of them would be taken for a formula."""
    return _CODE_OR_DOLLAR.sub(lambda found: found["code"] or r"\$", answer)


def cut_words(result: CellResult) -> Stream | None:
    """Returns the last output of a cell of which output was cut; `None` where none was.

    Args:
        result: what became of the cell.
    """
    if not result.cut_bytes:
        return None
    words = f"[{result.cut_bytes:,} bytes of output were cut here. Print a summary instead.]"
    return Stream("stderr", f"{words}\n")


def _files_of(trajectory: Trajectory) -> str:
    """A line with the files that the run has made, changed or removed; empty where it has none."""
    results = [step.result for step in trajectory.steps if step.result is not None]
    found = {change.path: change for result in results for change in result.files}
    named = [_file(change) for change in found.values() if change.state == "written"]
    if len(named) > _MOST_FILES:
        named = [*named[:_MOST_FILES], f"{len(named) - _MOST_FILES} more"]
    return f"\n\nFiles: {', '.join(named)}" if named else ""


def _file(change: FileChange) -> str:
    name = change.path.replace("`", "'").replace("\n", " ")
    about = f" ({', '.join(change.marks)})" if change.marks else ""
    return f"{change.kind} `{name}`{about}"
