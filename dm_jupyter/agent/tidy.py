"""A notebook to share: the cells that an answer needs, run again in a fresh restricted kernel.

The cells to leave out are guessed from their text, and the run checks the guess. If the answer's
cells show something else without the others, the new notebook keeps all cells and names that cell.
Covered: the original notebook is never touched, no file is overwritten, and nothing is written
before all cells have run. Not covered: outputs that differ each time, such as the time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import nbformat
from nbformat.v4 import new_notebook

from dm_jupyter.agent.answer_cells import made_files
from dm_jupyter.agent.continued import Continued
from dm_jupyter.agent.figures.figure_words import figure_words, is_figure
from dm_jupyter.agent.notebook import plain_kernel, with_outputs
from dm_jupyter.agent.notebook_file import read_notebook, write_new
from dm_jupyter.agent.observe import describe, shorten
from dm_jupyter.agent.outline import Outline, OutlineCell, outline_of, outputs_of
from dm_jupyter.assist.cell_effects import EarlierCell
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.data.data_context import names_for
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellError, CellResult, CellStatus, Display, Limits

__all__ = ["Tidied", "TidySettings", "tidy"]

_new_notebook: Any = new_notebook  # nbformat has no types
_as_text: Any = nbformat.writes
_from_dict: Any = nbformat.from_dict
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_ALL_CHARS = 10_000_000


@dataclass(frozen=True, slots=True)
class TidySettings:
    """How a notebook is run again."""

    limits: Limits = field(default_factory=Limits)
    require: tuple[str, ...] = ()
    """Layers of containment without which the kernel must not start."""
    overlay: Path | None = None
    """Folder of added packages that the cells may import; `None` for none."""
    files: tuple[Path, ...] = ()
    """Files outside the notebook's folder that its cells may read."""
    is_isolated: bool = True
    """Whether the kernel gets namespaces of its own if the machine has them."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """The result of tidying a notebook."""

    path: Path
    """The new notebook."""
    kept: tuple[str, ...]
    """Names of the cells that it contains, as in the original notebook."""
    left_out: tuple[str, ...]
    is_same: bool = True
    """Whether the answer's cells showed the same as before."""
    differs: str = ""
    """The cell that showed something else, or failed, without the others; empty for none."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "notebook": str(self.path),
            "kept": list(self.kept),
            "left_out": list(self.left_out),
            "is_same": self.is_same,
            "differs": self.differs,
            "words": self.words,
        }

    @property
    def words(self) -> str:
        """The result in a sentence or two for a person."""
        total = len(self.kept) + len(self.left_out)
        if not self.is_same:
            return (
                f"cell {self.differs} gave a different output when run again. All {total} cells "
                "were kept with their original outputs"
            )
        if self.differs:
            return (
                f"cell {self.differs} needs more cells than its text shows. All {total} cells "
                "kept; outputs are the same"
            )
        return f"{len(self.kept)} of {total} cells kept; outputs are the same"


async def tidy(
    path: Path,
    settings: TidySettings,
    on_progress: Callable[[str], None],
    run_id: str = "",
) -> Tidied:
    """Run the cells that a notebook's answer needs again, and write them as a new notebook.

    Args:
        path: absolute path of the notebook, which is only read.
        settings: how it is run again.
        on_progress: callback with a line before each cell.
        run_id: id of the run whose answer is used; empty for the last answer.

    Raises:
        NotebookError: it can't be read, has no answer, can't be run again, or the new one can't
            be written. Nothing is written then.
        SandboxError: the kernel can't run cells.
        asyncio.CancelledError: cancelled; nothing is written.
    """
    outline = await asyncio.to_thread(_outline, path, run_id)
    everything = frozenset(range(len(outline.cells)))
    needed = await asyncio.to_thread(lambda: outline.needed)
    again = _Again(path, outline, settings, on_progress)
    ran = await again.run(needed)
    is_whole = needed == everything
    differs = ran.differs
    if ran.differs and not is_whole:
        on_progress(f"cell {differs} needs more than that: running all cells")
        ran = await again.run(everything)
    if ran.failure:
        raise NotebookError(ran.failure)
    is_same = not ran.differs
    kept = everything if differs else needed
    tidied = Tidied(
        path,
        tuple(cell.name for at, cell in enumerate(outline.cells) if at in kept),
        tuple(cell.name for at, cell in enumerate(outline.cells) if at not in kept),
        is_same,
        ran.differs or differs,
    )
    nodes = [ran.nodes[at] if is_same else outline.cells[at].node for at in sorted(kept)]
    text = _document(path, outline, nodes, tidied)
    return replace(tidied, path=await asyncio.to_thread(_write, path, text))


def _outline(path: Path, run_id: str) -> Outline:
    _, document = read_notebook(path)
    try:
        return outline_of(document, run_id)
    except NotebookError as error:
        raise NotebookError(f"{path.name} can't be tidied: {error}") from error


@dataclass(slots=True)
class _Ran:
    """The result of running cells again."""

    nodes: dict[int, Any] = field(default_factory=dict)
    """The cells as they are now, by index."""
    differs: str = ""
    """The first cell of the answer that showed something else, or the first that failed."""
    failure: str = ""
    """Why the run did not reach its end; empty if it did."""


class _Again:
    """A runner of a notebook's cells, which uses a fresh kernel each time."""

    def __init__(
        self,
        path: Path,
        outline: Outline,
        settings: TidySettings,
        on_progress: Callable[[str], None],
    ) -> None:
        self._path = path
        self._outline = outline
        self._settings = settings
        self._on_progress = on_progress

    async def run(self, places: Collection[int]) -> _Ran:
        """Run the cells at these indices, in order, up to the first that fails unlike before."""
        settings, ran = self._settings, _Ran()
        session = KernelSession(
            settings.limits,
            inputs=await asyncio.to_thread(self._inputs),
            require=settings.require,
            isolate=settings.is_isolated,
            overlay=settings.overlay,
        )
        rests_on = self._outline.rests_on
        async with session as kernel:
            for number, at in enumerate(sorted(places), 1):
                cell = self._outline.cells[at]
                self._on_progress(f"running cell {number} of {len(places)}")
                result = await kernel.run(cell.source)
                if not _ended_as_before(cell, result):
                    ran.differs, ran.failure = cell.name, self._why(cell, result)
                    return ran
                ran.nodes[at] = await _again(cell, result)
                if at in rests_on and not ran.differs and not _is_same(cell.node, ran.nodes[at]):
                    ran.differs = cell.name
        return ran

    def _inputs(self) -> dict[str, Path]:
        """Return the files that the cells may read: below the folder, but none they create."""
        document = {"cells": [cell.node for cell in self._outline.cells]}
        found = Continued(self._path, document, b"", 0).inputs
        made = made_files([EarlierCell(cell.source) for cell in self._outline.cells])
        named = names_for(self._settings.files, self._path.parent)
        return {name: at for name, at in found.items() if at.name not in made} | named

    def _why(self, cell: OutlineCell, result: CellResult) -> str:
        error = result.error
        why = f"{error.name}: {error.message}" if error is not None else result.message
        if result.state_lost and not why:
            why = "the kernel died"
        words = f"cell {cell.name} of {self._path.name} failed when run again: {shorten(why, 600)}"
        if error is not None and error.name in ("FileNotFoundError", "PermissionError"):
            words += ". If its file is outside of the notebook's folder, name it after the notebook"
        return f"{words.rstrip('.')}. No notebook was written"


def _ended_as_before(cell: OutlineCell, result: CellResult) -> bool:
    if cell.has_failed:
        return result.status is CellStatus.ERROR and not result.state_lost
    return result.ok


async def _again(cell: OutlineCell, result: CellResult) -> Any:
    """Return the cell with its new outputs, under its old id and metadata."""
    node = await with_outputs(cell.source, result)
    if cell.node.get("id"):
        node["id"] = cell.node["id"]
    node.metadata = _from_dict({**cell.node["metadata"], **node.metadata})
    return node


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two cells show the same texts, errors, and figure descriptions."""
    shown, again = _parts(before), _parts(after)
    return len(shown) == len(again) and all(map(_is_same_part, shown, again))


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of what a cell shows: a figure in words, or the text between figures."""

    text: str
    is_figure: bool = False


def _is_same_part(before: _Part, after: _Part) -> bool:
    if before.is_figure and after.is_figure and not (before.text and after.text):
        return True  # an unrestricted kernel does not describe its figures
    return before == after


def _parts(node: Mapping[str, Any]) -> list[_Part]:
    parts: list[_Part] = []
    text = ""
    for output in outputs_of(node):
        if isinstance(output, Display) and is_figure(output.data):
            parts += [_Part(text.strip()), _Part(figure_words(output.data), is_figure=True)]
            text = ""
        elif isinstance(output, CellError):
            text += f"\n{output.name}: {output.message}"
        else:
            said = CellResult(CellStatus.OK, (output,))
            text += "\n" + describe(said, _ALL_CHARS)
    parts.append(_Part(text.strip()))
    return [replace(part, text=_plain(part.text)) for part in parts if part.text or part.is_figure]


def _plain(text: str) -> str:
    """Return a text without what differs between processes, and without invisible blanks."""
    lines = _ADDRESS.sub("0x", text).splitlines()
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _document(path: Path, outline: Outline, nodes: Iterable[Any], tidied: Tidied) -> str:
    """Return the new notebook's text: the question, the cells, the answer, and a note on them.

    Raises:
        NotebookError: the contents of the old one make no valid notebook.
    """
    answer = _handed(outline.answer)
    if not tidied.is_same:
        answer.source += f"\n\n> When this notebook was tidied, {tidied.words}."
    question = [] if outline.question is None else [_handed(outline.question)]
    mark = {"tidied": {"from": path.name, "kept": len(tidied.kept), "is_same": tidied.is_same}}
    document = _new_notebook(
        cells=[*question, *map(_handed, nodes), answer],
        metadata={**plain_kernel(), "dm_jupyter": mark},
    )
    try:
        nbformat.validate(document)
    except nbformat.ValidationError as error:
        raise NotebookError(f"{path.name} can't be tidied: {error.message}") from error
    return str(_as_text(document))


def _handed(node: Any) -> Any:
    """Return a copy of a cell that belongs to no run of its original notebook."""
    copy = deepcopy(node)
    copy.setdefault("id", uuid4().hex[:8])
    mark = copy.metadata.get("dm_jupyter")
    if isinstance(mark, Mapping):
        copy.metadata["dm_jupyter"] = {key: one for key, one in mark.items() if key != "run"}
    return copy


def _write(path: Path, text: str) -> Path:
    wanted = path.with_name(f"{path.stem}-tidy.ipynb")
    try:
        return write_new(wanted, text)
    except OSError as error:
        why = error.strerror or str(error)
        raise NotebookError(
            f"{wanted} can't be written ({why}); {path.name} is unchanged. Free some space, or "
            "tidy a copy in a folder that you may write"
        ) from error
