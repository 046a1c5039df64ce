"""What an attack left running: found by a mark that forks and programs inherit.

Covered: processes that are forked keep the name of the one that forked them, and programs keep its
environment, whatever sessions, groups and parents they have. Not covered: code that takes both
marks off itself; the attacks here do not.
"""

from __future__ import annotations

import contextlib

import psutil

__all__ = ["MARK_VARIABLE", "survivors"]

MARK_VARIABLE = "DM_ATTACK"
"""Carries the mark to programs; the name of the process carries it to forks."""
_GONE_S = 2.0
"""What was killed may take a moment to go."""


def survivors(mark: str) -> list[str]:
    """Returns the processes of an attack that live on after its runner was closed, and kills them.

    Args:
        mark: see `Targets.mark`.
    """
    left = psutil.wait_procs(filter(lambda x: _is_marked(x, mark), psutil.process_iter()), _GONE_S)
    for process in left[1]:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left[1], _GONE_S)
    return [f"process {process.pid} lives on" for process in left[1]]


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.name() == mark or process.environ().get(MARK_VARIABLE) == mark
    except (psutil.Error, OSError):
        return False
