"""What the server says of a run and keeps in its journal."""

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
    """A run began."""

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
    """How often the question is tried."""
    variables: tuple[str, ...] = ()
    """Names of DataFrames in the kernel that the question is about."""
    endpoint: str = ""
    """Where the model answers, as it may be shown; empty for this machine."""


class ContextTold(Tagged, frozen=True):
    """What the model is told beside the question."""

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
    """The turn's code stands in the notebook; it runs at once, or waits for the person."""

    run_id: str
    seq: int
    at: float
    step: int
    cell_id: str
    thought: str
    language: str
    waits_because: str = ""
    """Why the person is asked; empty when it runs at once."""


class CellDecided(Tagged, frozen=True):
    """The person has decided on a cell that waited."""

    run_id: str
    seq: int
    at: float
    cell_id: str
    decision: Decision
    is_edited: bool = False


class FilesWait(Tagged, frozen=True):
    """A cell has run, and what it did to files of the folder waits for the person's yes."""

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
    """Which limit it met, and what to do."""
    state_lost: bool
    """Whether the kernel's variables are gone."""
    files: tuple[FileChange, ...] = ()
    """What the cell did to files of the notebook's folder."""
    cut_bytes: int = 0
    """Bytes of its output that were not kept."""
    facts: tuple[str, ...] = ()
    """What it did to the data, in words, where that is more than a filter that kept rows."""


class StepClosed(Tagged, frozen=True):
    """A turn is over."""

    run_id: str
    seq: int
    at: float
    step: int
    action: Literal["cell", "answer", "void"]
    thought: str
    tokens: int
    """Sampled in this turn."""
    seconds: float
    """Spent sampling in this turn."""
    reasoning: str = ""
    """What the model thought beside the turn, cut to size; no part of the notebook."""


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
    """Sampled for the run, its tries included."""
    seconds: float
    agreeing: int = 0
    """Tries that say what the answer says; 0 where there was one try, or no answer."""
    tries: int = 0
    """That ran behind the scenes; 0 where there was none."""
    others: tuple[str, ...] = ()
    """What the tries said that said something else, shortened."""
    rests_on: str = ""
    """A sentence that says which data the answer rests on that are not there; empty for none."""
    numbers: tuple[AnswerNumber, ...] = ()
    """The numbers of a free answer, with the cells that they come from."""
    shown: str | None = None
    """The answer as people read it; `None` where that is as the model stated it."""
    ending: tuple[str, ...] = ()
    """What a person reads below the answer of a cleaning or a chart, a sentence each."""


class RunUndone(Tagged, frozen=True):
    """The run's cells are out of the notebook again."""

    run_id: str
    seq: int
    at: float


RunMessage = (
    RunOpened | ContextTold | StepOpened | Operated | CellOpened | CellDecided | FilesWait
    | FilesDecided | CellClosed | StepClosed | RunClosed | RunUndone
)  # fmt: skip
