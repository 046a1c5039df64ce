"""Chunked code: only the text of the cells is kept, and no process between two of them.

DataMind (arXiv 2509.25084) §4, "chunk-wise code maintenance": a snippet runs together with those
before it in a fresh process. Deviates: the cells before are run silently, one after another, and
never edited (taking out the lines that print breaks code and loses assignments); what then comes
out differently is reported; the process is a fork of a warm one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kernel_sandbox.aio import AsyncResource
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import SessionClosedError
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.history import CellHistory
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import CellResult, CellStatus, Limits

__all__ = ["ReplayRunner"]

_DROPPED = "What it did is not kept: the state is the one before this cell."
_UNKEPT = frozenset(
    {CellStatus.TIMEOUT, CellStatus.INTERRUPTED, CellStatus.MEMORY, CellStatus.KILLED}
)


class ReplayRunner(AsyncResource):
    """Runs each cell in a fresh worker, after the ones before it; a `CellRunner`.

    Differs from a state that lives on: what is random or asks for the time is so again each time;
    a cell that was stopped, or that ended its process, leaves nothing behind and loses nothing.
    """

    def __init__(
        self,
        zygote: Zygote,
        limits: Limits | None = None,
        inputs: Mapping[str, Path] | None = None,
        *,
        options: WorkerOptions | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            zygote: what forks the workers; it stays the caller's.
            limits: what each of them may use.
            inputs: the files that the code may read, by the names under which it does.
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
        """The layers around the worker that was started last."""

    async def run(self, source: str) -> CellResult:
        """Runs the cells before, silently, and then this one.

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
        """Runs all cells once more and copies the files that they make; returns where they lie.

        No file outlives its cell here; those of a cell that makes others each time are new ones.

        Args:
            folder: where they go, made if missing.

        Raises:
            SessionClosedError: the runner is closed.
            KernelStartError: no worker could be started.
            WorkspaceError: a file can't be copied, or with it they are above `disk_bytes`.
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
        """Returns a runner of its own whose state begins as this one's is."""
        other = ReplayRunner(self._zygote, self._limits, self._inputs, options=self._options)
        other.history = self.history.copy()
        return other

    async def interrupt(self) -> None:
        """Interrupts the running cell; does nothing when none runs."""
        if self._worker is not None:
            await self._worker.interrupt()

    async def restart(self) -> None:
        """Forgets the state, and ends a cell that runs.

        Raises:
            SessionClosedError: the runner is closed.
        """
        self._refuse_closed()
        await self._end_cell()
        async with self._lock:
            self.history = CellHistory()

    async def close(self) -> None:
        """Ends a cell that runs; no other runs afterwards. Safe to call again."""
        self._is_closed = True
        await self._end_cell()

    async def _end_cell(self) -> None:
        if self._worker is not None:
            await self._worker.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise SessionClosedError("the runner is closed")
