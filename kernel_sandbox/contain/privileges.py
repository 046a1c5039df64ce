"""Privileges of the kernel process, through prctl.

Covered: setuid programs give nothing; the kernel dies with the process that started it.
Not covered: what the user may do anyway; a kernel whose parent lives on, forgotten.
"""

from __future__ import annotations

import ctypes
import os
import signal

from kernel_sandbox.containment import Layer, LayerState

__all__ = ["die_with_parent", "drop_privileges"]

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_GET_NO_NEW_PRIVS = 39


def _prctl(option: int, argument: int = 0) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        return int(libc.prctl(option, argument, 0, 0, 0))
    except AttributeError:  # not Linux: no prctl in the C library
        return -1


def drop_privileges() -> Layer:
    """Sets `no_new_privs` on this process and returns the layer, read back from the system."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if _prctl(_PR_GET_NO_NEW_PRIVS) == 1:
        return Layer("no_new_privs", LayerState.ACTIVE, "setuid programs give no rights")
    return Layer("no_new_privs", LayerState.ABSENT, "this system has no prctl(NO_NEW_PRIVS)")


def die_with_parent(parent_pid: int) -> bool:
    """Makes the system kill this process when the thread that started it ends.

    Args:
        parent_pid: the expected parent. It may have died before the call, and then no signal
            would ever come: the process ends itself.

    Returns:
        Whether the system accepted it.
    """
    accepted = _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL)) == 0
    if accepted and os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)
    return accepted
