"""Base classes of all fuzz targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random

__all__ = ["Call", "OnLoop", "Target"]

Call = Callable[[], None]


class Target(ABC):
    """One kind of input that the server reads."""

    documented: tuple[type[Exception], ...] = ()
    """Exceptions that a call may raise."""
    on_loop = True
    """Whether the server makes the call on its event loop; otherwise in a thread."""
    weight: float = 10
    """Its share of the inputs."""

    @property
    def name(self) -> str:
        """Its name in the table."""
        return type(self).__name__

    @abstractmethod
    def prepare(self, random: Random) -> Call:
        """Create the next input and return the call that reads it."""


class OnLoop(Target, ABC):
    """A target that is read on the event loop."""
