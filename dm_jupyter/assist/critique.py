"""What speaks against a cell that worked: once in a run, it is sent back with the reason."""

from __future__ import annotations

from dm_jupyter.assist.answer_format import misfits
from dm_jupyter.assist.dropped_rows import dropped_rows
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.trajectory import RunCell, Trajectory

__all__ = ["PROMPTS", "critique_of"]

PROMPTS = ("objection_dropna", "objection_apart", "objection_misfit")
"""Names of the prompts it uses."""


def critique_of(trajectory: Trajectory, cell: RunCell, answer: str | None) -> tuple[Finding, ...]:
    """Returns why the cell should be written again, or nothing.

    Args:
        trajectory: the run before the cell.
        cell: a cell that ran without an error.
        answer: the closed-form answer that it printed, if it did.
    """
    task, assists = trajectory.task, trajectory.assists
    if assists.dropped_rows and cell.language == "python":
        asked = f"{task.question}\n{task.constraints}"
        dropped = dropped_rows(cell.source, trajectory.brief.incomplete, asked)
        if dropped is not None:
            return (dropped,)
    if not assists.answer_form:
        return ()
    return tuple(
        Finding(
            "answer_form",
            f"@{misfit.tag}[{misfit.value}]",
            "certain",
            prompts.fill("objection_misfit", **misfit._asdict()),
        )
        for misfit in misfits(task.answer_format, dict(find_answers(answer or "")))
    )
