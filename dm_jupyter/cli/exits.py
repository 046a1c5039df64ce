"""Exit codes, and the only code that turns faults into them."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from dm_jupyter.core.errors import (
    DataFileError,
    DmJupyterError,
    LocalModelError,
    NotebookError,
    PolicyError,
    UsageError,
)
from dm_jupyter.core.plain_text import harmless_text
from kernel_sandbox.errors import SandboxError

__all__ = [
    "DOCTOR_EXIT_CODES",
    "EXIT_CODES",
    "TIDY_EXIT_CODES",
    "Exit",
    "exit_of",
    "reporting",
    "terminate_as_interrupt",
]

EXIT_CODES = (
    "Exit codes: 0 answered; 1 no answer within the limits; 2 wrong usage; 3 a data file can't be "
    "read; 4 the model can't be reached or started; 5 the restricted kernel can't run; 6 the "
    "notebook can't be read, run again or written; 130 interrupted."
)
DOCTOR_EXIT_CODES = (
    "Exit codes: 0 you can ask; 1 something keeps you from asking; 2 wrong usage; 5 you can ask, "
    "but this machine does not meet the profile; 130 interrupted."
)
TIDY_EXIT_CODES = (
    "Exit codes: 0 the outputs are the same; 1 a cell showed something else; 2 wrong usage; 3 a "
    "file is missing; 5 the restricted kernel can't run; 6 the notebook can't be read or run "
    "again, or the new one can't be written; 130 interrupted."
)


class Exit(IntEnum):
    """Exit codes of the commands."""

    ANSWERED = 0
    NO_ANSWER = 1
    USAGE = 2
    DATA_FILE = 3
    MODEL = 4
    SANDBOX = 5
    NOTEBOOK = 6
    INTERRUPTED = 130


_CODES: tuple[tuple[type[Exception], Exit], ...] = (
    (UsageError, Exit.USAGE),
    (DataFileError, Exit.DATA_FILE),
    (PolicyError, Exit.MODEL),
    (LocalModelError, Exit.MODEL),
    (NotebookError, Exit.NOTEBOOK),
    (SandboxError, Exit.SANDBOX),
)


def exit_of(fault: Exception) -> Exit:
    """Return the exit code of a fault."""
    return next((code for kind, code in _CODES if isinstance(fault, kind)), Exit.NO_ANSWER)


class _Outcome:
    """The exit code of a block that may end in a fault."""

    def __init__(self) -> None:
        self.code: int = Exit.ANSWERED


@contextmanager
def reporting() -> Iterator[_Outcome]:
    """Print a fault of the block as one message and keep its exit code."""
    outcome = _Outcome()
    try:
        yield outcome
    except (DmJupyterError, SandboxError) as fault:
        print(f"dm-jupyter: {harmless_text(str(fault))}", file=sys.stderr)
        outcome.code = exit_of(fault)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("dm-jupyter: interrupted", file=sys.stderr)
        outcome.code = Exit.INTERRUPTED


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Make SIGTERM end the running task as Ctrl-C does: kernel stopped, notebook kept."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None  # noqa: S101
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
