"""Progress and remaining time of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

__all__ = ["WorkProgress", "words_for"]

_LOOKS_BACK = 50
"""Recent pieces of work that determine the pace: one may take minutes, and the pace changes."""


class WorkProgress:
    """Context manager that prints one line per piece of work, with a bar below on a terminal."""

    def __init__(self, name: str) -> None:
        """Prepare the display without showing it.

        Args:
            name: of the work.
        """
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            TextColumn("{task.fields[note]}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._total = self._done = 0
        self._ends: deque[float] = deque(maxlen=_LOOKS_BACK + 1)
        self._task = self._bar.add_task(name, total=None, note="", left="")

    def __enter__(self) -> Self:
        """Show the bar if there is a terminal."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop updating the bar."""
        self._bar.stop()

    def begin(self, total: int, done: int, note: str = "") -> None:
        """Set the state of the work and start the clock of the estimate.

        Args:
            total: pieces of work in all.
            done: pieces that are already done.
            note: next to the bar.
        """
        self._total, self._done = total, done
        self._ends.clear()
        self._ends.append(time.monotonic())
        self._bar.update(self._task, total=total, completed=done, note=note, left="")

    def add(self, line: str, note: str = "") -> None:
        """Show one more finished piece of work.

        Args:
            line: describes it, on a line of its own.
            note: next to the bar, and at the end of a plain line.
        """
        self._done += 1
        self._ends.append(time.monotonic())
        left = words_for(self.left_s)
        text = f"{self._done}/{self._total}  {line}"
        if not self._console.is_terminal:
            text = "   ".join(filter(None, (text, note, left)))
        self._console.print(text, soft_wrap=True)
        self._bar.update(self._task, completed=self._done, note=note, left=left)

    @property
    def left_s(self) -> float | None:
        """Seconds until all work is done, at the recent pace; `None` before the first piece."""
        if len(self._ends) < 2:
            return None
        pace_s = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        return pace_s * max(0, self._total - self._done)


def words_for(seconds: float | None) -> str:
    """Return an estimate as text, such as `about 5 min left`; empty without one."""
    if not seconds:
        return ""
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit} left"
    return f"about {max(1, round(seconds))} s left"
