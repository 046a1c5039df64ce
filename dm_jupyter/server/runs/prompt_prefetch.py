"""Lets a local model read the data files before the question comes.

On a processor a model reads some 40 tokens a second, so that a file's profile alone takes a quarter
of a minute. While a person writes, that time is free: the profile is sent with an empty question,
and the engine keeps what it has read for the conversation that begins alike. Only a model on this
machine reads ahead: nothing goes to an endpoint before the person sends it.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Brief, Trajectory
from dm_jupyter.models.protocols import SampleRequest, Urgency
from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError
from dm_jupyter.server.kernels.registry import KernelRegistry, NoKernelError
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.protocol import Ask, ReadAhead
from kernel_sandbox.errors import SandboxError

__all__ = ["PromptPrefetch", "ahead_of"]

_log = logging.getLogger(__name__)
_FAULTS = (DmJupyterError, SandboxError, NoKernelError, LinkedFilesError, OSError)
_What = tuple[str, tuple[str, ...], ModelChoice]


class PromptPrefetch:
    """One reading at a time: of the files that were chosen last."""

    def __init__(self, models: ModelPool, kernels: KernelRegistry, files: DataFiles) -> None:
        """Reads nothing yet.

        Args:
            models: the models that answer.
            kernels: the kernels of open notebooks.
            files: tells where data files lie.
        """
        self._models = models
        self._kernels = kernels
        self._files = files
        self._task: asyncio.Task[None] | None = None
        self._what: _What | None = None

    def begin(self, message: ReadAhead) -> None:
        """Begins to read, unless the model is elsewhere or has just read the same."""
        what = self._meant(message)
        if not message.files or not what[-1].is_local or what == self._what:
            return
        self.end()
        self._what = what
        self._task = asyncio.create_task(self._read(*what))

    def cancel_prefetch(self, ask: Ask) -> None:
        """Ends a reading that is of no use for a question.

        One that is goes on: the question waits for what it would have to read itself.
        """
        if self._what != self._meant(ask):
            self.end()
        self._what = None  # after the question, other words are what the model has read last

    def end(self) -> None:
        """Ends the reading, if one goes on."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._what = None

    def _meant(self, message: ReadAhead | Ask) -> _What:
        return message.notebook_path, message.files, self._models.choice(message.model)

    async def _read(self, path: str, files: tuple[str, ...], choice: ModelChoice) -> None:
        try:
            kernel_id = await self._kernels.kernel_of(path)
            folder = self._files.folder_of(path)
            places = await asyncio.to_thread(self._files.places, files)
            names, brief = await self._kernels.briefed(kernel_id, places, folder)
            request = ahead_of(tuple(names.values()), brief)
            async with self._models.use(choice, lambda _: None) as policy:
                await policy.sample(request, lambda _: None)
        except _FAULTS as error:
            # The question will meet it too, and then the person is told.
            _log.debug("nothing was read ahead: %s", error)


def ahead_of(files: tuple[Path, ...], brief: Brief) -> SampleRequest:
    """Returns what has a model read all that comes before a question about files.

    Args:
        files: where they lie.
        brief: what the model is shown of them.
    """
    start = Trajectory(Task("", "", files), "markdown", brief)
    messages = dialect_named(start.dialect).messages(start)
    return SampleRequest(messages, max_tokens=1, urgency=Urgency.BACKGROUND)
