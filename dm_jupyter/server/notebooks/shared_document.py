"""Runs in notebooks that several people edit at once (jupyter-collaboration).

Covered: a room that is closed between two operations, since the document is requested before each;
and operations that a change of the file on disk has undone, since the end checks for them. Not
covered: what happens inside the collaboration's own storage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from dm_jupyter.agent.notebook_words import folded_marks
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.protocol import Operated, RunMessage
from dm_jupyter.server.protocol.operations import (
    AppendOutput,
    ClearOutputs,
    DeleteCell,
    FoldCell,
    InsertCell,
    Operation,
    ReplaceOutput,
    SetExecution,
    SetSource,
    new_cell,
)

__all__ = ["SharedDocuments", "apply_shared"]

ORIGIN = "dm-jupyter"
"""Origin of our changes, which a person's own undo does not revert."""
_SAVED_S = 2.0
"""The collaboration saves one second after the last change."""


class SharedDocuments:
    """The documents of the server's collaboration extension."""

    def __init__(self, collaboration: Any) -> None:
        """Start without opening a document.

        Args:
            collaboration: the server's `jupyter_server_ydoc` extension.
        """
        self._collaboration = collaboration

    @classmethod
    def of(cls, extension_apps: Any) -> SharedDocuments | None:
        """Return the server's shared documents; `None` if collaboration is off.

        Args:
            extension_apps: the extension manager's mapping of names to applications.
        """
        found = next(iter(extension_apps.get("jupyter_server_ydoc", ())), None)
        return None if found is None or found.disable_rtc else cls(found)

    async def write(self, where: Callable[[], str], journal: Journal) -> None:
        """Apply a run's operations as they come, until the run has ended and they are saved.

        Args:
            where: returns the notebook's path, which a rename changes.
            journal: the journal of the run; its earlier messages are applied first.
        """
        coming: asyncio.Queue[RunMessage] = asyncio.Queue()
        journal.listen(coming.put_nowait)
        for message in list(journal.messages(after=journal.applied_for_sure())):
            await self._apply(where(), message)
        while not (journal.is_closed and coming.empty()):
            message = await coming.get()
            await self._apply(where(), message)
            if journal.is_closed and coming.empty():
                await asyncio.sleep(_SAVED_S)  # an undo may come meanwhile
                await self._mend(where(), journal)
        journal.mark_in_file(journal.last)

    async def _apply(self, path: str, message: RunMessage) -> None:
        if isinstance(message, Operated):
            apply_shared(message.operation, await self._document(path))

    async def _mend(self, path: str, journal: Journal) -> None:
        """Apply all operations again if all of the run's cells are gone without being deleted."""
        operations = [x.operation for x in journal.messages() if isinstance(x, Operated)]
        wanted = {one.cell_id for one in operations if isinstance(one, InsertCell)}
        wanted -= {one.cell_id for one in operations if isinstance(one, DeleteCell)}
        document = await self._document(path)
        if wanted and not wanted & {str(cell["id"]) for cell in document.ycells}:
            for operation in operations:
                apply_shared(operation, document)

    async def _document(self, path: str) -> Any:
        return await self._collaboration.get_document(
            path=path, content_type="notebook", file_format="json", copy=False, create=True
        )


def apply_shared(operation: Operation, notebook: Any) -> None:
    """Apply an operation to a shared notebook, as `operations.apply` does to a file's.

    Args:
        operation: the operation; on a cell that is not there it does nothing.
        notebook: a `jupyter_ydoc.YNotebook`.
    """
    ids = [str(cell["id"]) for cell in notebook.ycells]
    with notebook.ydoc.transaction(origin=ORIGIN):
        if isinstance(operation, InsertCell):
            if operation.cell_id not in ids:
                place = _place(operation.after, ids)
                notebook.ycells.insert(place, notebook.create_ycell(new_cell(operation)))
        elif operation.cell_id in ids:
            place = ids.index(operation.cell_id)
            if isinstance(operation, DeleteCell):
                if operation.if_source in (None, str(notebook.ycells[place]["source"])):
                    del notebook.ycells[place]
            else:
                _fill(operation, notebook.ycells[place])


def _place(anchors: Iterable[str], ids: list[str]) -> int:
    return next((ids.index(anchor) + 1 for anchor in anchors if anchor in ids), len(ids))


def _fill(operation: Operation, cell: Any) -> None:
    match operation:
        case SetSource(source=source):
            text = cell["source"]
            if str(text) != source:  # else the caret in it would move
                text.clear()
                text += source
        case FoldCell(if_source=source):
            _fold(cell, source)
        case _ if cell["cell_type"] != "code":
            pass  # the person has turned it into a text cell, which has no outputs
        case AppendOutput(output=output):
            _append(cell["outputs"], dict(output))
        case ReplaceOutput(index=index, output=output) if index < len(cell["outputs"]):
            cell["outputs"][index] = _shared_output(dict(output))
        case ClearOutputs():
            cell["outputs"].clear()
        case SetExecution(is_running=is_running, execution_count=count):
            cell["execution_state"] = "running" if is_running else "idle"
            cell["execution_count"] = count


def _fold(cell: Any, source: str) -> None:
    if str(cell["source"]) == source:
        metadata = cell["metadata"]
        for key, value in folded_marks(cell["cell_type"], metadata.get("jupyter")).items():
            metadata[key] = value


def _append(outputs: Any, output: dict[str, Any]) -> None:
    last = outputs[len(outputs) - 1] if len(outputs) else None
    is_text = output["output_type"] == "stream"
    if is_text and last is not None and last.get("name") == output["name"]:
        text = last["text"]  # bound first: `last["text"] += …` would empty it
        text += output["text"]
    else:
        outputs.append(_shared_output(output))


def _shared_output(output: dict[str, Any]) -> Any:
    from pycrdt import Map, Text  # noqa: PLC0415  (optional extra)

    if output["output_type"] == "stream":
        output = {**output, "text": Text(output["text"])}
    return Map(output)
