"""What one kernel is confined to, worked out on the outside from its limits and its folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_sandbox.contain import namespaces
from kernel_sandbox.contain.probe import Probe, probe
from kernel_sandbox.containment import LayerState
from kernel_sandbox.policy import Policy
from kernel_sandbox.types import Limits

__all__ = ["Places", "plan", "protected_paths", "trial_policy"]

_PROTECTED = frozenset(
    {
        *(".git", ".hg", ".svn", ".jupyter", ".ipython", ".vscode", ".idea", ".env", ".envrc"),
        *("conftest.py", "setup.py", "pyproject.toml", "Makefile"),
    }
)
"""What other programs run or obey without being asked."""
_PROTECTED_SUFFIX = ".ipynb"
_DEPTH = 3
_MAXIMUM_ENTRIES = 5000
"""Looked at for protected paths: whoever starts a kernel in a whole home should not wait."""
_SWITCHED_OFF = Probe(False, LayerState.OFF, "switched off by the settings")


@dataclass(frozen=True, slots=True)
class Places:
    """The folders and files of one kernel."""

    workspace: Path
    """Where it works and what it may write."""
    run_dir: Path
    """Its private folder."""
    readable: tuple[Path, ...] = ()
    """What it may read where it is: files or folders."""
    packages: tuple[Path, ...] = ()
    """Folders of packages, wherever they lie, that it may read and import."""
    overlay: Path | None = None
    """The folder of added packages: read, and searched last for modules."""


def plan(
    limits: Limits,
    places: Places,
    environment: tuple[str, ...],
    *,
    isolate: bool = True,
    confined: bool = True,
) -> Policy:
    """Returns the policy of a kernel that this process starts. The first call tries the machine.

    Args:
        limits: what it may use.
        places: its folders and files.
        environment: the names of all variables that it is given.
        isolate: whether to use namespaces where the machine has them.
        confined: whether to confine it at all.
    """
    tried = probe() if isolate and confined else _SWITCHED_OFF
    return _policy(limits, places, environment, tried, confined)


def trial_policy(folder: str, no_view: str = "") -> Policy:
    """Returns a policy that asks for namespaces, whether they work or not: for the probe itself.

    Args:
        folder: an empty one.
        no_view: why to go without namespaces; empty to ask for them.
    """
    path = Path(folder).resolve()
    state = LayerState.REFUSED if no_view else LayerState.ACTIVE
    tried = Probe(not no_view, state, no_view)
    return _policy(Limits(), Places(path, path), tuple(os.environ), tried, True)


def _policy(
    limits: Limits, places: Places, environment: tuple[str, ...], tried: Probe, confined: bool
) -> Policy:
    overlay = [places.overlay] if places.overlay else []
    return Policy(
        memory_bytes=limits.memory_bytes,
        cpu_s=limits.cpu_s,
        processes=limits.processes,
        file_bytes=limits.file_bytes,
        network=limits.network,
        workspace=str(places.workspace),
        run_dir=str(places.run_dir),
        readable=dict(
            _named(path, places.workspace)
            for path in (*places.readable, *places.packages, *overlay)
        ),
        packages=tuple(map(str, places.packages)),
        overlay=str(places.overlay or ""),
        protected=tuple(map(str, protected_paths(places.workspace))),
        confined=confined,
        parent_pid=os.getpid(),
        is_root=os.getuid() == 0,
        shares_users=False,
        namespaces=namespaces.current(),
        environment=environment,
        no_view=tried.reason,
        no_view_state=tried.state.value,
    )


def _named(path: Path, workspace: Path) -> tuple[str, str]:
    """The path and where it leads now; in the working folder, whose links may change, only that."""
    real = os.path.realpath(path)
    return (real if workspace in path.parents else str(path)), real


def protected_paths(workspace: Path) -> tuple[Path, ...]:
    """Returns what in a working folder no cell may change: notebooks, and what starts programs.

    Looks three folders deep, at no more than some thousand entries, and follows no link.

    Args:
        workspace: the folder.
    """
    found: list[Path] = []
    for number, entry in enumerate(_entries(workspace, _DEPTH)):
        if number >= _MAXIMUM_ENTRIES:
            break
        if entry.name in _PROTECTED or entry.name.endswith(_PROTECTED_SUFFIX):
            found.append(Path(entry.path))
    return tuple(found)


def _entries(folder: Path, depth: int) -> Iterator[os.DirEntry[str]]:
    """What is in the folder and those below, breadth first in each; no links."""
    try:
        with os.scandir(folder) as scan:
            entries = [entry for entry in scan if not entry.is_symlink()]
    except OSError:
        return
    yield from entries
    if depth <= 1:
        return
    for entry in entries:
        if entry.name not in _PROTECTED and entry.is_dir(follow_symlinks=False):
            yield from _entries(Path(entry.path), depth - 1)
