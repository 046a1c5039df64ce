"""A warm process that workers are forked from: the libraries of data analysis are imported once.

Started as `python -I -m kernel_sandbox.forks.zygote FD PARENT ISOLATE MODULE...`. It runs no cell
itself: it forks, the child confines itself, and only then takes code.

Covered: it dies with the process that started it, and every worker dies with it; a worker gets
three descriptors and no others, an environment and random numbers of its own.
Not covered: addresses and the hash of text are the same in all workers of a zygote. Without
process namespaces, what a worker leaves behind is ended only when a worker of the zygote ends.
"""

from __future__ import annotations

import contextlib
import errno
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
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernel_sandbox.contain import privileges
from kernel_sandbox.contain.confine import confine_late, confined, contained, prepare
from kernel_sandbox.containment import Containment
from kernel_sandbox.forks.jail import Jailer, children_elsewhere, join, send_children, split_off
from kernel_sandbox.policy import Policy

__all__ = ["DEFAULT_MODULES", "ISOLATED", "main"]

ISOLATED = "namespaces"

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
_NICE = 10
"""Whoever watches over the workers comes first, also when one of them forks without end."""


@dataclass(slots=True)
class _Worker:  # pragma: no cover (lives in the zygote)
    number: int
    """Of the request."""
    pid: int
    first: int = -1
    """Descriptor of the first process of its jail; -1 where it has none."""
    status: int = 0


class _Zygote:  # pragma: no cover (runs in a process of its own)
    def __init__(self, control: socket.socket, jailer: Jailer | None) -> None:
        self._control = control
        self._jailer = jailer
        self._shares_users = jailer is not None
        self._pid = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._take)
        if jailer is not None:
            self._selector.register(jailer, selectors.EVENT_READ, self._take_jail)
        self._asked: deque[tuple[dict[str, Any], list[int]]] = deque()
        self._workers: dict[int, _Worker] = {}
        """By the descriptor of the process."""
        self._is_done = False

    def serve(self) -> None:
        """Forks and reaps until the parent is gone."""
        while not self._is_done:
            for key, _ in self._selector.select():
                key.data()

    def _take(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._control, _REQUEST_BYTES, _DESCRIPTORS)
        if not data:
            self._is_done = True
            return
        request = json.loads(data)
        if len(descriptors) < _DESCRIPTORS:  # this process has too many open to take all of them
            self._refuse(request, descriptors, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
            return
        if self._jailer is None or Policy.from_text(request["policy"]).no_view:
            self._fork(request, descriptors)
            return
        self._asked.append((request, descriptors))
        try:
            self._jailer.ask(request["policy"])
        except OSError as error:
            self._do_without_jails(self._jailer, error)

    def _take_jail(self) -> None:
        jailer = self._jailer
        if jailer is None:
            return
        try:
            pid = jailer.answer()
        except EOFError as error:
            self._do_without_jails(jailer, error)
            return
        except OSError as error:
            sys.stderr.write(f"no jail: {error}\n")
            self._fork(*self._asked.popleft())  # makes the namespaces itself
            return
        request, descriptors = self._asked.popleft()
        try:
            first = os.pidfd_open(pid)
        except OSError as error:
            os.kill(pid, signal.SIGKILL)
            self._refuse(request, descriptors, error)
            return
        self._fork(request, descriptors, first)

    def _do_without_jails(self, jailer: Jailer, reason: Exception) -> None:
        """The jailer is gone: workers make their namespaces themselves from now on."""
        sys.stderr.write(f"no jails any more: {reason}\n")
        self._selector.unregister(jailer)
        self._jailer = None
        while self._asked:
            self._fork(*self._asked.popleft())

    def _fork(self, request: dict[str, Any], descriptors: list[int], first: int = -1) -> None:
        try:
            worker, handle = self._forked(request, descriptors, first)
        except OSError as error:
            if first >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(first, signal.SIGKILL)
                os.close(first)
            self._refuse(request, descriptors, error)
            return
        _close(descriptors)
        self._workers[handle] = worker
        self._selector.register(handle, selectors.EVENT_READ, lambda: self._reap(handle))
        orphans = _number_outside(first) if first >= 0 else None
        pid = _number_outside(handle)
        self._tell(event="started", id=request["id"], pid=pid, orphans=orphans)

    def _forked(
        self, request: dict[str, Any], descriptors: list[int], first: int
    ) -> tuple[_Worker, int]:
        """Forks; returns the worker and a descriptor of its process.

        Raises:
            OSError: the system does not let it, or the jail has ended; nothing runs.
        """
        with children_elsewhere() if first >= 0 else contextlib.nullcontext():
            if first >= 0:
                send_children(first)
            pid = os.fork()
            if pid == 0:
                self._become_worker(request, descriptors, first)
        try:
            return _Worker(request["id"], pid, first), os.pidfd_open(pid)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def _refuse(self, request: dict[str, Any], descriptors: list[int], error: OSError) -> None:
        """One worker that can't be is no reason to end the others."""
        _close(descriptors)
        self._tell(event="refused", id=request["id"], reason=str(error))

    def _become_worker(self, request: dict[str, Any], descriptors: list[int], first: int) -> None:
        status = 1
        try:
            os.nice(_NICE)
            self._control.detach()
            policy = Policy.from_text(request["policy"])
            policy = replace(policy, parent_pid=self._pid, shares_users=self._shares_users)
            if first >= 0:
                join(first, policy)
            _keep(descriptors)
            status = _live(request["environment"], policy, is_jailed=first >= 0)
        except BaseException:  # noqa: BLE001 (told, and the process ends)
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)

    def _reap(self, handle: int) -> None:
        worker = self._workers.pop(handle)
        self._selector.unregister(handle)
        os.close(handle)
        worker.status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        self._end_strays()
        if worker.first < 0:
            self._tell(event="ended", id=worker.number, status=worker.status)
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(worker.first, signal.SIGKILL)
        # It ends once all that is left in the jail has.
        self._selector.register(worker.first, selectors.EVENT_READ, lambda: self._buried(worker))

    def _buried(self, worker: _Worker) -> None:
        self._selector.unregister(worker.first)
        os.close(worker.first)
        self._tell(event="ended", id=worker.number, status=worker.status)

    def _end_strays(self) -> None:
        """Ends what is a child of this process, and no worker: its own parent let go of it."""
        known = {worker.pid for worker in self._workers.values()}
        while strays := _children() - known:
            for pid in strays:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _tell(self, **event: Any) -> None:
        with contextlib.suppress(OSError):  # the parent is gone: the next look ends this process
            self._control.send(json.dumps(event).encode())


def _close(descriptors: list[int]) -> None:  # pragma: no cover
    for descriptor in descriptors:
        os.close(descriptor)


def _children() -> set[int]:  # pragma: no cover
    """The children of this process, by the numbers that it uses itself."""
    level = len(_numbers(Path("/proc/self/status"), "NSpid"))
    found = set()
    for outside in Path("/proc/thread-self/children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):
            found.add(_numbers(Path(f"/proc/{outside}/status"), "NSpid")[level - 1])
    return found


def _number_outside(handle: int) -> int:  # pragma: no cover
    """A process's number as the machine knows it, which is not the one that is used here."""
    return _numbers(Path(f"/proc/self/fdinfo/{handle}"), "Pid")[0]


def _numbers(path: Path, name: str) -> list[int]:  # pragma: no cover
    """What a line of a file of the system says: numbers, of the outermost first."""
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return [int(number) for number in line.split()[1:]]
    raise OSError(f"{path} has no {name}")


def _keep(descriptors: list[int]) -> None:  # pragma: no cover
    """Makes the connection number 3, the two pipes 1 and 2, and closes all others."""
    least = _CONNECTION + 1
    connection, *pipes = [fcntl.fcntl(source, fcntl.F_DUPFD, least) for source in descriptors]
    os.dup2(connection, _CONNECTION, inheritable=False)
    for target, pipe in enumerate(pipes, start=1):
        os.dup2(pipe, target)
    os.closerange(_CONNECTION + 1, _HIGHEST)


def _live(  # pragma: no cover
    environment: dict[str, str], policy: Policy, *, is_jailed: bool
) -> int:
    """The whole life of a worker; returns its exit status."""
    os.environ.clear()
    os.environ.update(environment)
    if is_jailed:
        return confined(policy, lambda containment: _serve_cells(policy, containment))
    os.chdir(policy.workspace)
    return contained(policy, lambda containment: _serve_cells(policy, containment))


def _serve_cells(policy: Policy, containment: Containment) -> int:  # pragma: no cover
    from kernel_sandbox.forks.cell_loop import CellLoop  # noqa: PLC0415 (imported with the shell)
    from kernel_sandbox.forks.forking import Forker  # noqa: PLC0415
    from kernel_sandbox.forks.shell import ZMQInteractiveShell  # noqa: PLC0415
    from kernel_sandbox.forks.worker_channel import Channel  # noqa: PLC0415

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
    from kernel_sandbox.forks import cell_loop, forking  # noqa: PLC0415, F401 (for the children)
    from kernel_sandbox.forks.shell import make_shell  # noqa: PLC0415

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
        arguments: the descriptor of the control socket, the process that starts this one,
            whether to use namespaces (`ISOLATED`), and the modules to import.
    """
    descriptor, parent, isolate, *modules = arguments
    privileges.die_with_parent(int(parent))
    prepare()
    jailer = None
    if isolate == ISOLATED:
        with contextlib.suppress(OSError):  # then each worker makes its own namespaces, or none
            jailer = split_off()
    privileges.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(descriptor))
    _warm(modules)
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every object
    outside = Path("/proc/self").readlink().name
    control.send(json.dumps({"event": "warm", "pid": int(outside)}).encode())
    _Zygote(control, jailer).serve()


if __name__ == "__main__":  # pragma: no cover
    main(sys.argv[1:])
