"""Launcher that confines its process, reports the active layers and becomes the kernel.

Started as `python -I -m kernel_sandbox.jupyter.launch CONNECTION_FILE DESCRIPTORS`. Isolated mode
(-I) keeps the working folder off the import path while the kernel boots. So a file `random.py` in
it can't replace a module of the kernel. The folder joins the path afterwards.
"""

from __future__ import annotations

import os
import sys

from kernel_sandbox.confine.confine import confine_late, contained
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.spec import ConfinementSpec, Report
from kernel_sandbox.jupyter.launch_pipes import KernelEnds

__all__ = ["main"]


def _run_kernel(  # pragma: no cover (runs in the child for good)
    connection_file: str, policy: ConfinementSpec, containment: Containment, ends: KernelEnds
) -> int:
    """Run ipykernel in this process until it is asked to end."""
    # Most of ipykernel's start is the import of a debugger that no restricted kernel uses.
    # ipykernel works without it; afterwards the name can be imported again.
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    from traitlets.config import Config  # noqa: PLC0415 (after the limits are set)

    from kernel_sandbox.jupyter.ipykernel_app import InterruptibleKernel, RestrictedApp  # noqa: PLC0415

    def settle() -> None:
        """Close what is still open and report it: from here on, other people's code may run."""
        del sys.modules["debugpy"]
        layers = confine_late(policy, containment)
        if layers.is_active("late_seccomp"):
            os.register_at_fork(after_in_child=_print_plainly)
        sys.stdout.flush()  # opens this thread's output: a cell may leave no descriptor for it
        ends.send(Report(os.getpid(), layers))

    config = Config()
    config.HistoryManager.enabled = False  # a database file for each kernel, read by nobody
    config.RestrictedApp.connection_file = connection_file
    config.RestrictedApp.kernel_class = InterruptibleKernel
    config.RestrictedApp.ipython_dir = os.environ["IPYTHONDIR"]  # it is not writable, on purpose
    # The poller that ends orphaned kernels looks for a parent that the namespace hides.
    config.RestrictedApp.parent_handle = 1
    app = RestrictedApp.instance(config=config)
    app.take(ends.listeners, settle)
    app.initialize([])  # type: ignore[no-untyped-call]
    # Isolated mode leaves the working folder out. At the end of the path it replaces no module.
    sys.path.append("")
    if policy.overlay:
        sys.path.append(policy.overlay)
    app.start()  # type: ignore[no-untyped-call]
    return 0


def _print_plainly() -> None:  # pragma: no cover (runs in a child of the child)
    """Give a forked process ordinary streams: those of ipykernel would open a socket."""
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)


def main(arguments: list[str]) -> int:  # pragma: no cover (runs in the child)
    """Confine a process, run the kernel in it and return how it ended.

    Args:
        arguments: the connection file, and the descriptors as `KernelEnds` writes them.
    """
    connection_file, numbers = arguments
    ends = KernelEnds.from_argument(numbers)
    policy = ends.take_policy()
    ends.await_begin()
    return contained(
        policy,
        lambda layers: _run_kernel(connection_file, policy, layers, ends),
        keeper=ends.keeper,
        of_body=ends.of_kernel,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
