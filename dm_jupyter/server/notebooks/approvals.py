"""Cells and changes of files that wait for the person's decision.

A restricted kernel with a layer above the folder writes into the layer. After each cell, new files
reach the folder without approval. Overwritten and removed files, and programs, wait for the person.
Without a layer the files have changed already, and can only be named.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.protocol import Approval, Decide, DecideFiles, FilesDecided, FilesWait
from kernel_sandbox.aio import run_shielded
from kernel_sandbox.cells.screen import screen
from kernel_sandbox.files.workspace import TOO_MANY_TO_COMPARE, comparable_files, compared
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.jupyter.attached import AttachedKernel
from kernel_sandbox.types import CellResult, FileChange

__all__ = ["Approvals", "FileGate"]

_DONE = {"made": "written", "changed": "overwritten", "removed": "removed"}
_AS_BEFORE = "It is as it was before the cell: write a new file instead."


class Approvals:
    """The cells and files of one run that wait for a decision."""

    def __init__(self, mode: Approval, *, is_restricted: bool) -> None:
        """Start with nothing waiting.

        Args:
            mode: which cells wait: all, those the screen marks, none.
            is_restricted: whether the kernel is restricted.
        """
        self._mode = mode
        self._is_restricted = is_restricted
        self._waiting: dict[str, asyncio.Future[Decide]] = {}
        self._files: dict[str, asyncio.Future[bool]] = {}

    @property
    def asks_nobody(self) -> bool:
        """Whether nothing of the run waits for the person."""
        return self._mode == "auto"

    def reason(self, source: str, needs: str = "") -> str:
        """Return why the person is asked before the cell runs; empty if it may run at once.

        Args:
            source: the cell.
            needs: what they would agree to besides running it.
        """
        if self._mode == "auto":
            return ""
        why = ""
        if self._mode == "ask":
            why = "you asked to see every cell first"
            if not self._is_restricted:
                return "this kernel is not restricted"
        elif (refusal := screen(source)) is not None:
            why = refusal.message.removesuffix(".") if needs else refusal.message
        return "; ".join(filter(None, (why, needs)))

    def refusal(self, source: str) -> str:
        """Return why a cell that waits for nobody must not run; empty if it may."""
        refusal = screen(source) if self._mode == "auto" else None
        return refusal.message if refusal is not None else ""

    async def wait_for(self, cell_id: str) -> Decide:
        """Return the person's decision once it comes."""
        future: asyncio.Future[Decide] = asyncio.get_running_loop().create_future()
        self._waiting[cell_id] = future
        try:
            return await future
        finally:
            del self._waiting[cell_id]

    def decide(self, decision: Decide) -> bool:
        """Apply a decision, and return whether the cell waited for one."""
        future = self._waiting.get(decision.cell_id)
        if future is None or future.done():
            return False
        future.set_result(decision)
        return True

    async def wait_for_files(self, cell_id: str) -> bool:
        """Return whether a cell's changes of files are allowed, once the person has decided."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._files[cell_id] = future
        try:
            return await future
        finally:
            del self._files[cell_id]

    def decide_files(self, decision: DecideFiles) -> None:
        """Apply a decision on files; one that nobody waits for is ignored."""
        future = self._files.get(decision.cell_id)
        if future is not None and not future.done():
            future.set_result(decision.allows)


class FileGate:
    """The check of what the cells of one run do to files."""

    def __init__(self, journal: Journal, approvals: Approvals, folder: Path) -> None:
        """Start without a cell.

        Args:
            journal: the journal of the run.
            approvals: delivers the person's decisions.
            folder: the kernel's working folder.
        """
        self._journal = journal
        self._approvals = approvals
        self._folder = folder
        self._layer: WorkspaceLayer | None = None
        self._before: dict[Path, int] = {}

    async def begin(self, kernel: AttachedKernel) -> None:
        """Prepare for a cell; called before each one: from here on it is the run that writes.

        Args:
            kernel: the kernel that will run the cell.
        """
        self._layer = layer = kernel.layer
        if layer is None:
            self._before = await asyncio.to_thread(comparable_files, self._folder)
            return
        with contextlib.suppress(OSError):
            await asyncio.to_thread(layer.look_below)
        if not layer.is_gated:
            await asyncio.to_thread(layer.settle)  # what the person's own cells have written
            layer.take_news()
        layer.is_gated = layer.is_asked_about = True

    async def end(self, cell_id: str, step: int, result: CellResult) -> CellResult:
        """Return a cell's result with the outcome for its files; called after each cell.

        Args:
            cell_id: the id of the cell.
            step: the number of the turn.
            result: the result of the cell.

        Raises:
            NotebookError: the run can't be written to its journal.
        """
        layer = self._layer
        if layer is None:
            changes = await asyncio.to_thread(self._compared)
            told = TOO_MANY_TO_COMPARE if changes is None else ""
            message = f"{result.message} {told}".strip()
            return replace(result, files=changes or (), message=message)
        denied: tuple[FileChange, ...] = ()
        if waiting := await run_shielded(asyncio.to_thread(layer.ask)):
            allows = await self._is_allowed(cell_id, step, waiting)
            decided = await run_shielded(asyncio.to_thread(layer.decide, allows=allows))
            denied = () if allows else decided
        found = {change.path: change for change in layer.take_news()}
        files = tuple(
            replace(change, state="refused") if change.state == "waits" else change
            for change in found.values()
        )
        told = " ".join(self._told(files, denied))
        return replace(result, files=files, message=f"{result.message} {told}".strip())

    async def _is_allowed(self, cell_id: str, step: int, waiting: tuple[FileChange, ...]) -> bool:
        if self._approvals.asks_nobody:
            return False
        self._journal.add(FilesWait, step=step, cell_id=cell_id, files=waiting)
        allows = await self._approvals.wait_for_files(cell_id)
        self._journal.add(FilesDecided, cell_id=cell_id, allows=allows)
        return allows

    def _told(self, files: Iterable[FileChange], denied: Iterable[FileChange]) -> Iterable[str]:
        """Yield what the model should know about the files, a sentence each."""
        said_no = {change.path for change in denied}
        why = "nobody is asked in this run" if self._approvals.asks_nobody else "the person said no"
        for change in files:
            if change.path in said_no:
                yield f"`{change.path}` was not {_DONE[change.kind]}: {why}. {_AS_BEFORE}"
            elif change.state == "refused":
                reason = "; ".join(change.marks)
                if change.path == ".":
                    yield f"Not every change reached the folder: {reason}."
                else:
                    yield f"`{change.path}` was not {_DONE[change.kind]} in the folder: {reason}."

    def _compared(self) -> tuple[FileChange, ...] | None:
        return compared(self._folder, self._before, comparable_files(self._folder))

    async def close(self) -> None:
        """Drop changes that nobody decided on; called when the run has ended."""
        layer = self._layer
        if layer is not None:
            layer.is_asked_about = False
            await run_shielded(asyncio.to_thread(layer.settle))
            await run_shielded(asyncio.to_thread(layer.decide, allows=False))
