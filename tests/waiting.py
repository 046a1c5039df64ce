"""Waits for what no event tells: a file, another process, what a server says when it is asked."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 90.0
"""For what must happen: a machine with other work takes its time."""
_POLL_S = 0.02


async def until(
    holds: Callable[[], T | Awaitable[T]], what: str, timeout_s: float = PATIENCE_S
) -> T:
    """Returns what `holds` returns, once that is true.

    Args:
        holds: asked again and again; it may be a coroutine function.
        what: is waited for, in the words of a test that fails.
        timeout_s: after which it fails.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        found = holds()
        found = await found if inspect.isawaitable(found) else found
        if found:
            return found
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        await asyncio.sleep(_POLL_S)


def wait_until(holds: Callable[[], T], what: str, timeout_s: float = PATIENCE_S) -> T:
    """Returns what `holds` returns, once that is true; for a test without a loop."""
    deadline = time.monotonic() + timeout_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        time.sleep(_POLL_S)
    return found
