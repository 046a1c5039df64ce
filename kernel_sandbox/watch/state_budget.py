"""Memory budget for idle states; the least recently used is evicted first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from kernel_sandbox.watch import consumption

__all__ = ["Evictable", "StateBudget"]


class Evictable(Protocol):
    """A state that can be rebuilt from text."""

    async def evict(self) -> None:
        """End the process; called by the budget, never while the state is in use."""
        ...


class StateBudget:
    """A limit on the memory of all states together.

    Not covered: states in use, however large; what a state takes while its cell runs.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Start empty.

        Args:
            limit_bytes: the memory that the states may use together, bytes.
        """
        self.limit_bytes = limit_bytes
        self.evictions = 0
        """How often a state was evicted."""
        self._sizes: OrderedDict[Evictable, int] = OrderedDict()
        self._bounded: dict[Evictable, int | None] = {}
        """The states whose size is a bound, and their processes."""
        self._busy: dict[Evictable, int] = {}

    @property
    def used_bytes(self) -> int:
        """The most that the states use, as far as it was measured."""
        return sum(self._sizes.values())

    def keep(self, state: Evictable, pid: int | None, ancestor: int | None = None) -> None:
        """Count a state as the most recently used one.

        Its memory is bounded first, and measured only if the bounds of all states do not fit. To
        look at every page of a process takes a good part of the time of a short cell.

        Args:
            state: a new one, or one that has run a cell.
            pid: its process.
            ancestor: the process whose memory all states inherited, if there is one.
        """
        self._sizes[state] = consumption.private_bytes_at_most(pid, ancestor)
        self._sizes.move_to_end(state)
        self._bounded[state] = pid

    def forget(self, state: Evictable) -> None:
        """Stop counting a state that has ended. One that is not counted is not an error."""
        self._sizes.pop(state, None)
        self._bounded.pop(state, None)

    @contextmanager
    def using(self, *states: Evictable) -> Iterator[None]:
        """Protect states meanwhile, and make them the most recently used ones."""
        for state in states:
            self._busy[state] = self._busy.get(state, 0) + 1
        try:
            yield
        finally:
            for state in states:
                self._busy[state] -= 1
                if not self._busy[state]:
                    del self._busy[state]
                if state in self._sizes:
                    self._sizes.move_to_end(state)

    async def make_room(self) -> None:
        """Measure states while their bounds do not fit, then evict those that are not in use."""
        while self.used_bytes > self.limit_bytes and self._bounded:
            state = next(iter(self._bounded))
            self._sizes[state] = consumption.private_bytes(self._bounded.pop(state))
        for state in [state for state in self._sizes if state not in self._busy]:
            if self.used_bytes <= self.limit_bytes:
                return
            if state in self._busy or state not in self._sizes:  # meanwhile
                continue
            self.forget(state)
            self.evictions += 1
            await state.evict()
