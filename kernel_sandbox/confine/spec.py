"""What the parent tells the launcher inside the sandbox, and what the launcher tells back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.messages import decode

__all__ = ["ConfinementSpec", "Report"]


_LISTS = ("packages", "protected", "environment")
WRITABLE = ("home", "tmp")
"""The folders of a kernel's private folder that it may write; both are made anew at each start."""


@dataclass(frozen=True, slots=True)
class ConfinementSpec:
    """What one kernel is confined to; written by the provisioner, read by the launcher."""

    memory_bytes: int
    """Resident memory of the whole kernel; the address space gets headroom on top of it."""
    cpu_s: int
    """Processor time of the kernel process, seconds."""
    processes: int
    """Processes of the kernel."""
    file_bytes: int
    """Size of one written file, bytes."""
    network: bool
    """Whether the kernel shares the network of the machine."""
    workspace: str
    """The folder that the kernel works in, and may write."""
    is_shared: bool
    """Whether the working folder is somebody's own, and not the kernel's."""
    layer: str
    """The folder of the layer that takes what it writes there (`WorkspaceLayer`); empty where it
    writes there itself."""
    run_dir: str
    """The kernel's private folder: it may read it, and write only what `private` names."""
    readable: Mapping[str, str]
    """What it may read besides system and interpreter, files or folders: from each name to the
    path without links that it led to. In the working folder, whose links may change, that path
    is the name."""
    packages: tuple[str, ...]
    """Folders of packages, wherever they lie, that it may read and import."""
    overlay: str
    """The folder of added packages, for the end of the import path; empty where there is none."""
    protected: tuple[str, ...]
    """What lies in the working folder and must not be changed."""
    confined: bool
    """Whether to confine it at all: `False` stands for the profile `off`."""
    parent_pid: int
    """The process that starts the kernel, as the machine numbers it."""
    is_root: bool
    """Whether root starts the kernel: the system exempts root from the count of processes."""
    user_number: int
    """The user whose number the kernel takes to be counted apart, though its files stay root's;
    0 for none."""
    tasks_before: int
    """What its user runs already, threads included, where that counts with the kernel; else 0."""
    shares_users: bool
    """Whether its user namespace, if it has one, holds other kernels as well."""
    namespaces: Mapping[str, str]
    """The parent's own namespaces: a kernel that shows the same one is not apart."""
    environment: tuple[str, ...]
    """The names of all environment variables that the kernel is given."""
    no_view: str
    """Why there is no namespace around the kernel; empty where there is one."""
    no_view_state: str
    """The layer state that goes with `no_view`: absent, refused or off."""

    @property
    def private(self) -> tuple[str, ...]:
        """The folders in its private folder that it may write."""
        return tuple(f"{self.run_dir}/{name}" for name in WRITABLE)

    @property
    def readable_paths(self) -> tuple[Path, ...]:
        """What it may read, by the names and by where they led, each once."""
        both = (path for pair in self.readable.items() for path in pair)
        return tuple(map(Path, dict.fromkeys(both)))

    def to_text(self) -> str:
        """The policy as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> ConfinementSpec:
        """The inverse of `to_text`.

        Raises:
            KeyError: a list is missing.
            TypeError: another field is missing or unknown.
            ValueError: it is not JSON.
        """
        raw = json.loads(text)
        lists = {name: tuple(raw[name]) for name in _LISTS}
        return cls(**{**raw, **lists})


@dataclass(frozen=True, slots=True)
class Report:
    """What the launcher saw after it had confined itself, before any cell ran."""

    pid: int
    """The kernel's process id as the kernel itself sees it."""
    containment: Containment

    def to_text(self) -> str:
        """The report as one line of JSON."""
        return json.dumps({"pid": self.pid, **self.containment.to_json()})

    @classmethod
    def from_text(cls, text: str) -> Report:
        """The inverse of `to_text`.

        Raises:
            KeyError: a field is missing.
            ValueError: it is not JSON, or a field is of no known kind.
        """
        raw = decode(text.encode("utf-8", "replace"))
        if not isinstance(raw, dict) or type(raw["pid"]) is not int or not 0 < raw["pid"] < 2**31:
            raise ValueError("a report without a process id")
        return cls(raw["pid"], Containment.from_json(raw))
