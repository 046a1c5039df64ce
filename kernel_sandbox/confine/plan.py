"""Confinement of one kernel, computed outside of it from its limits and its folders."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_sandbox.confine import counting, namespaces
from kernel_sandbox.confine.layers import LayerState
from kernel_sandbox.confine.probe import Probe, probe
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.files.layer_entries import protected_paths
from kernel_sandbox.types import Limits

__all__ = ["KernelPaths", "plan", "trial_policy"]

_SWITCHED_OFF = Probe(False, LayerState.OFF, "switched off by the settings")


@dataclass(frozen=True, slots=True)
class KernelPaths:
    """The folders and files of one kernel."""

    workspace: Path
    """Its working folder, which it may write."""
    run_dir: Path
    """Its private folder."""
    readable: tuple[Path, ...] = ()
    """Files or folders that it may read at their own paths."""
    packages: tuple[Path, ...] = ()
    """Folders of packages, anywhere on the machine, that it may read and import."""
    overlay: Path | None = None
    """The folder of added packages: readable, and searched last for modules."""
    is_shared: bool = False
    """Whether the working folder belongs to a person and not to the kernel."""
    layer: Path | None = None
    """The folder of the layer above the working folder."""


def plan(
    limits: Limits,
    places: KernelPaths,
    environment: tuple[str, ...],
    *,
    isolate: bool = True,
    confined: bool = True,
    counts: bool = False,
) -> ConfinementSpec:
    """Return the specification of a kernel to start. The first call probes the machine.

    Args:
        limits: what it may use.
        places: its folders and files.
        environment: the names of all variables that it is given.
        isolate: whether to use namespaces if the machine has them.
        confined: whether to confine it at all.
        counts: whether a control group counts its processes.
    """
    tried = probe() if isolate and confined else _SWITCHED_OFF
    policy = _policy(limits, places, environment, tried, confined)
    if tried.has_view or not confined or counts:
        return policy
    if policy.is_root:
        return replace(policy, user_number=counting.unused_user())
    return replace(policy, tasks_before=counting.tasks_of_user())


def trial_policy(folder: str, no_view: str = "") -> ConfinementSpec:
    """Return a specification that requests namespaces, working or not; the probe itself uses it.

    Args:
        folder: a run folder that contains a folder `work`.
        no_view: why to do without namespaces; empty to request them.
    """
    path = Path(folder).resolve()
    state = LayerState.REFUSED if no_view else LayerState.ACTIVE
    tried = Probe(not no_view, state, no_view)
    return _policy(Limits(), KernelPaths(path / "work", path), tuple(os.environ), tried, True)


def _policy(
    limits: Limits, places: KernelPaths, environment: tuple[str, ...], tried: Probe, confined: bool
) -> ConfinementSpec:
    overlay = [places.overlay] if places.overlay else []
    return ConfinementSpec(
        memory_bytes=limits.memory_bytes,
        cpu_s=limits.cpu_s,
        processes=limits.processes,
        file_bytes=limits.file_bytes,
        network=limits.network,
        workspace=str(places.workspace),
        is_shared=places.is_shared,
        layer=str(places.layer or ""),
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
        user_number=0,
        tasks_before=0,
        shares_users=False,
        namespaces=namespaces.current_namespaces(),
        environment=environment,
        no_view=tried.reason,
        no_view_state=tried.state.value,
    )


def _named(path: Path, workspace: Path) -> tuple[str, str]:
    """Return the path and its target; in the working folder, whose links may change, the target."""
    real = os.path.realpath(path)
    return (real if workspace in path.parents else str(path)), real
