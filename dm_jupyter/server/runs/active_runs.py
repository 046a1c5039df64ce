"""Active runs: started, steered, and kept when they have ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from dm_jupyter.core.errors import NotebookError
from dm_jupyter.data.kernel_tables import Alive
from dm_jupyter.server.background import Tasks
from dm_jupyter.server.history.run_history import RunHistory
from dm_jupyter.server.kernels.registry import KernelRegistry
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.notebooks.open_notebooks import NotebookLocks, OpenNotebooks, Reservation
from dm_jupyter.server.protocol import Ask, Decide, DecideFiles, Stop
from dm_jupyter.server.runs.run import Run, RunContext
from dm_jupyter.server.runs.run_preparer import RefusedError, RunPreparer

__all__ = ["ActiveRuns"]

_log = logging.getLogger(__name__)


class ActiveRuns:
    """The active runs: at most one per notebook, and no other work beside it."""

    def __init__(
        self,
        preparation: RunPreparer,
        open_notebooks: OpenNotebooks,
        kernels: KernelRegistry,
        models: ModelPool,
        history: RunHistory,
        tasks: Tasks,
    ) -> None:
        """Start with no runs.

        Args:
            preparation: finds what a question needs.
            open_notebooks: the open notebooks.
            kernels: the kernels of open notebooks.
            models: the models that answer.
            history: the past runs.
            tasks: keeps the tasks of the runs.
        """
        self._preparation = preparation
        self._open_notebooks = open_notebooks
        self._kernels = kernels
        self._models = models
        self._history = history
        self._tasks = tasks
        self._runs: dict[str, Run] = {}
        self._reserved = NotebookLocks()

    def __contains__(self, run_id: str) -> bool:
        """Whether the run is active."""
        return run_id in self._runs

    def __len__(self) -> int:
        """Return the number of active runs."""
        return len(self._runs)

    def within(self, path: str) -> list[Run]:
        """Return the runs that work in a notebook."""
        return [run for run in self._runs.values() if run.ask.notebook_path == path]

    def steer(self, message: Stop | Decide | DecideFiles) -> None:
        """Pass a person's decision on to its run, if that is active."""
        run = self._runs.get(message.run_id)
        if run is None:  # it has ended meanwhile
            return
        match message:
            case Stop():
                run.stop()
            case Decide():
                run.decide(message)
            case DecideFiles():
                run.decide_files(message)

    def rename(self, old_path: str, new_path: str) -> None:
        """Move a notebook's runs and reservations to its new path."""
        self._reserved.rename(old_path, new_path)
        for run in self.within(old_path):
            run.rename(new_path)

    async def end(self, why: str) -> None:
        """Stop all runs, and return when they have ended."""
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        for run in list(self._runs.values()):
            run.stop(why)
        if tasks:
            await asyncio.wait(tasks)

    def refuse_busy(self, path: str) -> None:
        """Refuse to start work in a notebook where other work is in progress.

        Raises:
            RefusedError: a run works in the notebook, or it is reserved.
        """
        if self.within(path):
            raise RefusedError("busy", "a run still works in this notebook: stop it, or wait")
        if path in self._reserved:
            raise RefusedError("busy", "a run begins here, or the cells are run again: wait")

    def hold(self, path: str) -> AbstractContextManager[Reservation]:
        """Return a context manager that reserves a notebook against other work."""
        return self._reserved.hold(path)

    def ask(self, ask: Ask, alive: Alive | None = None) -> Coroutine[Any, Any, Run]:
        """Reserve the notebook, and return a coroutine that starts the run there.

        The notebook is reserved at once: a rename before the coroutine's first step also moves the
        question.

        Args:
            ask: the question.
            alive: the variables of a kernel that is busy with asking; `None` asks the kernel.

        Raises:
            RefusedError: the notebook is busy; the coroutine raises it if the question can't be
                worked on for another reason.
        """
        self.refuse_busy(ask.notebook_path)
        reserved = ExitStack()
        held = reserved.enter_context(self.hold(ask.notebook_path))
        return self._asked(ask, alive, held, reserved)

    async def _asked(
        self, ask: Ask, alive: Alive | None, held: Reservation, reserved: ExitStack
    ) -> Run:
        try:
            with reserved:
                ask, context = await self._preparation.context_for(ask, alive)
                return self._begin(ask.replaced(notebook_path=held.path), context)
        except RefusedError:
            raise
        except Exception as error:  # the boundary of one question
            _log.exception("a question broke before its run began")
            why = f"the question can't be worked on ({type(error).__name__}: {error})"
            raise RefusedError("unknown", f"{why}; the server's log has more") from error

    def _begin(self, ask: Ask, context: RunContext) -> Run:
        try:
            journal = self._history.begin()
        except OSError as error:
            raise RefusedError("unknown", f"the run can't be kept: {error}") from error
        run = Run(
            ask,
            context,
            journal,
            self._kernels,
            self._models,
            lambda x: self._open_notebooks.publish(run.ask.notebook_path, x),
        )
        self._open_notebooks.follow(ask.notebook_path, journal)
        self._runs[journal.run_id] = run
        try:
            task = self._tasks.keep(run.start())
            self._history.keep(run.summary)
        except (OSError, NotebookError) as error:
            is_said = isinstance(error, NotebookError)
            why = str(error) if is_said else f"the run can't be kept: {error}"
            run.abandon(why)
            del self._runs[journal.run_id]
            self._open_notebooks.drop(journal)
            journal.release()
            raise RefusedError("unknown", why) from error
        task.add_done_callback(lambda _: self._ended(run))
        return run

    def _ended(self, run: Run) -> None:
        self._runs.pop(run.journal.run_id, None)
        try:
            self._history.keep(run.summary)
            run.memory.keep(run.journal.folder)
            if run.trajectory is not None:
                self._history.keep_trajectory(run.journal, run.trajectory)
        except OSError as error:
            _log.warning("run %s can't be kept: %s", run.journal.run_id, error)
        finally:
            run.journal.release()
            self._open_notebooks.settle(run.ask.notebook_path)
        _log.info("run %s ended: %s", run.journal.run_id, run.summary.stop)
