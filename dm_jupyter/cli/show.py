"""A run on a terminal: thoughts, cells and outputs as they come, and a line of progress below.

Text from elsewhere becomes a `Text` without control characters: Rich would read a plain string as
markup, and a terminal obeys control characters.
"""

from __future__ import annotations

import time
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from dm_jupyter.agent.observe import describe
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
from kernel_sandbox.types import CellResult

__all__ = ["Screen", "Silent", "Watcher"]

_OUTPUT_CHARS = 3_000


class Watcher(Protocol):
    """An observer of a run, used as a context manager around it."""

    def __enter__(self) -> Self:
        """Start watching."""
        ...

    def __exit__(self, *_: object) -> None:
        """Stop watching, and leave the terminal as it was."""
        ...

    def progress(self, line: str) -> None:
        """Show a line while a local model is being started, or a package installed."""
        ...

    def show(self, event: Event) -> None:
        """Show one event of the run."""
        ...


class Silent:
    """A watcher that shows nothing, for pipes and `--json`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def progress(self, line: str) -> None:
        """Do nothing."""

    def show(self, event: Event) -> None:
        """Do nothing."""


class Screen:
    """A watcher that shows a run on a terminal."""

    def __init__(self, console: Console | None = None, *, is_live: bool = True) -> None:
        """Prepare the screen.

        Args:
            console: where to print.
            is_live: whether to keep a line of progress below; a recording has none.
        """
        self._is_live = is_live
        self._console = console or Console(highlight=False)
        self._status = self._console.status("starting")
        self._started = time.monotonic()
        self._pieces = 0
        self._trajectory: Trajectory | None = None

    def __enter__(self) -> Self:
        if self._is_live:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def progress(self, line: str) -> None:
        """Show what the run waits for."""
        self._status.update(Text(line))

    def show(self, event: Event) -> None:
        """Print what the event adds."""
        match event:
            case RunStarted(trajectory):
                self._trajectory = trajectory
                self._status.update(self)
                self._console.print(_headline(trajectory))
            case TextSampled():
                self._pieces += 1
                self._status.update(self)
            case ModelSilent():
                self.progress(event.words)
            case CellStarted(thought, cell):
                if thought:
                    self._console.print(Padding(Markdown(harmless_text(thought)), (1, 0, 0, 0)))
                source = harmless_text(cell.source)
                code = Syntax(source, cell.language, word_wrap=True, background_color="default")
                title = Text(f"cell · {cell.language}")
                self._console.print(Panel(code, title=title, border_style="blue"))
            case CellFinished(_, result):
                self._status.update(self)  # a package may have been installed before the cell
                self._console.print(_outcome(result))
            case StepFinished(step, trajectory):
                self._trajectory, self._pieces = trajectory, 0
                self._print_remark(step, trajectory)
            case RunFinished(trajectory):
                self._console.print(_ending(trajectory, time.monotonic() - self._started))
                self._status.stop()

    def __rich__(self) -> Text:
        """Return the current progress line; Rich renders it many times a second."""
        if self._trajectory is None:
            return Text("starting")
        tokens = self._trajectory.tokens + self._pieces
        seconds = time.monotonic() - self._started
        return Text(f"turn {self._trajectory.turns + 1} · {tokens} tokens · {seconds:.0f} s")

    def _print_remark(self, step: Step, trajectory: Trajectory) -> None:
        """Print why a turn that ran no cell did not end the run."""
        if trajectory.stop is not None:
            return
        if isinstance(step.turn.action, Void):
            self._console.print(Text("the model wrote neither code nor an answer", style="yellow"))
        elif isinstance(step.turn.action, Answer):
            self._console.print(Text(harmless_text(step.turn.action.text), style="dim"))
            sent_back = "sent back: " + harmless_text(step.observation)
            self._console.print(Text(sent_back, style="yellow"))


def _headline(trajectory: Trajectory) -> RenderableType:
    files = ", ".join(file.name for file in trajectory.task.files)
    return Group(
        Text(trajectory.task.question, style="bold"),
        Text(f"{files} · {trajectory.answered_by}", style="dim"),
    )


def _outcome(result: CellResult) -> RenderableType:
    text = describe(result, _OUTPUT_CHARS) or "(no output)"
    text = "\n".join([text, *(f"- {line}" for line in notable_words(result.facts))])
    style = "green" if result.ok else "red"
    peak = f" · {result.peak_bytes / 2**20:.0f} MiB" if result.peak_bytes else ""
    title = Text(f"{result.status} · {result.seconds:.1f} s{peak}")
    return Panel(Text(harmless_text(text)), title=title, border_style=style)


def _ending(trajectory: Trajectory, seconds: float) -> RenderableType:
    used = f"{trajectory.turns} turns · {trajectory.tokens} tokens · {seconds:.0f} s"
    if trajectory.stop is StopReason.ANSWERED:
        return Text(used, style="dim")
    return Text(f"ended: {trajectory.stop} · {used}", style="yellow")
