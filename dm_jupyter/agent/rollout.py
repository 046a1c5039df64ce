"""Many runs at one task, on one pool: each has a notebook in memory and a state of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from dm_jupyter.agent.candidates import Agree, say_the_same
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.core.events import Emit
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, RunCell, Trajectory
from dm_jupyter.data.data_context import build_data_context, data_context_size, names_for
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.protocols import Policy
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.errors import FilesTooLargeError
from kernel_sandbox.types import CellRunner

__all__ = ["Pool", "Rollout", "RolloutContext", "Runner", "settings_for"]


class Runner(CellRunner, Protocol):
    """What a pool hands out: `PooledRunner` of `kernel_sandbox.runners`, or one of a cluster."""

    @property
    def containment(self) -> Containment:
        """The layers around the process that was started last."""
        ...

    def branch(self) -> AbstractAsyncContextManager[Runner]:
        """Opens a runner that goes on from here by itself."""
        ...

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copies the files that the code made into a folder."""
        ...


class Pool(Protocol):
    """`kernel_sandbox.runners.pool.SandboxPool`, or one over a cluster; already open."""

    def runner(
        self, inputs: Mapping[str, Path] | None = None
    ) -> AbstractAsyncContextManager[Runner]:
        """Opens a runner once there is a place for it."""
        ...


class Rollout:
    """One run's notebook and what holds its state; implements `Notebook`."""

    def __init__(self, runner: Runner, notebook: HeadlessNotebook) -> None:
        """Takes both over; made by `RolloutContext.open_rollout`.

        Args:
            runner: where cells run.
            notebook: where they are written; its cells run in the runner.
        """
        self._runner = runner
        self.notebook = notebook

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        """Writes the thought and the cell, runs it and keeps its outputs.

        Raises:
            SandboxError: no process could be started for it.
            asyncio.CancelledError: cancelled; the cell has been stopped.
        """
        return await self.notebook.run(cell, thought)

    @asynccontextmanager
    async def branch(self) -> AsyncIterator[Rollout]:
        """Opens a rollout that goes on from here by itself, its notebook a copy of this one."""
        async with self._runner.branch() as runner:
            yield Rollout(runner, self.notebook.branched(runner))

    async def finish(self, trajectory: Trajectory, folder: Path) -> Trajectory:
        """Copies the files that the code made into a folder, and writes the notebook's end.

        Where the files are too large together none is kept.

        Args:
            trajectory: it has ended.
            folder: where the files go, made if missing.

        Returns:
            The trajectory with what its code was confined by, and a word on files that are lost.

        Raises:
            SandboxError: they can't be read or written.
        """
        try:
            await self._runner.collect(folder)
        except FilesTooLargeError as error:
            said = "; ".join(filter(None, (trajectory.stop_detail, str(error))))
            trajectory = replace(trajectory, stop_detail=said)
        ended = replace(trajectory, containment=self._runner.containment.to_json())
        self.notebook.finish(ended)
        return ended


@dataclass(frozen=True, slots=True)
class RolloutContext:
    """One task, and all that the runs at it have in common."""

    task: Task
    pool: Pool
    folder: Path
    """Gets the files that the runs' code made, a folder for each run where there are several."""
    names: Mapping[str, Path] | None = None
    """How code calls each file, to where it lies; `None` for bare names."""
    data_context: DataContext = field(default_factory=DataContext)
    """What the model is shown of the files; `with_data_context` fills it."""
    run: RunSettings = field(default_factory=RunSettings)
    dialect: str = "markdown"
    agree: Agree = say_the_same
    """Whether two runs say the same."""
    emit: Emit = lambda _: None
    """Gets the events of all runs."""

    async def with_data_context(self, reader: ProfileReader) -> RolloutContext:
        """Returns the context after a look at the task's files.

        Args:
            reader: reads them.

        Raises:
            DataFileError: a file can't be read; the message names it and the way out.
            SandboxError: no worker can be started to read it.
        """
        names = names_for(self.task.files, None) if self.names is None else self.names
        room = data_context_size(self.run.context_tokens)
        data_context = await build_data_context(names, reader, self.task.question, room)
        return replace(self, names=names, data_context=data_context)

    @property
    def start(self) -> Trajectory:
        """The trajectory with which every run begins."""
        return Trajectory(self.task, self.dialect, self.data_context)

    @asynccontextmanager
    async def open_rollout(self) -> AsyncIterator[Rollout]:
        """Opens an empty notebook with the question on top, and a fresh state.

        Raises:
            SandboxError: the pool is closed, or a file can't be used.
        """
        async with self.pool.runner(self.names) as runner:
            notebook = HeadlessNotebook(runner, self.data_context.databases)
            notebook.ask(self.task)
            yield Rollout(runner, notebook)


def settings_for(policy: Policy, settings: RunSettings) -> RunSettings:
    """Returns the settings of a run with what is known of its model.

    That is the length of its context, and whether figures stay on this machine if they are shown.

    Args:
        policy: the model.
        settings: of the run.
    """
    if not isinstance(policy, HttpPolicy):
        return settings
    return replace(
        settings,
        context_tokens=settings.context_tokens or policy.capabilities.context_tokens or 0,
        shows_pictures=settings.shows_pictures or policy.is_on_this_machine,
    )
