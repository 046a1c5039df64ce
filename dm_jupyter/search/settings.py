"""How a tree is grown: Jupiter's values (arXiv 2509.09245) by default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["SearchSettings"]


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a tree is grown and when it is enough. Checked when made."""

    candidates: int = 3
    """Turns drawn at each expansion: Jupiter's K."""
    depth: int = 10
    """Turns of a path."""
    iterations: int = 40
    """Expansions of a tree."""
    exploration: float = 0.0
    """c of PUCT: 1.25 for collecting, 0 for inference."""
    errors: int = 3
    """Cells in a row that raised and end a path."""
    temperature: float = 0.7
    """1.0 for collecting."""
    max_cells: int | None = None
    """Turns drawn for a task in all; `None` for as many as the iterations take."""
    enough_answers: int | None = None
    """Stops once so many paths have answered; `None` for never."""
    enough_votes: int | None = None
    """Stops once so many of them say the same; `None` for never."""
    draws_again: bool = False
    """Whether the root is expanded again when every path has ended; else the search is over."""
    select: Literal["vote", "mode", "value"] = "vote"
    """How one of the answers is chosen: by what most say, weighted and with a preference for the
    form asked for; by what most say, each counting one; or by the values of a model."""

    def __post_init__(self) -> None:
        for name in ("candidates", "depth", "iterations", "errors"):
            if getattr(self, name) < 1:
                raise ValueError(f"SearchSettings.{name} must be 1 or more")
        if self.select not in ("vote", "mode", "value"):
            raise ValueError(
                f"SearchSettings.select must be vote, mode or value, got {self.select!r}"
            )

    def for_collecting(self) -> SearchSettings:
        """Returns the settings to collect values with: broad, and to the end."""
        return replace(
            self, exploration=1.25, temperature=1.0, enough_answers=None, enough_votes=None
        )
