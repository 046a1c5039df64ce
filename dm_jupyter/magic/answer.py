"""What `%analyze` gives back."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import nbformat

from dm_jupyter.agent.notebook_words import why_no_answer
from dm_jupyter.core.absent_data import rests_words
from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.grounded import doubt_words
from dm_jupyter.core.plain_text import harmless_text
from dm_jupyter.core.readable import shown_answer
from dm_jupyter.core.trajectory import RunCell, Trajectory
from dm_jupyter.magic.harmless import harmless_markdown

__all__ = ["ShownAnswer"]

_as_json: Any = nbformat.writes  # it has no types


@dataclass(frozen=True, slots=True, repr=False)
class ShownAnswer:
    """An analysis that has ended, with an answer or without."""

    trajectory: Trajectory
    """All that was sampled and run, and why it ended."""
    _document: Any = field(compare=False)
    """The executed notebook."""

    @property
    def text(self) -> str:
        """The answer as the model stated it, with all digits; empty when there is none."""
        return self.trajectory.answer or ""

    @property
    def values(self) -> dict[str, str]:
        """Each `@name[value]` of the answer, as `--format` asks for them."""
        return dict(find_answers(self.text))

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells that were run, as the model wrote them."""
        return tuple(
            step.turn.action.source
            for step in self.trajectory.steps
            if isinstance(step.turn.action, RunCell)
        )

    def to_notebook(self, path: str | PathLike[str] | None = None) -> Any:
        """Returns the executed notebook, an nbformat document, and writes it if asked to.

        Args:
            path: the .ipynb file to write; one that is there is replaced.

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
        is_inside = len(printer.stack) > 1  # of a list or another object
        printer.text(repr(self) if is_inside else harmless_text(str(self)))

    def _repr_markdown_(self) -> str:
        return harmless_markdown(str(self))

    def _below(self) -> str:
        ending = "\n".join(f"- {line}" for line in self.trajectory.ending)
        lines = doubt_words(self.trajectory.unsupported, self.trajectory.grounding)
        rests = rests_words(self.trajectory.rests_on)
        return "".join(f"\n\n{line}" for line in filter(None, (ending, *lines, rests)))
