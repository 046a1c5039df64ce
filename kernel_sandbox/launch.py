"""Starts in the place of the kernel: confines a process, reports what held, becomes the kernel.

Started as `python -I -m kernel_sandbox.launch CONNECTION_FILE POLICY_FILE`. Isolated mode (-I)
keeps the working folder off the import path while the kernel boots, so that a file `random.py`
in it can't replace a module of the kernel; the folder joins the path afterwards.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kernel_sandbox.contain.confine import confine_late, contained
from kernel_sandbox.containment import Containment
from kernel_sandbox.policy import Policy, Report

__all__ = ["main"]


def _run_kernel(  # pragma: no cover (runs in the child for good)
    connection_file: str, policy: Policy, containment: Containment
) -> int:
    """Runs ipykernel in this process until it is told to end."""
    # Most of ipykernel's start is the import of a debugger that no restricted kernel uses.
    # ipykernel works without it; afterwards the name is free again for whoever imports it.
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    from ipykernel.kernelapp import IPKernelApp  # noqa: PLC0415 (after the limits are set)
    from traitlets.config import Config  # noqa: PLC0415

    from kernel_sandbox.interruptible import InterruptibleKernel  # noqa: PLC0415

    config = Config()
    config.HistoryManager.enabled = False  # a database file for each kernel, read by nobody
    config.IPKernelApp.connection_file = connection_file
    config.IPKernelApp.kernel_class = InterruptibleKernel
    # The poller that ends orphaned kernels looks for a parent that the namespace hides.
    config.IPKernelApp.parent_handle = 1
    app = IPKernelApp.instance(config=config)
    app.initialize([])  # type: ignore[no-untyped-call]
    del sys.modules["debugpy"]
    # Isolated mode leaves the working folder out. Last: it adds modules and replaces none.
    sys.path.append("")
    if policy.overlay:
        sys.path.append(policy.overlay)
    containment = confine_late(policy, containment)
    if containment.is_active("late_seccomp"):
        os.register_at_fork(after_in_child=_print_plainly)
    sys.stdout.flush()  # opens this thread's way out, for which a cell may leave no descriptor
    Report(os.getpid(), containment).write(policy.report)
    app.start()  # type: ignore[no-untyped-call]
    return 0


def _print_plainly() -> None:  # pragma: no cover (runs in a child of the child)
    """Gives a forked process ordinary streams: those of ipykernel would open a socket."""
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)


def main(arguments: list[str]) -> int:  # pragma: no cover (runs in the child)
    """Confines a process, runs the kernel in it and returns how it ended.

    Args:
        arguments: the connection file and the policy file.
    """
    connection_file, policy_file = arguments
    policy = Policy.read(Path(policy_file))
    return contained(policy, lambda layers: _run_kernel(connection_file, policy, layers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
