"""Kinds of failure: every run that is not right has exactly one."""

from __future__ import annotations

from enum import StrEnum

from dm_jupyter.core.closed_form import answer_names, find_answers
from dm_jupyter.core.trajectory import StopReason, Trajectory, Void
from kernel_sandbox.types import CellStatus

__all__ = ["Failure", "failure_of", "self_corrected_in"]


class Failure(StrEnum):
    """Why a run is not right."""

    FORMAT = "format"
    """It answered, but not in the requested form, or in one that the strict rules reject."""
    WRONG = "wrong value"
    """It answered in the requested form, but with another value than expected."""
    CODE = "code error not mended"
    """It ended without an answer, and its last cell raised."""
    TURNS = "turn limit"
    """It ended without an answer at a limit of turns, cells, tokens, seconds or context, and
    nothing else was wrong."""
    VOID = "void"
    """Its last turn contained neither code nor an answer."""
    TIMEOUT = "timeout"
    """It ended without an answer, and its last cell ran too long."""
    MEMORY = "memory"
    """It ended without an answer, and its last cell needed too much memory."""
    KILLED = "killed"
    """It ended without an answer, and its last cell ended the process or was refused."""
    FAULT = "fault"
    """The data could not be read, or the answers of several candidates could not be compared."""
    UNSCORED = "unscored"
    """The judge gave no verdict, or the suite's score took too long or ended its process."""


_BY_STATUS = {
    CellStatus.ERROR: Failure.CODE,
    CellStatus.TIMEOUT: Failure.TIMEOUT,
    CellStatus.MEMORY: Failure.MEMORY,
    CellStatus.KILLED: Failure.KILLED,
    CellStatus.DENIED: Failure.KILLED,
    CellStatus.INTERRUPTED: Failure.TIMEOUT,
}


def failure_of(trajectory: Trajectory, *, is_right_by_ours: bool = False) -> Failure:
    """Return the failure of a run whose answer is missing or not right by the strict rules.

    Args:
        trajectory: of the run.
        is_right_by_ours: whether our rules, which ignore the form, accept the answer.
    """
    if trajectory.stop is StopReason.ANSWERED:
        is_formal = is_right_by_ours or not _is_in_form(trajectory)
        return Failure.FORMAT if is_formal else Failure.WRONG
    if trajectory.stop is StopReason.FAULT:
        return Failure.FAULT
    last = trajectory.steps[-1] if trajectory.steps else None
    if last is None or last.result is None:
        is_void = last is not None and isinstance(last.turn.action, Void)
        return Failure.VOID if is_void else Failure.TURNS
    return _BY_STATUS.get(last.result.status, Failure.TURNS)


def self_corrected_in(trajectory: Trajectory) -> bool | None:
    """Return whether a run with an error in a cell ended with one that ran.

    `None` if no cell raised. The share of `True` among the others is the success rate of
    self-debugging.
    """
    results = [step.result for step in trajectory.steps if step.result is not None]
    if all(result.status is not CellStatus.ERROR for result in results):
        return None
    return results[-1].ok


def _is_in_form(trajectory: Trajectory) -> bool:
    """Return whether the answer has every name of the form; a free answer always does."""
    said = {name for name, _ in find_answers(trajectory.answer or "")}
    return all(name in said for name in answer_names(trajectory.task.answer_format))
