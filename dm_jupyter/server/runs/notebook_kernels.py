"""The connections between open notebooks and their kernels.

The tabs of a notebook get its kernel's usage, and its end. An empty kernel is rebuilt from the
notebook's cells. A question that a cell hands over becomes a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from jupyter_core.utils import ensure_async

from dm_jupyter.agent.continued import asks_the_analyst
from dm_jupyter.server.background import Tasks
from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.kernels.handoff import (
    FoundHandoff,
    Handoffs,
    Handover,
    LaterCells,
    around,
    files_of,
)
from dm_jupyter.server.kernels.registry import KernelRegistry, NoKernelError
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.notebooks.open_notebooks import OpenNotebook, OpenNotebooks
from dm_jupyter.server.protocol import FilesWanted, KernelChoice, KernelEnded, Stop, WantedFile
from dm_jupyter.server.runs.active_runs import ActiveRuns
from dm_jupyter.server.runs.run_preparer import RefusedError
from kernel_sandbox.jupyter.attached import AttachedKernel

__all__ = ["KernelMonitor", "KernelQuestions", "rebuild"]

_log = logging.getLogger(__name__)
_METER_S = 2.0
_CLICK = (
    "the kernel can't read these files: the panel of this notebook asks you whether the analyst may"
)


class KernelMonitor:
    """The monitor of the kernels of all open notebooks."""

    def __init__(self, open_notebooks: OpenNotebooks, kernels: KernelRegistry) -> None:
        """Subscribe to kernels that end.

        Args:
            open_notebooks: the open notebooks.
            kernels: their kernels.
        """
        self._open_notebooks = open_notebooks
        self._kernels = kernels
        self._tasks = Tasks()
        self._watched: set[str] = set()
        """Paths of the notebooks with a published kernel meter."""
        kernels.on_death = self._died

    def watch(self, open_notebook: OpenNotebook) -> None:
        """Publish the meter of the notebook's kernel for as long as it has a tab."""
        if open_notebook.notebook_path not in self._watched:
            self._watched.add(open_notebook.notebook_path)
            self._tasks.spawn(self._watch(open_notebook))

    async def close(self) -> None:
        """End the monitor's tasks."""
        await self._tasks.close()

    async def _watch(self, open_notebook: OpenNotebook) -> None:
        try:
            while open_notebook.tabs:
                meter = await self._kernels.meter(open_notebook.notebook_path)
                if meter is not None:
                    open_notebook.publish(meter)
                await asyncio.sleep(_METER_S)
        finally:
            self._watched.discard(open_notebook.notebook_path)

    def _died(self, kernel_id: str, why: str) -> None:
        self._tasks.spawn(self._tell_death(kernel_id, why))

    async def _tell_death(self, kernel_id: str, why: str) -> None:
        for open_notebook in list(self._open_notebooks):
            with contextlib.suppress(NoKernelError):
                if (
                    await self._kernels.directory.kernel_of(open_notebook.notebook_path)
                    == kernel_id
                ):
                    open_notebook.publish(KernelEnded(open_notebook.notebook_path, kernel_id, why))


class KernelQuestions:
    """The questions that cells with `%%analyze` hand over from inside the kernels."""

    def __init__(
        self,
        runs: ActiveRuns,
        files: DataFiles,
        open_notebooks: OpenNotebooks,
        kernels: KernelRegistry,
        models: ModelPool,
        tasks: Tasks,
    ) -> None:
        """Subscribe to new attachments to kernels.

        Args:
            runs: the active runs, which start those of the questions.
            files: the data files of the server.
            open_notebooks: the open notebooks.
            kernels: their kernels.
            models: the models that answer.
            tasks: keeps the background work for questions.
        """
        self._runs = runs
        self._files = files
        self._open_notebooks = open_notebooks
        self._kernels = kernels
        self._models = models
        self._tasks = tasks
        self._later = LaterCells()
        kernels.on_attached = self._listen

    def _listen(self, kernel_id: str, kernel: AttachedKernel) -> None:
        """Subscribe to the questions that `%%analyze` hands over in this kernel."""
        channel = kernel.channel
        handoffs = Handoffs(
            lambda data: self._handed_over(kernel_id, data),
            channel.answer_comm,
            lambda run_id: self._runs.steer(Stop(run_id)),
            self._tasks.spawn,
        )
        channel.on_comm = handoffs.hear

    async def _handed_over(self, kernel_id: str, data: Mapping[str, Any]) -> dict[str, Any]:
        try:
            path = await self._kernels.directory.notebook_of(kernel_id)
            handover = Handover.from_data(data)
            self._models.refuse_unlisted(handover.model)
            found = await asyncio.to_thread(self._files_handed_over, kernel_id, path, handover)
            if found.wanted:
                own = (WantedFile(name, str(self._files.place(name))) for name in found.files)
                wanted = FilesWanted(path, handover.question, (*found.wanted, *own))
                self._open_notebooks.publish(path, wanted)
                return {"kind": "refused", "message": _CLICK}
            ask = handover.ask(path, tuple(found.files), tuple(found.agreed))
            ask = ask.replaced(withheld=(*ask.withheld, *self._open_notebooks.withheld(path)))
            if not self._kernels.directory.is_restricted(kernel_id):
                ask = ask.replaced(approval="ask")  # nobody has agreed to anything there
            if not self._open_notebooks.is_elsewhere(path):
                ask = await around(self._open_notebooks.contents, ask)
            run = await self._runs.ask(self._later.below(ask), handover.alive)
            if run.task is not None and (cell := "".join(ask.after)):
                run.task.add_done_callback(lambda _: self._later.keep(cell, run.written))
        except (RefusedError, NoKernelError, FileNotFoundError, ValueError) as error:
            return {"kind": "refused", "message": str(error)}
        except Exception:  # noqa: BLE001  (the boundary of one hand-over: anything may come)
            _log.exception("a question that a kernel handed over can't be worked on")
            return {"kind": "refused", "message": "the question can't be worked on"}
        return {"kind": "accepted", "run_id": run.journal.run_id}

    def _files_handed_over(self, kernel_id: str, path: str, handover: Handover) -> FoundHandoff:
        kernel: KernelChoice = (
            "restricted" if self._kernels.directory.is_restricted(kernel_id) else "own"
        )
        folder = self._kernels.directory.workspace(kernel_id, self._files.folder_of(path))
        if (layer := self._kernels.directory.layer(kernel_id)) is not None:
            layer.settle()  # the cell may have made the file itself
        return files_of(handover, self._files, folder, kernel)


async def rebuild(contents: Any, path: str, kernel: AttachedKernel) -> AsyncIterator[str]:
    """Run a notebook's successful cells again, and yield a line of progress for each.

    The outputs in the notebook stay as they are. Cells that ask the analyst are left out, which the
    last line says.

    Raises:
        SandboxError: the kernel can't run cells.
    """
    model = await ensure_async(contents.get(path, content=True, type="notebook"))
    worked = [cell["source"] for cell in model["content"]["cells"] if _had_worked(cell)]
    sources = [source for source in worked if not asks_the_analyst(source)]
    failed = 0
    for number, source in enumerate(sources, 1):
        yield f"running cell {number} of {len(sources)} again"
        result = await kernel.run(source)
        failed += not result.ok
        if result.state_lost:
            yield f"cell {number} ended the kernel again: {result.message}"
            return
    line = f"{len(sources)} cells were run again" + (f", {failed} failed" if failed else "")
    left_out = len(worked) - len(sources)
    yield line + (f"; {left_out} with %analyze were left out" if left_out else "")


def _had_worked(cell: Any) -> bool:
    if cell["cell_type"] != "code" or cell["execution_count"] is None:
        return False
    return not any(output["output_type"] == "error" for output in cell["outputs"])
