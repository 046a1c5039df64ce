"""What the parent sends the launcher inside the sandbox, and what the launcher reports back."""

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
"""The writable subfolders of a kernel's private folder, both recreated at each start."""


@dataclass(frozen=True, slots=True)
class ConfinementSpec:
    """Confinement of one kernel, written by the provisioner and read by the launcher."""

    memory_bytes: int
    """Resident memory limit of the whole kernel; the address space gets headroom on top of it."""
    cpu_s: int
    """Processor time limit of the kernel process, seconds."""
    processes: int
    """Maximum number of processes of the kernel."""
    file_bytes: int
    """Maximum size of one written file, bytes."""
    network: bool
    """Whether the kernel shares the network of the machine."""
    workspace: str
    """The kernel's working folder, which it may write."""
    is_shared: bool
    """Whether the working folder belongs to a person and not to the kernel."""
    layer: str
    """The folder of the layer that receives the kernel's writes to the working folder
    (`WorkspaceLayer`); empty if it writes to that folder directly."""
    run_dir: str
    """The kernel's private folder: it may read all of it and write only what `private` names."""
    readable: Mapping[str, str]
    """Files or folders that it may read besides system and interpreter. Each name maps to the
    path without links that it led to. In the working folder, whose links may change, that path
    is the name."""
    packages: tuple[str, ...]
    """Folders of packages, anywhere on the machine, that it may read and import."""
    overlay: str
    """The folder of added packages, for the end of the import path; empty if there is none."""
    protected: tuple[str, ...]
    """Paths in the working folder that must not be changed."""
    confined: bool
    """Whether to confine it at all: `False` means the profile `off`."""
    parent_pid: int
    """The process that starts the kernel, as the machine numbers it."""
    is_root: bool
    """Whether root starts the kernel: the system exempts root from the count of processes."""
    user_number: int
    """The user id that the kernel takes so that it is counted separately; 0 for none. Its files
    stay root's."""
    tasks_before: int
    """Processes and threads that its user runs already, if they count with the kernel; else 0."""
    shares_users: bool
    """Whether its user namespace, if it has one, contains other kernels as well."""
    namespaces: Mapping[str, str]
    """The parent's own namespaces: a kernel that shows the same one is not isolated."""
    environment: tuple[str, ...]
    """The names of all environment variables that the kernel is given."""
    no_view: str
    """Why there is no namespace around the kernel; empty if there is one."""
    no_view_state: str
    """The layer state that goes with `no_view`: absent, refused or off."""

    @property
    def private(self) -> tuple[str, ...]:
        """The writable subfolders of the kernel's private folder."""
        return tuple(f"{self.run_dir}/{name}" for name in WRITABLE)

    @property
    def readable_paths(self) -> tuple[Path, ...]:
        """Paths that it may read, by name and by target, without duplicates."""
        both = (path for pair in self.readable.items() for path in pair)
        return tuple(map(Path, dict.fromkeys(both)))

    def to_text(self) -> str:
        """Return the specification as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> ConfinementSpec:
        """Parse what `to_text` wrote.

        Raises:
            KeyError: a list is missing.
            TypeError: another field is missing or unknown.
            ValueError: the text is not JSON.
        """
        raw = json.loads(text)
        lists = {name: tuple(raw[name]) for name in _LISTS}
        return cls(**{**raw, **lists})


@dataclass(frozen=True, slots=True)
class Report:
    """What the launcher observed after it had confined itself, before any cell ran."""

    pid: int
    """The kernel's process id as the kernel itself sees it."""
    containment: Containment

    def to_text(self) -> str:
        """Return the report as one line of JSON."""
        return json.dumps({"pid": self.pid, **self.containment.to_json()})

    @classmethod
    def from_text(cls, text: str) -> Report:
        """Parse what `to_text` wrote.

        Raises:
            KeyError: a field is missing.
            ValueError: the text is not JSON, or a field has an unknown kind.
        """
        raw = decode(text.encode("utf-8", "replace"))
        if not isinstance(raw, dict) or type(raw["pid"]) is not int or not 0 < raw["pid"] < 2**31:
            raise ValueError("a report without a process id")
        return cls(raw["pid"], Containment.from_json(raw))
