from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.core.events import CellStarted, RunFinished, RunStarted, StepFinished, TextSampled
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, RunCell, Step, StopReason, Trajectory, Turn
from dm_jupyter.magic.show import Bundle, NotebookPane, Progress, TerminalPane, shown
from kernel_sandbox.confine.layers import LAYER_NAMES, Containment, Layer, LayerState

START = Trajectory(Task("t", "How many?"), "markdown", policy="tiny")
CELL = RunCell("1")
STEP = Step(Completion("1", completion_tokens=5), Turn("", CELL))


class Frontend(DisplayPublisher):
    """Keeps outputs as a notebook does: an update replaces what has the same display id."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs: dict[str, dict[str, Any]] = {}

    def publish(self, data: Any, metadata: Any = None, **kwargs: Any) -> None:
        name = kwargs["transient"]["display_id"]
        assert kwargs["update"] == (name in self.outputs)
        self.outputs[name] = data

    @property
    def texts(self) -> list[str]:
        return [data["text/plain"] for data in self.outputs.values()]


def test_what_the_kernel_is_not_kept_from_is_said_before_the_first_cell() -> None:
    held = Containment(tuple(Layer(name, LayerState.ACTIVE) for name in LAYER_NAMES))
    assert not list(shown(RunStarted(START)))
    assert not list(shown(RunStarted(replace(START, containment=held.to_json()))))
    weak = held.with_layers(Layer(name, LayerState.ABSENT) for name in ("pid_limit", "cgroup"))
    (line,) = shown(RunStarted(replace(START, containment=weak.to_json())))
    assert "can freeze the machine" in line.data["text/plain"]


def _bundle(text: str) -> Bundle:
    return Bundle({"text/plain": text})


def test_progress_stays_below_what_is_added_and_gives_way_to_the_ending() -> None:
    frontend = Frontend()
    pane = NotebookPane(frontend)
    pane.progress("turn 1")
    pane.add(_bundle("a"))
    pane.add(_bundle("b"))
    assert frontend.texts == ["a", "b", "turn 1"]
    pane.progress("turn 2")
    pane.progress("turn 2")
    assert frontend.texts == ["a", "b", "turn 2"]
    pane.close("used")
    assert frontend.texts == ["a", "b", "used"]


def test_nothing_is_left_of_the_progress_of_a_run_that_never_began() -> None:
    frontend = Frontend()
    pane = NotebookPane(frontend)
    pane.progress("starting")
    pane.close(Progress().ending())
    assert list(frontend.outputs.values()) == [{"text/html": "", "text/plain": ""}]


def test_a_terminal_rewrites_its_line_of_progress_and_a_pipe_has_none(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    publisher = shell.display_pub
    for stream, written in ((Terminal(), "\r\x1b[Kturn 1\r\x1b[K\r\x1b[K"), (io.StringIO(), "")):
        pane = TerminalPane(publisher, stream)
        pane.progress("turn 1")
        pane.add(_bundle("a"))
        pane.close("used")
        assert stream.getvalue() == written
        assert capsys.readouterr().out == "a\nused\n"


def test_progress_says_what_is_done_and_what_was_used() -> None:
    progress = Progress()
    progress.waits_for("loading the model")
    assert progress.line() == "loading the model · 0 s"
    progress.note(RunStarted(START))
    progress.note(TextSampled("1"))
    assert progress.line() == "thinking · turn 1 · 1 tokens · 0 s"
    progress.note(CellStarted("", CELL))
    assert progress.line() == "running the cell · turn 1 · 1 tokens · 0 s"
    after = START.extended(STEP)
    progress.note(StepFinished(STEP, after))
    assert progress.line() == "thinking · turn 2 · 5 tokens · 0 s"
    progress.note(RunFinished(after))
    assert progress.ending() == "stopped · tiny · 1 turn · 5 tokens · 0 s"
    answered = Trajectory(START.task, "markdown", steps=(STEP, STEP), stop=StopReason.ANSWERED)
    progress.note(RunFinished(answered))
    assert progress.ending().endswith(" · 2 turns · 10 tokens · 0 s")
