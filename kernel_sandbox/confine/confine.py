"""Confine a process, step by step, and report what took effect; only here is the order written.

With namespaces, two processes run between the one that starts a kernel and the kernel:

    monitor          outside: reports how it ended
    └── first        the first process of the namespace: reaps orphans; when it ends, all end
        └── kernel   confined; runs the body

Without namespaces, only the monitor does. It inherits what the kernel leaves behind, and ends it.

Covered: each step is active, absent or refused, as seen from inside afterwards. Not covered: what
a step leaves open, which the module of each step documents.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from kernel_sandbox.confine import (
    counting,
    landlock,
    namespaces,
    privileges,
    rlimits,
    seccomp,
    system,
    system_paths,
    view,
)
from kernel_sandbox.confine.layers import Containment, Layer, LayerState
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.environment import unexpected_names
from kernel_sandbox.watch import process_tree

__all__ = [
    "START_FAILED",
    "confine",
    "confine_late",
    "confined",
    "contained",
    "die_with",
    "prepare_confinement",
]

START_FAILED = 96
"""Exit status of a process that could not be confined as planned; standard error says why."""
_NICE = 10
"""The processes that watch a kernel run first, even when the kernel forks without end."""
_REAPED = 1000
"""Most processes reaped at once, because others may end as fast as they are reaped."""
_OFF = "the profile is `off`: nothing confines this kernel"


def prepare_confinement() -> None:
    """Compute once, before workers are forked, what is the same for all of them."""
    seccomp.prepare_programs()
    for network in (False, True):
        system_paths.base_paths(network)


def contained(
    policy: ConfinementSpec,
    body: Callable[[Containment], int],
    *,
    keeper: int = -1,
    of_body: Sequence[int] = (),
) -> int:
    """Run the body confined and return its exit status; this process becomes its monitor.

    Args:
        policy: the specification to confine it to.
        body: called inside with the layers that are in effect; returns an exit status.
        keeper: a descriptor on which the first process of the namespace accepts requests; -1 for
            none. No other process keeps it open.
        of_body: descriptors that only the body's process keeps open.
    """
    if not policy.confined:
        privileges.die_with_parent(policy.parent_pid)
        _close(keeper)
        _leave_group()
        return body(confine(policy))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the kernel
    _close(*([keeper] if policy.no_view else ()))
    if policy.no_view:
        # SIGTERM and not SIGKILL: the monitor has to end what the kernel has started.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(START_FAILED))
        privileges.die_with_parent(policy.parent_pid, signal.SIGTERM)
        privileges.become_subreaper()
        return _watch(lambda: confined(policy, body), of_body, _await_all)
    privileges.die_with_parent(policy.parent_pid)
    try:
        namespaces.enter(network=policy.network)
    except OSError as error:
        return _failed("namespaces", error)
    return _watch(lambda: _first(policy, body, keeper, of_body), (keeper, *of_body))


def _watch(
    run: Callable[[], int], closed: Sequence[int] = (), reap: Callable[[int], int] | None = None
) -> int:
    """Run a function in a new process, which dies with this one, and return its exit status.

    Args:
        run: the function.
        closed: descriptors that only the new process uses; this process closes them.
        reap: waits for the new process, given its id; `None` just waits.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(ours)
        _close(*closed)
        return (reap or _await)(child)
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


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


def die_with(lifeline: int) -> None:
    """Make the system end this process with its parent, even if the parent has ended already.

    The parent's end of the pipe shows that: in a process namespace of its own, a process can't see
    its parent's id.
    """
    with contextlib.suppress(OSError):
        system.prctl(system.DIE_WITH_PARENT, signal.SIGKILL)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(1)
    os.close(lifeline)


def _await(child: int) -> int:
    """Reap processes until the child ends; return its exit status, 128 and more for a signal."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return _exit_status(status)


def _await_all(child: int) -> int:
    """Do as `_await`, then end what the child left behind, which this process inherits."""
    status = START_FAILED
    try:
        status = _await(child)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _end_descendants()
    return status


def _end_descendants() -> None:
    """End all descendants of this process, which is a subreaper.

    An ended process counts against the process limit until it is reaped. Reaping therefore comes
    last, or processes that fork without end would have room for more.
    """
    me = os.getpid()
    with contextlib.suppress(ChildProcessError):
        while True:
            process_tree.end_all(lambda: (pid for pid in process_tree.walk((me,)) if pid != me))
            os.wait()
            for _ in range(_REAPED):
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break


def _exit_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _keep(child: int, keeper: int, workspace: str) -> int:
    """Reap as `_await` does, and answer requests meanwhile: see `LaunchPipes.refresh`."""
    ended, end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waits_on = [ended, keeper]
    while True:
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == child:
                    return _exit_status(found[1])
        for ready in select.select(waits_on, [], [])[0]:
            request = os.read(ready, 64)
            if ready != keeper:
                continue
            if not request:  # the process that started the kernel is gone; the system ends this one
                waits_on.remove(keeper)
                continue
            with contextlib.suppress(OSError):
                os.write(keeper, b"+" if view.look_again(workspace) else b"-")


def _first(
    policy: ConfinementSpec, body: Callable[[Containment], int], keeper: int, of_body: Sequence[int]
) -> int:
    try:
        policy = view.build(policy)
    except OSError as error:
        return _failed("the view of the files", error)

    def run() -> int:
        _close(keeper)
        return confined(policy, body)

    reap = partial(_keep, keeper=keeper, workspace=policy.workspace) if keeper >= 0 else None
    return _watch(run, of_body, reap)


def confined(policy: ConfinementSpec, body: Callable[[Containment], int]) -> int:
    """Run the body in this process, confined for good; its namespaces and view exist already.

    Args:
        policy: the specification to confine it to.
        body: as for `contained`.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _leave_group()
    os.nice(_NICE)
    return body(confine(policy))


def _leave_group() -> None:
    """Start a session, so that an interrupt reaches what a cell started and no terminal is near."""
    with contextlib.suppress(PermissionError):  # it leads a group already
        os.setsid()


def _failed(what: str, error: OSError) -> int:
    os.write(2, f"could not create {what}: {error}\n".encode())
    return START_FAILED


def confine(policy: ConfinementSpec) -> Containment:
    """Confine this process, for good, and return the layers as they turned out.

    Args:
        policy: the specification to confine it to.
    """
    if not policy.confined:
        return Containment().with_layers(Layer(name, LayerState.OFF, _OFF) for name in _STEPS)
    layers = Containment().with_layers(namespaces.observe(policy))
    layers = layers.with_layers((_workspace(policy), _layer(policy), _environment(policy)))
    by_user = _is_counted_by_user(policy)
    steps: Iterable[Callable[[], Layer]] = (
        lambda: rlimits.apply_rlimits(policy, counts_processes=by_user),
        privileges.drop_capabilities,
        privileges.drop_privileges,
        lambda: landlock.restrict(_rules(policy), _outside(policy)),
        lambda: seccomp.early(policy.network),
        lambda: _pid_limit(policy, by_user and layers.is_active("rlimits"), layers),
    )
    for step in steps:
        layers = layers.with_layers((step(),))
    return layers


_STEPS = (
    *("read_only_view", "pid_namespace", "network_namespace", "private_workspace"),
    *("workspace_layer", "environment"),
    *("pid_limit", "rlimits", "capabilities", "no_new_privs", "landlock", "seccomp"),
)


def confine_late(policy: ConfinementSpec, containment: Containment) -> Containment:
    """Confine this process further, once its own sockets exist; return all layers.

    Args:
        policy: the specification to confine it to.
        containment: what `confine` returned.
    """
    if not policy.confined or policy.network or containment.is_active("network_namespace"):
        return containment
    return containment.with_layers([seccomp.late()])


def _rules(policy: ConfinementSpec) -> landlock.LandlockRules:
    readable = (*policy.readable_paths, Path(policy.run_dir))
    trees, around = system_paths.base_rules(policy.network)
    base = (*trees, Path("/proc"))
    folders = tuple(map(Path, (policy.workspace, *policy.private)))
    if policy.no_view:
        # Python lists the folder that it imports a package from, hence the parents.
        parents = (Path(package).resolve().parent for package in policy.packages)
        listable = (*around, *parents)
        return landlock.LandlockRules(readable, folders, listable, policy.network, system=base)
    # A view has nothing to hide, and in a network of its own a kernel may talk to itself.
    private = (Path("/tmp"), Path("/dev/shm"))  # noqa: S108
    return landlock.LandlockRules(
        readable, (*folders, *private), (Path("/"),), network=True, system=base
    )


def _outside(policy: ConfinementSpec) -> Path:
    """Return a path that can be read now and not afterwards."""
    return Path("/") if policy.no_view else view.UNLISTED


def _workspace(policy: ConfinementSpec) -> Layer:
    here = Path.cwd()
    if here != Path(policy.workspace) or not os.access(here, os.W_OK):
        return Layer("private_workspace", LayerState.REFUSED, f"{here} is not the working folder")
    return Layer("private_workspace", LayerState.ACTIVE, f"works in {here}")


def _layer(policy: ConfinementSpec) -> Layer:
    name = "workspace_layer"
    if not policy.is_shared:
        reason = "works in a folder that goes away, or that it was given to write"
        return Layer(name, LayerState.ACTIVE, reason)
    if policy.no_view:
        return Layer(name, LayerState(policy.no_view_state), policy.no_view)
    if not policy.layer:
        return Layer(
            name, LayerState.REFUSED, "the system does not support a layer above this folder"
        )
    if not view.is_covered(policy.workspace):
        return Layer(name, LayerState.REFUSED, "there is no layer above the folder")
    return Layer(name, LayerState.ACTIVE, "writes are checked before they reach the folder")


def _environment(policy: ConfinementSpec) -> Layer:
    extra = unexpected_names(policy.environment)
    if extra:
        return Layer("environment", LayerState.REFUSED, f"not on the list: {', '.join(extra)}")
    return Layer("environment", LayerState.ACTIVE, "only the listed variables")


def _is_counted_by_user(policy: ConfinementSpec) -> bool:
    """Make the system count this process and its children by user; return whether it does."""
    if policy.user_number:
        try:
            counting.take_user(policy.user_number, policy.private)
        except OSError:
            return False
        return True
    if policy.is_root:
        return False
    return bool(policy.tasks_before) or (
        namespaces.has_own_user(policy) and not policy.shares_users
    )


def _pid_limit(policy: ConfinementSpec, by_user: bool, layers: Containment) -> Layer:
    """Return the layer that says how the system counts processes: by namespace, or by user."""
    if view.has_process_limit(policy):
        most = view.process_numbers(policy)
        return Layer("pid_limit", LayerState.ACTIVE, f"{most} process numbers, also for root")
    if policy.user_number and not layers.is_active("seccomp"):
        reason = "without the filter of system calls a kernel takes root's number back"
        return Layer("pid_limit", LayerState.REFUSED, reason)
    if by_user:
        counted = "with all that its user runs" if policy.tasks_before else "by a user of its own"
        reason = f"{rlimits.most_tasks(policy)} processes and threads, counted {counted}"
        return Layer("pid_limit", LayerState.ACTIVE, reason)
    reason = "root is not counted without namespaces, or before Linux 6.14: the watchdog counts"
    return Layer("pid_limit", LayerState.ABSENT, reason)
