"""What the server says and nobody keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dm_jupyter.core.codec import Tagged
from dm_jupyter.server.protocol.run import RunMessage
from kernel_sandbox.types import FileChange

__all__ = [
    "Attached",
    "DataCandidate",
    "EphemeralMessage",
    "FileWritten",
    "FilesWanted",
    "KernelEnded",
    "KernelMeter",
    "Phase",
    "Refused",
    "ServerMessage",
    "TextDelta",
    "WantedFile",
]


class TextDelta(Tagged, frozen=True):
    """A piece of the turn that is being sampled."""

    run_id: str
    seq: int
    step: int
    text: str
    is_whole: bool = False
    """Whether this is the turn's whole text so far, sent to a tab that has just come."""


class Phase(Tagged, frozen=True):
    """What a run waits for: `loading the model`, `thinking`, `trying 3 times in fresh kernels`."""

    run_id: str
    seq: int
    text: str


class Attached(Tagged, frozen=True):
    """The answer to `attach`; the messages that the tab has missed follow."""

    notebook_path: str
    is_owner: bool
    """Whether this tab applies operations and saves; one tab a notebook does."""
    is_shared: bool
    """Whether the document is shared (real-time collaboration): the server writes it itself."""
    in_file: Mapping[str, int]
    """Run id to the last `seq` whose operation the file on disk holds already."""


class FileWritten(Tagged, frozen=True):
    """The server wrote the notebook's file while no tab held it, or this one was cut off."""

    notebook_path: str
    in_file: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file that is read only when the person agrees."""

    name: str
    """As in `Ask`."""
    leads_to: str
    """Its path on this machine."""


class FilesWanted(Tagged, frozen=True):
    """Code in the notebook's kernel asked a question about files, some of which it can't read.

    It is worked on only when the person asks it: with these files, and where they lead as agreed.
    """

    notebook_path: str
    question: str
    files: tuple[WantedFile, ...]


@dataclass(frozen=True, slots=True)
class DataCandidate:
    """What a question may be about."""

    kind: Literal["file", "variable"]
    name: str
    """Of a file as in `Ask`, or of a table in the kernel."""


class Refused(Tagged, frozen=True):
    """A request can't be granted."""

    request_id: str
    reason: Literal[
        "kernel", "no_kernel", "busy", "file", "link", "data", "model", "notebook", "unknown"
    ]
    """`kernel`: the notebook's kernel is not restricted, the person must choose. `no_kernel`: it
    has none, as after an end of the server; the page starts one and asks again. `link`: files are
    links, the person must agree to read where they lead. `data`: nothing says what the question is
    about, or a word of it names nothing; the person must choose."""
    message: str
    files: tuple[WantedFile, ...] = ()
    """For `link`: which, and where they lead."""
    candidates: tuple[DataCandidate, ...] = ()
    """For `data`: what may be meant, the best first."""


class KernelMeter(Tagged, frozen=True):
    """What the notebook's kernel uses and may use."""

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
    files_left_out: tuple[FileChange, ...] = ()
    """What kernel code did to files since, outside of a run, and the folder did not take."""


class KernelEnded(Tagged, frozen=True):
    """A limit, or something else, ended the notebook's kernel; its variables are gone."""

    notebook_path: str
    kernel_id: str
    message: str
    """Which limit, and what to do."""


EphemeralMessage = (
    TextDelta | Phase | Attached | FileWritten | FilesWanted | Refused | KernelMeter | KernelEnded
)
ServerMessage = RunMessage | EphemeralMessage
