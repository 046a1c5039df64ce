"""Memory for states that wait: who was not used for longest makes room for the others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from kernel_sandbox.watch import consumption

__all__ = ["Evictable", "StateBudget"]


class Evictable(Protocol):
    """A state that can be built again from text."""

    async def evict(self) -> None:
        """Ends the process; called by the budget, never while the state is in use."""
        ...


class StateBudget:
    """Keeps the memory of all states together under a limit.

    Not covered: states in use, however large; what a state takes while its cell runs.
    """

    def __init__(self, limit_bytes: int) -> None:
        """Starts empty.

        Args:
            limit_bytes: what the states may take together, bytes.
        """
        self.limit_bytes = limit_bytes
        self.evictions = 0
        """How often a state was ended to make room."""
        self._sizes: OrderedDict[Evictable, int] = OrderedDict()
        self._bounded: dict[Evictable, int | None] = {}
        """Those whose size is a bound, and their processes."""
        self._busy: dict[Evictable, int] = {}

    @property
    def used_bytes(self) -> int:
        """What the states take at most, as far as it was looked at."""
        return sum(self._sizes.values())

    def keep(self, state: Evictable, pid: int | None, ancestor: int | None = None) -> None:
        """Counts a state, as the one that was used last.

        Its memory is bounded first, and measured only if the bounds of all do not fit: looking at
        every page of a process takes a good part of what a short cell does.

        Args:
            state: a new one, or one that has run a cell.
            pid: its process.
            ancestor: the process whose memory all states inherited, if there is one.
        """
        self._sizes[state] = consumption.private_bytes_at_most(pid, ancestor)
        self._sizes.move_to_end(state)
        self._bounded[state] = pid

    def forget(self, state: Evictable) -> None:
        """Counts a state no more: it has ended. One that is not counted is no error."""
        self._sizes.pop(state, None)
        self._bounded.pop(state, None)

    @contextmanager
    def using(self, *states: Evictable) -> Iterator[None]:
        """Protects states meanwhile, and makes them the last ones used."""
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
        """Measures states as long as their bounds do not fit, then ends those that nobody uses."""
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
