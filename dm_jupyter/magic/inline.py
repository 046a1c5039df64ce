"""An analysis whose thoughts, cells and outputs are the outputs of the one cell that asked.

The model is shown the variables of the asking kernel and the cells that ran in it. The analysis
works on copies of the variables. The person's own are never changed, and the model is not shown
what can't be copied. The value of the cell is the answer.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.agent.continued import asks_the_analyst
from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook_context import (
    NotebookCell,
    NotebookView,
    PartKind,
    context_chars,
    notebook_context,
)
from dm_jupyter.agent.notebook_words import why_no_answer
from dm_jupyter.analysis import AnalysisSettings, analyze, refuse_archives
from dm_jupyter.config import model_choice
from dm_jupyter.core.absent_data import rests_words
from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.events import Event
from dm_jupyter.core.grounded import doubt_words
from dm_jupyter.core.plain_text import harmless_text, shown_address
from dm_jupyter.core.readable import shown_answer
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import RunCell, Trajectory
from dm_jupyter.data.kernel_tables import (
    Alive,
    alive_from_text,
    variables_expression,
    variables_text,
)
from dm_jupyter.magic.arguments import Request
from dm_jupyter.magic.harmless import harmless_markdown
from dm_jupyter.magic.show import NotebookPane, Pane, Progress, TerminalPane, faint, shown
from dm_jupyter.models.opening import AUTO, open_policy
from kernel_sandbox.runners.session import KernelSession

__all__ = ["Copies", "ShownAnswer", "answer_here"]

_TICK_S = 0.5
_PRIVATE = re.compile(r"(?i)key|token|secret|passw|pwd|credential|auth|cookie")
_MOST_BYTES = 256 * 2**20
_MOST_CELLS = 200
_FILE = "variables.pickle"
_LOAD_S = 60.0
_LOAD = f"""
def _dm_jupyter_load():
    import pickle
    with open({_FILE!r}, "rb") as file:
        copies = pickle.load(file)
    for name, copy in copies.items():
        try:
            globals()[name] = pickle.loads(copy)
        except Exception:
            pass  # of a class that is not there
"""
_as_json: Any = nbformat.writes  # untyped


async def answer_here(
    shell: InteractiveShell, task: Task, request: Request, notice: str = ""
) -> ShownAnswer:
    """Work on the task in this process, show the work, and return the answer.

    Args:
        shell: displays the work.
        task: the question and its files.
        request: the options.
        notice: a line to show first.

    Raises:
        DmJupyterError: an option is wrong, a file can't be read, or the model can't be reached.
        SandboxError: the restricted kernel can't start.
        asyncio.CancelledError: interrupted; shown outputs stay.
    """
    await refuse_archives(task)
    choice = model_choice(request.model, request.base_url, request.api_key_file)
    pane, progress = _pane(shell), Progress()

    def show(event: Event) -> None:
        progress.note(event)
        for bundle in shown(event):
            pane.add(bundle)

    settings = replace(_settings(request), endpoint=shown_address(choice.base_url))
    chars = context_chars(is_local=choice.is_local)
    with _interrupt_cancels(), _copies(shell, request, chars) as copies:
        async with (
            _live(pane, progress, notice),
            open_policy(choice, progress.waits_for) as policy,
        ):
            settings = replace(settings, surroundings=copies)
            analysis = await analyze(task, policy, settings, show)
    if analysis.fault is not None:
        raise analysis.fault
    return ShownAnswer(analysis.trajectory, analysis.notebook.document)


@contextmanager
def _copies(shell: InteractiveShell, request: Request, chars: int) -> Iterator[Copies | None]:
    """Yield copies of the person's variables and cells; `None` if both are withheld."""
    if {"variables", "cells"} <= set(request.without):
        yield None
        return
    copies = Copies(shell, chars, request.without)
    try:
        yield copies
    finally:
        copies.close()


def _pane(shell: InteractiveShell) -> Pane:
    is_notebook = getattr(shell, "kernel", None) is not None
    return (NotebookPane if is_notebook else TerminalPane)(shell.display_pub)


def _settings(request: Request) -> AnalysisSettings:
    default = RunSettings()
    turns = request.max_turns or default.max_turns
    given: dict[str, Any] = {
        "seed": request.seed,
        "turn_tokens": request.turn_tokens,
        "temperature": request.temperature,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    run = replace(default, max_turns=turns, max_cells=turns, **chosen)
    return AnalysisSettings(run=run, dialect=request.dialect or AUTO, names_from=Path.cwd())


@asynccontextmanager
async def _live(pane: Pane, progress: Progress, notice: str) -> AsyncIterator[None]:
    """Keep the progress line up to date for as long as the block lasts."""
    pane.progress(progress.line())
    if notice:
        pane.add(faint(notice))
    ticking = asyncio.create_task(_tick(pane, progress))
    try:
        yield
    finally:
        ticking.cancel()
        pane.close(progress.ending())


async def _tick(pane: Pane, progress: Progress) -> None:
    while True:
        await asyncio.sleep(_TICK_S)
        pane.progress(progress.line())


@contextmanager
def _interrupt_cancels() -> Iterator[None]:
    """Make an interrupt cancel the task of the cell, in a terminal as in a notebook.

    A terminal would leave the task and its kernel behind in a stopped event loop.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101

    def cancel(*_: object) -> None:
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Copies:
    """Copies of a shell's variables for another kernel; implements `Surroundings`."""

    document: Any = None
    content: bytes | None = None

    def __init__(
        self, shell: InteractiveShell, chars: int, withheld: Sequence[PartKind] = ()
    ) -> None:
        """Copy what can be copied.

        Args:
            shell: whose variables and cells they are.
            chars: the most characters that the model is shown of them.
            withheld: parts it is not shown; withheld variables are not copied either.
        """
        self._chars = chars
        self._withheld = withheld
        self._cells = _cells_of(shell)
        is_told = "variables" not in withheld
        alive = alive_from_text(variables_text(shell.user_ns)) if is_told else Alive()
        self._folder = tempfile.TemporaryDirectory(prefix="dm-copies-")
        self._file = Path(self._folder.name) / _FILE
        self._file.write_bytes(pickle.dumps(_copied(shell.user_ns, alive)))

    @property
    def inputs(self) -> Mapping[str, Path]:
        """The file of copies."""
        return {_FILE: self._file}

    async def revive(self, kernel: KernelSession) -> str:
        """Load the copies into the kernel as variables; return what the model is shown of them.

        Args:
            kernel: an empty one.
        """
        await kernel.evaluate(_LOAD, "_dm_jupyter_load()", _LOAD_S)
        text = await kernel.evaluate("", variables_expression(), _LOAD_S)
        alive = alive_from_text(text or "")
        view = NotebookView(cells=self._cells, tables=alive.tables, values=alive.values)
        return "\n\n".join(
            part.text for part in notebook_context(view, self._chars, self._withheld)
        )

    def close(self) -> None:
        """Remove the file of copies."""
        self._folder.cleanup()


def _copied(namespace: Mapping[str, Any], alive: Alive) -> dict[str, bytes]:
    """Return the pickle of each described variable, the newest first, up to the size limit."""
    told = [str(one["name"]) for one in (*reversed(alive.tables), *reversed(alive.values))]
    copies: dict[str, bytes] = {}
    left = _MOST_BYTES
    for name in told:
        if name not in namespace or _PRIVATE.search(name):
            continue
        try:
            copy = pickle.dumps(namespace[name])
        except Exception:  # noqa: BLE001, S112  (whatever a class of the person's does)
            continue
        if len(copy) <= left:
            copies[name] = copy
            left -= len(copy)
    return dict(reversed(copies.items()))


def _cells_of(shell: InteractiveShell) -> list[NotebookCell]:
    """Return the cells that ran, with their values, except those that ask the analyst."""
    history = shell.history_manager
    if history is None:
        return []
    shown: Mapping[int, Any] = getattr(history, "output_hist_reprs", {})
    ran = list(enumerate(history.input_hist_raw))[1:][-_MOST_CELLS:]
    return [
        NotebookCell("code", source, str(shown.get(count, "")), count)
        for count, source in ran
        if source.strip() and not asks_the_analyst(source)
    ]


@dataclass(frozen=True, slots=True, repr=False)
class ShownAnswer:
    """An analysis that has ended, with an answer or without."""

    trajectory: Trajectory
    """Everything that was sampled and run, and why it ended."""
    _document: Any = field(compare=False)
    """The executed notebook."""

    @property
    def text(self) -> str:
        """The answer as the model stated it, with all digits; empty if there is none."""
        return self.trajectory.answer or ""

    @property
    def values(self) -> dict[str, str]:
        """Each `@name[value]` of the answer, as requested by `--format`."""
        return dict(find_answers(self.text))

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells that ran, as the model wrote them."""
        return tuple(
            step.turn.action.source
            for step in self.trajectory.steps
            if isinstance(step.turn.action, RunCell)
        )

    def to_notebook(self, path: str | PathLike[str] | None = None) -> Any:
        """Return the executed notebook, an nbformat document, and write it if `path` is given.

        Args:
            path: the .ipynb file to write; an existing one is replaced.

        Raises:
            NotebookError: the file can't be written.
        """
        if path is not None:
            try:
                Path(path).write_text(_as_json(self._document), encoding="utf-8")
            except OSError as error:
                raise NotebookError(f"{path} can't be written: {error.strerror}") from error
        return copy.deepcopy(self._document)

    def __str__(self) -> str:
        if self.trajectory.answer is None:
            return f"no answer: {why_no_answer(self.trajectory)}"
        return f"{shown_answer(self.trajectory).text}{self._below()}"

    def __repr__(self) -> str:
        return f"<Answer {self.text!r}, cells run: {len(self.cells)}>"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        is_inside = len(printer.stack) > 1  # a list or another object
        printer.text(repr(self) if is_inside else harmless_text(str(self)))

    def _repr_markdown_(self) -> str:
        return harmless_markdown(str(self))

    def _below(self) -> str:
        ending = "\n".join(f"- {line}" for line in self.trajectory.ending)
        lines = doubt_words(self.trajectory.unsupported, self.trajectory.grounding)
        rests = rests_words(self.trajectory.rests_on)
        return "".join(f"\n\n{line}" for line in filter(None, (ending, *lines, rests)))
