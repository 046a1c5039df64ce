"""What speaks against a cell that worked, or an answer that lacks its chart, file or sections.

Once in a run each, it is sent back with the reason.
"""

from __future__ import annotations

import re

from dm_jupyter.assist.answer_format import misfits
from dm_jupyter.assist.dropped_rows import dropped_rows
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.trajectory import RunCell, Trajectory

__all__ = ["PROMPTS", "critique_of", "has_sections", "unfinished"]

_HEADING = re.compile(r"(?m)^(?:#{1,6}\s+\S|\*\*[^*\n]+\*\*:?\s*$)")

PROMPTS = (
    "objection_dropna",
    "objection_apart",
    "objection_misfit",
    "objection_no_figure",
    "objection_no_file",
    "objection_no_sections",
)
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


def unfinished(
    trajectory: Trajectory, answer: str, *, has_figure: bool, has_file: bool
) -> Finding | None:
    """Returns what an answer lacks of what was asked for; `None` for nothing, or told before.

    Args:
        trajectory: the run before the answer.
        answer: what the model states.
        has_figure: whether a cell has drawn one.
        has_file: whether a cell has saved one.
    """
    told = (finding.rule for step in trajectory.steps for finding in step.findings)
    match trajectory.kind:
        case "plot" if not has_figure and "ending" not in told:
            lacks, reason = "no figure was drawn", "objection_no_figure"
        case "clean" if not has_file and "ending" not in told:
            lacks, reason = "no file was saved", "objection_no_file"
        case "report" if not has_sections(answer) and "ending" not in told:
            lacks, reason = "the report has no sections", "objection_no_sections"
        case _:
            return None
    return Finding("ending", lacks, "certain", prompts.text_of(reason))


def has_sections(answer: str) -> bool:
    """Whether an answer is parted by headings, as a report is."""
    return len(_HEADING.findall(answer)) > 1
