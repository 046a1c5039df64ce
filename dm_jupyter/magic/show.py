"""The events of a run as display bundles, and a cell's outputs while a run adds to them."""

from __future__ import annotations

import html
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TextIO

from IPython.core.displaypub import DisplayPublisher

from dm_jupyter.agent.observe import describe, shorten
from dm_jupyter.analysis import warnings_of
from dm_jupyter.core.data_facts import notable_words
from dm_jupyter.core.events import (
    CellFinished,
    CellStarted,
    Event,
    ModelSilent,
    RunFinished,
    RunStarted,
    StepFinished,
    TextSampled,
)
from dm_jupyter.core.plain_text import harmless_text
from dm_jupyter.core.trajectory import Answer, Step, StopReason, Trajectory, Void
from dm_jupyter.magic.harmless import fenced, harmless_bundle, harmless_markdown
from kernel_sandbox.types import CellError, CellResult, Display, Output, Stream

__all__ = ["Bundle", "NotebookPane", "Pane", "Progress", "TerminalPane", "faint", "shown"]

_STREAM_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Bundle:
    """One output: contents by media type."""

    data: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)


def shown(event: Event) -> Iterator[Bundle]:
    """Yield what an event adds to the outputs of the cell."""
    match event:
        case RunStarted(trajectory):
            yield from map(faint, warnings_of(trajectory))
        case CellStarted(thought, cell):
            if thought.strip():
                yield _prose(thought)
            yield _code(cell.source, cell.language)
        case CellFinished(_, result):
            yield from _outcome(result)
        case StepFinished(step, trajectory) if trajectory.stop is None:
            yield from _remark(step)


def faint(text: str) -> Bundle:
    """Return a line in a small, faint style."""
    return _line(text, "opacity: 0.65; font-size: 90%")


class Progress:
    """The state of a run and its usage so far."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._doing = "starting"
        self._pieces = 0
        self._trajectory: Trajectory | None = None

    def waits_for(self, what: str) -> None:
        """Set what is being waited for before the run begins."""
        self._doing = what

    def note(self, event: Event) -> None:
        """Update the state from an event."""
        match event:
            case RunStarted(trajectory):
                self._trajectory, self._doing = trajectory, "thinking"
            case TextSampled():
                self._pieces += 1
                self._doing = "thinking"
            case ModelSilent():
                self._doing = event.words
            case CellStarted():
                self._doing = "running the cell"
            case StepFinished(_, trajectory):
                self._trajectory, self._pieces, self._doing = trajectory, 0, "thinking"
            case RunFinished(trajectory):
                self._trajectory = trajectory

    def line(self) -> str:
        """Return what the run is doing, and what it has used."""
        if self._trajectory is None:
            return f"{self._doing} · {self._seconds():.0f} s"
        turn = self._trajectory.turns + 1
        tokens = self._trajectory.tokens + self._pieces
        return f"{self._doing} · turn {turn} · {tokens} tokens · {self._seconds():.0f} s"

    def ending(self) -> str:
        """Return what the run used in total; empty if it never began."""
        run = self._trajectory
        if run is None or not run.turns:
            return ""
        how = "" if run.stop is StopReason.ANSWERED else "stopped · "
        turns = f"{run.turns} turn" if run.turns == 1 else f"{run.turns} turns"
        used = f"{turns} · {run.tokens} tokens · {self._seconds():.0f} s"
        return f"{how}{run.answered_by} · {used}"

    def _seconds(self) -> float:
        return time.monotonic() - self._started


def _outcome(result: CellResult) -> Iterator[Bundle]:
    """Yield the outputs in order, then the error and what was cut as one line, then the facts."""
    errors = tuple(output for output in result.outputs if isinstance(output, CellError))
    for output in result.outputs:
        yield from _output(output)
    if trouble := describe(replace(result, outputs=errors)):
        yield _line(harmless_text(trouble), "color: var(--jp-error-color1, #c62828)")
    for fact in notable_words(result.facts):
        yield _line(harmless_text(fact), "color: var(--jp-warn-color1, #b26a00)")


def _output(output: Output) -> Iterator[Bundle]:
    match output:
        case Stream(_, text) if text.strip():
            yield Bundle({"text/plain": shorten(harmless_text(text.rstrip("\n")), _STREAM_CHARS)})
        case Display(data, metadata):
            yield Bundle(*harmless_bundle(data, metadata))


def _remark(step: Step) -> Iterator[Bundle]:
    """Yield why a turn that ran no cell did not end the run."""
    match step.turn.action:
        case Void():
            yield faint("the model wrote neither code nor an answer")
        case Answer(text):
            yield _prose(text)
            yield faint(f"sent back: {step.observation}")


def _prose(text: str) -> Bundle:
    return Bundle({"text/markdown": harmless_markdown(text), "text/plain": harmless_text(text)})


def _code(source: str, language: str) -> Bundle:
    source = harmless_text(source)
    indented = "\n".join(f"    {line}" for line in source.splitlines())
    return Bundle({"text/markdown": fenced(source, language), "text/plain": indented})


def _line(text: str, style: str) -> Bundle:
    markup = f'<div style="white-space: pre-wrap; {style}">{html.escape(text)}</div>'
    return Bundle({"text/html": markup, "text/plain": text})


class Pane(Protocol):
    """The display of a run. Called by `inline.py`, in the task of the cell."""

    def add(self, bundle: Bundle) -> None:
        """Add an output below the others."""
        ...

    def progress(self, line: str) -> None:
        """Show a line below all outputs, in place of the previous one."""
        ...

    def close(self, ending: str) -> None:
        """Replace the progress line with the ending; remove it if the ending is empty."""
        ...


class NotebookPane:
    """The display of a run in a notebook.

    The last output is always the progress line. An added output replaces it, and a new line follows
    below. In the end no progress line is left, neither in the browser nor in a saved file.
    """

    def __init__(self, publisher: DisplayPublisher) -> None:
        self._publisher = publisher
        self._last = ""
        """Display id of the progress line."""
        self._line = ""

    def add(self, bundle: Bundle) -> None:
        """Replace the progress line with the bundle, and show the line below it."""
        self._replace(bundle)
        self._append(faint(self._line))

    def progress(self, line: str) -> None:
        """Rewrite the progress line, if it has changed."""
        if line == self._line:
            return
        is_first, self._line = not self._line, line
        if is_first:
            self._append(faint(line))
        else:
            self._replace(faint(line))

    def close(self, ending: str) -> None:
        """Replace the progress line with the ending."""
        self._replace(faint(ending) if ending else Bundle({"text/html": "", "text/plain": ""}))

    def _append(self, bundle: Bundle) -> None:
        self._last = uuid.uuid4().hex
        self._publish(bundle, update=False)

    def _replace(self, bundle: Bundle) -> None:
        self._publish(bundle, update=True)

    def _publish(self, bundle: Bundle, *, update: bool) -> None:
        self._publisher.publish(
            dict(bundle.data),
            dict(bundle.metadata),
            transient={"display_id": self._last},
            update=update,
        )


class TerminalPane:
    """The display of a run in a terminal, where printed outputs stay unchanged."""

    def __init__(self, publisher: DisplayPublisher, stream: TextIO | None = None) -> None:
        """Create the pane.

        Args:
            publisher: prints the text of each output.
            stream: for the progress line, which is only written to a terminal.
        """
        self._publisher = publisher
        self._stream = stream or sys.stderr
        self._is_live = self._stream.isatty()

    def add(self, bundle: Bundle) -> None:
        """Print the text of the bundle."""
        self._rewrite("")
        self._publisher.publish(dict(bundle.data), dict(bundle.metadata))

    def progress(self, line: str) -> None:
        """Rewrite the progress line."""
        self._rewrite(line)

    def close(self, ending: str) -> None:
        """Print the ending."""
        self._rewrite("")
        if ending:
            self._publisher.publish(dict(faint(ending).data))

    def _rewrite(self, line: str) -> None:
        if self._is_live:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
