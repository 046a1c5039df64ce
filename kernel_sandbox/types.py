"""Values that cross the sandbox's boundary: limits in, results out. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from kernel_sandbox.ledger.facts import Fact, facts_from

__all__ = [
    "CellError",
    "CellResult",
    "CellRunner",
    "CellStatus",
    "Display",
    "FileChange",
    "Limits",
    "Output",
    "Stream",
    "output_from_nbformat",
]

MIB = 1024 * 1024
_POSITIVE = (
    "memory_bytes",
    "cpu_s",
    "wall_s",
    "processes",
    "file_bytes",
    "disk_bytes",
    "output_bytes",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one restricted kernel; every number must be positive, checked on creation."""

    memory_bytes: int = 2048 * MIB
    """Resident memory of the kernel and its children together, bytes."""
    cpu_s: int = 600
    """Processor time of the kernel process over its whole life, seconds."""
    wall_s: float = 120.0
    """Clock time of one cell, seconds; then SIGINT, and SIGKILL two seconds later."""
    processes: int = 64
    """Processes of the kernel, itself and the two of its sandbox included."""
    file_bytes: int = 256 * MIB
    """Size of one written file, bytes."""
    disk_bytes: int = 1024 * MIB
    """Growth of the working folder, bytes."""
    output_bytes: int = 4 * MIB
    """Output kept of one cell, bytes; more is cut and counted."""
    network: bool = False
    """Whether the kernel may reach any network."""
    writable_dir: Path | None = None
    """The one folder that the kernel may write; `None` gives it a private temporary one. It must
    not contain the home folder; one with the Python environment inside needs namespaces."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) <= 0:
                raise ValueError(f"Limits.{name} must be positive, got {getattr(self, name)}")


class CellStatus(StrEnum):
    """How a cell ended."""

    OK = "ok"
    ERROR = "error"
    """It raised; the kernel lives on."""
    TIMEOUT = "timeout"
    """It ran past `Limits.wall_s` and was interrupted, or killed when it ignored that."""
    MEMORY = "memory"
    """It needed more than `Limits.memory_bytes`."""
    KILLED = "killed"
    """The kernel process died: a signal, a crash, the processor-time limit."""
    DENIED = "denied"
    """The screen refused it before it ran."""
    INTERRUPTED = "interrupted"
    """The caller interrupted it."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Text that a cell wrote to standard output or standard error."""

    name: Literal["stdout", "stderr"]
    text: str

    def to_nbformat(self) -> dict[str, Any]:
        """Return the output as an nbformat 4 object."""
        return {"output_type": "stream", "name": self.name, "text": self.text}


@dataclass(frozen=True, slots=True)
class Display:
    """A rich output: a bundle from media type to content (text, html, base64 image, json)."""

    data: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    execution_count: int | None = None
    """Set when this is the value of the cell's last expression."""

    def to_nbformat(self) -> dict[str, Any]:
        """Return the output as an nbformat 4 object."""
        bundle = {"data": dict(self.data), "metadata": dict(self.metadata)}
        if self.execution_count is None:
            return {"output_type": "display_data", **bundle}
        return {"output_type": "execute_result", "execution_count": self.execution_count, **bundle}


@dataclass(frozen=True, slots=True)
class CellError:
    """An exception that ended a cell; `traceback` may contain ANSI colours."""

    name: str
    message: str
    traceback: tuple[str, ...] = ()

    def to_nbformat(self) -> dict[str, Any]:
        """Return the output as an nbformat 4 object."""
        return {
            "output_type": "error",
            "ename": self.name,
            "evalue": self.message,
            "traceback": list(self.traceback),
        }


Output = Stream | Display | CellError


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change to a file of the working folder: written, waiting for approval or refused."""

    path: str
    """Relative to the working folder."""
    kind: Literal["made", "changed", "removed"]
    state: Literal["written", "waits", "refused"] = "written"
    """Whether it is in the folder, waits for approval, or never gets there."""
    size_bytes: int = 0
    before_bytes: int | None = None
    """The size of the previous file, or `None` if there was none."""
    marks: tuple[str, ...] = ()
    """What a person should know about it, such as that it is a program."""

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain JSON values."""
        return {**asdict(self), "marks": list(self.marks)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> FileChange:
        """Create a change from the output of `to_json`.

        Raises:
            KeyError: `marks` is missing.
            TypeError: another field is missing, or one is unknown.
        """
        return cls(**{**raw, "marks": tuple(raw["marks"])})


def output_from_nbformat(raw: Mapping[str, Any]) -> Output:
    """Return the output that an nbformat 4 object describes.

    Raises:
        ValueError: the object is of no known output type.
    """
    kind = raw.get("output_type")
    if kind == "stream":
        text = raw["text"]
        return Stream(raw["name"], text if isinstance(text, str) else "".join(text))
    if kind in ("display_data", "execute_result"):
        return Display(dict(raw["data"]), dict(raw["metadata"]), raw.get("execution_count"))
    if kind == "error":
        return CellError(raw["ename"], raw["evalue"], tuple(raw["traceback"]))
    raise ValueError(f"not an nbformat 4 output: output_type is {kind!r}")


@dataclass(frozen=True, slots=True)
class CellResult:
    """The result of one cell, whatever happened to it."""

    status: CellStatus
    outputs: tuple[Output, ...] = ()
    """The outputs in order of arrival; neighbouring pieces of one stream are joined."""
    execution_count: int | None = None
    seconds: float = 0.0
    """Clock time from sending the cell to its end."""
    peak_bytes: int | None = None
    """Highest resident memory seen while the cell ran; `None` if it can't be read."""
    cut_bytes: int = 0
    """Bytes of output dropped because of `Limits.output_bytes`."""
    message: str = ""
    """For a cell that hit a limit or was refused: which one, and what to do."""
    state_lost: bool = False
    """Whether the kernel died and its variables are gone: the next cell finds an empty one."""
    ended_by: str = ""
    """The limit that ended it: `memory`, `disk`, `processes`, `output`, `timeout`, `processor`,
    `deadline`; `connection` or `unwatched` for a kernel that could not be kept; `death` for one
    that died otherwise. Empty for a cell that ended by itself or that the caller stopped."""
    files: tuple[FileChange, ...] = ()
    """What it did to the files of a working folder that the caller gave."""
    facts: tuple[Fact, ...] = ()
    """What happened to the data, as its kernel recorded it, in order; code may have forged it."""

    @property
    def ok(self) -> bool:
        """Whether the cell ran to its end without an error."""
        return self.status is CellStatus.OK

    @property
    def stdout(self) -> str:
        """All that the cell wrote to standard output."""
        return "".join(o.text for o in self.outputs if isinstance(o, Stream) and o.name == "stdout")

    @property
    def stderr(self) -> str:
        """All that the cell wrote to standard error."""
        return "".join(o.text for o in self.outputs if isinstance(o, Stream) and o.name == "stderr")

    @property
    def error(self) -> CellError | None:
        """The exception that ended the cell, if one did."""
        return next((o for o in self.outputs if isinstance(o, CellError)), None)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values, with outputs in nbformat's own shape."""
        return {
            "status": self.status.value,
            "outputs": [output.to_nbformat() for output in self.outputs],
            "execution_count": self.execution_count,
            "seconds": self.seconds,
            "peak_bytes": self.peak_bytes,
            "cut_bytes": self.cut_bytes,
            "message": self.message,
            "state_lost": self.state_lost,
            "ended_by": self.ended_by,
            "files": [change.to_json() for change in self.files],
            "facts": [fact.to_json() for fact in self.facts],
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> CellResult:
        """Create a result from the output of `to_json`.

        Raises:
            KeyError: a field is missing.
            ValueError: a status or an output is of no known kind.
        """
        fields = {**raw, "status": CellStatus(raw["status"])}
        fields["outputs"] = tuple(output_from_nbformat(output) for output in raw["outputs"])
        fields["files"] = tuple(map(FileChange.from_json, raw.get("files", ())))
        fields["facts"] = facts_from(raw.get("facts", ()))
        return cls(**fields)


class CellRunner(Protocol):
    """A runner of cells, one after another in one state: live kernel, forked worker or replay.

    A `Notebook` (interactive, headless, rollouts) calls it, one cell at a time. An implementation
    may not assume that the code is benign, or that `close` is called only once. Nor may it assume
    that a caller waits for the end: when a run is cancelled, the cell is interrupted and the state
    kept.
    """

    async def run(self, source: str) -> CellResult:
        """Run one cell and return its result; raise only for errors of the sandbox."""
        ...

    async def interrupt(self) -> None:
        """Interrupt the running cell; do nothing if none runs."""
        ...

    async def restart(self) -> None:
        """End the kernel and start an empty one under the same limits."""
        ...

    async def close(self) -> None:
        """End the kernel and remove what is private to it."""
        ...
