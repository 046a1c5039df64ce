"""The outputs of a running cell on their way into the notebook: many small ones become few."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import groupby

from dm_jupyter.server.operations import AppendOutput, ClearOutputs, Operation, ReplaceOutput
from kernel_sandbox.outputs import Added, Change, Cleared, Replaced
from kernel_sandbox.types import Stream

__all__ = ["OutputStream"]

FLUSH_S = 0.05
"""A person sees no difference; a loop of prints makes twenty operations a second, not thousands."""


class OutputStream:
    """Gathers changes and hands them on a few times a second."""

    def __init__(self, cell_id: str, operate: Callable[[Operation], None]) -> None:
        """Begins with nothing.

        Args:
            cell_id: of the cell that runs.
            operate: gets the operations.
        """
        self._cell_id = cell_id
        self._operate = operate
        self._pending: list[Change] = []
        self._timer: asyncio.TimerHandle | None = None

    def take(self, change: Change) -> None:
        """Takes a change of the outputs."""
        self._pending.append(change)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_S, self.flush)

    def flush(self) -> None:
        """Hands on what has gathered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, []
        for change in _joined(pending):
            self._operate(self._operation(change))

    def _operation(self, change: Change) -> Operation:
        match change:
            case Added(output):
                return AppendOutput(self._cell_id, output.to_nbformat())
            case Replaced(index, output):
                return ReplaceOutput(self._cell_id, index, output.to_nbformat())
            case Cleared():
                return ClearOutputs(self._cell_id)


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
