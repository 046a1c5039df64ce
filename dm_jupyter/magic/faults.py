"""Faults of a magic are the faults of what it calls, shown in one line instead of a traceback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from dm_jupyter.core.errors import DmJupyterError
from kernel_sandbox.errors import SandboxError

__all__ = ["faults_in_one_line"]

E = TypeVar("E", bound=BaseException)


@contextmanager
def faults_in_one_line() -> Iterator[None]:
    """Lets the faults of the block, and its cancellation, through with one line to show."""
    try:
        yield
    except (DmJupyterError, SandboxError) as fault:
        raise _in_one_line(fault, str(fault)) from None
    except asyncio.CancelledError as fault:
        raise _in_one_line(fault, "interrupted") from None


def _in_one_line(fault: E, text: str) -> E:
    # IPython asks an exception for this method before it writes a traceback of its own.
    fault.__dict__["_render_traceback_"] = lambda: [f"dm-jupyter: {text}"]
    return fault
