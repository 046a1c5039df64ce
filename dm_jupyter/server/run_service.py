"""The service behind the WebSocket: it receives messages and starts, steers and keeps runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook_context import item_count
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.server.background import Tasks
from dm_jupyter.server.connection import Connection
from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.files.example_questions import first_questions
from dm_jupyter.server.files.meaning import Meaning, meaning_of
from dm_jupyter.server.history.journal import Journal, undo
from dm_jupyter.server.history.run_history import RunHistory
from dm_jupyter.server.history.summaries import Summary
from dm_jupyter.server.kernels.registry import KernelRegistry
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.models.model_setup import ModelSetup
from dm_jupyter.server.notebooks.open_notebooks import OpenNotebooks, Tab
from dm_jupyter.server.notebooks.tidy_service import TidyService
from dm_jupyter.server.protocol import (
    Ack,
    Ask,
    Attach,
    ClientMessage,
    Decide,
    DecideFiles,
    Detach,
    OwnCell,
    Phase,
    ReadAhead,
    Rebuild,
    Refused,
    Renamed,
    ServerMessage,
    Stop,
    TakeOver,
    Tells,
    Undo,
)
from dm_jupyter.server.runs.active_runs import ActiveRuns
from dm_jupyter.server.runs.notebook_kernels import KernelMonitor, KernelQuestions, rebuild
from dm_jupyter.server.runs.run_preparer import PromptPrefetch, RefusedError, RunPreparer
from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.confine.strictness import weaknesses
from kernel_sandbox.errors import SandboxError

__all__ = ["RunService"]

_log = logging.getLogger(__name__)
_OFF = {
    "text": "The sandbox is switched off on this server: code can do there all that you can.",
    "remedy": 'An administrator can remove SandboxProvisioner.profile = "off" from its settings.',
}
_NOT_KEPT = "this run is not kept any more, or not as one of this folder's notebooks"
Send = Callable[[ServerMessage], None]


class RunService:
    """All runs of one server."""

    def __init__(
        self,
        files: DataFiles,
        open_notebooks: OpenNotebooks,
        kernels: KernelRegistry,
        setup: ModelSetup,
        history: RunHistory,
        settings: RunSettings,
    ) -> None:
        """Start with no runs and subscribe to kernel events.

        Args:
            files: the data files of the server.
            open_notebooks: the open notebooks.
            kernels: the kernels of open notebooks.
            setup: the set-up of the models.
            history: the past runs.
            settings: the limits of each run.
        """
        self.open_notebooks = open_notebooks
        self.kernels = kernels
        self.setup = setup
        self.models = models = setup.models
        self.history = history
        self.files = files
        self._tasks = Tasks()
        self._ahead = PromptPrefetch(models, kernels, files)
        self._preparation = RunPreparer(
            kernels, models, files, history, settings, self._ahead.cancel_prefetch
        )
        self.runs = ActiveRuns(
            self._preparation, open_notebooks, kernels, models, history, self._tasks
        )
        self._monitor = KernelMonitor(open_notebooks, kernels)
        self._questions = KernelQuestions(
            self.runs, files, open_notebooks, kernels, models, self._tasks
        )
        self._tidy = TidyService(files, kernels.directory)

    def end_cut_off(self) -> None:
        """End the runs that an earlier server of this folder left open; called at the start."""
        for summary in self.history.close_cut_off():
            journal = self.history.journal(summary.run_id)
            self.open_notebooks.follow(summary.notebook_path, journal)
            self.open_notebooks.settle(summary.notebook_path)

    async def close(self) -> None:
        """End all runs, write what no tab has written, and release kernels and models."""
        await self.runs.end("the server was stopped")
        self._ahead.end()
        await self.open_notebooks.close()
        await self._monitor.close()
        await self._tasks.close()
        await self.kernels.close()
        await self.setup.close()
        await self.models.close()

    async def status(self) -> dict[str, Any]:
        """Return the status to show before the first question: models, confinement, problems."""
        return _status(
            self.models,
            is_shared=self.open_notebooks.shared is not None,
            are_confined=self.kernels.directory.are_confined,
            expected=await asyncio.to_thread(self.kernels.directory.expected),
        )

    async def meaning(
        self, question: str, notebook: str, folder: str, given: Iterable[str] = ()
    ) -> Meaning:
        """Return the files and tables that a question names, before it is asked.

        Args:
            question: the question as the person wrote it.
            notebook: the path of its notebook; empty while there is none.
            folder: the folder where names are looked up first, below the server's root.
            given: the files that come with the question.
        """
        tables = await self.kernels.variables(notebook) if notebook else []
        names = [str(table["name"]) for table in tables]
        return await asyncio.to_thread(
            meaning_of, question, self.files, folder.strip("/"), given=given, variables=names
        )

    async def preview(self, ask: Ask) -> list[dict[str, Any]]:
        """Return what a question would show the model of the notebook, each part with its size.

        Args:
            ask: the question as it would be asked.
        """
        parts = await self._preparation.preview(ask)
        return [{"kind": x.kind, "text": x.text, "count": item_count(x)} for x in parts]

    async def examples(self, folder: str) -> list[dict[str, str]]:
        """Return up to three questions about the first data files of a folder, with the file."""
        return await first_questions(folder, self.files, self.kernels.data.profile)

    async def tidied(
        self, notebook: str, run_id: str, on_progress: Callable[[str], None]
    ) -> dict[str, Any]:
        """Return `{tidied}` with the result for a notebook's tidy copy, or `{error}`.

        Args:
            notebook: the path of the notebook; its saved file is copied.
            run_id: the run whose answer is meant; empty for the last answer.
            on_progress: called with a line before each cell.
        """
        try:
            found = await self._tidy.tidy(notebook, run_id, on_progress)
        except (NotebookError, SandboxError) as error:
            return {"error": str(error)}
        except Exception as error:  # noqa: BLE001  (the boundary of one request)
            _log.exception("a notebook can't be tidied")
            return {"error": f"{notebook} can't be tidied ({type(error).__name__}: {error})"}
        return {"tidied": found.to_json()}

    def connect(self, send: Callable[[str], None]) -> Connection:
        """Return a tab's new connection; it sends its messages as JSON texts through `send`."""
        return Connection(self, send)

    def receive(self, message: ClientMessage, tab: Tab) -> None:
        """Handle one message of a tab; the answer, if any, is sent to the tab."""
        match message:
            case Attach() | Renamed() | Detach() | TakeOver():
                self._move_tab(message, tab)
            case Ask():
                self._ask_for(message, tab.send)
            case ReadAhead() if not self.runs:  # a run needs the model for itself
                self._ahead.begin(message)
            case Tells():
                self.open_notebooks.tell(message, tab)
            case Ack():
                self.open_notebooks.acknowledge(message)
            case Rebuild(run_id=run_id):
                self._tasks.spawn(self._rebuild(run_id, tab.send))
            case Undo(run_id=run_id):
                self._undo(run_id, tab.send)
            case Stop() | Decide() | DecideFiles():
                self._steer(message, tab.send)
            case OwnCell(notebook_path=path) if not self.runs.within(path):
                self._tasks.spawn(self.kernels.directory.open_gate(path))
            case _:
                pass  # a run works in the notebook

    def _move_tab(self, message: Attach | Renamed | Detach | TakeOver, tab: Tab) -> None:
        match message:
            case Attach():
                self._attach(message, tab)
            case Renamed():
                self._rename(message, tab)
            case Detach(notebook_path=path):
                self.open_notebooks.leave(path, tab.client_id)
            case TakeOver(notebook_path=path):
                self.open_notebooks.take_over(path, tab.client_id)

    def _attach(self, message: Attach, tab: Tab) -> None:
        open_notebook = self.open_notebooks.attach(message, tab)
        self._monitor.watch(open_notebook)
        for run in self.runs.within(message.notebook_path):
            if run.ephemeral is not None:
                tab.send(run.ephemeral)

    def _rename(self, message: Renamed, tab: Tab) -> None:
        self.runs.rename(message.old_path, message.new_path)
        self.open_notebooks.rename(message, tab)
        try:
            self.history.rename(message.old_path, message.new_path)
        except OSError as error:
            _log.warning("the runs of %s can't be listed anew: %s", message.old_path, error)

    def _ask_for(self, ask: Ask, send: Send) -> None:
        try:
            begun = self.runs.ask(ask)
        except RefusedError as refusal:
            send(_refused(ask, refusal))
            return

        async def begin() -> None:
            try:
                await begun
            except RefusedError as refusal:
                send(_refused(ask, refusal))

        self._tasks.spawn(begin())

    def _steer(self, message: Stop | Decide | DecideFiles, send: Send) -> None:
        if isinstance(message, Stop) and message.run_id not in self.runs:
            self._kept(message.run_id, send)
        else:
            self.runs.steer(message)

    def _kept(self, run_id: str, send: Send) -> tuple[Summary, Journal] | None:
        """Return what is kept of a run; if that is nothing, tell the tab and return `None`."""
        try:
            return self.history.summary(run_id), self.history.journal(run_id)
        except KeyError:
            send(Refused(run_id, "unknown", _NOT_KEPT))
            return None

    def _undo(self, run_id: str, send: Send) -> None:
        kept = self._kept(run_id, send)
        if kept is None:
            return
        summary, journal = kept
        if run_id in self.runs:
            send(Refused(run_id, "busy", "the run is still active: stop it first"))
            return
        try:
            undo(self.open_notebooks.follow(summary.notebook_path, journal))
        except NotebookError as error:
            send(Refused(run_id, "notebook", str(error)))
        except ValueError as error:
            send(Refused(run_id, "notebook", f"this run's journal is damaged: {error}"))
        self.open_notebooks.settle(summary.notebook_path)

    async def _rebuild(self, run_id: str, send: Send) -> None:
        try:
            path = self.history.summary(run_id).notebook_path
        except KeyError:
            send(Refused(run_id, "unknown", _NOT_KEPT))
            return
        try:
            self.runs.refuse_busy(path)
            if self.open_notebooks.is_elsewhere(path):
                raise RefusedError(
                    "notebook", f"{path}: a link replaced the notebook. Remove the link"
                )
            with self.runs.hold(path):
                send(Phase(run_id, 0, "waiting for the kernel"))
                kernel = await self.kernels.attach(await self.kernels.directory.kernel_of(path))
                async for line in rebuild(self.open_notebooks.contents, path, kernel):
                    send(Phase(run_id, 0, line))
        except RefusedError as refusal:
            send(Refused(run_id, refusal.reason, str(refusal)))
        except Exception as error:  # noqa: BLE001  (the boundary of one request)
            send(Refused(run_id, "kernel", f"the cells can't be run again: {error}"))


def _refused(ask: Ask, refusal: RefusedError) -> Refused:
    return Refused(ask.request_id, refusal.reason, str(refusal), refusal.files, refusal.candidates)


def _status(
    pool: ModelPool, *, is_shared: bool, are_confined: bool, expected: Containment
) -> dict[str, Any]:
    """Return the models, the layers that a restricted kernel would have, and what is missing.

    Args:
        pool: the models that answer.
        is_shared: whether notebooks are shared documents.
        are_confined: whether the server's settings leave the sandbox on.
        expected: the layers of a new restricted kernel, including missing ones.
    """
    models = pool.listed()
    problems = _weak_spots(expected) if are_confined else [_OFF]
    names = [layer.name for layer in expected.layers]
    active = [name for name in names if are_confined and expected.is_active(name)]
    return {
        "models": models,
        "default_model": models[0]["name"] if models else "",
        "containment": {
            "active": active,
            "missing": [name for name in names if name not in active],
        },
        "is_shared": is_shared,
        "problems": problems,
    }


def _weak_spots(expected: Containment) -> list[dict[str, str]]:
    return [{"text": x.text, "remedy": x.remedy} for x in weaknesses(expected) if x.is_grave]
