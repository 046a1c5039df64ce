"""InfiAgent-DABench (arXiv 2401.05507): questions over csv files with `@name[value]` answers.

A split is a folder with `questions.jsonl` and the tables it names. Its data is licensed for
evaluation only (CC BY-NC 4.0): items of this suite are never trained on.
"""

from __future__ import annotations

from pathlib import Path

from dm_jupyter.core.task import Task
from training.scoring import closed_form
from training.tasks.records import Record, read_records
from training.tasks.suite import EvalItem, ItemScore

__all__ = ["DABench"]


class DABench:
    """The closed-form questions; a label is a tuple of (name, value) pairs, as published."""

    name = "dabench"

    def load(self, split: Path) -> list[EvalItem]:
        """Returns the items of `questions.jsonl`.

        Raises:
            RecordError: a record is not as it should be.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: EvalItem, answer: str, folder: Path) -> ItemScore:  # noqa: ARG002
        """Returns the verdict by both rule sets; `parts` holds ours for each sub-answer.

        A name that stands k times is numbered from its second value on: `c`, `c#2`.
        """
        ours = closed_form.score(answer, item.label)
        strict = closed_form.score(answer, item.label, "strict")
        parts: dict[str, bool] = {}
        for part in ours.parts:
            count = sum(key == part.name or key.startswith(f"{part.name}#") for key in parts)
            parts[f"{part.name}#{count + 1}" if count else part.name] = part.right
        return ItemScore(ours.all_right, strict.all_right, parts)


def _item(record: Record) -> EvalItem:
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(record.data_file("file"),),
        constraints=record.text("constraints", ""),
        answer_format=record.text("format"),
        level=record.text("level", ""),
        concepts=record.texts("concepts"),
        metadata={"suite": DABench.name, "flags": list(record.texts("flags"))},
    )
    return EvalItem(task, record.pairs("label_pairs"))
