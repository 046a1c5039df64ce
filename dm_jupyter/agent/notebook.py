"""A notebook without a browser: cells run in a `CellRunner` and are saved in an .ipynb file."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from dm_jupyter.agent.answer_cells import needless_cells
from dm_jupyter.agent.continued import Surroundings
from dm_jupyter.agent.notebook_file import replace_text, write_elsewhere
from dm_jupyter.agent.notebook_words import (
    closing_words,
    cut_words,
    folded_marks,
    question_words,
)
from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.agent.sql_cell import SqlCells
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.inert import inert_markdown, inert_output, is_heavy
from dm_jupyter.core.readable import shown_numbers
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import RunCell, Trajectory
from kernel_sandbox.types import CellResult, CellRunner, CellStatus, Display

__all__ = ["HeadlessNotebook", "empty_notebook", "plain_kernel", "with_outputs"]

_RERUNNABLE = {CellStatus.OK, CellStatus.ERROR}
"""Statuses of cells that stay code cells; one that hung or was denied would do so again."""

_WITH_IDS = 5
"""The first minor version of nbformat 4 whose cells have ids."""
_CHANGED = "was changed by someone else in the meantime and was not overwritten"


@dataclass(frozen=True, slots=True)
class _Ran:
    """A cell that has run."""

    cell_id: str
    source: str
    place: int
    """Index among the notebook's cells."""
    thought: int | None
    """Index of the text cell above it, which is about this cell only."""


class HeadlessNotebook:
    """A `Notebook` that is saved after every cell, so that nothing is lost if a run breaks.

    Text and outputs are sanitized, so that a page that shows the notebook loads nothing for them.

    A run that breaks before its first cell leaves no file, since there is nothing to keep.
    """

    def __init__(
        self,
        runner: CellRunner,
        databases: tuple[str, ...] = (),
        path: Path | None = None,
        continued: Surroundings | None = None,
    ) -> None:
        """Create an empty notebook, or continue one.

        Args:
            runner: the runner of the cells.
            databases: names of the database files that `sql` cells query.
            path: where the notebook is saved, from its first cell on; `None` keeps it in memory.
            continued: what the run continues, such as the notebook at `path`.
        """
        self._runner = runner
        self._sql = SqlCells(databases)
        self.path = path
        self._on_disk = continued.content if continued else None
        """The content that the file must still have when written; `None` for any."""
        self._ran: list[_Ran] = []
        """The cells that ran, in order."""
        self._thought: int | None = None
        """The index of the text cell above the running cell; `None` if there is none."""
        self.has_cells = False
        """Whether a cell was sent to the kernel; until then there is no file."""
        self.is_written = False
        """Whether the file at `path` is the notebook as it is now."""
        self.document = (
            copy.deepcopy(continued.document)
            if continued and continued.document is not None
            else new_notebook(metadata=plain_kernel())
        )

    def ask(self, task: Task) -> None:
        """Add the question above the cells to come, without writing the file yet."""
        self.document.cells.append(_text_cell(question_words(task), role="question"))

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        """Write the thought and the cell, run it and keep its outputs.

        Raises:
            NotebookError: the file can't be written.
            SandboxError: the kernel can't run cells.
            asyncio.CancelledError: cancelled; the cell is kept, marked as interrupted.
        """
        self._thought = None
        if thought:
            self._thought = len(self.document.cells)
            self.document.cells.append(_text_cell(thought))
        self.has_cells = True
        if definition := self._sql.definition(cell):
            await self._define(definition)
        source = self._sql.python(cell)
        self._write(new_code_cell(source))
        position = len(self.document.cells) - 1
        result = await self._runner.run(source)
        if result.state_lost:
            self._sql.knows_function = False
        self.document.cells[position] = await with_outputs(source, result)
        cell_id = str(self.document.cells[position].get("id", ""))
        self._ran.append(_Ran(cell_id, source, position, self._thought))
        self.save()
        return ExecutedCell(cell, result)

    def branched(self, runner: CellRunner) -> HeadlessNotebook:
        """Return an in-memory copy whose next cells run in a branch of the state.

        Args:
            runner: the runner of the branch.
        """
        other = HeadlessNotebook(runner)
        other._sql = copy.copy(self._sql)
        other.document = copy.deepcopy(self.document)
        other._ran = [*self._ran]
        return other

    def finish(self, trajectory: Trajectory) -> None:
        """Write the answer, or why there is none, and the trajectory into the metadata.

        Raises:
            NotebookError: the file can't be written.
        """
        kept = self.document.metadata.setdefault("dm_jupyter", {})
        if "trajectory" in kept:
            kept.setdefault("continued", []).append(trajectory.to_json())
        else:
            kept["trajectory"] = trajectory.to_json()
        cell = _text_cell(closing_words(trajectory), role="answer")
        self._fold(trajectory)
        ids = [one.cell_id for one in self._ran]
        numbers = shown_numbers(trajectory, trajectory.cell_ids(ids))
        if numbers:
            cell.metadata["dm_jupyter"]["numbers"] = [asdict(number) for number in numbers]
        self._write(cell)

    def save(self) -> None:
        """Write the file atomically; the former version stays if that fails.

        Before the first cell, do nothing.

        Raises:
            NotebookError: the file can't be written; the message says where the notebook is now.
        """
        if self.path is None or not self.has_cells:
            return
        if self.document.nbformat_minor < _WITH_IDS:
            for cell in self.document.cells:
                cell.pop("id", None)
        text = nbformat.writes(self.document)
        self.is_written = False
        try:
            if self._on_disk is not None and self.path.read_bytes() != self._on_disk:
                raise NotebookError(write_elsewhere(self.path, text, _CHANGED))
            replace_text(self.path, text)
        except OSError as error:
            why = f"can't be written ({error.strerror})"
            raise NotebookError(write_elsewhere(self.path, text, why)) from error
        self.is_written = True
        if self._on_disk is not None:
            self._on_disk = text.encode()

    def _fold(self, trajectory: Trajectory) -> None:
        """Fold failed attempts and cells that the answer does not need, with the text above."""
        for place in needless_cells(trajectory, [one.source for one in self._ran]):
            ran = self._ran[place]
            places = [ran.place] if ran.thought is None else [ran.thought, ran.place]
            for cell in (self.document.cells[at] for at in places):
                cell.metadata.update(nbformat.from_dict(folded_marks(cell.cell_type, None)))

    def _write(self, cell: Any) -> None:
        self.document.cells.append(cell)
        self.save()

    async def _define(self, source: str) -> None:
        result = await self._runner.run(source)
        definition = _finished_cell(source, result)
        definition.metadata["jupyter"] = {"source_hidden": True}
        self._write(definition)
        self._sql.knows_function = result.ok


def empty_notebook() -> str:
    """Return the text of a notebook file without cells."""
    return str(nbformat.writes(new_notebook(metadata=plain_kernel())))


def plain_kernel() -> dict[str, Any]:
    """Return metadata with which the notebook runs in the Python of whoever opens it."""
    return {
        "kernelspec": {
            "name": "python3",
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
        },
        "language_info": {"name": "python"},
    }


def _text_cell(text: str, role: str = "") -> Any:
    mark = {"dm_jupyter": {"role": role}} if role else {}
    return new_markdown_cell(inert_markdown(text), metadata=mark)


async def with_outputs(source: str, result: CellResult) -> Any:
    """Return a cell with its outputs; very long ones don't block a server's event loop.

    Args:
        source: the code of the cell.
        result: the cell's result; a cell that can't be run again becomes a text cell.
    """
    if any(isinstance(x, Display) and is_heavy(x.data) for x in result.outputs):
        return await asyncio.to_thread(_finished_cell, source, result)
    return _finished_cell(source, result)


def _finished_cell(source: str, result: CellResult) -> Any:
    """Return the cell with its outputs; one that can't be run again becomes a text cell."""
    if result.status not in _RERUNNABLE:
        why = result.message or f"This cell was stopped: {result.status}."
        fence = "````" if "```" in source else "```"
        return _text_cell(f"{fence}python\n{source}\n{fence}\n\n> {why}")
    cell = new_code_cell(source, execution_count=result.execution_count)
    cut = cut_words(result)
    shown = (*result.outputs, cut) if cut else result.outputs
    outputs = (inert_output(output.to_nbformat()) for output in shown)
    cell.outputs = [nbformat.from_dict(output) for output in outputs]
    if result.facts:
        cell.metadata["dm_jupyter"] = {"facts": [fact.to_json() for fact in result.facts]}
    if result.status is CellStatus.ERROR:
        cell.metadata["tags"] = ["raises-exception"]  # so that Run All continues after it
    return cell
