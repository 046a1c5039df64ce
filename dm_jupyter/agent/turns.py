"""What the loop takes a model's text for, once the dialect has parsed it.

Repetitions say nothing. Comments that the opening of a turn puts into the model's mouth are for the
model alone: the cell that runs goes without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dm_jupyter.core.dialect import Dialect
from dm_jupyter.core.trajectory import Answer, Completion, RunCell, Trajectory, Turn, Void

__all__ = ["parse_turn"]


def parse_turn(dialect: Dialect, completion: Completion, trajectory: Trajectory) -> Turn:
    """Returns the thought and the action of a completion; one that went in circles says nothing.

    Args:
        dialect: parses the text.
        completion: what was sampled.
        trajectory: the run before it.
    """
    if completion.finish_reason == "repetition":
        return Turn("", Void("the same lines again and again"))
    if completion.finish_reason == "content_filter":
        return Turn("", Void("ended by the endpoint's content filter"))
    turn = dialect.parse(completion.text)
    if completion.finish_reason == "length" and _is_cut(dialect, completion.text, turn):
        return Turn("", Void("cut off at its limit of length"))
    is_plain = dialect.answers_in_words and trajectory.assists.said_again
    if is_plain and _is_said_again(dialect, turn, trajectory):
        is_told = bool(turn.thought) and not turn.thought.endswith(":")
        return Turn("", Answer(turn.thought) if is_told else Void("the same cell again"))
    openings = completion.prefill, dialect.prefill(trajectory)
    return _without_notes(turn, openings, kept=trajectory.brief.opening)


def _without_notes(turn: Turn, openings: Iterable[str], kept: str) -> Turn:
    """The turn with a cell that holds no comment of an opening, nor what the model made of one.

    The last of them may be left open, and what follows on its line is the model's. The comments of
    the code that loads the data, `kept`, stay: they say what becomes of which values.
    """
    if not isinstance(turn.action, RunCell):
        return turn
    sign = "--" if turn.action.language == "sql" else "#"
    of_load = frozenset(kept.splitlines())
    notes = tuple(
        line
        for opening in openings
        for line in opening.splitlines(keepends=True)
        if line.startswith(f"{sign} ") and line.rstrip("\n") not in of_load
    )
    left = [
        line
        for line in f"{turn.action.source}\n".splitlines(keepends=True)
        if not line.startswith(notes)
    ]
    source = "".join(left).strip("\n")
    if not source.strip():
        return replace(turn, action=Void("a comment alone"))
    return replace(turn, action=replace(turn.action, source=source))


def _is_cut(dialect: Dialect, text: str, turn: Turn) -> bool:
    """Whether what the turn does is not whole: more text would have changed it."""
    return dialect.parse(f"{text}\nmore").action != turn.action


def _is_said_again(dialect: Dialect, turn: Turn, trajectory: Trajectory) -> bool:
    """Whether the turn only repeats the cell whose output has just been shown.

    On a free question a small model may do so until no turn is left, each time after the answer.
    """
    if trajectory.task.is_closed_form or not trajectory.steps:
        return False
    last = trajectory.steps[-1]
    has_shown = last.result is not None and last.result.ok and bool(last.result.outputs)
    shown = last.turn.action if last.is_edited else dialect.parse(last.completion.text).action
    return has_shown and shown == turn.action and not last.objection
