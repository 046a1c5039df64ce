"""The messages from the server that nobody keeps."""

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
    """Whether this is the turn's entire text so far, sent to a tab that has just attached."""


class Phase(Tagged, frozen=True):
    """What a run waits for: `loading the model`, `thinking`, `trying 3 times in fresh kernels`."""

    run_id: str
    seq: int
    text: str


class Attached(Tagged, frozen=True):
    """The answer to `attach`; the messages that the tab has missed follow."""

    notebook_path: str
    is_owner: bool
    """Whether this tab applies operations and saves; one tab per notebook does."""
    is_shared: bool
    """Whether the document is shared (real-time collaboration): the server writes it itself."""
    in_file: Mapping[str, int]
    """The last `seq` whose operation the file on disk already contains, by run id."""


class FileWritten(Tagged, frozen=True):
    """The server wrote the notebook's file while no tab had it open, or this one was cut off."""

    notebook_path: str
    in_file: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file that is read only if the person agrees."""

    name: str
    """As in `Ask`."""
    leads_to: str
    """Its path on the server's machine."""


class FilesWanted(Tagged, frozen=True):
    """Code in the notebook's kernel asked a question about files, some of which it can't read.

    It is answered only if the person asks it: with these files, and with their targets as agreed.
    """

    notebook_path: str
    question: str
    files: tuple[WantedFile, ...]


@dataclass(frozen=True, slots=True)
class DataCandidate:
    """A file or table that a question may be about."""

    kind: Literal["file", "variable"]
    name: str
    """The name of a file as in `Ask`, or of a table in the kernel."""


class Refused(Tagged, frozen=True):
    """A request was refused."""

    request_id: str
    reason: Literal[
        "kernel", "no_kernel", "busy", "file", "link", "data", "model", "notebook", "unknown"
    ]
    """The reason. `kernel`: the notebook's kernel is not restricted, and the person must choose.
    `no_kernel`: it has none, as after a restart of the server; the page starts one and asks again.
    `link`: files are links, and the person must agree to read their targets. `data`: nothing says
    what the question is about, or a word of it names nothing; the person must choose."""
    message: str
    files: tuple[WantedFile, ...] = ()
    """For `link`: the links and their targets."""
    candidates: tuple[DataCandidate, ...] = ()
    """For `data`: the files and tables that may be meant, the best first."""


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
    """Changes of files by kernel code outside of a run, since the last meter, that were refused."""


class KernelEnded(Tagged, frozen=True):
    """A limit, or something else, ended the notebook's kernel; its variables are gone."""

    notebook_path: str
    kernel_id: str
    message: str
    """The limit that it met, and what to do."""


EphemeralMessage = (
    TextDelta | Phase | Attached | FileWritten | FilesWanted | Refused | KernelMeter | KernelEnded
)
ServerMessage = RunMessage | EphemeralMessage
