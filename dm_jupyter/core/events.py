"""Events that a run emits to its observers, such as a terminal, a side panel or a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dm_jupyter.core.trajectory import RunCell, Step, Trajectory
from kernel_sandbox.types import CellResult

__all__ = [
    "CellFinished",
    "CellStarted",
    "Emit",
    "Event",
    "ModelSilent",
    "RunFinished",
    "RunStarted",
    "StepFinished",
    "TextSampled",
]


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run began; the trajectory has no step yet."""

    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class TextSampled:
    """The model produced a piece of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelSilent:
    """The model was asked and has not said anything yet."""

    model: str
    seconds: int
    """Seconds since it was asked."""
    before: int = 0
    """Questions that it answers before this one, all waiting for the same machine."""

    @property
    def words(self) -> str:
        """The message for the person who waits."""
        if self.before:
            questions = "1 question" if self.before == 1 else f"{self.before} questions"
            return f"waiting for {self.model}: {questions} before yours"
        if not self.seconds:
            return f"{self.model} is reading the question"
        return f"still waiting for {self.model} (no reply for {self.seconds} s)"


@dataclass(frozen=True, slots=True)
class CellStarted:
    """A cell is about to run."""

    thought: str
    cell: RunCell


@dataclass(frozen=True, slots=True)
class CellFinished:
    """A cell ended, one way or another."""

    cell: RunCell
    result: CellResult


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A turn is over; it is the trajectory's last step."""

    step: Step
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The run is over; `trajectory.stop` says why."""

    trajectory: Trajectory
    fault: Exception | None = None
    """The error, if the stop reason is a fault."""


Event = (
    RunStarted | TextSampled | ModelSilent | CellStarted | CellFinished | StepFinished | RunFinished
)
Emit = Callable[[Event], None]
"""A callback in the loop's own task, which must neither block nor raise."""
