"""How strictly a kernel is confined, and which layers may be missing on a weaker machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernel_sandbox.confine.layers import Containment

__all__ = ["Strictness", "Weakness", "shortcomings", "weaknesses"]


class Strictness(StrEnum):
    """Purpose of a kernel, which decides which layers are required."""

    INTERACTIVE = "interactive"
    """A person's kernel: it runs with what the machine has, and missing layers are shown."""
    ROLLOUT = "rollout"
    """Unattended: refuses to run unless files, network, processes and memory are restricted."""
    OFF = "off"
    """Not confined at all, by explicit choice."""


_ROLLOUT = {
    "files": ("read_only_view", "landlock"),
    "network": ("network_namespace", "late_seccomp"),
    "system calls": ("seccomp",),
    "number of processes": ("pid_limit", "cgroup"),
    "memory": ("memory_watchdog", "cgroup"),
    "environment": ("environment",),
}
"""What must be restricted, and by which layers: one of them suffices."""


def shortcomings(profile: Strictness, containment: Containment) -> tuple[str, ...]:
    """Return one phrase per requirement that no layer enforces, with the layers' reasons.

    Args:
        profile: the purpose of the kernel, with its requirements.
        containment: the layers around it.
    """
    if profile is not Strictness.ROLLOUT:
        return ()
    found = []
    for what, names in _ROLLOUT.items():
        if not any(containment.is_active(name) for name in names):
            layers = [containment.get(name) for name in names]
            reasons = "; ".join(f"{x.name} is {x.state}: {x.reason}" for x in layers)
            found.append(f"{what} ({reasons})")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Weakness:
    """What restricted code can do on a machine that lacks every layer against it."""

    text: str
    """The weakness, as a sentence for a person."""
    remedy: str
    """What to do about it, in sentences."""
    is_grave: bool = True
    """Whether a person should know it before the first cell runs."""


_NAMESPACES = (
    "Let users make namespaces: "
    "sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns; "
    "in a container, its seccomp profile."
)
_LINUX = f"Use Linux 5.13 or later. {_NAMESPACES}"
_WEAKNESSES = (
    (
        ("read_only_view", "landlock"),
        Weakness("Restricted kernels are not kept from your files here.", _LINUX),
    ),
    (
        ("network_namespace", "late_seccomp"),
        Weakness("Restricted kernels are not kept from your network here.", _LINUX),
    ),
    (
        ("pid_limit", "cgroup"),
        Weakness(
            "On this machine, the process count of a restricted kernel is only polled. Code that "
            "forks fast enough can freeze the machine.",
            f"Start it as an ordinary user, or give it a control group. {_NAMESPACES}",
        ),
    ),
    (
        ("workspace_layer",),
        Weakness(
            "On this machine, restricted code changes the notebook's folder directly. A cell is "
            "checked by its text alone.",
            _NAMESPACES,
            is_grave=False,
        ),
    ),
    (
        ("read_only_view",),
        Weakness(
            "Restricted code sees names, sizes and dates of your files and the command lines of "
            "your programs here, and can change the files' modes, dates and attributes.",
            _NAMESPACES,
            is_grave=False,
        ),
    ),
)
"""Layers of which one suffices, and what it means if all are missing; the gravest first."""


def weaknesses(containment: Containment) -> tuple[Weakness, ...]:
    """Return what a person should know about the layers that a kernel lacks, gravest first.

    Args:
        containment: the layers around it.
    """
    return tuple(
        weakness
        for names, weakness in _WEAKNESSES
        if not any(containment.is_active(name) for name in names)
    )
