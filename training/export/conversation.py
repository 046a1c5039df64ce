"""An exported run as a conversation with marks for what a model learns.

The marks are the fields that `training.trainer.conversations` reads: `learn`, `prefill`,
`ended_by`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialect import Dialect
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.dialects.tools import in_words
from dm_jupyter.core.trajectory import Trajectory
from training.export.exporting import Export

__all__ = ["conversation"]


def conversation(exported: Export, *, calls_in_words: bool = False) -> list[dict[str, Any]]:
    """Return the messages of a run as JSON, each of the model's turns with its marks.

    - `learn` is false for a turn whose cell failed, so that the model learns to fix a mistake but
      not to make it. It is also false if a person or the assistance has changed the cell.
    - `prefill` is the opening that the dialect's default assistance puts before the turn, if the
      turn begins with it. In a dialect without openings, the model learns to load the data itself.
    - `ended_by` is `stop` if the turn ends with a stop string of the dialect. Otherwise it is
      `model`, and the model must close its turn.

    Args:
        exported: the run in its new dialect.
        calls_in_words: whether tool calls become text, as for an endpoint that takes no tools.
    """
    messages = exported.messages
    form = dialect_named(exported.trajectory.dialect)
    if calls_in_words and form.tools:
        messages = in_words(messages, form.tools)
    marks = _marks(exported, form)
    return [
        {**one.to_json(), **next(marks)} if one.role == "assistant" else one.to_json()
        for one in messages
    ]


def _marks(exported: Export, form: Dialect) -> Iterator[dict[str, Any]]:
    """Yield the marks of each turn, without `prefill` and `learn` that equal the default."""
    run = _opened(exported.trajectory)
    for at, (text, is_learned) in enumerate(zip(exported.texts, exported.learnable, strict=True)):
        before = run.before(at)
        opening = form.prefill(before)
        prefill = opening if text.startswith(opening) and len(opening) < len(text) else ""
        is_stopped = text[len(prefill) :].endswith(form.stop(before, prefill))
        marks: dict[str, Any] = {"ended_by": "stop" if is_stopped else "model"}
        if prefill:
            marks["prefill"] = prefill
        if not is_learned:
            marks["learn"] = False
        yield marks


def _opened(run: Trajectory) -> Trajectory:
    """Return the run with the assistance that opens turns, if it is the dialect's default."""
    usual = Assistance.for_dialect(run.dialect).on() & {"opening"}
    return replace(run, assistance=Assistance.only(run.assists.on() | usual))
