"""What an evaluation runs, and where it keeps what comes out."""

from __future__ import annotations

from asyncio import Semaphore
from dataclasses import dataclass, field
from pathlib import Path

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.search.strategies import React, Strategy
from training.marking.judge import Judge
from training.suites.suite import Suite

__all__ = ["EvalOptions"]


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What to run and where to keep it."""

    suite: Suite
    split: Path
    out: Path
    limit: int | None = None
    seed: int = 7
    """Of the draw of items; sampling starts from `run.seed`."""
    trials: int = 1
    """How often each item is tried."""
    strategy: Strategy = field(default_factory=React)
    collects: bool = False
    """Whether a search is told which answers are right, to collect values and not to score."""
    dialect: str = "markdown"
    run: RunSettings = field(default_factory=RunSettings)
    at_once: int = 1
    """Tries that go on at the same time."""
    places: Semaphore | None = None
    """What evaluations beside it share: each try takes a place, in the order of asking."""
    score_seconds: float = 60.0
    """What one score may take; beyond it, the try is unscored."""
    salvages: bool = False
    """Whether damaged lines of the records are set aside before the run goes on."""
    judge: Judge | None = None
    """For suites whose verdict needs a model."""
