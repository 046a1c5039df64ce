"""What the operating system may do to a run."""

from __future__ import annotations

import psutil

from tests.dm_jupyter.server.jupyter import JupyterServer

__all__ = ["kill_kernel"]

_LAUNCHER = "kernel_sandbox.jupyter.launch"


def kill_kernel(server: JupyterServer) -> None:
    """Kills the server's only kernel, as the operating system does when memory is short."""
    (kernel,) = (
        process
        for process in psutil.Process(server.pid).children(recursive=True)
        if _LAUNCHER in process.cmdline() and not process.children()
    )
    kernel.kill()
