"""The messages from the server about a run, which its journal keeps."""

from __future__ import annotations

from typing import Literal

from dm_jupyter.agent.notebook_context import ContextPart
from dm_jupyter.core.codec import Tagged
from dm_jupyter.core.grounded import AnswerNumber
from dm_jupyter.server.protocol.operations import Operation
from dm_jupyter.server.protocol.panel import Approval, Decision, KernelChoice
from kernel_sandbox.types import FileChange

__all__ = [
    "CellClosed",
    "CellDecided",
    "CellOpened",
    "ContextTold",
    "FilesDecided",
    "FilesWait",
    "Operated",
    "RunClosed",
    "RunMessage",
    "RunOpened",
    "RunUndone",
    "StepClosed",
    "StepOpened",
]


class RunOpened(Tagged, frozen=True):
    """A run has started."""

    run_id: str
    seq: int
    at: float
    """Seconds since 1970."""
    request_id: str
    notebook_path: str
    question: str
    files: tuple[str, ...]
    model: str
    approval: Approval
    kernel: KernelChoice
    max_turns: int
    max_tokens: int
    max_seconds: float
    max_cells: int
    tries: int = 1
    """Number of attempts."""
    variables: tuple[str, ...] = ()
    """Names of DataFrames in the kernel that the question is about."""
    endpoint: str = ""
    """Address of the model, safe to show; empty for this machine."""


class ContextTold(Tagged, frozen=True):
    """The context that the model is shown besides the question."""

    run_id: str
    seq: int
    at: float
    parts: tuple[ContextPart, ...]


class StepOpened(Tagged, frozen=True):
    """The model begins a turn."""

    run_id: str
    seq: int
    at: float
    step: int
    """Counts from 1."""


class Operated(Tagged, frozen=True):
    """The run changes the notebook."""

    run_id: str
    seq: int
    operation: Operation


class CellOpened(Tagged, frozen=True):
    """The turn's code is in the notebook; it runs at once, or waits for the person."""

    run_id: str
    seq: int
    at: float
    step: int
    cell_id: str
    thought: str
    language: str
    waits_because: str = ""
    """Why the person is asked; empty if it runs at once."""


class CellDecided(Tagged, frozen=True):
    """The person has decided on a cell that waited."""

    run_id: str
    seq: int
    at: float
    cell_id: str
    decision: Decision
    is_edited: bool = False


class FilesWait(Tagged, frozen=True):
    """A cell has run, and its changes of files in the folder wait for the person's approval."""

    run_id: str
    seq: int
    at: float
    step: int
    cell_id: str
    files: tuple[FileChange, ...]


class FilesDecided(Tagged, frozen=True):
    """The person has decided on the files that waited."""

    run_id: str
    seq: int
    at: float
    cell_id: str
    allows: bool


class CellClosed(Tagged, frozen=True):
    """A cell has ended."""

    run_id: str
    seq: int
    at: float
    step: int
    cell_id: str
    status: str
    """A `CellStatus`, or `skipped`."""
    seconds: float
    peak_bytes: int | None
    message: str
    """The limit that it met, and what to do."""
    state_lost: bool
    """Whether the kernel's variables are gone."""
    files: tuple[FileChange, ...] = ()
    """The cell's changes of files in the notebook's folder."""
    cut_bytes: int = 0
    """Bytes of its output that were not kept."""
    facts: tuple[str, ...] = ()
    """The cell's effects on the data, in words, if they are more than a filter that kept rows."""


class StepClosed(Tagged, frozen=True):
    """A turn is over."""

    run_id: str
    seq: int
    at: float
    step: int
    action: Literal["cell", "answer", "void"]
    thought: str
    tokens: int
    """Tokens sampled in this turn."""
    seconds: float
    """Time spent sampling in this turn."""
    reasoning: str = ""
    """The model's reasoning outside of the turn, shortened; not part of the notebook."""


class RunClosed(Tagged, frozen=True):
    """The run is over."""

    run_id: str
    seq: int
    at: float
    stop: str
    """A `StopReason`."""
    detail: str
    answer: str | None
    unsupported: tuple[str, ...]
    turns: int
    cells: int
    tokens: int
    """Tokens sampled for the run, including its attempts."""
    seconds: float
    agreeing: int = 0
    """Attempts that agree with the answer; 0 if there was one attempt, or no answer."""
    tries: int = 0
    """Attempts that ran in fresh kernels; 0 if there were none."""
    others: tuple[str, ...] = ()
    """Answers of the attempts that disagree, shortened."""
    rests_on: str = ""
    """A sentence on the absent data that the answer rests on; empty if there are none."""
    numbers: tuple[AnswerNumber, ...] = ()
    """The numbers of a free answer, with the cells that they come from."""
    shown: str | None = None
    """The answer as people read it; `None` if that is what the model stated."""
    ending: tuple[str, ...] = ()
    """Sentences below the answer of a cleaning or a chart."""


class RunUndone(Tagged, frozen=True):
    """The run's cells were removed from the notebook."""

    run_id: str
    seq: int
    at: float


RunMessage = (
    RunOpened | ContextTold | StepOpened | Operated | CellOpened | CellDecided | FilesWait
    | FilesDecided | CellClosed | StepClosed | RunClosed | RunUndone
)  # fmt: skip
