"""What the parent tells the launcher inside the sandbox, and what the launcher tells back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_sandbox.containment import Containment

__all__ = ["Policy", "Report"]


_LISTS = ("packages", "protected", "environment")


def _write_new(path: Path, text: str) -> None:
    """Writes a file that was not there: a kernel of before may have left a link in its place."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


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
    """The folder that the kernel works in, and may write."""
    run_dir: str
    """The kernel's private folder, which it may write, too."""
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
    def report(self) -> Path:
        """The file that the launcher writes its report to."""
        return Path(self.run_dir) / "report.json"

    @property
    def readable_paths(self) -> tuple[Path, ...]:
        """What it may read, by the names and by where they led, each once."""
        both = (path for pair in self.readable.items() for path in pair)
        return tuple(map(Path, dict.fromkeys(both)))

    def write(self, path: Path) -> None:
        """Writes the policy as JSON.

        Raises:
            OSError: the file can't be written.
        """
        _write_new(path, self.to_text())

    def to_text(self) -> str:
        """The policy as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Policy:
        """The inverse of `to_text`.

        Raises:
            KeyError: a list is missing.
            TypeError: another field is missing or unknown.
            ValueError: it is not JSON.
        """
        raw = json.loads(text)
        lists = {name: tuple(raw[name]) for name in _LISTS}
        return cls(**{**raw, **lists})

    @classmethod
    def read(cls, path: Path) -> Policy:
        """Reads a policy that `write` wrote.

        Raises:
            OSError: the file can't be read.
            KeyError: a list is missing.
            TypeError: another field is missing or unknown.
            ValueError: the file is not JSON.
        """
        return cls.from_text(path.read_text(encoding="utf-8"))


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
        _write_new(draft, json.dumps({"pid": self.pid, **self.containment.to_json()}))
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
