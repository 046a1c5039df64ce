"""Stand-ins for the two seams of the loop, for tests of the loop itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.core.trajectory import Completion, RunCell
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.types import CellError, CellResult, CellStatus, Stream


def printed(text: str, status: CellStatus = CellStatus.OK) -> CellResult:
    return CellResult(status, (Stream("stdout", text),), execution_count=1)


def raised(name: str, message: str = "") -> CellResult:
    return CellResult(CellStatus.ERROR, (CellError(name, message),), execution_count=1)


@dataclass
class ScriptedPolicy:
    """Says what it is told to, one text a turn; the last one again and again."""

    texts: Iterable[str]
    name: str = "scripted"
    requests: list[SampleRequest] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._texts = list(self.texts)

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        text = self._texts[min(len(self.requests), len(self._texts) - 1)]
        self.requests.append(request)
        await asyncio.sleep(0)
        on_text(text)
        whole = request.prefill + text
        return Completion(whole, request.prefill, 100, len(text.split()), 0.01)


@dataclass
class ScriptedNotebook:
    """Gives the next result for every cell; the last one again and again."""

    results: list[CellResult]
    cells: list[RunCell] = field(default_factory=list)

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        result = self.results[min(len(self.cells), len(self.results) - 1)]
        self.cells.append(cell)
        await asyncio.sleep(0)
        return ExecutedCell(cell, result)
