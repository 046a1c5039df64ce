"""The text that a run adds to a notebook: the question above its cells, the answer below."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dm_jupyter.core.absent_data import rests_words
from dm_jupyter.core.grounded import doubt_words
from dm_jupyter.core.limits_met import SAME_LIMIT
from dm_jupyter.core.readable import shown_answer
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from kernel_sandbox.types import CellResult, FileChange, Stream

__all__ = ["closing_words", "cut_words", "folded_marks", "question_words", "why_no_answer"]

_MOST_FILES = 20
_CODE_OR_DOLLAR = re.compile(r"(?s)(?P<code>```.*?```|`[^`\n]*`)|(?<![\\$])\$(?=\d)")


def question_words(task: Task) -> str:
    """Return the words above the first cell: the question, its constraints, format and files."""
    parts = [f"## {task.question.strip()}"]
    parts += [text for text in (task.constraints, task.answer_format) if text]
    if task.files:
        parts.append("Data: " + ", ".join(f"`{file.name}`" for file in task.files))
    return "\n\n".join(parts)


def closing_words(trajectory: Trajectory) -> str:
    """Return the words below the last cell: the answer, or why there is none."""
    if trajectory.stop is StopReason.ANSWERED:
        words = f"## Answer\n\n{_plain_dollars(shown_answer(trajectory).text)}"
        if trajectory.ending:
            words += "\n\n" + "\n".join(f"- {line}" for line in trajectory.ending)
        for line in doubt_words(trajectory.unsupported, trajectory.grounding):
            words += f"\n\n> {line}"
        if trajectory.rests_on:
            words += f"\n\n> {rests_words(trajectory.rests_on)}"
        return words + _files_of(trajectory)
    why = why_no_answer(trajectory).rstrip(".")
    words = f"## No answer\n\n{why[:1].upper()}{why[1:]}. {_way_out(trajectory.stop)}"
    return words + _files_of(trajectory)


def _plain_dollars(answer: str) -> str:
    """Return the answer with escaped dollar signs: two amounts would be read as a formula."""
    return _CODE_OR_DOLLAR.sub(lambda found: found["code"] or r"\$", answer)


def cut_words(result: CellResult) -> Stream | None:
    """Return the note on cut output to append to a cell; `None` if nothing was cut.

    Args:
        result: the cell's result.
    """
    if not result.cut_bytes:
        return None
    words = f"[{result.cut_bytes:,} bytes of output were cut here. Print a summary instead.]"
    return Stream("stderr", f"{words}\n")


def folded_marks(cell_type: str, kept: object) -> dict[str, Any]:
    """Return the metadata by which Jupyter shows a cell folded.

    Args:
        cell_type: the type of the cell.
        kept: the value of `jupyter` in its metadata, whose other keys stay.
    """
    others = dict(kept) if isinstance(kept, Mapping) else {}
    if cell_type != "code":
        return {"jupyter": {**others, "source_hidden": True}}
    # For outputs, JupyterLab reads `collapsed`, others read `outputs_hidden`.
    hidden = {"source_hidden": True, "outputs_hidden": True}
    return {"jupyter": {**others, **hidden}, "collapsed": True}


def why_no_answer(trajectory: Trajectory) -> str:
    """Return why an ended run has no answer, as a clause; "" if it has one."""
    detail = trajectory.stop_detail
    match trajectory.stop:
        case StopReason.ANSWERED:
            return ""
        case StopReason.FAULT:
            return detail or "an unexpected error occurred"
        case StopReason.CANCELLED:
            return f"the run was stopped: {detail}" if detail else "the run was stopped"
        case StopReason.VOID:
            return detail or "the model wrote neither code nor an answer"
    if detail.startswith(SAME_LIMIT):
        return detail
    return f"the run reached its limit of {detail or 'turns'}"


def _way_out(stop: StopReason | None) -> str:
    """Return what the person can do next."""
    match stop:
        case StopReason.TURN_LIMIT | StopReason.BUDGET:
            return "Ask for the next part, or ask a narrower question."
        case StopReason.VOID:
            return "Ask again in other words, or choose another model."
    return "Ask again; the cells that ran stay."


def _files_of(trajectory: Trajectory) -> str:
    """Return a line with the files that the run created, changed or removed; "" if none."""
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
