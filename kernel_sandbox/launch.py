"""Runs inside the sandbox: confines this process, reports what held, becomes the kernel.

Started as `python -I -m kernel_sandbox.launch CONNECTION_FILE POLICY_FILE`. Isolated mode (-I)
keeps the working folder off the import path while the kernel boots, so that a file `random.py`
in it can't replace a module of the kernel; the folder joins the path afterwards.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kernel_sandbox.contain import namespaces, privileges, rlimits
from kernel_sandbox.containment import Containment, Layer, LayerState
from kernel_sandbox.environment import unexpected_names
from kernel_sandbox.policy import Policy, Report

__all__ = ["confine", "main"]


def confine(policy: Policy) -> Containment:
    """Confines this process, for good, and returns the layers as they turned out.

    Args:
        policy: what to confine it to.
    """
    if policy.no_view:  # where there is a view, bwrap itself does this
        privileges.die_with_parent(policy.parent_pid)
    if os.getpgrp() != os.getpid():  # a group of its own: an interrupt reaches what a cell started
        os.setpgrp()
    layers = [
        *namespaces.observe(policy),
        _workspace(policy),
        _environment(policy),
        rlimits.apply(policy, counts_processes=namespaces.has_own_user(policy)),
        privileges.drop_privileges(),
    ]
    return Containment().with_layers(layers)


def _workspace(policy: Policy) -> Layer:
    here = Path.cwd()
    if here != Path(policy.workspace) or not os.access(here, os.W_OK):
        return Layer("private_workspace", LayerState.REFUSED, f"{here} is not the working folder")
    return Layer("private_workspace", LayerState.ACTIVE, f"works in {here}")


def _environment(policy: Policy) -> Layer:
    extra = unexpected_names(policy.environment)
    if extra:
        return Layer("environment", LayerState.REFUSED, f"not on the list: {', '.join(extra)}")
    return Layer("environment", LayerState.ACTIVE, "only the listed variables")


def run_kernel(connection_file: str) -> None:  # pragma: no cover (runs in the child for good)
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
    app.start()  # type: ignore[no-untyped-call]


def main(arguments: list[str]) -> None:  # pragma: no cover (runs in the child)
    """Confines this process and runs the kernel.

    Args:
        arguments: the connection file and the policy file.
    """
    connection_file, policy_file = arguments
    policy = Policy.read(Path(policy_file))
    Report(os.getpid(), confine(policy)).write(Path(policy.report))
    run_kernel(connection_file)


if __name__ == "__main__":
    main(sys.argv[1:])
