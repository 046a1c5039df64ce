"""The preparation of a run: a kernel, existing files, the context, and a prefetched prompt.

On a CPU a model reads some 40 tokens a second, so that a file's profile alone takes a quarter of a
minute. That time is free while a person types. The profile is sent with an empty question, and the
engine caches it for the conversation with the same beginning. Only a model on this machine
prefetches: nothing goes to an endpoint before the person sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import posixpath
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook_context import (
    ContextPart,
    NotebookView,
    context_chars,
    notebook_context,
)
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import DataFileError, DmJupyterError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, Trajectory
from dm_jupyter.data.kernel_tables import Alive
from dm_jupyter.models.protocols import SampleRequest, Urgency
from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError
from dm_jupyter.server.files.meaning import has_code, meaning_of, mentions_in, tables_in
from dm_jupyter.server.history.memory import Memory, before, tables_told, without_told
from dm_jupyter.server.history.run_history import RunHistory
from dm_jupyter.server.kernels.registry import KernelRegistry, NoKernelError
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.protocol import Ask, DataCandidate, ReadAhead, WantedFile
from dm_jupyter.server.runs.run import RunContext
from kernel_sandbox.errors import SandboxError

__all__ = ["PromptPrefetch", "RefusedError", "RunPreparer", "ahead_of"]

_NOT_GIVEN = "“@{}” names none of the files that came with the question"
_WHICH_DATA = "Which data is the question about? Choose it, or type @ and its name."
_NO_DATA = (
    "Which data is the question about? There is no data file here: drop one on the panel, or "
    "upload it in the file browser."
)
_MOST_CANDIDATES = 8
_MOST_FILES = 12
_NO_VARIABLES = (
    "several tries run in fresh kernels, which have none of this notebook's variables: "
    "name files instead, or ask once"
)
_log = logging.getLogger(__name__)
_FAULTS = (DmJupyterError, SandboxError, NoKernelError, LinkedFilesError, OSError)
_What = tuple[str, tuple[str, ...], ModelChoice]


class RefusedError(Exception):
    """A question that can't be worked on; the text says why and what to do."""

    def __init__(
        self,
        reason: Any,
        message: str,
        files: Iterable[WantedFile] = (),
        candidates: Iterable[DataCandidate] = (),
    ) -> None:
        """Create the refusal.

        Args:
            reason: as `Refused.reason`.
            message: the message for the person.
            files: as `Refused.files`.
            candidates: as `Refused.candidates`.
        """
        super().__init__(message)
        self.reason = reason
        self.files = tuple(files)
        self.candidates = tuple(candidates)


class RunPreparer:
    """The preparation of a question's run, or the reason why it can't be worked on."""

    def __init__(
        self,
        kernels: KernelRegistry,
        models: ModelPool,
        files: DataFiles,
        history: RunHistory,
        settings: RunSettings,
        cancel_prefetch: Callable[[Ask], None],
    ) -> None:
        """Store the parts; nothing is prepared yet.

        Args:
            kernels: the kernels of open notebooks.
            models: the models that answer.
            files: the data files of the server.
            history: the past runs.
            settings: the limits of each run.
            cancel_prefetch: called as soon as nothing can refuse the question any more.
        """
        self._kernels = kernels
        self._models = models
        self._files = files
        self._history = history
        self._settings = settings
        self._make_way = cancel_prefetch

    async def context_for(self, ask: Ask, told: Alive | None = None) -> tuple[Ask, RunContext]:
        """Return the question with the files that it means, and the context of its run.

        Args:
            ask: the question.
            told: the kernel's variables, if the kernel has sent them itself.

        Raises:
            RefusedError: something is missing; the error says what.
        """
        path = ask.notebook_path
        if not ask.question.strip():
            raise RefusedError("unknown", "the question is empty")
        if ask.tries > 1 and ask.variables:
            raise RefusedError("unknown", _NO_VARIABLES)
        if obstacle := await asyncio.to_thread(self._models.obstacle, ask.model):
            raise RefusedError("model", obstacle)
        kernel_id, is_restricted = await self._kernel_for(ask)
        asked = [told] if told is not None else []

        async def alive() -> Alive:
            """Return the kernel's variables; the kernel is asked once, and only if they matter."""
            if not asked:
                asked.append(await self._alive(ask, kernel_id))
            return asked[0]

        ask = await self._meant(ask, alive)
        try:
            files = await asyncio.to_thread(self._files.places, ask.files, ask.agreed)
        except FileNotFoundError as error:
            raise RefusedError("file", str(error)) from error
        except LinkedFilesError as error:
            raise RefusedError("link", str(error), error.files) from error
        try:
            await self._kernels.data.refuse_unreadable(files)
        except DataFileError as error:
            raise RefusedError("file", str(error)) from error
        self._make_way(ask)
        now = await self._now(ask, kernel_id)
        context = RunContext(
            kernel_id=kernel_id,
            is_restricted=is_restricted,
            notebook_folder=self._files.folder_of(path),
            files=files,
            told=await self._told(ask, alive, now),
            file_states=now.files,
            settings=self._settings,
            root=str(self._history.root),
        )
        return ask, context

    async def preview(self, ask: Ask) -> tuple[ContextPart, ...]:
        """Return what the model would be shown besides the files of the question."""
        kernel_id = ""
        with contextlib.suppress(NoKernelError):
            kernel_id = await self._kernels.directory.kernel_of(ask.notebook_path)

        async def alive() -> Alive:
            return await self._alive(ask, kernel_id) if kernel_id else Alive()

        return await self._told(ask, alive, await self._now(ask, kernel_id))

    async def _now(self, ask: Ask, kernel_id: str) -> Memory:
        """Return the kernel and the files at the time of the question."""
        states = await asyncio.to_thread(self._files.states, ask.files)
        return Memory(kernel=self._kernels.directory.process_of(kernel_id), files=states)

    async def _alive(self, ask: Ask, kernel_id: str) -> Alive:
        """Return the kernel's variables; none if the model may not be shown them."""
        # Attempts in fresh kernels have none.
        is_told = "variables" not in ask.withheld or ask.variables
        if ask.tries > 1 or not is_told:
            return Alive()
        return await self._kernels.alive(kernel_id)

    async def _told(
        self, ask: Ask, asked: Callable[[], Awaitable[Alive]], now: Memory
    ) -> tuple[ContextPart, ...]:
        """Return what the model is shown besides the files of the question."""
        async with asyncio.TaskGroup() as tasks:  # the kernel is asked while files are read
            near = tasks.create_task(asyncio.to_thread(self._files_near, ask))
            past = tasks.create_task(asyncio.to_thread(self._history.memories, ask.notebook_path))
            alive = await asked()
        earlier = past.result()
        named = [table for table in alive.tables if table["name"] in ask.variables]
        view = NotebookView(
            cells=without_told(ask.cells, () if "earlier" in ask.withheld else earlier),
            selected=ask.selected,
            tables=[table for table in alive.tables if table not in named],
            values=alive.values,
            files=near.result(),
        )
        chars = context_chars(is_local=self._models.choice(ask.model).is_local)
        around = notebook_context(view, chars, ask.withheld)
        runs = () if "earlier" in ask.withheld else before(earlier, now, ask.cells, chars)
        return (*runs, *tables_told(named), *around)

    def _files_near(self, ask: Ask) -> list[tuple[str, int]]:
        """Return data files in the notebook's folder beside the question's, with their sizes."""
        folder = posixpath.dirname(ask.notebook_path.lstrip("/"))
        found = self._files.search.matching("", folder, _MOST_FILES + len(ask.files)).paths
        return [
            (posixpath.basename(path), size)
            for path in found
            if path not in ask.files and posixpath.dirname(path) == folder
            if (size := self._files.size_of(path)) is not None
        ][:_MOST_FILES]

    async def _kernel_for(self, ask: Ask) -> tuple[str, bool]:
        try:
            kernel_id = await self._kernels.directory.kernel_of(ask.notebook_path)
        except NoKernelError as error:
            raise RefusedError("no_kernel", str(error)) from error
        is_restricted = self._kernels.directory.is_restricted(kernel_id)
        if not is_restricted and ask.kernel != "own":
            off = (
                ""
                if self._kernels.directory.are_confined
                else ": the server's sandbox is switched off"
            )
            raise RefusedError("kernel", f"this notebook's kernel is not restricted{off}")
        return kernel_id, is_restricted

    async def _meant(self, ask: Ask, alive: Callable[[], Awaitable[Alive]]) -> Ask:
        """Return the question with the files and tables that it names or plainly means.

        Args:
            ask: the question.
            alive: returns the kernel's variables.

        Raises:
            RefusedError: a word of it names nothing, or nothing says what it is about.
        """
        words = mentions_in(ask.question)
        if ask.without_data:
            return _only_given(ask, words)
        if not words and (ask.files or ask.variables):
            return ask
        path = ask.notebook_path
        # Attempts in fresh kernels have no tables.
        names = [str(table["name"]) for table in (await alive()).tables]
        folder = posixpath.dirname(path.lstrip("/"))
        meaning = await asyncio.to_thread(
            meaning_of, ask.question, self._files, folder, given=ask.files, variables=names
        )
        for unclear in meaning.unclear:
            raise RefusedError("data", unclear.sentence, candidates=unclear.candidates)
        ask = ask.replaced(
            files=tuple(dict.fromkeys((*ask.files, *meaning.files))),
            variables=tuple(dict.fromkeys((*ask.variables, *meaning.variables))),
        )
        return ask if ask.files or ask.variables else await self._meant_before(ask, names)

    async def _meant_before(self, ask: Ask, tables: list[str]) -> Ask:
        """Return a question that names nothing with the last run's files, or a kernel's table.

        Raises:
            RefusedError: neither says what it is about.
        """
        last = next(iter(self._history.summaries(ask.notebook_path)), None)
        if last is not None and (files := self._files.still_there(last.files)):
            return ask.replaced(files=files)
        if (last is not None and last.answer) or has_code(ask.question):
            return ask
        if meant := tables_in(ask.question, tables):
            return ask.replaced(variables=meant)
        if any((cell.output or cell.figures) and not cell.role for cell in ask.cells):
            return ask  # it may be about what the person's own cells show
        folder = posixpath.dirname(ask.notebook_path.lstrip("/"))
        near = await asyncio.to_thread(self._files.search.matching, "", folder, _MOST_CANDIDATES)
        found = [DataCandidate("variable", name) for name in tables]
        found += [DataCandidate("file", path) for path in near.paths]
        raise RefusedError(
            "data", _WHICH_DATA if found else _NO_DATA, candidates=found[:_MOST_CANDIDATES]
        )


def _only_given(ask: Ask, words: Iterable[str]) -> Ask:
    """Return the question, which must name nothing but what came with it.

    Raises:
        RefusedError: a word of it names something else.
    """
    given = {*ask.variables, *ask.files, *map(posixpath.basename, ask.files)}
    for word in words:
        if word not in given:
            raise RefusedError("data", _NOT_GIVEN.format(word))
    return ask


class PromptPrefetch:
    """The prefetch of one prompt at a time, for the files that were chosen last."""

    def __init__(self, models: ModelPool, kernels: KernelRegistry, files: DataFiles) -> None:
        """Start without a prefetch.

        Args:
            models: the models that answer.
            kernels: the kernels of open notebooks.
            files: the data files of the server.
        """
        self._models = models
        self._kernels = kernels
        self._files = files
        self._task: asyncio.Task[None] | None = None
        self._what: _What | None = None

    def begin(self, message: ReadAhead) -> None:
        """Start a prefetch, unless the model is not local or has just read the same prompt."""
        what = self._meant(message)
        if not message.files or not what[-1].is_local or what == self._what:
            return
        self.end()
        self._what = what
        self._task = asyncio.create_task(self._read(*what))

    def cancel_prefetch(self, ask: Ask) -> None:
        """Cancel a prefetch that is of no use for a question.

        A useful one continues: the question waits for what the model would have to read anyway.
        """
        if self._what != self._meant(ask):
            self.end()
        self._what = None  # after the question, the model has last read another prompt

    def end(self) -> None:
        """Cancel the prefetch, if one is running."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._what = None

    def _meant(self, message: ReadAhead | Ask) -> _What:
        return message.notebook_path, message.files, self._models.choice(message.model)

    async def _read(self, path: str, files: tuple[str, ...], choice: ModelChoice) -> None:
        try:
            kernel_id = await self._kernels.directory.kernel_of(path)
            folder = self._files.folder_of(path)
            places = await asyncio.to_thread(self._files.places, files)
            names, data_context = await self._kernels.data.data_context_of(
                kernel_id, places, folder
            )
            request = ahead_of(tuple(names.values()), data_context)
            async with self._models.use(choice, lambda _: None) as policy:
                await policy.sample(request, lambda _: None)
        except _FAULTS as error:
            # The question will meet the fault too, and then the person sees it.
            _log.debug("nothing was read ahead: %s", error)


def ahead_of(files: tuple[Path, ...], data_context: DataContext) -> SampleRequest:
    """Return a request that makes a model read everything before a question about files.

    Args:
        files: the paths of the files.
        data_context: what the model is shown of them.
    """
    start = Trajectory(Task("", "", files), "markdown", data_context)
    messages = dialect_named(start.dialect).messages(start)
    return SampleRequest(messages, max_tokens=1, urgency=Urgency.BACKGROUND)
