"""Namespaces of a kernel: users, mounts, processes, network, messages, host name.

Covered: `enter` creates them without root. `observe` reports only what it saw: another namespace,
one loopback device, a file system that refuses a write. Not covered: systems that don't let an
ordinary user create them, where Landlock and seccomp must suffice.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from kernel_sandbox.confine import system
from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.spec import ConfinementSpec

__all__ = [
    "NEW_PROCESSES",
    "current_namespaces",
    "enter",
    "enter_rest",
    "enter_users",
    "has_own_user",
    "join_rest",
    "observe",
]

_NEWNS, _NEWUTS, _NEWIPC = 0x00020000, 0x04000000, 0x08000000
_NEWUSER, NEW_PROCESSES, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_SEEN = _NEWNS | _NEWIPC | _NEWUTS
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_KINDS = ("user", "mnt", "pid", "net")
_DENIED = (errno.EROFS, errno.EACCES, errno.EPERM)


def enter(*, network: bool) -> None:
    """Give this process, and those that it starts, namespaces of their own.

    The process itself stays in its process namespace. The next process that it forks is the first
    of the new namespace, and when that one ends, all members end.

    Args:
        network: whether to stay in the network of the machine.

    Raises:
        OSError: the system does not permit it.
    """
    enter_users()
    system.unshare(NEW_PROCESSES)
    enter_rest(network=network)


def enter_users() -> None:
    """Give this process a user namespace of its own, in which it has every right.

    Raises:
        OSError: the system does not permit it.
    """
    user, group = os.getuid(), os.getgid()
    system.unshare(_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="utf-8")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="utf-8")


def enter_rest(*, network: bool) -> None:
    """Give this process its own mounts, messages, host name and, without `network`, network.

    Args:
        network: whether to stay in the network of the machine.

    Raises:
        OSError: it lacks the privilege.
    """
    system.unshare(_SEEN if network else _SEEN | _NEWNET)
    system.set_host_name("sandbox")
    if not network:
        _raise_loopback()


def join_rest(descriptor: int, *, network: bool) -> None:
    """Join the namespaces that `enter_rest` gave another process.

    Args:
        descriptor: a pidfd of that process.
        network: the value given to its `enter_rest`.

    Raises:
        OSError: the process has ended.
    """
    system.set_namespaces(descriptor, _SEEN if network else _SEEN | _NEWNET)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", _IFF_UP)
        fcntl.ioctl(control, _SIOCSIFFLAGS, request)


def current_namespaces() -> dict[str, str]:
    """Return the namespaces of this process, as kind to the system's name for it."""
    return {kind: name for kind in _KINDS if (name := _current(kind)) is not None}


def _current(kind: str) -> str | None:
    try:
        return os.readlink(f"/proc/self/ns/{kind}")  # noqa: PTH115 (for each worker)
    except OSError:
        return None


def _is_apart(policy: ConfinementSpec, kind: str) -> bool:
    mine, theirs = _current(kind), policy.namespaces.get(kind)
    return mine is not None and theirs is not None and mine != theirs


def has_own_user(policy: ConfinementSpec) -> bool:
    """Whether this process has a user namespace of its own."""
    return _is_apart(policy, "user")


def observe(policy: ConfinementSpec) -> tuple[Layer, ...]:
    """Return the three layers that namespaces provide, as this process observes them."""
    checks: tuple[tuple[str, str, Callable[[], str], str], ...] = (
        ("read_only_view", "mnt", _writable_prefix, "system and inputs read-only, the rest hidden"),
        ("pid_namespace", "pid", lambda: "", "no other process is seen; all end together"),
    )
    layers = [_layer(policy, *check) for check in checks]
    if policy.network:
        layers.append(Layer("network_namespace", LayerState.OFF, "the limits allow the network"))
    else:
        layers.append(_layer(policy, "network_namespace", "net", _devices, "no network"))
    return tuple(layers)


def _layer(
    policy: ConfinementSpec, name: str, kind: str, hole: Callable[[], str], good: str
) -> Layer:
    if not _is_apart(policy, kind):
        state = LayerState(policy.no_view_state) if policy.no_view else LayerState.REFUSED
        return Layer(name, state, policy.no_view or f"the {kind} namespace is the parent's")
    leak = hole()
    if leak:
        return Layer(name, LayerState.REFUSED, leak)
    return Layer(name, LayerState.ACTIVE, good)


def _devices() -> str:
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    return f"network devices are visible: {', '.join(others)}" if others else ""


def _writable_prefix() -> str:
    """Try to write beside the interpreter; only called in a mount namespace of its own."""
    path = Path(sys.prefix) / f".write-probe-{os.getpid()}"
    try:
        path.touch(exist_ok=False)
    except OSError as error:
        return "" if error.errno in _DENIED else f"writing beside the interpreter: {error}"
    path.unlink()
    return "the folder of the interpreter is writable"
