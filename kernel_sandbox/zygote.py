"""A warm process that workers are forked from: the libraries of data analysis are imported once.

Started as `python -I -m kernel_sandbox.zygote FD PARENT MODULE...`. It runs no cell itself: it
forks, the child confines itself, and only then takes code.

Covered: it dies with the process that started it, and every worker dies with it; a worker gets
three descriptors and no others, an environment and random numbers of its own.
Not covered: addresses and the hash of text are the same in all workers of a zygote. Without
process namespaces, what a worker leaves behind is ended only when a worker of the zygote ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import random
import selectors
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from kernel_sandbox.contain import privileges
from kernel_sandbox.contain.confine import confine_late, contained
from kernel_sandbox.containment import Containment
from kernel_sandbox.policy import Policy

__all__ = ["DEFAULT_MODULES", "main"]

DEFAULT_MODULES = (
    *("numpy", "pandas", "pandas.io.formats.html", "pandas.io.formats.style"),
    *("scipy.stats", "sklearn.linear_model", "sklearn.ensemble", "sklearn.model_selection"),
    *("sklearn.cluster", "sklearn.metrics", "sklearn.preprocessing", "sklearn.pipeline"),
    *("matplotlib", "matplotlib.font_manager", "matplotlib.figure"),
)
"""Imported before the fork, those that are installed. None may start a thread that it needs."""

_REQUEST_BYTES = 256 * 1024
_DESCRIPTORS = 3
_CONNECTION = 3
_HIGHEST = 65_536


class _Zygote:  # pragma: no cover (runs in a process of its own)
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._workers: dict[int, tuple[int, int]] = {}
        """Descriptor of the process to its number and the request's."""

    def serve(self) -> None:
        """Forks and reaps until the parent is gone."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._control:
                    self._reap(key.fd)
                elif not self._take():
                    return

    def _take(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, _REQUEST_BYTES, _DESCRIPTORS)
        if not data:
            return False
        request = json.loads(data)
        pid = os.fork()
        if pid == 0:
            self._become_worker(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        handle = os.pidfd_open(pid)
        self._workers[handle] = (pid, request["id"])
        self._selector.register(handle, selectors.EVENT_READ)
        self._tell(event="started", id=request["id"], pid=pid)
        return True

    def _become_worker(self, request: dict[str, Any], descriptors: list[int]) -> None:
        status = 1
        try:
            self._control.detach()
            _keep(descriptors)
            status = _live(request)
        except BaseException:  # noqa: BLE001 (told, and the process ends)
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def _reap(self, handle: int) -> None:
        pid, number = self._workers.pop(handle)
        self._selector.unregister(handle)
        os.close(handle)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._end_strays()
        self._tell(event="ended", id=number, status=status)

    def _end_strays(self) -> None:
        """Ends what is a child of this process, and no worker: its own parent let go of it."""
        known = {pid for pid, _ in self._workers.values()}
        while strays := _children() - known:
            for pid in strays:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _tell(self, **event: Any) -> None:
        with contextlib.suppress(OSError):  # the parent is gone: the next look ends this process
            self._control.send(json.dumps(event).encode())


def _children() -> set[int]:  # pragma: no cover
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return {int(number) for number in text.split()}


def _keep(descriptors: list[int]) -> None:  # pragma: no cover
    """Makes the connection number 3, the two pipes 1 and 2, and closes all others."""
    least = _CONNECTION + 1
    connection, *pipes = [fcntl.fcntl(source, fcntl.F_DUPFD, least) for source in descriptors]
    os.dup2(connection, _CONNECTION, inheritable=False)
    for target, pipe in enumerate(pipes, start=1):
        os.dup2(pipe, target)
    os.closerange(_CONNECTION + 1, _HIGHEST)


def _live(request: dict[str, Any]) -> int:  # pragma: no cover
    """The whole life of a worker; returns its exit status."""
    environment = request["environment"]
    os.environ.clear()
    os.environ.update(environment)
    policy = Policy.from_text(request["policy"])
    os.chdir(policy.workspace)
    return contained(policy, lambda containment: _serve_cells(policy, containment))


def _serve_cells(policy: Policy, containment: Containment) -> int:  # pragma: no cover
    from kernel_sandbox.cell_loop import CellLoop  # noqa: PLC0415 (imported with the shell)
    from kernel_sandbox.forking import Forker  # noqa: PLC0415
    from kernel_sandbox.shell import ZMQInteractiveShell  # noqa: PLC0415
    from kernel_sandbox.worker_channel import Channel  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _refresh(policy.overlay)
    channel = Channel(socket.socket(fileno=_CONNECTION))
    shell = ZMQInteractiveShell.instance()
    shell.attach(channel, Path(os.environ["HOME"]))
    loop = CellLoop(channel, shell)
    containment = confine_late(policy, containment)
    Forker(loop, policy, containment)
    channel.send("ready", containment.to_json())
    return loop.serve()


def _refresh(overlay: str) -> None:  # pragma: no cover
    """Forgets what this process inherited and must not share with its siblings."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    tempfile.tempdir = None
    sys.argv = [""]
    # Isolated mode leaves the working folder out. Last: it adds modules and replaces none.
    sys.path += ["", overlay] if overlay else [""]


def _warm(modules: list[str]) -> None:  # pragma: no cover
    """Imports what cells need, and does once what is slow the first time."""
    from kernel_sandbox import cell_loop, forking  # noqa: PLC0415, F401 (imported for the children)
    from kernel_sandbox.shell import make_shell  # noqa: PLC0415

    # First: libraries look for a shell when they are imported, and settle how they print.
    shell = make_shell()
    with shell.builtin_trap:
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    shell.run_cell("pass")  # leaves no trace: no value, no history
    try:
        raise LookupError("not a failure")
    except LookupError:
        shell.InteractiveTB.structured_traceback(*sys.exc_info())
    if "pandas" in sys.modules and shell.display_formatter is not None:
        frame = sys.modules["pandas"].DataFrame({"a": [1]})
        shell.display_formatter.format(frame)  # type: ignore[no-untyped-call]


def main(arguments: list[str]) -> None:  # pragma: no cover
    """Becomes a zygote.

    Args:
        arguments: the descriptor of the control socket, the process that starts this one, and
            the modules to import.
    """
    descriptor, parent, *modules = arguments
    privileges.die_with_parent(int(parent))
    privileges.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(descriptor))
    _warm(modules)
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every object
    control.send(json.dumps({"event": "warm"}).encode())
    _Zygote(control).serve()


if __name__ == "__main__":  # pragma: no cover
    main(sys.argv[1:])
