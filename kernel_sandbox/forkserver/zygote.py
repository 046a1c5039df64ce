"""A warm process that workers are forked from: it imports the data analysis libraries once.

Started as `python -I -m kernel_sandbox.forkserver.zygote FD PARENT ISOLATE MODULE...`. It runs no
cell itself: it forks, and the child confines itself before it accepts code.

Covered: it dies with the process that started it, and every worker dies with it.
Not covered: without process namespaces, what a worker leaves behind is ended only when a worker of
the zygote ends.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernel_sandbox.confine import privileges
from kernel_sandbox.confine.confine import prepare_confinement
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.environment import chart_style
from kernel_sandbox.forkserver.jail import Jailer, children_elsewhere, send_children, split_off
from kernel_sandbox.forkserver.worker_life import DESCRIPTORS, WorkerOrder, live
from kernel_sandbox.watch.process_tree import children_here, number_outside

__all__ = ["DEFAULT_MODULES", "ISOLATED", "main"]

ISOLATED = "namespaces"

DEFAULT_MODULES = (
    *("numpy", "pandas", "pandas.io.formats.html", "pandas.io.formats.style"),
    *("scipy.stats", "sklearn.linear_model", "sklearn.ensemble", "sklearn.model_selection"),
    *("sklearn.cluster", "sklearn.metrics", "sklearn.preprocessing", "sklearn.pipeline"),
    *("matplotlib", "matplotlib.font_manager", "matplotlib.figure"),
)
"""Modules imported before the fork, if installed. None may start a thread that it needs."""

_REQUEST_BYTES = 256 * 1024


@dataclass(slots=True)
class _Worker:  # pragma: no cover (lives in the zygote)
    number: int
    """The number of the request."""
    pid: int
    first: int = -1
    """Descriptor of the first process of its jail; -1 if it has none."""
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
        self._asked: deque[WorkerOrder] = deque()
        self._workers: dict[int, _Worker] = {}
        """Workers by the descriptor of their process."""
        self._is_done = False

    def serve(self) -> None:
        """Fork and reap until the parent is gone."""
        while not self._is_done:
            for key, _ in self._selector.select():
                key.data()

    def _take(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._control, _REQUEST_BYTES, DESCRIPTORS)
        if not data:
            self._is_done = True
            return
        request = json.loads(data)
        policy = ConfinementSpec.from_text(request["policy"])
        policy = replace(policy, parent_pid=self._pid, shares_users=self._shares_users)
        order = WorkerOrder(request["id"], policy, request["environment"], tuple(descriptors))
        if len(descriptors) < DESCRIPTORS:  # this process has too many open to receive all of them
            self._refuse(order, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
        elif self._jailer is None or policy.no_view:
            self._fork(order)
        else:
            self._asked.append(order)
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
            self._fork(self._asked.popleft())  # creates the namespaces itself
            return
        order = self._asked.popleft()
        try:
            first = os.pidfd_open(pid)
        except OSError as error:
            os.kill(pid, signal.SIGKILL)
            self._refuse(order, error)
            return
        self._fork(order, first)

    def _do_without_jails(self, jailer: Jailer, reason: Exception) -> None:
        """Let workers create their own namespaces from now on, because the jailer is gone."""
        sys.stderr.write(f"no jails any more: {reason}\n")
        self._selector.unregister(jailer)
        self._jailer = None
        while self._asked:
            self._fork(self._asked.popleft())

    def _fork(self, order: WorkerOrder, first: int = -1) -> None:
        try:
            worker, handle = self._forked(order, first)
        except OSError as error:
            if first >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(first, signal.SIGKILL)
                os.close(first)
            self._refuse(order, error)
            return
        order.close()
        self._workers[handle] = worker
        self._selector.register(handle, selectors.EVENT_READ, lambda: self._reap(handle))
        orphans = number_outside(first) if first >= 0 else None
        self._tell(event="started", id=order.number, pid=number_outside(handle), orphans=orphans)

    def _forked(self, order: WorkerOrder, first: int) -> tuple[_Worker, int]:
        """Fork, and return the worker and a descriptor of its process.

        Raises:
            OSError: the system does not permit it, or the jail has ended; nothing runs.
        """
        with children_elsewhere() if first >= 0 else contextlib.nullcontext():
            if first >= 0:
                send_children(first)
            pid = os.fork()
            if pid == 0:
                self._control.detach()
                live(order, first)
        try:
            return _Worker(order.number, pid, first), os.pidfd_open(pid)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise

    def _refuse(self, order: WorkerOrder, error: OSError) -> None:
        """Report that a worker can't be forked; the others keep running."""
        order.close()
        self._tell(event="refused", id=order.number, reason=str(error))

    def _reap(self, handle: int) -> None:
        worker = self._workers.pop(handle)
        self._selector.unregister(handle)
        os.close(handle)
        worker.status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        self._reap_orphans()
        if worker.first < 0:
            self._tell(event="ended", id=worker.number, status=worker.status)
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(worker.first, signal.SIGKILL)
        # It ends once everything left in the jail has ended.
        self._selector.register(worker.first, selectors.EVENT_READ, lambda: self._buried(worker))

    def _buried(self, worker: _Worker) -> None:
        self._selector.unregister(worker.first)
        os.close(worker.first)
        self._tell(event="ended", id=worker.number, status=worker.status)

    def _reap_orphans(self) -> None:
        """End children of this process that are not workers: their own parents left them behind."""
        known = {worker.pid for worker in self._workers.values()}
        while orphans := children_here() - known:
            for pid in orphans:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _tell(self, **event: Any) -> None:
        with contextlib.suppress(OSError):  # the parent is gone: the next read ends this process
            self._control.send(json.dumps(event).encode())


def _warm(modules: list[str]) -> None:  # pragma: no cover
    """Import what cells need, and do once what is slow the first time."""
    from kernel_sandbox.forkserver import cell_loop, forking  # noqa: PLC0415, F401 (for the children)
    from kernel_sandbox.forkserver.shell import make_shell  # noqa: PLC0415

    # The shell comes first: libraries look for one on import and decide how they print.
    shell = make_shell()
    with shell.builtin_trap:
        for name in modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    if "matplotlib" in sys.modules:  # a kernel that is not forked finds it in its home
        sys.modules["matplotlib"].rc_file(chart_style())
    with contextlib.suppress(Exception):  # on an unknown pandas there is no ledger
        shell.ledger.prepare()
    shell.run_cell("pass")  # leaves no trace: no value, no history
    try:
        raise LookupError("not a failure")
    except LookupError:
        shell.InteractiveTB.structured_traceback(*sys.exc_info())
    if "pandas" in sys.modules and shell.display_formatter is not None:
        frame = sys.modules["pandas"].DataFrame({"a": [1]})
        shell.display_formatter.format(frame)  # type: ignore[no-untyped-call]


def main(arguments: list[str]) -> None:  # pragma: no cover
    """Become a zygote.

    Args:
        arguments: the descriptor of the control socket, the id of the process that starts this
            one, whether to use namespaces (`ISOLATED`), and the modules to import.
    """
    descriptor, parent, isolate, *modules = arguments
    privileges.die_with_parent(int(parent))
    prepare_confinement()
    jailer = None
    if isolate == ISOLATED:
        with contextlib.suppress(OSError):  # then each worker creates its own namespaces, or none
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
