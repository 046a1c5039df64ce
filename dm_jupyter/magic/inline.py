"""An analysis whose thoughts, cells and outputs are the outputs of the one cell that asked."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.agent.notebook_context import context_chars
from dm_jupyter.analysis import AnalysisSettings, analyze, refuse_archives
from dm_jupyter.config import model_choice
from dm_jupyter.core.events import Event
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.core.task import Task
from dm_jupyter.magic.answer import ShownAnswer
from dm_jupyter.magic.arguments import Request
from dm_jupyter.magic.namespace import Copies
from dm_jupyter.magic.pane import NotebookPane, Pane, TerminalPane
from dm_jupyter.magic.show import Progress, faint, shown
from dm_jupyter.models.opening import AUTO, open_policy

__all__ = ["answer_here"]

_TICK_S = 0.5


async def answer_here(
    shell: InteractiveShell, task: Task, request: Request, notice: str = ""
) -> ShownAnswer:
    """Works on the task in this process, shows the work, and returns the answer.

    Args:
        shell: shows it.
        task: the question and its files.
        request: the options.
        notice: a line to show first.

    Raises:
        DmJupyterError: an option is wrong, a file can't be read, or the model can't be reached.
        SandboxError: the restricted kernel can't start.
        asyncio.CancelledError: interrupted; what has been shown stays.
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
    """The person's variables and cells, unless the question goes without both."""
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
    """Keeps the line of progress up to date for as long as the block lasts."""
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
    """Makes an interrupt cancel the task of the cell, in a terminal as in a notebook.

    A terminal would leave the task, and the kernel it holds, behind in a loop that stands still.
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
