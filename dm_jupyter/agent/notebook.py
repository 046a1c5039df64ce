"""A notebook without a browser: cells run in a `CellRunner` and are kept as an .ipynb file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from dm_jupyter.agent.sql_cell import runtime_source, sql_as_python
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import RunCell, StopReason, Trajectory
from kernel_sandbox.types import CellResult, CellRunner, CellStatus

__all__ = ["HeadlessNotebook"]

_RERUNNABLE = {CellStatus.OK, CellStatus.ERROR}
"""How a cell must have ended to stay a code cell; one that hung or was refused would again."""


class HeadlessNotebook:
    """Implements `Notebook`; saved after every cell, so that nothing is lost when a run breaks."""

    def __init__(
        self, runner: CellRunner, databases: tuple[str, ...] = (), path: Path | None = None
    ) -> None:
        """Makes an empty notebook.

        Args:
            runner: where cells run.
            databases: names of the database files that `sql` cells query.
            path: where the notebook is saved; `None` keeps it in memory.
        """
        self._runner = runner
        self._databases = databases
        self._queries = 0
        self._knows_sql = False
        self.path = path
        self.document = new_notebook(metadata=_plain_kernel())

    def ask(self, task: Task) -> None:
        """Writes the question at the top.

        Raises:
            NotebookError: the file can't be written.
        """
        parts = [f"## {task.question.strip()}"]
        parts += [text for text in (task.constraints, task.answer_format) if text]
        if task.files:
            parts.append("Data: " + ", ".join(f"`{file.name}`" for file in task.files))
        self._write(new_markdown_cell("\n\n".join(parts)))

    async def run(self, cell: RunCell, thought: str) -> CellResult:
        """Writes the thought and the cell, runs it and keeps its outputs.

        Raises:
            NotebookError: the file can't be written.
            SandboxError: the kernel can't run cells.
            asyncio.CancelledError: cancelled; the cell is kept, marked as interrupted.
        """
        if thought:
            self._write(new_markdown_cell(thought))
        source = await self._python_source(cell)
        position = len(self.document.cells)
        self._write(new_code_cell(source))
        result = await self._runner.run(source)
        if result.state_lost:
            self._knows_sql = False
        self.document.cells[position] = _finished_cell(source, result)
        self.save()
        return result

    def finish(self, trajectory: Trajectory) -> None:
        """Writes the answer, or why there is none, and the trajectory into the metadata.

        Raises:
            NotebookError: the file can't be written.
        """
        self.document.metadata["dm_jupyter"] = {"trajectory": trajectory.to_json()}
        self._write(new_markdown_cell(_closing_words(trajectory)))

    def save(self) -> None:
        """Writes the file whole or not at all; the former version stays when that fails.

        Raises:
            NotebookError: the file can't be written; the message says where the notebook is now.
        """
        if self.path is None:
            return
        text = nbformat.writes(self.document)
        try:
            _replace_text(self.path, text)
        except OSError as error:
            raise NotebookError(_elsewhere(self.path, text, error)) from error

    def _write(self, cell: Any) -> None:
        self.document.cells.append(cell)
        self.save()

    async def _python_source(self, cell: RunCell) -> str:
        """The cell as Python; the first `sql` cell brings the function that it calls."""
        if cell.language != "sql":
            return cell.source
        if not self._knows_sql:
            await self._define_run_sql()
        self._queries += 1
        return sql_as_python(cell.source, self._databases, self._queries)

    async def _define_run_sql(self) -> None:
        source = runtime_source()
        result = await self._runner.run(source)
        definition = _finished_cell(source, result)
        definition.metadata["jupyter"] = {"source_hidden": True}
        self._write(definition)
        self._knows_sql = result.ok


def _plain_kernel() -> dict[str, Any]:
    """Metadata that makes the notebook run with the Python of whoever opens it."""
    return {
        "kernelspec": {
            "name": "python3",
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
        },
        "language_info": {"name": "python"},
    }


def _finished_cell(source: str, result: CellResult) -> Any:
    """The cell with its outputs; one that can't be run again becomes words."""
    if result.status not in _RERUNNABLE:
        why = result.message or f"This cell was stopped: {result.status}."
        fence = "````" if "```" in source else "```"
        return new_markdown_cell(f"{fence}python\n{source}\n{fence}\n\n> {why}")
    cell = new_code_cell(source, execution_count=result.execution_count)
    cell.outputs = [nbformat.from_dict(output.to_nbformat()) for output in result.outputs]
    if result.status is CellStatus.ERROR:
        cell.metadata["tags"] = ["raises-exception"]  # so that Run All goes on after it
    return cell


def _closing_words(trajectory: Trajectory) -> str:
    if trajectory.stop is StopReason.ANSWERED:
        words = f"## Answer\n\n{trajectory.answer}"
        if trajectory.unsupported:
            words += f"\n\n> Not found in the outputs: {', '.join(trajectory.unsupported)}"
        return words
    detail = f" ({trajectory.stop_detail})" if trajectory.stop_detail else ""
    return f"## No answer\n\nThe run ended without one: {trajectory.stop}{detail}."


def _replace_text(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _elsewhere(path: Path, text: str, error: OSError) -> str:
    """Keeps the notebook in the temporary folder; returns the message that says so."""
    refuge = Path(tempfile.gettempdir()) / f"{path.stem}-{os.getpid()}.ipynb"
    try:
        _replace_text(refuge, text)
    except OSError:
        return f"{path} can't be written ({error.strerror}); free some space or choose --out"
    return f"{path} can't be written ({error.strerror}); the notebook so far is in {refuge}"
