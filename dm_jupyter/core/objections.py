"""What stands against a cell that worked: once in a run, it is sent back with the reason."""

from __future__ import annotations

from dm_jupyter.core import prompts
from dm_jupyter.core.answer_format import misfits
from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.dropped_rows import needless_columns
from dm_jupyter.core.trajectory import RunCell, Trajectory

__all__ = ["PROMPTS", "objection_to"]

PROMPTS = ("objection_dropna", "objection_misfit")
"""Names of the prompts it uses."""


def objection_to(trajectory: Trajectory, cell: RunCell, answer: str | None) -> str:
    """Returns why the cell should be written again, or nothing.

    Args:
        trajectory: the run before the cell.
        cell: a cell that ran without an error.
        answer: the closed-form answer that it printed, if it did.
    """
    task = trajectory.task
    if cell.language == "python":
        asked = f"{task.question}\n{task.constraints}"
        columns = needless_columns(cell.source, trajectory.brief.incomplete, asked)
        if columns:
            return prompts.fill("objection_dropna", columns=", ".join(map(repr, columns)))
    return " ".join(
        prompts.fill("objection_misfit", **misfit._asdict())
        for misfit in misfits(task.answer_format, dict(find_answers(answer or "")))
    )
