"""Resource limits of the kernel process.

Covered: address space, processor time, the size of a written file, open files, core dumps; the
number of processes and threads, unless root is who they are counted for.
Not covered: the sum over several processes (the memory watchdog has that).
"""

from __future__ import annotations

import os
import resource

from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.watch.open_files import BETWEEN_CELLS

__all__ = ["THREADS", "apply_rlimits", "most_tasks", "wanted"]

ADDRESS_HEADROOM_BYTES = 2 * 1024**3
"""Mapped is not used: pandas, arrow and BLAS map up to 2 GiB that they never touch."""
OPEN_FILES = 512
THREADS = min(256, 64 + 8 * (os.cpu_count() or 1))
"""On top of the processes, since the system counts threads, too, and numerical libraries start
some for each processor. No more of them: it is also what a bomb gets before it is ended."""
CPU_GRACE_S = 5
"""Between SIGXCPU, which a program may catch, and SIGKILL."""


def wanted(policy: ConfinementSpec, *, counts_processes: bool) -> dict[int, tuple[int, int]]:
    """Returns the limits to set, as resource number to (soft, hard).

    Args:
        policy: the numbers.
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
    """Returns how many processes and threads the system lets the kernel's user have.

    Args:
        policy: of the kernel. What its user runs besides may grow a little afterwards.
    """
    spare = THREADS if policy.tasks_before else 0
    return policy.tasks_before + spare + policy.processes + THREADS


def apply_rlimits(policy: ConfinementSpec, *, counts_processes: bool) -> Layer:
    """Sets the limits on this process and returns the layer, read back from the system.

    Never loosens: where the process already has a lower hard limit, that one stays.

    Args:
        policy: the numbers.
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
