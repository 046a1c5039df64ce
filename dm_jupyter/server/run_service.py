"""The service behind the WebSocket: takes the panels' messages, begins, steers and keeps runs."""

from __future__ import annotations

import asyncio
import logging
import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook_context import count_of
from dm_jupyter.core.errors import DataFileError, NotebookError
from dm_jupyter.data.kernel_tables import Alive
from dm_jupyter.server.background import Tasks
from dm_jupyter.server.connection import Connection
from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError
from dm_jupyter.server.files.example_questions import questions_about
from dm_jupyter.server.files.meaning import Meaning, meaning_of
from dm_jupyter.server.history.journal import Journal, undo
from dm_jupyter.server.history.run_history import RunHistory
from dm_jupyter.server.kernel_monitor import KernelMonitor
from dm_jupyter.server.kernels.handoff import (
    FoundHandoff,
    Handoffs,
    Handover,
    LaterCells,
    around,
    files_of,
)
from dm_jupyter.server.kernels.rebuild import rebuild
from dm_jupyter.server.kernels.registry import KernelRegistry, NoKernelError
from dm_jupyter.server.models.model_setup import ModelSetup
from dm_jupyter.server.notebooks.open_notebooks import NotebookLocks, OpenNotebooks, Tab
from dm_jupyter.server.protocol import (
    Ack,
    Ask,
    Attach,
    ClientMessage,
    Decide,
    DecideFiles,
    Detach,
    FilesWanted,
    KernelChoice,
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
    WantedFile,
)
from dm_jupyter.server.runs.run import Run, RunContext
from dm_jupyter.server.runs.run_preparer import PromptPrefetch, RefusedError, RunPreparer
from dm_jupyter.server.status import status_of
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.jupyter.attached import AttachedKernel

__all__ = ["RunService"]

_log = logging.getLogger(__name__)
_CLICK = (
    "the kernel can't read these files: the panel of this notebook asks you whether the analyst may"
)
_MOST_EXAMPLES = 3
_MOST_EXAMPLE_FILES = 3
Send = Callable[[ServerMessage], None]


class RunService:
    """All runs of one server."""

    def __init__(
        self,
        files: DataFiles,
        desks: OpenNotebooks,
        kernels: KernelRegistry,
        setup: ModelSetup,
        history: RunHistory,
        settings: RunSettings,
    ) -> None:
        """Begins with no run, and to watch the kernels.

        Args:
            files: the data files of the server.
            desks: the open notebooks.
            kernels: the kernels of open notebooks.
            setup: of the models that answer.
            history: where runs are kept.
            settings: limits of each run.
        """
        self.desks = desks
        self.kernels = kernels
        self.setup = setup
        self.models = models = setup.models
        self.history = history
        self._ahead = PromptPrefetch(models, kernels, files)
        self._preparation = RunPreparer(
            kernels, models, files, history, settings, self._ahead.cancel_prefetch
        )
        self._tasks = Tasks()
        self.files = files
        self._runs: dict[str, Run] = {}
        self._reserved = NotebookLocks()
        self._later = LaterCells()
        self._news = KernelMonitor(desks, kernels)
        kernels.on_attached = self._listen

    def end_cut_off(self) -> None:
        """Ends the runs that an earlier server left open; called at the start of this one."""
        for summary in self.history.close_cut_off():
            journal = self.history.journal(summary.run_id)
            self.desks.follow(summary.notebook_path, journal)
            self.desks.settle(summary.notebook_path)

    async def close(self) -> None:
        """Ends all runs, writes what no tab has written, lets go of kernels and models."""
        tasks = [run.task for run in self._runs.values() if run.task is not None]
        for run in list(self._runs.values()):
            run.stop("the server was stopped")
        if tasks:
            await asyncio.wait(tasks)
        self._ahead.end()
        await self.desks.close()
        await self._news.close()
        await self._tasks.close()
        await self.kernels.close()
        await self.setup.close()
        await self.models.close()

    async def status(self) -> dict[str, Any]:
        """Returns what a person should know before the first question."""
        return status_of(
            self.models,
            is_shared=self.desks.shared is not None,
            are_confined=self.kernels.are_confined,
            expected=await asyncio.to_thread(self.kernels.expected),
        )

    async def meaning(
        self, question: str, notebook: str, folder: str, given: Iterable[str] = ()
    ) -> Meaning:
        """Returns what a question names, before it is asked.

        Args:
            question: as the person wrote it.
            notebook: its path; empty while there is none.
            folder: where names are looked up first, below the server's root.
            given: the files that come with the question.
        """
        tables = await self.kernels.variables(notebook) if notebook else []
        names = [str(table["name"]) for table in tables]
        return await asyncio.to_thread(
            meaning_of, question, self.files, folder.strip("/"), given=given, variables=names
        )

    async def preview(self, ask: Ask) -> list[dict[str, Any]]:
        """Returns what a question would tell the model of the notebook, each part with its size.

        Args:
            ask: as it would be asked.
        """
        parts = await self._preparation.preview(ask)
        return [{"kind": x.kind, "text": x.text, "count": count_of(x)} for x in parts]

    async def examples(self, folder: str) -> list[dict[str, str]]:
        """Returns up to three questions about the first data files of a folder, with the file."""
        folder = folder.strip("/")
        found = await asyncio.to_thread(self.files.search.matching, "", folder)
        asked: list[list[dict[str, str]]] = []
        for path in found.paths[:_MOST_EXAMPLE_FILES]:
            if posixpath.dirname(path) != folder:
                break
            try:
                place = await asyncio.to_thread(self.files.place, path)
                profile = await self.kernels.profile(place, posixpath.basename(path))
            except (DataFileError, SandboxError, LinkedFilesError, OSError) as error:
                _log.debug("no question is made of %s: %s", path, error)
                continue
            asked.append([{"question": text, "file": path} for text in questions_about(profile)])
        # One of each file first.
        in_turn = (one for some in zip_longest(*asked) for one in some if one is not None)
        return list(islice(in_turn, _MOST_EXAMPLES))

    def connect(self, send: Callable[[str], None]) -> Connection:
        """Returns a tab's new connection; its messages leave as JSON texts through `send`."""
        return Connection(self, send)

    def receive(self, message: ClientMessage, tab: Tab) -> None:
        """Takes one message of a tab; the answer, if any, goes through the tab."""
        match message:
            case Attach() | Renamed() | Detach() | TakeOver():
                self._seat(message, tab)
            case Ask():
                self._tasks.spawn(self._ask_for(message, tab.send))
            case ReadAhead() if not self._runs:  # a run needs the model for itself
                self._ahead.begin(message)
            case Tells():
                self.desks.tell(message, tab)
            case Ack():
                self.desks.acknowledge(message)
            case Rebuild(run_id=run_id):
                self._tasks.spawn(self._rebuild(run_id, tab.send))
            case Undo(run_id=run_id):
                self._undo(run_id, tab.send)
            case Stop() | Decide() | DecideFiles() if message.run_id in self._runs:
                self._steer(message, self._runs[message.run_id])
            case OwnCell(notebook_path=path) if not self._works_in(path):
                self._tasks.spawn(self.kernels.open_gate(path))
            case _:
                pass  # to a run that has ended meanwhile

    def _steer(self, message: Stop | Decide | DecideFiles, run: Run) -> None:
        match message:
            case Stop():
                run.stop()
            case Decide():
                run.decide(message)
            case DecideFiles():
                run.decide_files(message)

    def _seat(self, message: Attach | Renamed | Detach | TakeOver, tab: Tab) -> None:
        match message:
            case Attach():
                self._attach(message, tab)
            case Renamed():
                self._rename(message, tab)
            case Detach(notebook_path=path):
                self.desks.leave(path, tab.client_id)
            case TakeOver(notebook_path=path):
                self.desks.take_over(path, tab.client_id)

    def is_running(self, run_id: str) -> bool:
        """Whether the run goes on."""
        return run_id in self._runs

    async def ask(self, ask: Ask, alive: Alive | None = None) -> Run:
        """Begins a run.

        Args:
            ask: the question.
            alive: the variables of a kernel that is busy with asking; `None` asks the kernel.

        Raises:
            RefusedError: it can't; the error says why.
        """
        try:
            self._refuse_busy(ask.notebook_path)
            with self._reserved.hold(ask.notebook_path) as held:
                ask, place = await self._preparation.place_for(ask, alive)
                return self._begin(replace(ask, notebook_path=held.path), place)
        except RefusedError:
            raise
        except Exception as error:  # the boundary of one question
            _log.exception("a question broke before its run began")
            why = f"the question can't be worked on ({type(error).__name__}: {error})"
            raise RefusedError("unknown", f"{why}; the server's log has more") from error

    def _works_in(self, path: str) -> bool:
        return any(run.ask.notebook_path == path for run in self._runs.values())

    def _refuse_busy(self, path: str) -> None:
        """Lets nothing begin in a notebook where something works already.

        Raises:
            RefusedError: something does.
        """
        if self._works_in(path):
            raise RefusedError("busy", "a run still works in this notebook: stop it, or wait")
        if path in self._reserved:
            raise RefusedError("busy", "a run begins here, or the cells are run again: wait")

    def _begin(self, ask: Ask, place: RunContext) -> Run:
        try:
            return self._begun(ask, place, self.history.begin())
        except (OSError, NotebookError) as error:
            raise RefusedError("unknown", f"the run can't be kept: {error}") from error

    def _begun(self, ask: Ask, place: RunContext, journal: Journal) -> Run:
        self.desks.follow(ask.notebook_path, journal)
        run = Run(
            ask,
            place,
            journal,
            self.kernels,
            self.models,
            lambda x: self.desks.publish(run.ask.notebook_path, x),
        )
        self._runs[journal.run_id] = run
        try:
            task = self._tasks.keep(run.start())
            self.history.keep(run.summary)
        except (OSError, NotebookError):
            run.stop()
            del self._runs[journal.run_id]
            raise
        task.add_done_callback(lambda _: self._ended(run))
        return run

    def _ended(self, run: Run) -> None:
        self._runs.pop(run.journal.run_id, None)
        try:
            self.history.keep(run.summary)
            run.memory.keep(run.journal.folder)
            if run.trajectory is not None:
                self.history.keep_trajectory(run.journal, run.trajectory)
        except OSError as error:
            _log.warning("run %s can't be kept: %s", run.journal.run_id, error)
        self.desks.settle(run.ask.notebook_path)
        _log.info("run %s ended: %s", run.journal.run_id, run.summary.stop)

    def _attach(self, message: Attach, tab: Tab) -> None:
        desk = self.desks.attach(message, tab)
        self._news.watch(desk)
        for run in self._runs.values():
            if run.ask.notebook_path == message.notebook_path and run.passing is not None:
                tab.send(run.passing)

    def _rename(self, message: Renamed, tab: Tab) -> None:
        self._reserved.rename(message.old_path, message.new_path)
        for run in self._runs.values():
            if run.ask.notebook_path == message.old_path:
                run.rename(message.new_path)
        self.desks.rename(message, tab)
        try:
            self.history.rename(message.old_path, message.new_path)
        except OSError as error:
            _log.warning("the runs of %s can't be listed anew: %s", message.old_path, error)

    async def _ask_for(self, ask: Ask, send: Send) -> None:
        try:
            await self.ask(ask)
        except RefusedError as refusal:
            send(
                Refused(
                    ask.request_id,
                    refusal.reason,
                    str(refusal),
                    refusal.files,
                    refusal.candidates,
                )
            )

    def _undo(self, run_id: str, send: Send) -> None:
        try:
            summary = self.history.summary(run_id)
            journal = self.history.journal(run_id)
        except KeyError:
            send(Refused(run_id, "unknown", "this run is not kept any more"))
            return
        if run_id in self._runs:
            send(Refused(run_id, "busy", "the run goes on: stop it first"))
            return
        journal = self.desks.follow(summary.notebook_path, journal)
        try:
            undo(journal)
        except NotebookError as error:
            send(Refused(run_id, "notebook", str(error)))
        self.desks.settle(summary.notebook_path)

    async def _rebuild(self, run_id: str, send: Send) -> None:
        try:
            path = self.history.summary(run_id).notebook_path
            self._refuse_busy(path)
            if self.desks.is_elsewhere(path):
                raise RefusedError("notebook", f"{path}: a link has taken its place; remove it")
            with self._reserved.hold(path):
                send(Phase(run_id, 0, "waiting for the kernel"))
                kernel = await self.kernels.attach(await self.kernels.kernel_of(path))
                async for line in rebuild(self.desks.contents, path, kernel):
                    send(Phase(run_id, 0, line))
        except RefusedError as refusal:
            send(Refused(run_id, refusal.reason, str(refusal)))
        except Exception as error:  # noqa: BLE001  (the boundary of one request)
            send(Refused(run_id, "kernel", f"the cells can't be run again: {error}"))

    def _listen(self, kernel_id: str, kernel: AttachedKernel) -> None:
        """Hears what `%%analyze` hands over in this kernel."""
        wire = kernel.wire
        handoffs = Handoffs(
            lambda data: self._handed_over(kernel_id, data),
            wire.answer_comm,
            lambda run_id: self._runs[run_id].stop() if run_id in self._runs else None,
            self._tasks.spawn,
        )
        wire.on_comm = handoffs.hear

    async def _handed_over(self, kernel_id: str, data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            path = await self.kernels.notebook_of(kernel_id)
            handover = Handover.from_data(data)
            self.models.refuse_unlisted(handover.model)
            found = await asyncio.to_thread(self._files_handed_over, kernel_id, path, handover)
            if found.wanted:
                own = (WantedFile(name, str(self.files.place(name))) for name in found.files)
                wanted = FilesWanted(path, handover.question, (*found.wanted, *own))
                self.desks.publish(path, wanted)
                return {"kind": "refused", "message": _CLICK}
            ask = handover.ask(path, tuple(found.files), tuple(found.agreed))
            ask = replace(ask, withheld=(*ask.withheld, *self.desks.withheld(path)))
            if not self.kernels.is_restricted(kernel_id):
                ask = replace(ask, approval="ask")  # nobody has agreed to anything there
            if not self.desks.is_elsewhere(path):
                ask = await around(self.desks.contents, ask)
            run = await self.ask(self._later.below(ask), handover.alive)
            if run.task is not None and (cell := "".join(ask.after)):
                run.task.add_done_callback(lambda _: self._later.keep(cell, run.written))
        except (RefusedError, NoKernelError, FileNotFoundError, ValueError) as error:
            return {"kind": "refused", "message": str(error)}
        except Exception:  # noqa: BLE001  (the boundary of one hand-over: anything may come)
            _log.exception("a question that a kernel handed over can't be worked on")
            return {"kind": "refused", "message": "the question can't be worked on"}
        return {"kind": "accepted", "run_id": run.journal.run_id}

    def _files_handed_over(self, kernel_id: str, path: str, handover: Handover) -> FoundHandoff:
        kernel: KernelChoice = "restricted" if self.kernels.is_restricted(kernel_id) else "own"
        folder = self.kernels.workspace(kernel_id, self.files.folder_of(path))
        if (layer := self.kernels.layer(kernel_id)) is not None:
            layer.settle()  # the cell may have made the file itself
        return files_of(handover, self.files, folder, kernel)
