"""Your own questions, with the answers that you know: `own`.

A split is a folder with `questions.jsonl`, one JSON object a line, and the data files it names, in
the format of InfiAgent-DABench. A model may learn from runs on these questions.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from dm_jupyter.core.closed_form import answer_names
from training.suites.dabench import DABench
from training.suites.records import RecordError
from training.suites.suite import Sample

__all__ = ["OwnQuestions"]

_DECIMAL_COMMA: Final = re.compile(r"-?(\d{1,3}(\.\d{3})+|\d+),(\d{1,2}|\d{4,})")
"""Not a comma between thousands, behind which come three digits."""


class OwnQuestions(DABench):
    """Questions scored as DABench's are: a label is a list of (name, value) pairs."""

    name = "own"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        Raises:
            RecordError: a record is invalid, or no answer could ever be right.
        """
        items = super().load(split)
        for item in items:
            if problem := _problem(item):
                file = split / "questions.jsonl"
                raise RecordError(f"{file}, question {item.task.id}: {problem}")
        return [_learnable(item) for item in items]


def _problem(item: Sample) -> str:
    asked = answer_names(item.task.answer_format)
    known = list(dict.fromkeys(name for name, _ in item.label))
    if asked and set(asked) != set(known):
        return f"`format` names {', '.join(asked)}, and `label_pairs` {', '.join(known)}"
    for name, value in item.label:
        if _DECIMAL_COMMA.fullmatch(value):
            mended = value.replace(".", "").replace(",", ".")
            return f"{value}, the value of {name}, has a decimal comma: write {mended}"
    return ""


def _learnable(item: Sample) -> Sample:
    metadata = {**item.task.metadata, "suite": OwnQuestions.name, "evaluation_only": False}
    return replace(item, task=replace(item.task, metadata=metadata))
