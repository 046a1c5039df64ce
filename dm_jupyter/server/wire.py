"""What the server and the side panel say to each other over the one WebSocket.

TypeScript's types are generated from this file (`python -m dm_jupyter.server.typescript`).

Messages of a run carry `run_id` and `seq`, which counts from 1 within the run. They are kept in
the run's journal and sent again to whoever missed them: the panel's picture of a run is what they
add up to. `seq` 0 marks a passing message (pieces of text, meters), which nobody keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dm_jupyter.server.operations import Operation, operation_from_json, operation_to_json

__all__ = ["ClientMessage", "ServerMessage", "client_message", "message_from_json", "to_json"]

Approval = Literal["ask", "risky", "auto"]
"""Which cells wait for the person: all of them, those that the screen marks, none."""
Decision = Literal["approve", "skip"]
KernelChoice = Literal["restricted", "own"]
MOST_TRIES = 9
"""Of one question; more cost a lot and change a vote seldom."""


# --- from the panel --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attach:
    """This tab has the notebook open; sent for each notebook, and again after a reconnection."""

    kind: ClassVar[str] = "attach"
    notebook_path: str
    client_id: str
    """Names the browser tab for as long as it lives."""
    seen: Mapping[str, int] = field(default_factory=dict)
    """Run id to the last `seq` that this tab has; what comes after it is sent again."""


@dataclass(frozen=True, slots=True)
class Detach:
    """This tab has closed the notebook."""

    kind: ClassVar[str] = "detach"
    notebook_path: str


@dataclass(frozen=True, slots=True)
class TakeOver:
    """This tab wants to be the one that writes the notebook."""

    kind: ClassVar[str] = "take_over"
    notebook_path: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A question about the notebook's data."""

    kind: ClassVar[str] = "ask"
    request_id: str
    notebook_path: str
    question: str
    files: tuple[str, ...] = ()
    """Paths of data files, below the server's root as the contents API gives them."""
    variables: tuple[str, ...] = ()
    """Names of DataFrames in the kernel that the question is about."""
    after: tuple[str, ...] = ()
    """Ids of the cells below which to write, best first."""
    model: str = ""
    """A name from the models list; empty for the server's default."""
    approval: Approval = "risky"
    kernel: KernelChoice = "restricted"
    """`own` lets the run use a kernel that is not restricted; then every cell is asked for."""
    tries: int = 1
    """How often the question is tried, 1 to 9: above 1 in fresh kernels first, and then the answer
    that most tries give is worked out in the notebook."""

    def __post_init__(self) -> None:
        if not 1 <= self.tries <= MOST_TRIES:
            raise ValueError(f"ask: tries must be 1 to {MOST_TRIES}, got {self.tries}")


@dataclass(frozen=True, slots=True)
class Ack:
    """The owner has applied the run's operations up to `seq` to its document."""

    kind: ClassVar[str] = "ack"
    run_id: str
    seq: int
    is_saved: bool = False
    """Whether the file on disk holds them too."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run: interrupts the cell, then kills the kernel if it does not listen."""

    kind: ClassVar[str] = "stop"
    run_id: str


@dataclass(frozen=True, slots=True)
class Decide:
    """The person's word on a cell that waits."""

    kind: ClassVar[str] = "decide"
    run_id: str
    cell_id: str
    decision: Decision
    source: str | None = None
    """The cell's text as the person changed it; `None` leaves it."""


@dataclass(frozen=True, slots=True)
class Undo:
    """Take out what an ended run wrote, but no cell that the person has changed."""

    kind: ClassVar[str] = "undo"
    run_id: str


@dataclass(frozen=True, slots=True)
class Rebuild:
    """Run the notebook's cells that had worked again, in the kernel that is empty now."""

    kind: ClassVar[str] = "rebuild"
    run_id: str


ClientMessage = Attach | Detach | TakeOver | Ask | Ack | Stop | Decide | Undo | Rebuild


# --- of a run, kept in its journal -----------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class RunUndone:
    """The run's cells are out of the notebook again."""

    kind: ClassVar[str] = "run_undone"
    run_id: str
    seq: int
    at: float


# --- passing messages ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the turn that is being sampled."""

    kind: ClassVar[str] = "text_delta"
    run_id: str
    seq: int
    step: int
    text: str
    is_whole: bool = False
    """Whether this is the turn's whole text so far, sent to a tab that has just come."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What a run waits for: `loading the model`, `thinking`, `trying 3 times in fresh kernels`."""

    kind: ClassVar[str] = "phase"
    run_id: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class Attached:
    """The answer to `attach`; the messages that the tab has missed follow."""

    kind: ClassVar[str] = "attached"
    notebook_path: str
    is_owner: bool
    """Whether this tab applies operations and saves; one tab a notebook does."""
    is_shared: bool
    """Whether the document is shared (real-time collaboration): the server writes it itself."""
    in_file: Mapping[str, int]
    """Run id to the last `seq` whose operation the file on disk holds already."""


@dataclass(frozen=True, slots=True)
class FileWritten:
    """The server wrote the notebook's file while no tab held it, or this one was cut off."""

    kind: ClassVar[str] = "file_written"
    notebook_path: str
    in_file: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Refused:
    """A request can't be granted."""

    kind: ClassVar[str] = "refused"
    request_id: str
    reason: Literal["kernel", "busy", "file", "model", "notebook", "unknown"]
    """`kernel`: the notebook's kernel is not restricted, the person must choose."""
    message: str


@dataclass(frozen=True, slots=True)
class KernelMeter:
    """What the notebook's kernel uses and may use."""

    kind: ClassVar[str] = "kernel_meter"
    notebook_path: str
    kernel_id: str
    is_restricted: bool
    layers_active: tuple[str, ...]
    layers_missing: tuple[str, ...]
    memory_bytes: int
    memory_limit_bytes: int
    cpu_s: float
    cpu_limit_s: float
    processes: int
    process_limit: int


@dataclass(frozen=True, slots=True)
class KernelEnded:
    """A limit, or something else, ended the notebook's kernel; its variables are gone."""

    kind: ClassVar[str] = "kernel_ended"
    notebook_path: str
    kernel_id: str
    message: str
    """Which limit, and what to do."""


RunMessage = (
    RunOpened | StepOpened | Operated | CellOpened | CellDecided | CellClosed | StepClosed
    | RunClosed | RunUndone
)  # fmt: skip
ServerMessage = (
    RunMessage | TextDelta | Phase | Attached | FileWritten | Refused | KernelMeter | KernelEnded
)

_Message = TypeVar("_Message", bound=RunMessage | ClientMessage)

_CLIENT: dict[str, type[ClientMessage]] = {
    kind.kind: kind for kind in (Attach, Detach, TakeOver, Ask, Ack, Stop, Decide, Undo, Rebuild)
}
_RUN: dict[str, type[RunMessage]] = {
    kind.kind: kind
    for kind in (
        RunOpened, StepOpened, Operated, CellOpened, CellDecided, CellClosed, StepClosed,
        RunClosed, RunUndone,
    )
}  # fmt: skip


def to_json(message: ServerMessage | ClientMessage) -> dict[str, Any]:
    """Returns the message as plain JSON values, with its name as `kind`."""
    raw = {"kind": message.kind, **asdict(message)}
    if isinstance(message, Operated):
        raw["operation"] = operation_to_json(message.operation)
    return raw


def client_message(raw: object) -> ClientMessage:
    """Returns the message of a panel.

    Raises:
        ValueError: it is no message that a panel sends; the text says what is wrong with it.
    """
    if not isinstance(raw, dict):
        raise ValueError("a message is a JSON object")  # noqa: TRY004  (a fault of the text)
    kind = _CLIENT.get(str(raw.get("kind")))
    if kind is None:
        raise ValueError(f"there is no message {raw.get('kind')!r}")
    return _built(kind, raw)


def message_from_json(raw: Mapping[str, Any]) -> RunMessage:
    """Returns a message of a run as its journal keeps it.

    Raises:
        ValueError: it is no such message.
    """
    kind = _RUN.get(str(raw.get("kind")))
    if kind is None:
        raise ValueError(f"there is no message {raw.get('kind')!r}")
    if kind is Operated:
        try:
            raw = {**raw, "operation": operation_from_json(raw["operation"])}
        except (KeyError, TypeError) as error:
            raise ValueError(f"operated: {error}") from error
    return _built(kind, raw)


def _built(kind: type[_Message], raw: Mapping[str, Any]) -> _Message:
    hints = get_type_hints(kind)
    values = {}
    for item in fields(kind):
        if item.name not in raw:
            if item.default is MISSING and item.default_factory is MISSING:
                raise ValueError(f"{kind.kind}: {item.name} is missing")
            continue
        value = raw[item.name]
        if isinstance(value, list):
            value = tuple(value)
        if not _fits(value, hints[item.name]):
            raise ValueError(f"{kind.kind}: {item.name} can't be {raw[item.name]!r}")
        values[item.name] = value
    return kind(**values)


def _fits(value: object, hint: Any) -> bool:
    """Whether a value that came as JSON is of a field's type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in inner
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, dict) and all(_fits(one, inner[1]) for one in value.values())
    if isinstance(value, bool) and hint in (int, float):
        return False
    return hint is Any or isinstance(value, int | float if hint is float else hint)
