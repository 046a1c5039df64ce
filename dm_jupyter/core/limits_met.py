"""The kernel limit that a cell has reached: its name, and words for a person."""

from __future__ import annotations

from kernel_sandbox.types import CellResult, CellStatus

__all__ = ["SAME_LIMIT", "is_own_error", "limit_met", "limit_words"]

SAME_LIMIT = "two cells "
"""Start of `stop_detail` for a run that ended because two cells reached the same limit."""
_KERNEL_ENDED = "KernelEnded"
_BY_KIND = {
    "timeout": "TimeLimit",
    "deadline": "TimeLimit",
    "memory": "MemoryLimit",
    "disk": "DiskLimit",
    "processes": "ProcessLimit",
    "output": "OutputLimit",
    "processor": "ProcessorLimit",
}
_BY_STATUS = {
    CellStatus.TIMEOUT: "TimeLimit",
    CellStatus.MEMORY: "MemoryLimit",
    CellStatus.KILLED: _KERNEL_ENDED,
}
_WORDS = {
    "TimeLimit": "met the time limit",
    "MemoryLimit": "met the memory limit",
    "DiskLimit": "met the limit of disk space",
    "ProcessLimit": "met the limit of processes",
    "OutputLimit": "met the output limit",
    "ProcessorLimit": "met the limit of processor time",
    _KERNEL_ENDED: "ended the kernel",
}
_INTERRUPTS = ("KeyboardInterrupt", "CancelledError")


def limit_met(result: CellResult) -> str:
    """Return the name of the limit that a cell reached, such as `TimeLimit`; "" if none.

    Args:
        result: the cell's result.
    """
    return _BY_KIND.get(result.ended_by) or _BY_STATUS.get(result.status, "")


def limit_words(name: str) -> str:
    """Return what a cell did that reached a limit, as in "met the time limit".

    Args:
        name: the name that `limit_met` returns.
    """
    return _WORDS[name]


def is_own_error(result: CellResult) -> bool:
    """Return whether the cell's exception is its own, not the interrupt that enforced a limit."""
    error = result.error
    return error is not None and not (limit_met(result) and error.name in _INTERRUPTS)
