"""Notebooks in which something has begun that is no run, or none yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["NotebookLocks", "Reservation"]


@dataclass(eq=False, slots=True)
class Reservation:
    """One notebook, kept from all other work."""

    path: str
    """Where it is now; a rename changes it."""


class NotebookLocks:
    """All of them; each notebook has one at most."""

    def __init__(self) -> None:
        self._held: list[Reservation] = []

    def __contains__(self, path: str) -> bool:
        """Whether the notebook is reserved."""
        return any(one.path == path for one in self._held)

    @contextmanager
    def hold(self, path: str) -> Iterator[Reservation]:
        """Reserves a notebook, which nobody else does, for as long as the block lasts."""
        held = Reservation(path)
        self._held.append(held)
        try:
            yield held
        finally:
            self._held.remove(held)

    def rename(self, old_path: str, new_path: str) -> None:
        """The notebook has another path now."""
        for one in self._held:
            if one.path == old_path:
                one.path = new_path
