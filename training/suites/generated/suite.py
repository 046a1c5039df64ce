"""The suites `generated` and `generated-free`: questions over generated tables.

A split is a folder with `questions.jsonl` and the files that it names, as
`python -m training.suites.generated` writes it. In `generated`, a question with `label_pairs` asks
for `@name[value]` and is scored by the suite `dabench`, a question with `rows` asks for a result
table and is scored by `sql`. In `generated-free`, questions state no form of the answer, as in a
notebook, and the answer is a text.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dm_jupyter.core.closed_form import answer_names, outside_thought
from dm_jupyter.core.task import Task
from training.scoring.free_answer import numbers_agree, states_values
from training.scoring.short_answer import answers_equal, is_stated
from training.scoring.values import kind_of
from training.suites.dabench import DABench
from training.suites.records import Record, RecordError, read_records
from training.suites.sql import CONSTRAINTS, SqlLabel, SqlQuestions
from training.suites.suite import ItemScore, Outcome, Sample, Suite

__all__ = ["FreeQuestions", "GeneratedQuestions"]

_ONLY_IN_FORM = ("one of", "separated by commas")
"""Words of a form without which nobody can know in which words to answer."""
_FORM_ASKS_MORE = frozenset(
    {
        "causal_analysis/confounding",
        "comparison/before-and-after",
        "comparison/range-of-means",
        "descriptive_analysis/labels-and-most-frequent",
        "descriptive_analysis/period",
        "domain_specific/share-above-overall",
    }
)
"""Templates whose form asks for a value that the question, in one of its wordings, does not."""


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


class FreeQuestions:
    """The generated questions without a form of the answer; a label is a tuple of pairs.

    Left out are questions for a result table, and those whose form asks for a value that the
    question does not ask for or states the words to choose from.
    """

    name = "generated-free"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl` that can be asked without a form.

        Raises:
            RecordError: a record is invalid, or none can be asked so.
        """
        items = [_without_form(item) for item in GeneratedQuestions().load(split) if _is_free(item)]
        if not items:
            raise RecordError(f"{split} has no question that can be asked without a form")
        return items

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return whether the text states every value, by `training.scoring.free_answer`.

        Strict is a text that has each value as the label writes it.
        """
        answer = outside_thought(outcome.answer)
        values = [value for _, value in item.label]
        asked = f"{item.task.question}\n{item.task.constraints}"
        right = states_values(values, answer, asked)
        return ItemScore(right, right and all(is_stated(value, answer) for value in values))

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether two texts claim the same numbers, or are the same words."""
        del item
        ours, theirs = outside_thought(one.answer), outside_thought(other.answer)
        return numbers_agree(ours, theirs) or (bool(ours.strip()) and answers_equal(ours, theirs))


def _is_free(item: Sample) -> bool:
    form, template = item.task.answer_format, item.task.metadata["template"]
    if not form or template in _FORM_ASKS_MORE:
        return False
    return not any(words in form for words in _ONLY_IN_FORM)


def _without_form(item: Sample) -> Sample:
    metadata = {**item.task.metadata, "suite": FreeQuestions.name}
    return replace(item, task=replace(item.task, answer_format="", metadata=metadata))


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
