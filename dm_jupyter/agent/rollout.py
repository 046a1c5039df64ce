"""Many runs on one task and one pool, each with a notebook in memory and a state of its own."""

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
    """A runner of a pool: `PooledRunner` of `kernel_sandbox.runners`, or one of a cluster."""

    @property
    def containment(self) -> Containment:
        """The layers around the process that was started last."""
        ...

    def branch(self) -> AbstractAsyncContextManager[Runner]:
        """Open a runner that continues from here independently."""
        ...

    async def collect(self, folder: Path) -> tuple[Path, ...]:
        """Copy the files that the code created into a folder."""
        ...


class Pool(Protocol):
    """`kernel_sandbox.runners.pool.SandboxPool`, or one over a cluster; already open."""

    def runner(
        self, inputs: Mapping[str, Path] | None = None
    ) -> AbstractAsyncContextManager[Runner]:
        """Open a runner once a slot is free."""
        ...


class Rollout:
    """One run's notebook and the runner with its state; implements `Notebook`."""

    def __init__(self, runner: Runner, notebook: HeadlessNotebook) -> None:
        """Create the rollout from both parts; called by `RolloutContext.open_rollout`.

        Args:
            runner: the runner of the cells.
            notebook: the notebook with the cells, which run in the runner.
        """
        self._runner = runner
        self.notebook = notebook

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        """Write the thought and the cell, run it and keep its outputs.

        Raises:
            SandboxError: no process could be started for it.
            asyncio.CancelledError: cancelled; the cell has been stopped.
        """
        return await self.notebook.run(cell, thought)

    @asynccontextmanager
    async def branch(self) -> AsyncIterator[Rollout]:
        """Open a rollout that continues from here independently, with a copy of the notebook."""
        async with self._runner.branch() as runner:
            yield Rollout(runner, self.notebook.branched(runner))

    async def finish(self, trajectory: Trajectory, folder: Path) -> Trajectory:
        """Copy the files that the code created into a folder, and write the notebook's end.

        If the files are too large together, none is kept.

        Args:
            trajectory: the run, which has ended.
            folder: the folder for the files, created if missing.

        Returns:
            The trajectory with the containment of its code, and a note on files that are lost.

        Raises:
            SandboxError: the files can't be read or written.
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
    """One task, and everything that its runs have in common."""

    task: Task
    pool: Pool
    folder: Path
    """The folder for the files that the runs' code created, with a subfolder for each of several
    runs."""
    names: Mapping[str, Path] | None = None
    """Map from each file's name in the code to its path; `None` for bare names."""
    data_context: DataContext = field(default_factory=DataContext)
    """What the model is shown of the files; `with_data_context` fills it."""
    run: RunSettings = field(default_factory=RunSettings)
    dialect: str = "markdown"
    agree: Agree = say_the_same
    """Whether two runs give the same answer."""
    emit: Emit = lambda _: None
    """The callback for the events of all runs."""

    async def with_data_context(self, reader: ProfileReader) -> RolloutContext:
        """Return the context with the data context of the task's files.

        Args:
            reader: the reader of the files.

        Raises:
            DataFileError: a file can't be read; the message names it and how to fix it.
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
        """Open an empty notebook with the question on top, and a fresh state.

        Raises:
            SandboxError: the pool is closed, or a file can't be used.
        """
        async with self.pool.runner(self.names) as runner:
            notebook = HeadlessNotebook(runner, self.data_context.databases)
            notebook.ask(self.task)
            yield Rollout(runner, notebook)


def settings_for(policy: Policy, settings: RunSettings) -> RunSettings:
    """Return the settings of a run with the known properties of its model.

    These are the length of its context, and whether shown figures stay on this machine.

    Args:
        policy: the model.
        settings: the settings of the run.
    """
    if not isinstance(policy, HttpPolicy):
        return settings
    return replace(
        settings,
        context_tokens=settings.context_tokens or policy.capabilities.context_tokens or 0,
        shows_pictures=settings.shows_pictures or policy.is_on_this_machine,
    )
