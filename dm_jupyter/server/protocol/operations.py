"""The operations of a run on a notebook, each on one cell that it names by its id.

A run only inserts cells and fills the cells that it inserted: it never changes a cell of the
person's. A JupyterLab tab, a shared document and the file apply the same operations in the same
order, so that they can be replayed after any interruption. Replaying an applied operation changes
nothing, except for outputs: those begin again with `ClearOutputs`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dm_jupyter.agent.notebook_words import folded_marks
from dm_jupyter.core.codec import Tagged

__all__ = [
    "AppendOutput",
    "ClearOutputs",
    "DeleteCell",
    "FoldCell",
    "InsertCell",
    "Operation",
    "ReplaceOutput",
    "SetExecution",
    "SetSource",
    "append_output",
    "apply",
    "new_cell",
]

MARK = "dm_jupyter"
"""Metadata key of cells that a run wrote: `{"run": ID, "role": "question" | …}`."""


class _Operation(Tagged, frozen=True, tag_field="op", forbid_unknown_fields=True):
    """An operation, decoded strictly: unknown fields could change more than it may."""


class InsertCell(_Operation, frozen=True):
    """A new cell below the first of the anchors that exists, else at the end."""

    cell_id: str
    cell_type: Literal["code", "markdown"]
    source: str
    after: tuple[str, ...] = ()
    """Ids of cells, best first."""
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict)


class SetSource(_Operation, frozen=True):
    """A new text for a cell of the run."""

    cell_id: str
    source: str


class AppendOutput(_Operation, frozen=True):
    """One more output, as an nbformat object; text joins a last output of the same stream."""

    cell_id: str
    output: Mapping[str, Any]


class ReplaceOutput(_Operation, frozen=True):
    """A new content for the output at `index`, as `update_display_data` requests."""

    cell_id: str
    index: int
    output: Mapping[str, Any]


class ClearOutputs(_Operation, frozen=True):
    """The removal of all outputs."""

    cell_id: str


class SetExecution(_Operation, frozen=True):
    """Whether the cell runs, and its number once it has run."""

    cell_id: str
    is_running: bool
    execution_count: int | None = None


class DeleteCell(_Operation, frozen=True):
    """The removal of a cell of the run, unless the person has changed its text since."""

    cell_id: str
    if_source: str | None = None
    """The text it must still have; `None` deletes it anyway."""


class FoldCell(_Operation, frozen=True):
    """The folding of a cell of the run, unless the person has changed its text since.

    It sets Jupyter's own metadata for a hidden source and hidden outputs, and no other. One click
    in the notebook shows either again.
    """

    cell_id: str
    if_source: str
    """The text it must still have."""


Operation = (
    InsertCell | SetSource | AppendOutput | ReplaceOutput | ClearOutputs | SetExecution | FoldCell
    | DeleteCell
)  # fmt: skip


def apply(operation: Operation, document: dict[str, Any]) -> None:
    """Apply one operation to a notebook, an nbformat 4.5 object that is changed in place.

    An operation on a cell that the person has deleted changes nothing.
    """
    cells: list[dict[str, Any]] = document["cells"]
    if isinstance(operation, InsertCell):
        _insert(operation, cells)
        return
    place = _index_of(operation.cell_id, cells)
    if place is None:
        return
    if isinstance(operation, DeleteCell):
        if operation.if_source in (None, _text(cells[place]["source"])):
            del cells[place]
        return
    _fill(operation, cells[place])


def _fill(operation: Operation, cell: dict[str, Any]) -> None:
    match operation:
        case SetSource(source=source):
            cell["source"] = source
        case FoldCell(if_source=source):
            if _text(cell["source"]) == source:
                cell["metadata"] |= folded_marks(cell["cell_type"], cell["metadata"].get("jupyter"))
        case _ if cell["cell_type"] != "code":
            pass  # the person has turned it into a text cell, which has no outputs
        case AppendOutput(output=output):
            append_output(cell["outputs"], output)
        case ReplaceOutput(index=index, output=output) if index < len(cell["outputs"]):
            cell["outputs"][index] = _own(output)
        case ClearOutputs():
            cell["outputs"] = []
        case SetExecution(execution_count=count):
            cell["execution_count"] = count


def append_output(outputs: list[dict[str, Any]], output: Mapping[str, Any]) -> None:
    """Add an output in place; neighbouring pieces of one stream are joined."""
    last = outputs[-1] if outputs else None
    joins = (
        last is not None
        and last["output_type"] == output["output_type"] == "stream"
        and last["name"] == output["name"]
    )
    if joins and last is not None:
        last["text"] = _text(last["text"]) + output["text"]
    else:
        outputs.append(_own(output))


def _own(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return a shallow copy of an output, for a document to change; its media data are shared.

    Nobody changes the media data, and a copy of large ones would block the event loop.
    """
    return {
        name: dict(part) if isinstance(part, Mapping) else part for name, part in output.items()
    }


def _insert(operation: InsertCell, cells: list[dict[str, Any]]) -> None:
    if _index_of(operation.cell_id, cells) is not None:
        return
    anchors = (_index_of(anchor, cells) for anchor in operation.after)
    place = next((index + 1 for index in anchors if index is not None), len(cells))
    cells.insert(place, new_cell(operation))


def new_cell(operation: InsertCell) -> dict[str, Any]:
    """Return the cell to insert, as an nbformat object."""
    cell: dict[str, Any] = {
        "id": operation.cell_id,
        "cell_type": operation.cell_type,
        "source": operation.source,
        "metadata": copy.deepcopy(dict(operation.metadata)),
    }
    if operation.cell_type == "code":
        cell |= {"outputs": [], "execution_count": None}
    return cell


def _index_of(cell_id: str, cells: list[dict[str, Any]]) -> int | None:
    return next((i for i, cell in enumerate(cells) if cell.get("id") == cell_id), None)


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)
