"""Confines a process, step by step, and says what held: the one place where the order is written.

Two processes stand between whoever starts a kernel and the kernel, where there are namespaces:

    monitor          outside: reports how it ended
    └── first        the first process of the namespace: reaps orphans; when it ends, all end
        └── kernel   confined; runs the body

Covered: each step is active, absent or refused, as seen from inside afterwards. Not covered: what
a step leaves open; each of their modules says that of itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from kernel_sandbox.contain import landlock, namespaces, privileges, rlimits, seccomp, system, view
from kernel_sandbox.containment import Containment, Layer, LayerState
from kernel_sandbox.environment import unexpected_names
from kernel_sandbox.policy import Policy

__all__ = [
    "START_FAILED",
    "confine",
    "confine_late",
    "confined",
    "contained",
    "die_with",
    "prepare",
]

START_FAILED = 96
"""The exit status of a process that could not be confined as planned; standard error says why."""

_OFF = "the profile is `off`: nothing confines this kernel"


def prepare() -> None:
    """Works out what is the same for all workers; before they are forked, it is done once."""
    for network in (False, True):
        seccomp.early_program(network)
        view.base_paths(network)


def contained(policy: Policy, body: Callable[[Containment], int]) -> int:
    """Runs the body confined and returns its exit status; this process becomes its monitor.

    Args:
        policy: what to confine it to.
        body: what runs inside, with the layers that hold there; returns an exit status.
    """
    privileges.die_with_parent(policy.parent_pid)
    if policy.no_view or not policy.confined:
        _leave_group()
        return body(confine(policy))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the kernel
    try:
        namespaces.enter(network=policy.network)
    except OSError as error:
        return _failed("namespaces", error)
    return _watch(lambda: _first(policy, body))


def _watch(run: Callable[[], int]) -> int:
    """Runs a function in a new process, which dies with this one; returns its exit status."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(ours)
        return _await(child)
    status = 1
    try:
        os.close(theirs)
        die_with(ours)
        status = run()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 (the process ends here, and says why)
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def die_with(lifeline: int) -> None:
    """Makes the system end this process with its parent, whose end of the pipe tells of it.

    In a process namespace of its own a process can't see the number of its parent.
    """
    with contextlib.suppress(OSError):
        system.prctl(system.DIE_WITH_PARENT, signal.SIGKILL)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(1)
    os.close(lifeline)


def _await(child: int) -> int:
    """Reaps what ends until the child has; returns its exit status, 128 and more for a signal."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _first(policy: Policy, body: Callable[[Containment], int]) -> int:
    try:
        view.build(policy)
    except OSError as error:
        return _failed("the view of the files", error)
    return _watch(lambda: confined(policy, body))


def confined(policy: Policy, body: Callable[[Containment], int]) -> int:
    """Runs the body in this process, confined for good; its namespaces and its view stand.

    Args:
        policy: what to confine it to.
        body: as for `contained`.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _leave_group()
    return body(confine(policy))


def _leave_group() -> None:
    """A session of its own: an interrupt reaches what a cell started, and no terminal is near."""
    with contextlib.suppress(PermissionError):  # it leads a group already
        os.setsid()


def _failed(what: str, error: OSError) -> int:
    os.write(2, f"{what} could not be made: {error}\n".encode())
    return START_FAILED


def confine(policy: Policy) -> Containment:
    """Confines this process, for good, and returns the layers as they turned out.

    Args:
        policy: what to confine it to.
    """
    if not policy.confined:
        return Containment().with_layers(Layer(name, LayerState.OFF, _OFF) for name in _STEPS)
    steps: Iterable[Callable[[], Iterable[Layer]]] = (
        lambda: namespaces.observe(policy),
        lambda: (_workspace(policy), _environment(policy), _pid_limit(policy)),
        lambda: (rlimits.apply(policy, counts_processes=_counts_alone(policy)),),
        lambda: (privileges.drop_capabilities(), privileges.drop_privileges()),
        lambda: (landlock.restrict(_rules(policy), _outside(policy)),),
        lambda: (seccomp.early(policy.network),),
    )
    return Containment().with_layers(layer for step in steps for layer in step())


_STEPS = (
    *("read_only_view", "pid_namespace", "network_namespace", "private_workspace", "environment"),
    *("pid_limit", "rlimits", "capabilities", "no_new_privs", "landlock", "seccomp"),
)


def confine_late(policy: Policy, containment: Containment) -> Containment:
    """Confines this process further, once its own sockets stand; returns all layers.

    Args:
        policy: what to confine it to.
        containment: what `confine` returned.
    """
    if not policy.confined or policy.network or containment.is_active("network_namespace"):
        return containment
    return containment.with_layers([seccomp.late()])


def _rules(policy: Policy) -> landlock.Rules:
    readable = policy.readable_paths
    base = (*view.base_paths(policy.network), Path("/proc"))
    folders = (Path(policy.workspace), Path(policy.run_dir))
    if policy.no_view:
        # Python lists the folder that it imports a package from.
        parents = tuple(Path(package).resolve().parent for package in policy.packages)
        return landlock.Rules(readable, folders, parents, policy.network, system=base)
    # In a view there is nothing to hide, and in a network of its own a kernel may talk to itself.
    private = (Path("/tmp"), Path("/dev/shm"))  # noqa: S108
    return landlock.Rules(readable, (*folders, *private), (Path("/"),), network=True, system=base)


def _outside(policy: Policy) -> Path:
    """What can be read now and not afterwards."""
    return Path("/") if policy.no_view else view.UNLISTED


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


def _counts_alone(policy: Policy) -> bool:
    """Whether the system counts the processes of this kernel apart from all others of the user."""
    return namespaces.has_own_user(policy) and not policy.shares_users


def _pid_limit(policy: Policy) -> Layer:
    """How the system itself counts processes: by namespace, or by user where that is not root."""
    if view.has_process_limit(policy):
        most = view.process_numbers(policy)
        return Layer("pid_limit", LayerState.ACTIVE, f"{most} process numbers, also for root")
    if not policy.is_root and _counts_alone(policy):
        return Layer("pid_limit", LayerState.ACTIVE, "counted with the rlimits")
    reason = "no count of its own before Linux 6.14 or without namespaces: the watchdog counts"
    return Layer("pid_limit", LayerState.ABSENT, reason)
