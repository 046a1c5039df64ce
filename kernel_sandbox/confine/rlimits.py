"""Resource limits of the kernel process.

Covered: address space, processor time, the size of a written file, open files, core dumps. Also
the number of processes and threads, unless they are counted for root.
Not covered: the sum over several processes, which the memory watchdog limits.
"""

from __future__ import annotations

import os
import resource

from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.watch.open_files import BETWEEN_CELLS

__all__ = ["THREADS", "apply_rlimits", "most_tasks", "wanted"]

ADDRESS_HEADROOM_BYTES = 2 * 1024**3
"""Mapped memory is not used memory: pandas, arrow and BLAS map up to 2 GiB and never touch it."""
OPEN_FILES = 512
THREADS = min(256, 64 + 8 * (os.cpu_count() or 1))
"""Threads allowed on top of the processes: the system counts both, and numerical libraries start
some for each processor. Not more, because a fork bomb also gets this many before it is ended."""
CPU_GRACE_S = 5
"""Seconds between SIGXCPU, which a program may catch, and SIGKILL."""


def wanted(policy: ConfinementSpec, *, counts_processes: bool) -> dict[int, tuple[int, int]]:
    """Return the limits to set, as resource number to (soft, hard).

    Args:
        policy: the specification with the numbers.
        counts_processes: whether the system counts this kernel's processes by user.
    """
    space = policy.memory_bytes + ADDRESS_HEADROOM_BYTES
    limits = {
        resource.RLIMIT_AS: (space, space),
        resource.RLIMIT_CPU: (policy.cpu_s, policy.cpu_s + CPU_GRACE_S),
        resource.RLIMIT_FSIZE: (policy.file_bytes, policy.file_bytes),
        resource.RLIMIT_NOFILE: (OPEN_FILES, OPEN_FILES + BETWEEN_CELLS),
        resource.RLIMIT_CORE: (0, 0),
    }
    if counts_processes:
        limits[resource.RLIMIT_NPROC] = (most_tasks(policy),) * 2
    return limits


def most_tasks(policy: ConfinementSpec) -> int:
    """Return how many processes and threads the system allows the kernel's user.

    Args:
        policy: the kernel's specification. Its user may start a few other tasks afterwards.
    """
    spare = THREADS if policy.tasks_before else 0
    return policy.tasks_before + spare + policy.processes + THREADS


def apply_rlimits(policy: ConfinementSpec, *, counts_processes: bool) -> Layer:
    """Set the limits on this process and return the layer, read back from the system.

    It never loosens: a lower hard limit that the process already has stays.

    Args:
        policy: the specification with the numbers.
        counts_processes: see `wanted`.
    """
    short: list[str] = []
    for number, (soft, hard) in wanted(policy, counts_processes=counts_processes).items():
        had = resource.getrlimit(number)[1]
        top = hard if had == resource.RLIM_INFINITY else min(hard, had)
        try:
            resource.setrlimit(number, (min(soft, top), top))
        except (OSError, OverflowError, ValueError) as error:
            short.append(f"limit {number}: {error}")
            continue
        if resource.getrlimit(number)[1] > top:
            short.append(f"limit {number} did not take")
    if short:
        return Layer("rlimits", LayerState.REFUSED, "; ".join(short))
    counted = ", processes and threads" if counts_processes else ""
    return Layer(
        "rlimits",
        LayerState.ACTIVE,
        f"address space, processor time, file size, open files, no core{counted}",
    )
