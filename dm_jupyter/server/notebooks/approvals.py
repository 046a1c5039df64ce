"""Which cells wait for the person, and the person's word on them."""

from __future__ import annotations

import asyncio

from dm_jupyter.server.protocol import Approval, Decide, DecideFiles
from kernel_sandbox.cells.screen import screen

__all__ = ["Approvals"]


class Approvals:
    """The waiting cells of one run."""

    def __init__(self, mode: Approval, *, is_restricted: bool) -> None:
        """Waits for nothing yet.

        Args:
            mode: which cells wait: all, those the screen marks, none.
            is_restricted: whether the kernel is.
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
        """Returns why the person is asked before the cell runs; empty when it may run at once.

        Args:
            source: the cell.
            needs: what besides running it they would agree to.
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
        """Returns why a cell that waits for nobody must not run; empty when it may."""
        refusal = screen(source) if self._mode == "auto" else None
        return refusal.message if refusal is not None else ""

    async def wait_for(self, cell_id: str) -> Decide:
        """Returns the person's decision once it comes."""
        future: asyncio.Future[Decide] = asyncio.get_running_loop().create_future()
        self._waiting[cell_id] = future
        try:
            return await future
        finally:
            del self._waiting[cell_id]

    def decide(self, decision: Decide) -> bool:
        """Takes a decision; returns whether the cell waited for one."""
        future = self._waiting.get(decision.cell_id)
        if future is None or future.done():
            return False
        future.set_result(decision)
        return True

    async def wait_for_files(self, cell_id: str) -> bool:
        """Returns whether what a cell did to files may stand, once the person has said so."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._files[cell_id] = future
        try:
            return await future
        finally:
            del self._files[cell_id]

    def decide_files(self, decision: DecideFiles) -> None:
        """Takes a decision on files; one that nobody waits for is no error."""
        future = self._files.get(decision.cell_id)
        if future is not None and not future.done():
            future.set_result(decision.allows)
