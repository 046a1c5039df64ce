"""The process in which a suite scores answers, one at a time, until its parent disconnects.

*Covered*: a score that takes too long ends this process, even if the parent was killed. The
system's alarm does it, because code that blocks the interpreter notices nothing else.
When memory is short, the system ends this process before the sandbox's and the evaluation's own.
*Not covered*: a suite is trusted code. It may read and write whatever the person may.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from training.suites.suite import Outcome, Sample, Suite

__all__ = ["ScoringReply", "ScoringRequest", "Setup", "serve"]

_GRACE_S = 5.0
"""Grace period after the parent's own limit, so that the parent can report what happened."""

Setup = tuple[Suite, float]
"""First message: the suite, and the limit of a request in seconds."""
ScoringRequest = tuple[Literal["score", "agree"], str, Sample | None, tuple[Outcome, ...]]
"""Kind of request, id of the sample, the sample itself the first time, and the outcomes."""
ScoringReply = tuple[Literal["done", "failed", "memory", "unsent"], Any]
"""Status and result of a message; with `failed` and `unsent`, the result is the error in words.
The parent itself replies `unsent` to a message that it can't send."""


def serve(descriptor: int) -> None:
    """Answer the requests from a connection until its other end is closed.

    Args:
        descriptor: the file descriptor of the connection, inherited by this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this one
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    with suppress(OSError):  # not every system has it
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    with Connection(descriptor) as connection, suppress(EOFError, ConnectionError):
        _serve(connection)


def _serve(connection: Connection) -> None:
    how, setup = _reply_to(connection.recv)
    connection.send((how, setup if how == "failed" else None))
    if how != "done":
        return
    suite, limit_s = setup
    items: dict[str, Sample] = {}
    while True:
        reply = _reply_to(connection.recv)
        if reply[0] == "done":
            request: ScoringRequest = reply[1]
            signal.setitimer(signal.ITIMER_REAL, limit_s + _GRACE_S)
            reply = _reply_to(partial(_verdict, suite, items, request))
            signal.setitimer(signal.ITIMER_REAL, 0)
        connection.send(reply)


def _verdict(suite: Suite, items: dict[str, Sample], request: ScoringRequest) -> object:
    kind, name, item, outcomes = request
    if item is not None:
        items[name] = item
    if kind == "score":
        return suite.score(items[name], *outcomes)
    return suite.agree(items[name], *outcomes)


def _reply_to(compute: Callable[[], object]) -> ScoringReply:
    """Return the reply for a call; the error boundary around the suite's own code."""
    try:
        return "done", compute()
    except (EOFError, ConnectionError):
        raise
    except MemoryError:
        return "memory", None
    except Exception as error:  # noqa: BLE001  (the named boundary)
        return "failed", f"{type(error).__name__}: {error}"
