"""Takes back what a run did to a notebook."""

from __future__ import annotations

from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.protocol import Operated, RunUndone
from dm_jupyter.server.protocol.operations import DeleteCell, InsertCell, SetSource

__all__ = ["undo"]


def undo(journal: Journal) -> None:
    """Takes the cells of an ended run out of the notebook, but none that the person changed.

    Raises:
        NotebookError: the journal can't be written.
    """
    sources: dict[str, str] = {}
    for message in journal.messages():
        if not isinstance(message, Operated):
            continue
        match message.operation:
            case InsertCell(cell_id=cell_id, source=source):
                sources[cell_id] = source
            case SetSource(cell_id=cell_id, source=source):
                sources[cell_id] = source
            case DeleteCell(cell_id=cell_id):
                sources.pop(cell_id, None)
            case _:
                pass
    for cell_id, source in reversed(sources.items()):
        journal.operate(DeleteCell(cell_id, if_source=source))
    journal.add(RunUndone)
