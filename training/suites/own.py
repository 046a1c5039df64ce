"""Your own questions, with the answers that you know: `own`.

A split is a folder with `questions.jsonl`, one JSON object a line, and the data files it names, in
the format of InfiAgent-DABench. A model may learn from runs on these questions.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from training.suites.dabench import DABench
from training.suites.suite import Sample

__all__ = ["OwnQuestions"]


class OwnQuestions(DABench):
    """Questions scored as DABench's are: a label is a list of (name, value) pairs."""

    name = "own"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        Raises:
            RecordError: a record is invalid.
        """
        return [_learnable(item) for item in super().load(split)]


def _learnable(item: Sample) -> Sample:
    metadata = {**item.task.metadata, "suite": OwnQuestions.name, "evaluation_only": False}
    return replace(item, task=replace(item.task, metadata=metadata))
