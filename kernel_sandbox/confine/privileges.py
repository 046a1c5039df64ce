"""Privileges of the kernel process: no_new_privs, capabilities, and who outlives whom.

Covered: setuid programs grant nothing. A kernel that root starts, or that is root in a user
namespace of its own, has no capability and can gain none. The kernel dies with the process that
started it. A subreaper inherits what the kernel started and left behind.
Not covered: what the user may do anyway, root's own files included. A forgotten kernel whose parent
keeps running. Ending the processes that the subreaper inherits.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from kernel_sandbox.confine import system
from kernel_sandbox.confine.layers import Layer, LayerState

__all__ = ["become_subreaper", "die_with_parent", "drop_capabilities", "drop_privileges"]

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_NO_NEW_PRIVS = 39

_CAPSET_VERSION = 0x20080522
_CAPABILITIES = 64
"""Number of bits in a set."""
_HELD = ("CapInh", "CapPrm", "CapEff", "CapAmb")
_BOUNDING = "CapBnd"


def _prctl(option: int, argument: int = 0) -> int:
    try:
        return int(system.library().prctl(option, argument, 0, 0, 0))
    except AttributeError:  # not Linux: no prctl in the C library
        return -1


def drop_privileges() -> Layer:
    """Set `no_new_privs` on this process and return the layer, read back from the system."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if _prctl(_PR_GET_NO_NEW_PRIVS) == 1:
        return Layer("no_new_privs", LayerState.ACTIVE, "setuid programs give no rights")
    return Layer("no_new_privs", LayerState.ABSENT, "this system has no prctl(NO_NEW_PRIVS)")


def drop_capabilities() -> Layer:
    """Drop every capability, for good, and return the layer, read back from the system.

    Called before this process starts a thread: the system changes the calling thread alone.
    """
    for number in range(_CAPABILITIES):  # before the sets, because it needs a capability
        present = _prctl(_PR_CAPBSET_READ, number)
        if present < 0:  # the system has no more
            break
        if present:
            _prctl(_PR_CAPBSET_DROP, number)
    failure = _hold_none()
    if failure == errno.ENOSYS:
        return Layer("capabilities", LayerState.ABSENT, "this system has no capabilities")
    if failure:
        return Layer("capabilities", LayerState.REFUSED, f"capset: {os.strerror(failure)}")
    try:
        threads = list(Path("/proc/self/task").iterdir())
    except OSError:
        threads = []
    return _seen({thread.name: _sets(thread) for thread in threads})


def _hold_none() -> int:
    """Empty the sets of this thread and return the error number, 0 on success.

    The call names three sets. The ambient set contains only what two of them contain, and empties
    with them.
    """
    header = (ctypes.c_uint32 * 2)(_CAPSET_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    try:
        return 0 if system.library().capset(header, nothing) == 0 else ctypes.get_errno()
    except AttributeError:  # not Linux
        return errno.ENOSYS


def _sets(thread: Path) -> dict[str, int]:
    try:
        lines = (thread / "status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return {}
    pairs = (line.split(":\t", 1) for line in lines if line.startswith("Cap"))
    return {name: int(bits, 16) for name, bits in pairs}


def _seen(threads: Mapping[str, Mapping[str, int]]) -> Layer:
    if not any(threads.values()):
        return Layer("capabilities", LayerState.REFUSED, "dropped, and not seen: no /proc")
    for thread, sets in threads.items():
        held = [name for name in _HELD if sets.get(name, 0)]
        if held:
            reason = f"thread {thread} still has {', '.join(held)}: drop them before it starts"
            return Layer("capabilities", LayerState.REFUSED, reason)
    if any(sets.get(_BOUNDING, 0) for sets in threads.values()):
        reason = "has no capabilities; the bounding set stays because dropping it needs a privilege"
        return Layer("capabilities", LayerState.ACTIVE, reason)
    return Layer(
        "capabilities", LayerState.ACTIVE, "has no capabilities, and no program can bring one"
    )


def become_subreaper() -> bool:
    """Make this process the parent of every descendant that loses its own.

    Returns:
        Whether the system accepted it.
    """
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def die_with_parent(parent_pid: int, with_signal: signal.Signals = signal.SIGKILL) -> bool:
    """Make the system send this process a signal when the thread that started it ends.

    Args:
        parent_pid: the expected parent. It may have died before the call, and no signal would
            ever come; then the process ends itself.
        with_signal: the signal to send.

    Returns:
        Whether the system accepted it.
    """
    accepted = _prctl(_PR_SET_PDEATHSIG, int(with_signal)) == 0
    if accepted and os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)
    return accepted
