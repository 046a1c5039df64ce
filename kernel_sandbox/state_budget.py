"""Memory for states that wait: who was not used for longest makes room for the others."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

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
        self._busy: dict[Evictable, int] = {}

    @property
    def used_bytes(self) -> int:
        """What the states take, as far as it was measured."""
        return sum(self._sizes.values())

    def keep(self, state: Evictable, size_bytes: int) -> None:
        """Counts a state, as the one that was used last.

        Args:
            state: a new one, or one whose size has changed.
            size_bytes: memory that it shares with no other.
        """
        self._sizes[state] = size_bytes
        self._sizes.move_to_end(state)

    def forget(self, state: Evictable) -> None:
        """Counts a state no more: it has ended. One that is not counted is no error."""
        self._sizes.pop(state, None)

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
        """Ends states that nobody uses until the others fit."""
        for state in [state for state in self._sizes if state not in self._busy]:
            if self.used_bytes <= self.limit_bytes:
                return
            if state in self._busy or state not in self._sizes:  # meanwhile
                continue
            self.forget(state)
            self.evictions += 1
            await state.evict()
