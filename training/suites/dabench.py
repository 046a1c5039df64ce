"""InfiAgent-DABench (arXiv 2401.05507): questions over csv files with `@name[value]` answers.

A split is a folder with `questions.jsonl` and the tables it names. Its data is licensed for
evaluation only (CC BY-NC 4.0): samples of this suite are never trained on.
"""

from __future__ import annotations

import re
from pathlib import Path

from dm_jupyter.core.closed_form import answer_names
from dm_jupyter.core.task import Task
from training.scoring import closed_form
from training.scoring.values import kind_of
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["DABench"]

_FOR_EACH = re.compile(r"\bfor (?:each|every)\b", re.IGNORECASE)


class DABench:
    """The closed-form questions; a label is a tuple of (name, value) pairs, as published."""

    name = "dabench"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        `metadata["format"]` is `several` if more than one value is asked for, and otherwise the
        kind of the label: `number`, `list` or `text`.

        Raises:
            RecordError: a record is invalid.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict by both rule sets, each with its sub-answers.

        A name that occurs k times is numbered from its second value on: `c`, `c#2`. It occurs once
        by the strict rules, which count only the last value.
        """
        asked = item.task.answer_format
        ours = closed_form.score(outcome.answer, item.label, answer_format=asked)
        strict = closed_form.score(outcome.answer, item.label, "strict")
        return ItemScore(
            ours.all_right,
            strict.all_right,
            {name: part.right for name, part in ours.numbered.items()},
            {name: part.right for name, part in strict.numbered.items()},
            has_sub_answers=True,
        )

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether all values of the requested names are equal by our rules.

        If a name was given several times, the last value counts, unless the format asks for its
        names "for each" of something, as one published question does.
        """
        asked = item.task.answer_format
        is_for_each = _FOR_EACH.search(asked) is not None
        return closed_form.agree(
            one.answer, other.answer, answer_names(asked), is_for_each=is_for_each
        )


def _item(record: Record) -> Sample:
    label = record.pairs("label_pairs")
    answer_format = record.text("format")
    is_one = len(label) == 1 and len(answer_names(answer_format)) < 2
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(record.data_file("file"),),
        constraints=record.text("constraints", ""),
        answer_format=answer_format,
        level=record.text("level", ""),
        concepts=record.texts("concepts"),
        metadata={
            "suite": DABench.name,
            "evaluation_only": True,
            "format": kind_of(label[0][1]) if is_one else "several",
            "flags": list(record.texts("flags")),
        },
    )
    return Sample(task, label)
