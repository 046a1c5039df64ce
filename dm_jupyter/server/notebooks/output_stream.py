"""The outputs of a running cell on their way into the notebook.

Many small outputs are joined into few, and anything that a page would load for them is removed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from itertools import groupby

from dm_jupyter.core.inert import inert_output, is_heavy
from dm_jupyter.server.protocol.operations import (
    AppendOutput,
    ClearOutputs,
    Operation,
    ReplaceOutput,
)
from kernel_sandbox.cells.outputs import Added, Change, Cleared, Replaced
from kernel_sandbox.types import Display, Stream

__all__ = ["OutputStream", "joined", "operation_of"]

FLUSH_S = 0.05
"""Seconds between flushes, unnoticeable to a person: a loop of prints causes twenty operations a
second, not thousands."""


class OutputStream:
    """A buffer of changes that passes them on a few times a second, in order."""

    def __init__(self, cell_id: str, operate: Callable[[Operation], None]) -> None:
        """Start without changes.

        Args:
            cell_id: the id of the cell that runs.
            operate: called with each operation.
        """
        self._cell_id = cell_id
        self._operate = operate
        self._pending: list[Change] = []
        self._flushing: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def take(self, change: Change) -> None:
        """Add a change of the outputs."""
        self._pending.append(change)
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_later())

    async def close(self) -> None:
        """Pass on the buffered changes; called once the cell has ended.

        Raises:
            NotebookError: the run can't be written to its journal.
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
            for change in joined(pending):
                if _is_heavy(change):
                    operation = await asyncio.to_thread(operation_of, self._cell_id, change)
                else:
                    operation = operation_of(self._cell_id, change)
                self._operate(operation)
        self._flushing = None


def _is_heavy(change: Change) -> bool:
    output = None if isinstance(change, Cleared) else change.output
    return isinstance(output, Display) and is_heavy(output.data)


def operation_of(cell_id: str, change: Change) -> Operation:
    """Return the operation that brings a change of a cell's outputs into the notebook, inert.

    Args:
        cell_id: the id of the cell.
        change: the change of its outputs.
    """
    match change:
        case Added(output):
            return AppendOutput(cell_id, inert_output(output.to_nbformat()))
        case Replaced(index, output):
            return ReplaceOutput(cell_id, index, inert_output(output.to_nbformat()))
        case Cleared():
            return ClearOutputs(cell_id)


def joined(changes: list[Change]) -> Iterator[Change]:
    """Yield the changes with neighbouring pieces of one stream joined, and the last of each output.

    Args:
        changes: the changes, in order.
    """
    lasting = reversed(list(_lasting(changes)))
    for name, group in groupby(lasting, key=lambda change: getattr(_stream(change), "name", "")):
        pieces = list(group)
        streams = [stream for stream in map(_stream, pieces) if stream is not None]
        if name and streams:
            yield Added(Stream(streams[0].name, "".join(stream.text for stream in streams)))
        else:
            yield from pieces


def _lasting(changes: list[Change]) -> Iterator[Change]:
    """Yield the changes from the last to the first, without outputs that are replaced again."""
    replaced = set[int]()
    for change in reversed(changes):
        if isinstance(change, Cleared):
            replaced.clear()
        elif isinstance(change, Replaced):
            if change.index in replaced:
                continue
            replaced.add(change.index)
        yield change


def _stream(change: Change) -> Stream | None:
    if isinstance(change, Added) and isinstance(change.output, Stream):
        return change.output
    return None
