"""What a question needs before its run begins: a kernel, files that are there, what was told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.server.background import told_before
from dm_jupyter.server.data_files import DataFiles, LinkedFilesError
from dm_jupyter.server.history import History
from dm_jupyter.server.kernels import Kernels, NoKernelError
from dm_jupyter.server.run import RunPlace
from dm_jupyter.server.wire import Ask, WantedFile

__all__ = ["Preparation", "RefusedError"]

_NO_VARIABLES = (
    "several tries run in fresh kernels, which have none of this notebook's variables: "
    "name files instead, or ask once"
)


class RefusedError(Exception):
    """A question that can't be worked on; its text says why and what to do."""

    def __init__(self, reason: Any, message: str, files: Iterable[WantedFile] = ()) -> None:
        """Makes the refusal.

        Args:
            reason: as `Refused.reason`.
            message: for the person.
            files: as `Refused.files`.
        """
        super().__init__(message)
        self.reason = reason
        self.files = tuple(files)


class Preparation:
    """Finds all of it, or says why the question can't be worked on."""

    def __init__(
        self,
        kernels: Kernels,
        files: DataFiles,
        history: History,
        settings: RunSettings,
        make_way: Callable[[Ask], None],
    ) -> None:
        """Looks at nothing yet.

        Args:
            kernels: the kernels of open notebooks.
            files: the data files of the server.
            history: what was asked before.
            settings: limits of each run.
            make_way: called as soon as nothing refuses a question any more.
        """
        self._kernels = kernels
        self._files = files
        self._history = history
        self._settings = settings
        self._make_way = make_way

    async def place_for(self, ask: Ask) -> tuple[Ask, RunPlace]:
        """Returns the question with the files that it means, and where its run works.

        Raises:
            RefusedError: something is missing; the error says what.
        """
        path = ask.notebook_path
        if not ask.question.strip():
            raise RefusedError("unknown", "the question is empty")
        if ask.tries > 1 and ask.variables:
            raise RefusedError("unknown", _NO_VARIABLES)
        kernel_id, is_restricted = await self._kernel_for(ask)
        ask = replace(ask, files=self._files_meant(ask))
        try:
            files = await asyncio.to_thread(self._files.places, ask.files, ask.agreed)
        except FileNotFoundError as error:
            raise RefusedError("file", str(error)) from error
        except LinkedFilesError as error:
            raise RefusedError("link", str(error), error.files) from error
        self._make_way(ask)
        tables = await self._kernels.variables(path) if ask.variables else []
        place = RunPlace(
            kernel_id=kernel_id,
            is_restricted=is_restricted,
            notebook_folder=self._files.folder_of(path),
            files=files,
            context=told_before(
                self._history.summaries(path),
                [table for table in tables if table["name"] in ask.variables],
            ),
            settings=self._settings,
        )
        return ask, place

    async def _kernel_for(self, ask: Ask) -> tuple[str, bool]:
        try:
            kernel_id = await self._kernels.kernel_of(ask.notebook_path)
        except NoKernelError as error:
            raise RefusedError("kernel", str(error)) from error
        is_restricted = self._kernels.is_restricted(kernel_id)
        if not is_restricted and ask.kernel != "own":
            off = "" if self._kernels.are_confined else ": the server's sandbox is switched off"
            raise RefusedError("kernel", f"this notebook's kernel is not restricted{off}")
        return kernel_id, is_restricted

    def _files_meant(self, ask: Ask) -> tuple[str, ...]:
        """Those given, else those that the question names, else those of the run before it."""
        named = ask.files or self._files.named_in(ask.question, ask.notebook_path)
        if named or ask.variables:
            return named
        last = next(iter(self._history.summaries(ask.notebook_path)), None)
        return self._files.still_there(last.files) if last is not None else ()
