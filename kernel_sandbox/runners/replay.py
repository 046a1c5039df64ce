"""Chunked code: only the text of the cells is kept, and no process between two of them.

Running that text again is enough to rebuild a state.

DataMind (arXiv 2509.25084) §4, "chunk-wise code maintenance": a snippet runs together with those
before it in a fresh process. Deviations: earlier cells run silently, one after another, and are
never edited, because removing the lines that print breaks code and loses assignments. Output that
differs from the first run is reported. The process is a fork of a warm one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernel_sandbox.aio import AsyncResource
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import SessionClosedError
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import (
    CellError,
    CellResult,
    CellStatus,
    Display,
    Limits,
    Output,
    Stream,
)

__all__ = ["CellHistory", "Past", "ReplayRunner"]

_DROPPED = "What it did is not kept: the state is the one before this cell."
_UNKEPT = frozenset(
    {CellStatus.TIMEOUT, CellStatus.INTERRUPTED, CellStatus.MEMORY, CellStatus.KILLED}
)
_CHANGING = re.compile(
    r"\b0x[0-9a-fA-F]{6,}\b"  # memory addresses
    r"|\b(dm-work|dmj)-[0-9a-f]{8}\b(/\.branches/\d+)*"  # private folders
)
_KEPT = frozenset({CellStatus.OK, CellStatus.ERROR})
"""Statuses of a cell that ended by itself: running it again gives the same state."""


class ReplayRunner(AsyncResource):
    """`CellRunner` that runs each cell in a fresh worker, after the cells before it.

    Unlike in a persistent state, code that is random or reads the time gives new values each time.
    A cell that was stopped, or that ended its process, leaves nothing behind and loses nothing.
    """

    def __init__(
        self,
        zygote: Zygote,
        limits: Limits | None = None,
        inputs: Mapping[str, Path] | None = None,
        *,
        options: WorkerOptions | None = None,
    ) -> None:
        """Prepare the runner; each cell starts its own worker.

        Args:
            zygote: the zygote that forks the workers; the caller keeps ownership.
            limits: what each worker may use.
            inputs: the files that the code may read, by the names that it uses for them.
            options: how workers are started.
        """
        self._zygote = zygote
        self._limits = limits or Limits()
        self._inputs = dict(inputs or {})
        self._options = options or WorkerOptions()
        self._worker: CellWorker | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False
        self.history = CellHistory()
        """The text of the state."""
        self.containment = Containment()
        """The layers around the last started worker."""

    async def run(self, source: str) -> CellResult:
        """Run the earlier cells, silently, and then this one.

        Args:
            source: the code.

        Raises:
            SessionClosedError: the runner is closed.
            KernelStartError: no worker could be started.
            asyncio.CancelledError: the caller was cancelled; the cell has been stopped.
        """
        async with self._lock:
            self._refuse_closed()
            async with self._fresh() as worker:
                self.containment = worker.containment
                notice = await self.history.replay(worker.run)
                self._worker = worker
                try:
                    result = await worker.run(source)
                finally:
                    self._worker = None
        self._refuse_closed()
        if result.status in _UNKEPT:
            message = f"{result.message} {_DROPPED}"
            return replace(result, message=message.strip(), state_lost=False)
        self.history.record(source, result)
        return replace(result, message=f"{notice} {result.message}".strip()) if notice else result

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Run all cells once more, copy the files that they create, and return the copies' paths.

        No file outlives its cell here, so a cell that writes different files each time gives new
        ones.

        Args:
            folder: the target, created if missing.

        Raises:
            SessionClosedError: the runner is closed.
            KernelStartError: no worker could be started.
            WorkspaceError: a file can't be copied, or it takes the total above `disk_bytes`.
        """
        async with self._lock:
            self._refuse_closed()
            if not self.history.cells:
                return ()
            async with self._fresh() as worker:
                self._worker = worker
                try:
                    await self.history.copy().replay(worker.run)
                    return await worker.collect(folder)
                finally:
                    self._worker = None

    def _fresh(self) -> CellWorker:
        options = self._options
        return CellWorker(
            self._zygote,
            self._limits,
            self._inputs,
            isolate=options.isolate,
            overlay=options.overlay,
            keeps_ledger=options.keeps_ledger,
        )

    def branch(self) -> ReplayRunner:
        """Return an independent runner that starts from this runner's state."""
        other = ReplayRunner(self._zygote, self._limits, self._inputs, options=self._options)
        other.history = self.history.copy()
        return other

    async def interrupt(self) -> None:
        """Interrupt the running cell, if any."""
        if self._worker is not None:
            await self._worker.interrupt()

    async def restart(self) -> None:
        """Discard the state, and end a cell that runs.

        Raises:
            SessionClosedError: the runner is closed.
        """
        self._refuse_closed()
        await self._end_cell()
        async with self._lock:
            self.history = CellHistory()

    async def close(self) -> None:
        """End a cell that runs; no other runs afterwards. Safe to call again."""
        self._is_closed = True
        await self._end_cell()

    async def _end_cell(self) -> None:
        if self._worker is not None:
            await self._worker.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise SessionClosedError("the runner is closed")


@dataclass(frozen=True, slots=True)
class Past:
    """One cell that ran."""

    source: str
    digest: str
    """Digest of its outputs; differs if the same code gives other outputs the next time."""


@dataclass(slots=True)
class CellHistory:
    """The cells that produced a state, in order."""

    cells: list[Past] = field(default_factory=list)
    has_gap: bool = False
    """Whether a cell was stopped halfway, so that its effects can't be repeated."""

    def record(self, source: str, result: CellResult) -> None:
        """Record a cell that ran.

        A cell that was stopped or ended its kernel is left out: run again, it would take the same
        time and end the same way. After a lost state, the history starts empty again.

        Args:
            source: the cell.
            result: its result.
        """
        if result.state_lost:
            self.cells.clear()
            self.has_gap = False
        elif result.status in _KEPT:
            self.cells.append(Past(source, digest(result)))
        else:
            self.has_gap |= result.status is not CellStatus.DENIED

    async def replay(self, run: Callable[[str], Awaitable[CellResult]]) -> str:
        """Run the cells in an empty state, silently and unchanged.

        Args:
            run: runs one cell in that state.

        Returns:
            What differed from the first time, for a person and a model; empty if nothing did.
        """
        differing = []
        for number, past in enumerate(self.cells, start=1):
            result = await run(past.source)
            if digest(result) != past.digest:
                differing.append(f"cell {number} ({_difference(result)})")
        news = []
        if differing:
            news.append(f"something came out differently: {', '.join(differing)}")
        if self.has_gap:
            news.append("what a cell had done that was stopped is gone")
        self.has_gap = False
        if not news:
            return ""
        told = "; ".join(news)
        return f"The state was built again by running the cells before. Check it: {told}."

    def copy(self) -> CellHistory:
        """Return an independent history that begins with these cells."""
        return CellHistory(list(self.cells), self.has_gap)


def _difference(result: CellResult) -> str:
    return "its output" if result.status in _KEPT else f"it ended with {result.status}"


def digest(result: CellResult) -> str:
    """Return a digest of how a cell ended and of its outputs.

    Memory addresses and the names of private folders are ignored.

    Args:
        result: the result of the cell.
    """
    seen = [result.status.value, *map(_essence, result.outputs)]
    text = _CHANGING.sub("", json.dumps(seen, sort_keys=True, default=str))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _essence(output: Output) -> list[object]:
    """Return the parts of an output that reflect the state: no traceback, no bytes of a picture."""
    match output:
        case Stream(name, text):
            return [name, text]
        case Display(data):
            return [
                [kind, None if kind.startswith("image/") else value]
                for kind, value in sorted(data.items())
            ]
        case CellError(name, message):
            return [name, message]
