"""The server's side of the questions that `%%analyze` hands over from inside a kernel.

The magic opens the comm `dm-jupyter` and gets `{"kind": "seen"}` at once. Work begins when it sends
`{"kind": "waits"}`: from then on it does not work on the question itself. One message answers it:
`{"kind": "accepted", "run_id": …}` or `{"kind": "refused", "message": …}`.

Code in the kernel can forge all that it sends, so it gets no more rights than that kernel has. The
notebook comes from the server's own session table. A restricted kernel's files are those that it
can read itself. No option can name an endpoint or a key. Other files wait for the person's click in
the panel.
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from jupyter_core.utils import ensure_async

from dm_jupyter.agent.continued import asks_the_analyst
from dm_jupyter.agent.notebook_context import NotebookCell, PartKind, cells_of_document
from dm_jupyter.agent.observe import shorten
from dm_jupyter.data.kernel_tables import COMM_TARGET, Alive, alive_from_text
from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError
from dm_jupyter.server.protocol import Ask, WantedFile

__all__ = ["FoundHandoff", "Handoffs", "Handover", "LaterCells", "around", "files_of"]

_log = logging.getLogger(__name__)
_PARTS: tuple[PartKind, ...] = get_args(PartKind)

_MAX_CHARS = 20_000
_MAX_NAME_CHARS = 4_096
_MAX_VARIABLES_CHARS = 256 * 1024
_CELL_CHARS = 4_000
_MAX_FILES = 50
_MOST_CELLS = 200
_MOST_ASKING = 100
_MOST_ANCHORS = 8
_MOST_AT_ONCE = 4
"""Most questions of one kernel that are handled at once; a person hands over one."""


class Handoffs:
    """The comms of one kernel: they deliver questions, and abandoned ones are dropped."""

    def __init__(
        self,
        take: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
        answer: Callable[[str, dict[str, Any]], Awaitable[None]],
        abandon: Callable[[str], None],
        spawn: Callable[[Any], Any],
    ) -> None:
        """Start without questions.

        Args:
            take: handles a question's data and returns the answer to it.
            answer: sends an answer through a comm.
            abandon: ends a run that was accepted too late: the magic works on it itself.
            spawn: starts background work.
        """
        self._take = take
        self._answer = answer
        self._abandon = abandon
        self._spawn = spawn
        self._seen: dict[str, Mapping[str, Any]] = {}
        """Questions whose magic has not said yet that it waits, by comm id."""
        self._runs: dict[str, str] = {}
        self._at_work: dict[str, bool] = {}
        """The comms whose questions are handled, and whether their magic still waits."""
        self._telling = 0

    def hear(self, kind: str, content: Mapping[str, Any]) -> None:
        """Handle a comm's message; ignore comms with another target."""
        comm_id, data = content["comm_id"], content.get("data")
        told = data.get("kind") if isinstance(data, Mapping) else None
        if kind == "comm_open" and content["target_name"] == COMM_TARGET:
            self._see(comm_id, data if isinstance(data, Mapping) else {})
        elif kind == "comm_msg" and told == "waits" and comm_id in self._seen:
            self._begin(comm_id)
        elif kind == "comm_close":
            self._seen.pop(comm_id, None)
            if comm_id in self._at_work:
                self._at_work[comm_id] = False
            run_id = self._runs.pop(comm_id, None)
            if run_id is not None and told == "abandoned":
                self._abandon(run_id)

    def _see(self, comm_id: str, question: Mapping[str, Any]) -> None:
        if self._telling >= _MOST_AT_ONCE:
            return
        while len(self._seen) >= _MOST_AT_ONCE:  # drop those that were abandoned silently
            del self._seen[next(iter(self._seen))]
        self._seen[comm_id] = question
        self._telling += 1
        self._spawn(self._tell(comm_id))

    async def _tell(self, comm_id: str) -> None:
        try:
            await self._answer(comm_id, {"kind": "seen"})
        finally:
            self._telling -= 1

    def _begin(self, comm_id: str) -> None:
        question = self._seen.pop(comm_id)
        if len(self._at_work) < _MOST_AT_ONCE and comm_id not in self._at_work:
            self._at_work[comm_id] = True
            self._spawn(self._work(comm_id, question))

    async def _work(self, comm_id: str, question: Mapping[str, Any]) -> None:
        try:
            answer = await self._take(question)
            is_wanted = self._at_work[comm_id]
            if answer["kind"] == "accepted" and not is_wanted:
                self._abandon(answer["run_id"])
            elif answer["kind"] == "accepted":
                self._runs = {comm_id: answer["run_id"]}
            if is_wanted:
                await self._answer(comm_id, answer)
        finally:
            del self._at_work[comm_id]


class LaterCells:
    """The cells that runs wrote below asking cells: later answers of a cell go below them."""

    def __init__(self) -> None:
        """Start without cells."""
        self._written: dict[str, tuple[str, ...]] = {}

    def below(self, ask: Ask) -> Ask:
        """Return the question, to be answered below the earlier runs of its cell.

        Args:
            ask: the question as the cell hands it over.
        """
        written = self._written.get(ask.after[0], ()) if ask.after else ()
        return ask.replaced(after=(*written, *ask.after))

    def keep(self, cell_id: str, written: tuple[str, ...]) -> None:
        """Record the cells that a run wrote.

        Args:
            cell_id: the id of the cell that asked.
            written: the ids of the run's cells, the last first.
        """
        before = self._written.pop(cell_id, ())
        self._written[cell_id] = (*written[:_MOST_ANCHORS], *before)[:_MOST_ANCHORS]
        while len(self._written) > _MOST_ASKING:
            del self._written[next(iter(self._written))]


@dataclass(frozen=True, slots=True)
class Handover:
    """A message of the magic, with its types and sizes checked."""

    question: str
    files: tuple[str, ...] = ()
    """The names as they were written."""
    folder: str = ""
    """The folder that they are relative to."""
    after: tuple[str, ...] = ()
    request_id: str = ""
    model: str = ""
    alive: Alive = field(default_factory=Alive)
    """The kernel's variables."""
    withheld: tuple[PartKind, ...] = ()
    """Parts of the notebook that the cell keeps from the model."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Handover:
        """Parse the data that a kernel sent.

        Raises:
            ValueError: the data are not what the magic sends.
        """
        files, cell_id, options = data.get("files", []), data.get("cell_id"), data.get("options")
        model = options.get("model") if isinstance(options, Mapping) else None
        if not isinstance(files, list) or len(files) > _MAX_FILES:
            raise ValueError("no question was handed over")
        question = _text(data.get("question"), _MAX_CHARS)
        if question is None:
            raise ValueError("no question was handed over")
        cell = _name(cell_id)
        return cls(
            question=question,
            files=tuple(map(_name, files)),
            folder=_name(data.get("folder")),
            after=(cell,) if cell else (),
            request_id=_name(data.get("request_id")),
            model=_name(model),
            alive=alive_from_text(_text(data.get("variables"), _MAX_VARIABLES_CHARS) or ""),
            withheld=tuple(part for part in _PARTS if part in _list(data.get("withheld"))),
        )

    def ask(self, notebook_path: str, files: tuple[str, ...], agreed: tuple[str, ...] = ()) -> Ask:
        """Return the question as if the panel of that notebook had asked it.

        Args:
            notebook_path: the path in the server's session table.
            files: the files as `files_of` found them.
            agreed: the targets that links among them may lead to.
        """
        return Ask(
            request_id=self.request_id,
            notebook_path=notebook_path,
            question=self.question,
            files=files,
            after=self.after,
            model=self.model,
            agreed=agreed,
            kernel="own",
            # The kernel's files were looked up with its rights; its words must name nothing more.
            without_data=True,
            withheld=self.withheld,
        )


async def around(contents: Any, ask: Ask) -> Ask:
    """Return the question with the cells in the notebook's file.

    Args:
        contents: the server's contents manager.
        ask: the question; the cell that asks becomes the selected one, without its text.
    """
    try:
        model = await ensure_async(contents.get(ask.notebook_path, content=True, type="notebook"))
        raw = model["content"]
        cells = await asyncio.to_thread(_cells_of, raw)  # describing a figure takes a moment
        ids = [str(cell.get("id", "")) for cell in raw["cells"]]
    except Exception as error:  # noqa: BLE001  (whatever the file is: the question goes without)
        _log.debug("the cells of %s can't be told: %s", ask.notebook_path, error)
        return ask
    place = ids.index(ask.after[0]) if ask.after and ask.after[0] in ids else len(cells)
    first = max(0, min(place - _MOST_CELLS // 2, len(cells) - _MOST_CELLS))
    cells = [
        NotebookCell("code", "") if asks_the_analyst(cell.source) else cell
        for cell in cells[first : first + _MOST_CELLS]
    ]
    selected = place - first if place < len(ids) else -1
    return ask.replaced(cells=tuple(cells), selected=selected)


def _cells_of(document: Mapping[str, Any]) -> list[NotebookCell]:
    return [_shortened(cell) for cell in cells_of_document(document)]


def _shortened(cell: NotebookCell) -> NotebookCell:
    source, output = shorten(cell.source, _CELL_CHARS), shorten(cell.output, _CELL_CHARS)
    return replace(cell, source=source, output=output)


def _list(value: object) -> list[object]:
    return value[: len(_PARTS)] if isinstance(value, list) else []


def _text(value: object, most: int) -> str | None:
    return value[:most] if isinstance(value, str) else None


def _name(value: object) -> str:
    """Return a name that may be missing; empty if it is.

    Raises:
        ValueError: the value is not a name, or too long for one.
    """
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _MAX_NAME_CHARS:
        raise ValueError("the question was handed over with an odd name")
    return value


@dataclass(slots=True)
class FoundHandoff:
    """The files of a hand-over, grouped by what may be done with them."""

    files: list[str] = field(default_factory=list)
    """Files that the kernel itself can read, as the contents API names them."""
    agreed: list[str] = field(default_factory=list)
    """Targets of links among them that may be followed."""
    wanted: list[WantedFile] = field(default_factory=list)
    """Files that only the person can let it read."""


def files_of(
    handover: Handover, files: DataFiles, folder: Path, kernel: Literal["restricted", "own"]
) -> FoundHandoff:
    """Look up the files of a hand-over with the rights of the kernel that it comes from.

    Args:
        handover: the hand-over.
        files: the server's files.
        folder: the kernel's working folder.
        kernel: whether it is restricted to that folder; `own` has the person's rights.

    Raises:
        FileNotFoundError: a file is not there, or not below the server's folder.
    """
    found = FoundHandoff()
    base = handover.folder or folder.as_posix()
    for path in handover.files:
        name = files.name_of(path, base)
        whole = posixpath.normpath(posixpath.join(base, path))
        is_its_own = whole.startswith(f"{folder.as_posix().rstrip('/')}/")
        try:
            files.place(name)
        except LinkedFilesError as error:
            found.wanted += error.files
            if kernel == "own":
                found.files.append(name)
                found.agreed += [file.leads_to for file in error.files]
            continue
        if kernel == "restricted" and not is_its_own:
            found.wanted.append(WantedFile(name, whole))
        else:
            found.files.append(name)
    if kernel == "own":
        found.wanted.clear()
    return found
