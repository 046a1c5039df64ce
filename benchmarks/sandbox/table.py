"""A benchmark's result as text or Markdown, and the settings of its run."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Run", "Table", "machine", "verdict"]


@dataclass(frozen=True, slots=True)
class Run:
    """Settings of a measurement: its thoroughness, and where to store its results."""

    rounds: int | None = None
    """Rounds of every benchmark; `None` uses each benchmark's own number."""
    is_quick: bool = False
    """Whether to do only the minimum that shows that it works."""
    out: Path | None = None
    """The file that receives every record, one per line."""
    earlier: tuple[Mapping[str, Any], ...] = ()
    """The records of a run to resume."""
    plot: Path | None = None
    """File for the picture; `None` draws none."""

    def repeats(self, usual: int, quick: int = 1) -> int:
        """Return the number of rounds of a benchmark."""
        return self.rounds or (quick if self.is_quick else usual)

    def record(self, benchmark: str, **values: Any) -> None:
        """Write a record immediately, so that an interrupted run loses nothing."""
        if self.out is not None:
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"benchmark": benchmark, **values}) + "\n")


@dataclass(frozen=True, slots=True)
class Table:
    """Result of a benchmark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())

    def to_text(self) -> str:
        """Return the table for a terminal."""
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        drawn = [
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([self.title, *drawn, *(f"* {note}" for note in self.notes)])

    def to_markdown(self) -> str:
        """Return the table for a Markdown page."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        drawn = [f"| {' | '.join(line)} |" for line in lines]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"### {self.title}", "", *drawn, "", *notes])

    def record(self, run: Run, benchmark: str) -> None:
        """Write the rows as records."""
        for row in self.rows:
            run.record(benchmark, row=dict(zip(self.columns, row, strict=True)))


def verdict(what: str, value: float, bound: float, unit: str, *, at_least: bool = False) -> str:
    """Return a note that says whether an aim is met."""
    met = value >= bound if at_least else value <= bound
    way = "at least" if at_least else "at most"
    ended = "met" if met else "missed"
    return f"aim: {what}, {way} {bound:g} {unit}: {value:.3g} {unit}, {ended}"


def machine(names: Iterable[str]) -> str:
    """Return the conditions of the figures: machine, kernel, Python, date, load, command."""
    today = dt.datetime.now(tz=dt.UTC).date()
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {_memory_gib():.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"{today}, load {os.getloadavg()[0]:.1f}: {' '.join(names)}"
    )


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
