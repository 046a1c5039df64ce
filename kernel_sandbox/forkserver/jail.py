"""Namespaces for workers, created by a light process so that the heavy one is forked only once.

    monitor            the process that was started; in a user namespace of its own
    ├── zygote         first in a process namespace of its own; imports the libraries
    │   └── worker     forked into the process namespace of its jail, joins the others
    └── jailer         small, so that its forks are cheap
        └── first      the first process of a jail: builds its view, reaps orphans and waits

A jail, with all that is in it, ends when its first process is killed. All jails end with the
zygote, and with the monitor.

Covered: what `view` covers, for each jail. Not covered: all jails of a zygote share one user
namespace, so the system can't count the processes of each alone. Linux 6.14 introduced a limit for
each process namespace; before it, jails are not used.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator

from kernel_sandbox.confine import namespaces, system, view
from kernel_sandbox.confine.confine import die_with
from kernel_sandbox.confine.spec import ConfinementSpec

__all__ = ["Jailer", "children_elsewhere", "join", "send_children", "split_off"]

_POLICY_BYTES = 256 * 1024
_READY = b"+"


class Jailer:
    """The zygote's handle on its jailer, which creates one jail at a time."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over the connection to a jailer that was started."""
        self._connection = connection

    def fileno(self) -> int:
        """Return a descriptor that is readable when an answer has come."""
        return self._connection.fileno()

    def ask(self, policy: str) -> None:
        """Request a jail; `answer` returns them in the order of the requests.

        Args:
            policy: the specification as text.

        Raises:
            OSError: the jailer is gone.
        """
        self._connection.send(policy.encode())

    def answer(self) -> int:
        """Return the process id of the first process of the next jail.

        Raises:
            OSError: the jail could not be created.
            EOFError: the jailer is gone.
        """
        text = self._connection.recv(4096).decode("utf-8", "replace")
        if not text:
            raise EOFError("the jailer has ended")
        if not text.isdigit():
            raise OSError(text)
        return int(text)


def split_off() -> Jailer:  # pragma: no cover (runs in the zygote)
    """Make this process a monitor; return in its child, the zygote, with a running jailer.

    Raises:
        OSError: the system does not permit it; this process is then unchanged.
    """
    namespaces.enter_users()
    system.unshare(namespaces.NEW_PROCESSES)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    lifeline, held = os.pipe()
    zygote = os.fork()
    if zygote == 0:
        theirs.close()
        os.close(held)
        die_with(lifeline)
        return Jailer(ours)
    ours.close()
    if os.fork() == 0:
        os.close(held)
        with contextlib.suppress(BaseException):
            die_with(lifeline)
            _serve(theirs)
        os._exit(1)
    theirs.close()
    while True:
        pid, status = os.wait()
        if pid == zygote:
            os._exit(max(0, os.waitstatus_to_exitcode(status)))


def _serve(connection: socket.socket) -> None:  # pragma: no cover (runs in the jailer)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the first processes
    while data := connection.recv(_POLICY_BYTES):
        try:
            answer = str(_make(ConfinementSpec.from_text(data.decode())))
        except OSError as error:
            answer = f"could not create the view of the files: {error}"
        connection.send(answer.encode())


def _make(policy: ConfinementSpec) -> int:  # pragma: no cover (runs in the jailer)
    """Fork the first process of a new jail; return its process id once the view is built."""
    ours, theirs = os.pipe()
    with children_elsewhere():
        system.unshare(namespaces.NEW_PROCESSES)
        pid = os.fork()
        if pid == 0:
            os.close(ours)
            _become_first(policy, theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        said = pipe.read()
    if said != _READY:
        raise OSError(said.decode("utf-8", "replace") or "its first process ended")
    return pid


def _become_first(policy: ConfinementSpec, pipe: int) -> None:  # pragma: no cover
    """Build the view and wait to be killed."""
    try:
        # The jailer can't be seen from in here. If it is gone already, the pipe is broken.
        system.prctl(system.DIE_WITH_PARENT, signal.SIGKILL)
        namespaces.enter_rest(network=policy.network)
        view.build(policy)
        os.write(pipe, _READY if view.has_process_limit(policy) else b"no limit on processes")
    except BaseException as error:  # noqa: BLE001 (reported, and the process ends)
        os.write(pipe, str(error).encode())
        os._exit(1)
    os.close(pipe)
    os.closerange(3, 65_536)
    while True:
        signal.pause()


@contextlib.contextmanager
def children_elsewhere() -> Iterator[None]:  # pragma: no cover (runs in zygote and jailer)
    """Let children be sent to another process namespace meanwhile, and to our own afterwards."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        system.set_namespaces(own, namespaces.NEW_PROCESSES)
        os.close(own)


def send_children(handle: int) -> None:  # pragma: no cover (runs in the zygote)
    """Make the next children members of a jail's process namespace.

    Args:
        handle: a descriptor of the jail's first process.

    Raises:
        OSError: the jail has ended.
    """
    system.set_namespaces(handle, namespaces.NEW_PROCESSES)


def join(handle: int, policy: ConfinementSpec) -> None:  # pragma: no cover (runs in the worker)
    """Move this process, a member of the jail's process namespace, completely into the jail.

    Args:
        handle: a descriptor of the jail's first process.
        policy: the specification of the jail.

    Raises:
        OSError: the jail has ended.
    """
    namespaces.join_rest(handle, network=policy.network)
    os.chdir(policy.workspace)
