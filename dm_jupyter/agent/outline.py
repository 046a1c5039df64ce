"""The last answered question of a notebook file, and the code cells that ran up to its answer.

Covered: notebooks that the panel and the command line have written, also with cells of the person,
and files that somebody has edited by hand. Not covered: cells that a person ran in another order
than the notebook's; run again, they show something else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dm_jupyter.agent.answer_cells import AnswerLink, ShownCell, answer_cells, needed_for
from dm_jupyter.agent.continued import asks_the_analyst, has_failed
from dm_jupyter.core.errors import NotebookError
from kernel_sandbox.types import Output, output_from_nbformat

__all__ = ["Outline", "OutlineCell", "outline_of", "outputs_of"]

_MOST_NUMBERS = 1_000


@dataclass(frozen=True, slots=True)
class OutlineCell:
    """A code cell that has run."""

    name: str
    """The cell's name for a person, such as `[3]`."""
    node: Any
    """The cell as an nbformat node."""
    has_failed: bool

    @property
    def source(self) -> str:
        """The code of the cell."""
        return str(self.node["source"])


@dataclass(frozen=True, slots=True)
class Outline:
    """A question, its answer, and the cells that ran up to the answer."""

    question: Any
    """The cell with the question as an nbformat node; `None` if it was removed."""
    answer: Any
    """The cell with the answer."""
    cells: tuple[OutlineCell, ...]
    first: int
    """Index of the first cell of the answer's own run."""

    @property
    def rests_on(self) -> frozenset[int]:
        """The indices of the cells whose outputs the answer rests on."""
        return answer_cells(self._shown(), self._links(), self.first)

    @property
    def needed(self) -> frozenset[int]:
        """The indices of the cells that must run for those."""
        return needed_for(self._shown(), self.rests_on)

    def _shown(self) -> list[ShownCell]:
        return [
            ShownCell(one.source, outputs_of(one.node), not one.has_failed) for one in self.cells
        ]

    def _links(self) -> Iterator[AnswerLink]:
        places = {one.node.get("id"): place for place, one in enumerate(self.cells)}
        numbers = _mark(self.answer).get("numbers")
        for number in numbers[:_MOST_NUMBERS] if isinstance(numbers, list) else ():
            if isinstance(number, Mapping):
                place = places.get(number.get("cell_id")) if number.get("cell_id") else None
                yield AnswerLink(str(number.get("verdict", "")), place)


def outline_of(document: Mapping[str, Any], run_id: str = "") -> Outline:
    """Return the answered question of a notebook: that of a run, else the last one.

    Args:
        document: the notebook in nbformat 4.
        run_id: id of the run; empty for the last answer.

    Raises:
        NotebookError: there is no answer, or no cell ran for it.
    """
    nodes = document["cells"]
    answers = [at for at, node in enumerate(nodes) if _is_answer(node, run_id)]
    if not answers:
        raise NotebookError("it contains no answer of the analyst. Ask a question in it first")
    end = answers[-1]
    start = _start_of(nodes, end)
    question = None if start is None else nodes[start]
    cells = tuple(_ran(nodes[:end]))
    codes_before = {id(node) for node in nodes[: start or 0]}
    first = sum(id(one.node) in codes_before for one in cells)
    if first == len(cells):
        raise NotebookError("no cell ran between the question and its answer: nothing to keep")
    return Outline(question, nodes[end], cells, first)


def outputs_of(node: Mapping[str, Any]) -> tuple[Output, ...]:
    """Return the outputs of a code cell, without invalid ones."""
    found: list[Output] = []
    for raw in node.get("outputs") or ():
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            found.append(output_from_nbformat(raw))
    return tuple(found)


def _is_answer(node: Mapping[str, Any], run_id: str) -> bool:
    if node["cell_type"] != "markdown" or (run_id and _mark(node).get("run") != run_id):
        return False
    # Releases before this one marked no answer in the notebooks of the command line.
    is_ours = _role(node) in ("answer", "")
    return is_ours and str(node["source"]).startswith("## Answer")


def _start_of(nodes: Sequence[Mapping[str, Any]], end: int) -> int | None:
    """Return the index of an answer's question; `None` if it was removed."""
    run = _mark(nodes[end]).get("run")
    above = range(end - 1, -1, -1)
    marked = (
        at for at in above if _role(nodes[at]) == "question" and _mark(nodes[at]).get("run") == run
    )
    headed = (
        at
        for at in above
        if nodes[at]["cell_type"] == "markdown" and str(nodes[at]["source"]).startswith("## ")
    )
    place = next(marked, None)
    return next(headed, None) if place is None else place


def _ran(nodes: Sequence[Any]) -> Iterator[OutlineCell]:
    codes = [node for node in nodes if node["cell_type"] == "code"]
    are_counted = any(node.get("execution_count") is not None for node in codes)
    for place, node in enumerate(codes, 1):
        count = node.get("execution_count")
        is_left_out = (are_counted and count is None) or asks_the_analyst(node["source"])
        if node["source"].strip() and not is_left_out:
            name = f"[{count}]" if count is not None else f"number {place}"
            yield OutlineCell(name, node, has_failed(node))


def _mark(node: Mapping[str, Any]) -> Mapping[str, Any]:
    mark = (node.get("metadata") or {}).get("dm_jupyter")
    return mark if isinstance(mark, Mapping) else {}


def _role(node: Mapping[str, Any]) -> str:
    return str(_mark(node).get("role", ""))
