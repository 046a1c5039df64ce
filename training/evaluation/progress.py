"""What a person sees while an evaluation goes on: a bar with an estimate, or a line a record."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from training.records.records import EvalRecord

__all__ = ["RunProgress"]

_REMEMBERED_S = 3_600.0
"""How far back the estimate looks: an answer may take minutes."""


class RunProgress:
    """A context manager; every record prints one line, and a terminal shows a bar below them."""

    def __init__(self, name: str) -> None:
        """Shows nothing yet.

        Args:
            name: of the suite.
        """
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[right]} right"),
            console=self._console,
            disable=not self._console.is_terminal,
            speed_estimate_period=_REMEMBERED_S,
        )
        self._total = self._done = self._right = 0
        self._task = self._bar.add_task(name, total=None, right=0)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def begin(self, total: int, done: int, right: int) -> None:
        """Says where the run stands.

        Args:
            total: records there will be.
            done: records there are.
            right: how many of these are right.
        """
        self._total, self._done, self._right = total, done, right
        self._bar.update(self._task, total=total, completed=done, right=right)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def add(self, record: EvalRecord) -> None:
        """Shows one more record."""
        self._done += 1
        self._right += record.right
        name = f"{record.id} #{record.trial + 1}" if record.trial else record.id
        self._console.print(
            f"{self._done}/{self._total}  {name:<20} {record.failure or 'right':<22} "
            f"{record.turns} turns {record.seconds:5.0f} s   {self._right} right so far",
            soft_wrap=True,
        )
        self._bar.update(self._task, completed=self._done, right=self._right)
