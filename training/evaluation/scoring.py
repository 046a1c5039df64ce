"""Scoring in separate processes, so that the event loop that watches the sandbox never waits.

A suite reads what a model wrote, which may be long or crafted to be slow to read. So it scores in
processes of its own, which stay warm. A score that takes too long, or that ends its process, is a
`ScoringError`: no verdict, neither correct nor wrong. The next score gets a new process.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Literal, Self

from dm_jupyter.core.errors import DmJupyterError
from training.evaluation.scoring_worker import ScoringReply, ScoringRequest, Setup
from training.suites.suite import ItemScore, Outcome, Sample, Suite

__all__ = ["ScoringError", "ScoringPool", "SuiteError"]

_START_S = 120.0
"""Limit for a process to start: it imports the suite, on a machine that may be busy."""
_GONE_S = 5.0
"""Limit for a process to exit once its connection is gone."""
_CODE = """\
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from training.evaluation.scoring_worker import serve
serve(int(sys.argv[1]))
"""


class SuiteError(DmJupyterError):
    """A suite could not score an answer: a fault of the suite, not a verdict on the answer."""


class ScoringError(DmJupyterError):
    """No verdict: a limit was met, the process ended, or two answers could not be compared."""


class ScoringPool:
    """Processes that score the answers to one suite's samples; an async context manager.

    They start with the first score. `score_now` and `agree_now` may be called from any thread
    except that of an event loop.
    """

    def __init__(
        self, suite: Suite, limit_s: float, processes: int = 1, longer_by: str = ""
    ) -> None:
        """Configure the pool without starting a process.

        Args:
            suite: the suite that scores; `pickle` must be able to store it and its labels.
            limit_s: the seconds that one score may take.
            processes: the number of scores at the same time.
            longer_by: the option that sets `limit_s`, for the message of a score that is late.
        """
        self._suite = suite
        self._limit_s = limit_s
        self._longer_by = longer_by
        self._threads = ThreadPoolExecutor(processes, "scoring")
        self._free: SimpleQueue[_Worker | None] = SimpleQueue()
        for _ in range(processes):
            self._free.put(None)
        self._lock = threading.Lock()
        self._running: set[_Worker] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Return the pool."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all processes at once, whatever they are doing."""
        self.close()

    def close(self) -> None:
        """End all processes; callers that still wait for a score get a `ScoringError`."""
        with self._lock:
            self._is_closed = True
            running = list(self._running)
        for worker in running:
            worker.kill()  # the thread that waits for it still reads the connection, and closes it
        self._threads.shutdown(wait=False, cancel_futures=True)
        for _ in range(self._free.qsize()):
            with suppress(Empty):
                self._ended(self._free.get_nowait())
                self._free.put(None)

    async def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict on an answer, without blocking the event loop.

        Raises:
            ScoringError: there is no verdict; the message says why and what helps.
            SuiteError: the suite made a mistake, or its process did not start.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.score_now, item, outcome)

    def score_now(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict on an answer, blocking until it is there.

        Raises:
            ScoringError: there is no verdict; the message says why and what helps.
            SuiteError: the suite made a mistake, or its process did not start.
        """
        what = f"score the answer to {item.task.id}"
        found = self._asked("score", item, (outcome,), what)
        if not isinstance(found, ItemScore):
            kind = type(found).__name__
            raise SuiteError(f"{self._suite.name} could not {what}: it returned a {kind}")
        return found

    def agree_now(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether two answers say the same, blocking until that is known.

        Raises:
            ScoringError: they could not be compared, by a mistake of the suite as well; the
                message says why.
            SuiteError: the suite's process did not start, or its label can't be sent there.
        """
        what = f"compare two answers to {item.task.id}"
        return bool(self._asked("agree", item, (one, other), what))

    def _asked(
        self,
        kind: Literal["score", "agree"],
        item: Sample,
        outcomes: tuple[Outcome, ...],
        what: str,
    ) -> object:
        worker = self._free.get()
        try:
            if worker is None:
                worker = self._started()
            how, found = worker.ask(kind, item, outcomes, self._limit_s)
        except _LostError as error:
            self._ended(worker)
            worker = None
            raise ScoringError(self._why(error, what)) from error
        except BaseException:
            self._ended(worker)
            worker = None
            raise
        finally:
            self._free.put(worker)
        if how == "unsent" or (how == "failed" and kind == "score"):
            raise SuiteError(f"{self._suite.name} could not {what}: {found}")
        if how == "failed":  # one answer may do this, and would do it again in a resumed run
            raise ScoringError(f"{self._suite.name} could not {what}: {found}")
        if how == "memory":
            raise ScoringError(f"{self._suite.name} needed too much memory to {what}")
        return found

    def _why(self, error: _LostError, what: str) -> str:
        if error.is_late:
            way_out = f"; {self._longer_by} allows more" if self._longer_by else ""
            return f"{self._suite.name} took more than {self._limit_s:g} s to {what}{way_out}"
        return (
            f"the process that was to {what} by the rules of {self._suite.name} was ended "
            f"({error}); the machine may be short of memory"
        )

    def _started(self) -> _Worker:
        with self._lock:
            if self._is_closed:
                raise ScoringError("the evaluation ends: nothing more is scored")
            worker = _Worker()
            self._running.add(worker)
        try:
            how, found = worker.set_up((self._suite, self._limit_s))
        except _LostError as error:
            how, found = "failed", str(error)
        except BaseException:
            self._ended(worker)
            raise
        if how != "done":
            self._ended(worker)
            if self._is_closed:
                raise ScoringError("the evaluation ends: nothing more is scored")
            raise SuiteError(
                f"the process that scores {self._suite.name} did not start: {found or how}"
            )
        return worker

    def _ended(self, worker: _Worker | None) -> None:
        if worker is not None:
            worker.end()
            with self._lock:
                self._running.discard(worker)


class _LostError(Exception):
    """A worker is no longer usable; the message says how it ended."""

    def __init__(self, how: str, *, is_late: bool = False) -> None:
        super().__init__(how)
        self.is_late = is_late


class _Worker:
    """One process and the connection to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = (str(theirs.fileno()), json.dumps(sys.path))
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE, *arguments],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self._line = Connection(ours.detach())
        self._known: set[str] = set()
        self._killing = threading.Lock()

    def set_up(self, setup: Setup) -> ScoringReply:
        """Send the process its suite and return its reply."""
        return self._exchange(setup, _START_S)

    def ask(
        self,
        kind: Literal["score", "agree"],
        item: Sample,
        outcomes: tuple[Outcome, ...],
        limit_s: float,
    ) -> ScoringReply:
        """Return the reply to a request; a sample is sent once, because its label may be large."""
        name = item.task.id
        request: ScoringRequest = (kind, name, None if name in self._known else item, outcomes)
        reply = self._exchange(request, limit_s)
        if reply[0] == "done":  # else the process may not have it
            self._known.add(name)
        return reply

    def _exchange(self, message: Setup | ScoringRequest, limit_s: float) -> ScoringReply:
        try:
            self._line.send(message)
        except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
            return "unsent", f"it or a label can't be sent to a process of its own: {error}"
        except OSError as error:
            raise _LostError(self._ending()) from error
        try:
            if not self._line.poll(limit_s):
                raise _LostError("too late", is_late=True)
            reply: ScoringReply = self._line.recv()
        except (EOFError, OSError) as error:
            raise _LostError(self._ending()) from error
        return reply

    def _ending(self) -> str:
        """Return how the process ended, in words."""
        try:
            code = self._process.wait(_GONE_S)
        except subprocess.TimeoutExpired:
            return "it hung up"
        return f"exit code {code}" if code >= 0 else f"{signal.strsignal(-code)}"

    def kill(self) -> None:
        """Kill the process; safe to call repeatedly and from another thread."""
        with self._killing:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """Kill the process and close the connection; for the thread that asks it."""
        self.kill()
        self._line.close()
