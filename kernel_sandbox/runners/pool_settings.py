"""Settings and metrics of a pool."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.forkserver.zygote import DEFAULT_MODULES
from kernel_sandbox.types import MIB
from kernel_sandbox.watch import open_files

__all__ = ["PROFILES", "PoolMetrics", "PoolSettings", "StateRetention"]

PROFILES = (Strictness.ROLLOUT, Strictness.INTERACTIVE)
"""Profiles that a pool may have: it runs nothing unconfined."""


WORKER_FILES = 6
"""Descriptors per running worker here: a connection, two pipes, its process, two folders."""
STATE_FILES = 4
"""Descriptors per state of a tree, which has no folders of its own to lock."""
STATES_EACH = 64
"""States of a tree that there is room for on average, if the system permits it."""


class StateRetention(StrEnum):
    """What is kept of a trajectory between two cells."""

    PERSISTENT = "persistent"
    """Its process, or only its text if the memory is needed."""
    SNAPSHOT = "snapshot"
    """A process for each state that it went through, so that it can be branched anywhere."""
    REPLAY = "replay"
    """Its text alone."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """Capacity of a pool, checked on creation: positive numbers, and a profile other than `off`."""

    strategy: StateRetention = StateRetention.PERSISTENT
    """What is kept of a trajectory between two cells."""
    cells_at_once: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Cells that run at the same time; the others wait."""
    trajectories_at_once: int = 256
    """Trajectories that are open at the same time; `runner` waits until there is room."""
    live_bytes: int = 4096 * MIB
    """Memory budget for idle states, bytes."""
    deadline_s: float | None = None
    """Wall-clock time of one trajectory from its opening, seconds; `None` for no limit."""
    profile: Strictness = Strictness.ROLLOUT
    """Required confinement: by default the pool refuses a machine that can't confine workers."""
    modules: tuple[str, ...] = field(default_factory=lambda: DEFAULT_MODULES)
    """Modules imported once, before the first worker is forked."""

    def __post_init__(self) -> None:
        for name in ("cells_at_once", "trajectories_at_once", "live_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"PoolSettings.{name} must be positive, got {getattr(self, name)}")
        if self.deadline_s is not None and self.deadline_s <= 0:
            raise ValueError(f"PoolSettings.deadline_s must be positive, got {self.deadline_s}")
        if self.profile not in PROFILES:
            raise ValueError(
                f"PoolSettings.profile must be one of {', '.join(PROFILES)}, got {self.profile}: "
                "a pool confines its workers always"
            )

    def allow_open_files(self) -> None:
        """Raise this process's limit of open files for the descriptors of its workers.

        Raises:
            ContainmentError: the system does not permit so many.
        """
        live = self.trajectories_at_once
        if self.strategy is StateRetention.REPLAY:
            live = min(live, self.cells_at_once)
        states = live * STATES_EACH if self.strategy is StateRetention.SNAPSHOT else 0
        least = live * WORKER_FILES + self.cells_at_once * STATE_FILES
        open_files.allow_open_files(least, least + states * STATE_FILES)


@dataclass(frozen=True, slots=True)
class PoolMetrics:
    """Metrics of a pool, current and since it was opened."""

    active: int
    """Open trajectories."""
    queued: int
    """Trajectories that wait to be opened."""
    running: int
    """Cells that run."""
    waiting: int
    """Cells that wait for their turn."""
    cells: int
    """Cells that have run."""
    cells_per_s: float
    """`cells` per second since the pool was opened."""
    live_bytes: int
    """Upper bound on the memory of idle states, bytes; measured when it came near the limit."""
    evictions: int
    """States that were ended to make room."""
    replayed_cells: int
    """Cells that were run again to rebuild a state."""
    kills: Mapping[str, int]
    """Cells that a limit has ended, by `CellResult.ended_by`; trajectories at their deadline."""
