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
        for process in _server_process(server).children(recursive=True)
        if _LAUNCHER in process.cmdline() and not process.children()
    )
    kernel.kill()


def _server_process(server: JupyterServer) -> psutil.Process:
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == server.port:
            return psutil.Process(connection.pid)
    raise AssertionError("the server does not listen")
