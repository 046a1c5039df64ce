"""The outputs of a running cell on their way into the notebook.

Many small ones become few, and what a page would load for them is taken out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from dm_jupyter.core.inert import inert_output, is_heavy
from dm_jupyter.server.operations import AppendOutput, ClearOutputs, Operation, ReplaceOutput
from kernel_sandbox.outputs import Added, Change, Cleared, Replaced
from kernel_sandbox.types import Display, Output, Stream

__all__ = ["OutputStream"]

FLUSH_S = 0.05
"""A person sees no difference; a loop of prints makes twenty operations a second, not thousands."""


class OutputStream:
    """Gathers changes and hands them on a few times a second, in order."""

    def __init__(self, cell_id: str, operate: Callable[[Operation], None]) -> None:
        """Begins with nothing.

        Args:
            cell_id: of the cell that runs.
            operate: gets the operations.
        """
        self._cell_id = cell_id
        self._operate = operate
        self._pending: list[Change] = []
        self._flushing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def take(self, change: Change) -> None:
        """Takes a change of the outputs."""
        self._pending.append(change)
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_later())

    async def close(self) -> None:
        """Hands on what has gathered; called once the cell has ended.

        Raises:
            NotebookError: the run can't be kept.
        """
        self._closing.set()
        if self._flushing is not None:
            await self._flushing

    async def _flush_later(self) -> None:
        while self._pending:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._closing.wait()
            pending, self._pending = self._pending, []
            for change in _joined(pending):
                self._operate(await self._operation(change))
        self._flushing = None

    async def _operation(self, change: Change) -> Operation:
        match change:
            case Added(output):
                return AppendOutput(self._cell_id, await _inert(output))
            case Replaced(index, output):
                return ReplaceOutput(self._cell_id, index, await _inert(output))
            case Cleared():
                return ClearOutputs(self._cell_id)


async def _inert(output: Output) -> dict[str, Any]:
    made = output.to_nbformat()
    if isinstance(output, Display) and is_heavy(made["data"]):
        return await asyncio.to_thread(inert_output, made)
    return inert_output(made)


def _joined(changes: list[Change]) -> Iterator[Change]:
    """The changes with neighbouring pieces of one stream put together."""
    for name, group in groupby(changes, key=lambda change: getattr(_stream(change), "name", "")):
        pieces = list(group)
        streams = [stream for stream in map(_stream, pieces) if stream is not None]
        if name and streams:
            yield Added(Stream(streams[0].name, "".join(stream.text for stream in streams)))
        else:
            yield from pieces


def _stream(change: Change) -> Stream | None:
    if isinstance(change, Added) and isinstance(change.output, Stream):
        return change.output
    return None
