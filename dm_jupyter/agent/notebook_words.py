"""What a run writes into a notebook besides cells: the question above, the answer below."""

from __future__ import annotations

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory

__all__ = ["closing_words", "question_words"]


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
        words = f"## Answer\n\n{trajectory.answer}"
        if trajectory.unsupported:
            words += f"\n\n> Not found in the outputs: {', '.join(trajectory.unsupported)}"
        return words
    detail = f" ({trajectory.stop_detail})" if trajectory.stop_detail else ""
    return f"## No answer\n\nThe run ended without one: {trajectory.stop}{detail}."
