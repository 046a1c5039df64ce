"""What all targets of the fuzz have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random

__all__ = ["Call", "OnLoop", "Target"]

Call = Callable[[], None]


class Target(ABC):
    """One thing that is read."""

    documented: tuple[type[Exception], ...] = ()
    """What a call may raise."""
    on_loop = True
    """Whether the server makes the call on its event loop; else in a thread."""
    weight: float = 10
    """Its share of the inputs."""

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return type(self).__name__

    @abstractmethod
    def prepare(self, random: Random) -> Call:
        """Makes the next input; returns the call that reads it."""


class OnLoop(Target, ABC):
    """One that is read on the event loop."""
