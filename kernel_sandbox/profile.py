"""How strictly a kernel is confined: what may be missing on a machine that lacks a mechanism."""

from __future__ import annotations

from enum import StrEnum

from kernel_sandbox.containment import Containment

__all__ = ["Profile", "shortcomings"]


class Profile(StrEnum):
    """What a kernel is for."""

    INTERACTIVE = "interactive"
    """A person's: runs with what the machine has; what is missing is shown."""
    ROLLOUT = "rollout"
    """Nobody watches: refuses to run unless files, network, processes and memory are held."""
    OFF = "off"
    """Not confined at all, because somebody said so."""


_ROLLOUT = {
    "files": ("read_only_view", "landlock"),
    "network": ("network_namespace", "late_seccomp"),
    "system calls": ("seccomp",),
    "number of processes": ("pid_limit", "cgroup"),
    "memory": ("memory_watchdog", "cgroup"),
    "environment": ("environment",),
}
"""What must be held, and by which layers: one of them suffices."""


def shortcomings(profile: Profile, containment: Containment) -> tuple[str, ...]:
    """Returns what a profile asks for and no layer holds: a phrase each, with the layers' reasons.

    Args:
        profile: what the kernel is for.
        containment: the layers around it.
    """
    if profile is not Profile.ROLLOUT:
        return ()
    found = []
    for what, names in _ROLLOUT.items():
        if not any(containment.is_active(name) for name in names):
            layers = [containment.get(name) for name in names]
            reasons = "; ".join(f"{x.name} is {x.state}: {x.reason}" for x in layers)
            found.append(f"{what} ({reasons})")
    return tuple(found)
