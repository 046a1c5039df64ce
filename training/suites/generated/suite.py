"""The suite `generated`: questions with `@name[value]` answers, and with result tables.

A split is a folder with `questions.jsonl` and the files that it names, as
`python -m training.suites.generated` writes it. A question with `label_pairs` is scored by the
suite `dabench`, a question with `rows` by `sql`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dm_jupyter.core.closed_form import answer_names
from dm_jupyter.core.task import Task
from training.scoring.values import kind_of
from training.suites.dabench import DABench
from training.suites.records import Record, read_records
from training.suites.sql import CONSTRAINTS, SqlLabel, SqlQuestions
from training.suites.suite import ItemScore, Outcome, Sample, Suite

__all__ = ["GeneratedQuestions"]


class GeneratedQuestions:
    """The generated questions; a label is a tuple of (name, value) pairs, or an `SqlLabel`."""

    name = "generated"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        `metadata["format"]` is `table` if a result table is asked for and `several` if more than
        one value is. Otherwise it is the kind of the value: `number`, `list` or `text`. Samples are
        drawn in equal shares of each category.

        Raises:
            RecordError: a record is invalid.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict by the rules of `dabench`, or of `sql` for a result table."""
        return _scorer(item).score(item, outcome)

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether two runs agree by the rules of `dabench`, or of `sql` for a table."""
        return _scorer(item).agree(item, one, other)


def _scorer(item: Sample) -> Suite:
    return SqlQuestions() if isinstance(item.label, SqlLabel) else DABench()


def _item(record: Record) -> Sample:
    split = record.text("split")
    metadata: dict[str, Any] = {
        "suite": GeneratedQuestions.name,
        "evaluation_only": split != "train",
        "draw_group": record.text("category"),
        "template": record.text("template"),
        "steps": int(record.number("steps")),
        "licence": record.text("licence", ""),
    }
    is_table = "rows" in record.fields
    label: Any
    if is_table:
        label = SqlLabel((record.rows("rows"),), record.flag("order_matters"))
        kind, answer_format = "table", ""
    else:
        label = record.pairs("label_pairs")
        answer_format = record.text("format")
        is_one = len(label) == 1 and len(answer_names(answer_format)) < 2
        kind = kind_of(label[0][1]) if is_one else "several"
    said = record.text("constraints", "")
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(record.data_file("file"),),
        constraints="\n".join(filter(None, (said, CONSTRAINTS if is_table else ""))),
        answer_format=answer_format,
        level=record.text("level"),
        concepts=record.texts("concepts"),
        metadata={**metadata, "format": kind},
    )
    return Sample(task, label)
