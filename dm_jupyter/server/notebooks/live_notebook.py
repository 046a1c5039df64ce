"""The notebook that a person has open: cells are written by operations and run in its own kernel.

Implements `Notebook`. This module does not know who applies an operation: a tab, a shared document,
or the file's writer. Operations go into the run's journal, and its listeners apply them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nbformat.corpus.words import generate_corpus_id

from dm_jupyter.agent.answer_cells import needless_cells
from dm_jupyter.agent.notebook_words import closing_words, cut_words, question_words
from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.agent.sql_cell import SqlCells
from dm_jupyter.core.data_facts import notable_words
from dm_jupyter.core.grounded import AnswerNumber
from dm_jupyter.core.inert import inert_markdown
from dm_jupyter.core.limits_met import limit_met
from dm_jupyter.core.readable import shown_numbers
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import RunCell, Trajectory
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.history.memory import WrittenCell
from dm_jupyter.server.kernels.packages import CellPackages, needs
from dm_jupyter.server.kernels.registry import KernelRegistry
from dm_jupyter.server.notebooks.approvals import Approvals, FileGate
from dm_jupyter.server.notebooks.output_stream import OutputStream
from dm_jupyter.server.protocol import CellClosed, CellDecided, CellOpened
from dm_jupyter.server.protocol.operations import (
    AppendOutput,
    ClearOutputs,
    DeleteCell,
    FoldCell,
    InsertCell,
    SetExecution,
    SetSource,
)
from kernel_sandbox.cells.cell import LOST_STATE
from kernel_sandbox.types import CellError, CellResult, CellStatus

if TYPE_CHECKING:
    from kernel_sandbox.jupyter.attached import AttachedKernel
    from kernel_sandbox.packages.packages import Missing

__all__ = ["LiveNotebook"]

_RESULT_NAME = re.compile(r"result_(\d{1,9})\.csv")
_SKIPPED = "the person skipped this cell and it did not run: try another way"


@dataclass(slots=True)
class _Written:
    """A cell that the run has inserted into the notebook."""

    cell_id: str
    source: str
    is_code: bool = False
    """Whether it is a code cell that is not hidden."""
    thought: _Written | None = None
    """The text cell above it, which is about this cell alone."""


class LiveNotebook:
    """The cells of one run, written below each other and run in the notebook's kernel."""

    def __init__(
        self,
        journal: Journal,
        kernels: KernelRegistry,
        kernel_id: str,
        approvals: Approvals,
        say: Callable[[str], None],
    ) -> None:
        """Start without cells.

        Args:
            journal: the journal of the run.
            kernels: the kernels, from which a restarted one is found again.
            kernel_id: the id of the notebook's kernel.
            approvals: decides which cells wait for the person.
            say: called with a transient line for the person.
        """
        self._journal = journal
        self._kernels = kernels
        self._kernel_id = kernel_id
        self._approvals = approvals
        self._say = say
        self._packages = CellPackages(None, Path(), say)
        self._gate = FileGate(journal, approvals, Path())
        self._written: list[_Written] = []
        self._anchors: tuple[str, ...] = ()
        self._question = ""
        self._ran: list[_Written] = []
        """The cells of its turns, in order."""
        self._has_run = False
        self._process = kernels.directory.process_of(kernel_id)
        """The kernel's process at the question, then at the last cell; empty if it has ended."""
        self._lost = ""
        """What the next result must tell about the loss of the kernel."""
        self._sql = SqlCells(())
        self.step = 1
        """Number of the turn that the next cells belong to."""

    def begin(
        self, task: Task, databases: tuple[str, ...], after: tuple[str, ...], workspace: Path
    ) -> None:
        """Keep the question, which is written above the first cell.

        Args:
            task: the question and its files.
            databases: names of the databases that `sql` cells query.
            after: ids of the person's cells below which to write, best first.
            workspace: the kernel's working folder; results in it are not overwritten.
        """
        self._anchors = after
        self._kernels.begin_run(self._kernel_id)
        packages = self._kernels.directory.packages(self._kernel_id)
        self._packages = CellPackages(packages, workspace, self._say)
        self._gate = FileGate(self._journal, self._approvals, workspace)
        taken = (_RESULT_NAME.fullmatch(path.name) for path in workspace.glob("result_*.csv"))
        last = max((int(match[1]) for match in taken if match), default=0)
        self._sql = SqlCells(databases, queries=last)
        self._question = question_words(task)

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        """Write the thought and the cell, wait for the person if approval is needed, and run it.

        Raises:
            KernelStartError: the kernel ended and did not come back.
            NotebookError: the run can't be written to its journal.
            asyncio.CancelledError: the run was cancelled; the cell's outputs so far are kept.
        """
        if not self._written:
            self._insert("markdown", self._question, "question")
        above = self._insert("markdown", thought, "thought") if thought else None
        if cell.language == "sql" and self._sql.knows_function:
            await self._attach()  # a kernel that was restarted has no function
        if definition := self._sql.definition(cell):
            _, result = await self._run_cell(definition, "", "sql", is_hidden=True)
            self._sql.knows_function = result.ok
        source = self._sql.python(cell)
        ran, result = await self._run_cell(source, thought, cell.language, above=above)
        if result.state_lost:
            self._sql.knows_function = False
            self._process = ""
        return ExecutedCell(cell if ran == source else self._sql.changed(cell, ran), result)

    def finish(self, trajectory: Trajectory) -> None:
        """Write the answer, or why there is none; if no cell ran, remove all of the run's cells.

        Raises:
            NotebookError: the run can't be written to its journal.
        """
        if self._has_run:
            numbers = [asdict(number) for number in self.numbers(trajectory)]
            self._insert("markdown", closing_words(trajectory), "answer", numbers=numbers)
            self._fold(trajectory)
            return
        for written in reversed(self._written):
            self._journal.operate(DeleteCell(written.cell_id, if_source=written.source))
        self._written.clear()

    def numbers(self, trajectory: Trajectory) -> tuple[AnswerNumber, ...]:
        """Return the numbers of the answer, with the cells that they come from."""
        ids = [one.cell_id for one in self._ran]
        return shown_numbers(trajectory, trajectory.cell_ids(ids))

    def _fold(self, trajectory: Trajectory) -> None:
        """Fold failed cells and those that the answer does not need, with the text above them."""
        needless = needless_cells(trajectory, [one.source for one in self._ran])
        for place in sorted(needless):
            cell = self._ran[place]
            for one in filter(None, (cell.thought, cell)):
                self._journal.operate(FoldCell(one.cell_id, if_source=one.source))

    async def _run_cell(
        self,
        source: str,
        thought: str,
        language: str,
        *,
        is_hidden: bool = False,
        above: _Written | None = None,
    ) -> tuple[str, CellResult]:
        """Run a cell, and return its source as the person left it, and its result."""
        missing = None if is_hidden else await self._packages.missing(source)
        written = self._insert("code", source, "cell", is_hidden=is_hidden)
        written.thought = above
        asked = "" if is_hidden else self._approvals.reason(source, needs(missing))
        self._journal.add(
            CellOpened,
            step=self.step,
            cell_id=written.cell_id,
            thought=thought,
            language=language,
            waits_because=asked,
        )
        result = CellResult(CellStatus.INTERRUPTED, message="the run was stopped")
        is_skipped = False
        if not is_hidden:
            self._ran.append(written)
        try:
            is_skipped = bool(asked) and not await self._decided(written)
            if is_skipped:
                result = CellResult(CellStatus.DENIED, message=_SKIPPED)
            else:
                result = await self._supplied(written, missing, is_agreed=bool(asked))
            return source if is_skipped else written.source, result
        finally:
            self._journal.add(
                CellClosed,
                step=self.step,
                cell_id=written.cell_id,
                status="skipped" if is_skipped else result.status.value,
                seconds=result.seconds,
                peak_bytes=result.peak_bytes,
                message=result.message,
                state_lost=result.state_lost,
                files=result.files,
                cut_bytes=result.cut_bytes,
                facts=notable_words(result.facts),
            )

    async def _decided(self, written: _Written) -> bool:
        """Wait for the person's decision on the cell, and return whether it may run."""
        answer = await self._approvals.wait_for(written.cell_id)
        is_skipped = answer.decision == "skip"
        source = answer.source if answer.source is not None and not is_skipped else written.source
        is_edited = source != written.source
        written.source = source
        if not is_skipped:
            # The notebook may have another text than the one that the person was shown.
            self._journal.operate(SetSource(written.cell_id, source))
        self._journal.add(
            CellDecided, cell_id=written.cell_id, decision=answer.decision, is_edited=is_edited
        )
        if is_skipped:
            # A cell that the person has rewritten is theirs.
            self._journal.operate(DeleteCell(written.cell_id, if_source=source))
            self._written.remove(written)
        return not is_skipped

    async def _supplied(
        self, written: _Written, missing: Missing | None, *, is_agreed: bool
    ) -> CellResult:
        """Install what the person agreed to and run the cell, unless it must not run."""
        if refusal := self._approvals.refusal(written.source):
            result = CellResult(CellStatus.DENIED, message=refusal)
            self._say_limit(written, result)
            return result
        done = await self._packages.supply(written.source, missing, is_agreed=is_agreed)
        result = await self._execute(written)
        self._say_limit(written, result)
        lost = ""
        if written.is_code:  # the model sees no result of a hidden cell
            lost, self._lost = self._lost, ""
        return replace(result, message=" ".join(filter(None, (done, lost, result.message))))

    async def _execute(self, written: _Written) -> CellResult:
        cell_id, count = written.cell_id, None
        self._journal.operate(ClearOutputs(cell_id))
        self._journal.operate(SetExecution(cell_id, is_running=True))
        stream = OutputStream(cell_id, self._journal.operate)
        try:
            kernel = await self._attach()
            self._has_run = True
            await kernel.tell_figures()
            await self._gate.begin(kernel)
            result = await kernel.run(written.source, stream.take)
            count = result.execution_count
        finally:
            await stream.close()
            self._journal.operate(SetExecution(cell_id, False, count))
        return await self._gate.end(cell_id, self.step, result)

    async def _attach(self) -> AttachedKernel:
        """Return the notebook's kernel; note if its process is not the one that is known."""
        kernel = await self._kernels.attach(self._kernel_id)
        process = self._kernels.directory.process_of(self._kernel_id)
        if self._process not in ("", process):
            self._sql.knows_function = False
            self._lost = LOST_STATE
        self._process = process
        return kernel

    @property
    def written(self) -> tuple[str, ...]:
        """The ids of the cells that the run has inserted into the notebook, the last first."""
        return tuple(one.cell_id for one in reversed(self._written))

    @property
    def code_cells(self) -> tuple[WrittenCell, ...]:
        """The code cells that it has inserted into the notebook and that are not hidden."""
        return tuple(WrittenCell(one.cell_id, one.source) for one in self._written if one.is_code)

    async def close(self) -> None:
        """Close the file gate; called when the run has ended, so no cell of it writes any more."""
        await self._gate.close()

    def _say_limit(self, written: _Written, result: CellResult) -> None:
        """Append to the cell's outputs which limit it met, or what was cut."""
        if cut := cut_words(result):
            self._journal.operate(AppendOutput(written.cell_id, cut.to_nbformat()))
        is_denied = result.status is CellStatus.DENIED
        name = "NotAllowed" if is_denied else limit_met(result)
        if name and result.message:
            error = CellError(name, result.message, (f"{name}: {result.message}",))
            self._journal.operate(AppendOutput(written.cell_id, error.to_nbformat()))

    def _insert(
        self,
        cell_type: str,
        source: str,
        role: str,
        *,
        is_hidden: bool = False,
        numbers: Sequence[Mapping[str, object]] = (),
    ) -> _Written:
        mark: dict[str, object] = {"run": self._journal.run_id, "role": role}
        if numbers:
            mark["numbers"] = list(numbers)
        metadata: dict[str, object] = {"dm_jupyter": mark}
        if is_hidden:
            metadata["jupyter"] = {"source_hidden": True}
        is_text = cell_type == "markdown"
        shown = inert_markdown(source) if is_text else source
        written = _Written(generate_corpus_id(), shown, not is_text and not is_hidden)
        # Below the last of the run's cells that still exists, else at the person's cell.
        self._journal.operate(
            InsertCell(
                cell_id=written.cell_id,
                cell_type="markdown" if is_text else "code",
                source=written.source,
                after=(*self.written[:8], *self._anchors),
                metadata=metadata,
            )
        )
        self._written.append(written)
        return written
