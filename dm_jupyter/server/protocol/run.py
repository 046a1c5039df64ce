"""What the server says of a run and keeps in its journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dm_jupyter.agent.notebook_context import ContextPart
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


@dataclass(frozen=True, slots=True)
class RunOpened:
    """A run began."""

    kind: ClassVar[str] = "run_opened"
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


@dataclass(frozen=True, slots=True)
class ContextTold:
    """What the model is told beside the question."""

    kind: ClassVar[str] = "context_told"
    run_id: str
    seq: int
    at: float
    parts: tuple[ContextPart, ...]


@dataclass(frozen=True, slots=True)
class StepOpened:
    """The model begins a turn."""

    kind: ClassVar[str] = "step_opened"
    run_id: str
    seq: int
    at: float
    step: int
    """Counts from 1."""


@dataclass(frozen=True, slots=True)
class Operated:
    """The run changes the notebook."""

    kind: ClassVar[str] = "operated"
    run_id: str
    seq: int
    operation: Operation


@dataclass(frozen=True, slots=True)
class CellOpened:
    """The turn's code stands in the notebook; it runs at once, or waits for the person."""

    kind: ClassVar[str] = "cell_opened"
    run_id: str
    seq: int
    at: float
    step: int
    cell_id: str
    thought: str
    language: str
    waits_because: str = ""
    """Why the person is asked; empty when it runs at once."""
    corrected: str = ""
    """What was corrected in the cell, which has failed and runs again; empty at first."""


@dataclass(frozen=True, slots=True)
class CellDecided:
    """The person has decided on a cell that waited."""

    kind: ClassVar[str] = "cell_decided"
    run_id: str
    seq: int
    at: float
    cell_id: str
    decision: Decision
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class FilesWait:
    """A cell has run, and what it did to files of the folder waits for the person's yes."""

    kind: ClassVar[str] = "files_wait"
    run_id: str
    seq: int
    at: float
    step: int
    cell_id: str
    files: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class FilesDecided:
    """The person has decided on the files that waited."""

    kind: ClassVar[str] = "files_decided"
    run_id: str
    seq: int
    at: float
    cell_id: str
    allows: bool


@dataclass(frozen=True, slots=True)
class CellClosed:
    """A cell has ended."""

    kind: ClassVar[str] = "cell_closed"
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


@dataclass(frozen=True, slots=True)
class StepClosed:
    """A turn is over."""

    kind: ClassVar[str] = "step_closed"
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


@dataclass(frozen=True, slots=True)
class RunClosed:
    """The run is over."""

    kind: ClassVar[str] = "run_closed"
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


@dataclass(frozen=True, slots=True)
class RunUndone:
    """The run's cells are out of the notebook again."""

    kind: ClassVar[str] = "run_undone"
    run_id: str
    seq: int
    at: float


RunMessage = (
    RunOpened | ContextTold | StepOpened | Operated | CellOpened | CellDecided | FilesWait
    | FilesDecided | CellClosed | StepClosed | RunClosed | RunUndone
)  # fmt: skip
