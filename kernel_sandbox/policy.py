"""What the parent tells the launcher inside the sandbox, and what the launcher tells back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_sandbox.containment import Containment

__all__ = ["Policy", "Report"]


@dataclass(frozen=True, slots=True)
class Policy:
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
    """The folder that the kernel works in."""
    report: str
    """The file that the launcher writes its report to."""
    parent_pid: int
    """The process that starts the kernel, as the machine numbers it."""
    is_root: bool
    """Whether root starts the kernel: the system exempts root from the count of processes."""
    namespaces: Mapping[str, str]
    """The parent's own namespaces: a kernel that shows the same one is not apart."""
    environment: tuple[str, ...]
    """The names of all environment variables that the kernel is given."""
    no_view: str
    """Why there is no namespace around the kernel; empty where there is one."""
    no_view_state: str
    """The layer state that goes with `no_view`: absent, refused or off."""

    def write(self, path: Path) -> None:
        """Writes the policy as JSON.

        Raises:
            OSError: the file can't be written.
        """
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Policy:
        """Reads a policy that `write` wrote.

        Raises:
            OSError: the file can't be read.
            TypeError: a field is missing or unknown.
            ValueError: the file is not JSON.
        """
        raw = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**raw, "environment": tuple(raw["environment"])})


@dataclass(frozen=True, slots=True)
class Report:
    """What the launcher saw after it had confined itself, before any cell ran."""

    pid: int
    """The kernel's process id as the kernel itself sees it."""
    containment: Containment

    def write(self, path: Path) -> None:
        """Writes the report as JSON, at once: a reader sees all of it or nothing.

        Raises:
            OSError: the file can't be written.
        """
        draft = path.with_suffix(".part")
        draft.write_text(
            json.dumps({"pid": self.pid, **self.containment.to_json()}), encoding="utf-8"
        )
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> Report:
        """Reads a report that `write` wrote.

        Raises:
            OSError: the file can't be read.
            KeyError: a field is missing.
            ValueError: the file is not JSON, or a state is of no known kind.
        """
        raw = json.loads(path.read_text(encoding="utf-8"))
        return cls(raw["pid"], Containment.from_json(raw))
