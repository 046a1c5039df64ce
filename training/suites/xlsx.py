"""Short questions about workbooks with titles, merged cells and notes (RealHiTBench's kind).

A split is a folder with `questions.jsonl` and the workbooks it names. The gold answers are weak: a
few are wrong or name half of what was asked. A score here is a smoke test, not a result to report.
"""

from __future__ import annotations

from pathlib import Path

from dm_jupyter.core.task import Task
from training.scoring.short_answer import (
    SHORT_ANSWER_FORMAT,
    answers_equal,
    final_answer,
    final_answers_agree,
)
from training.scoring.values import kind_of
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["XlsxQuestions"]


class XlsxQuestions:
    """The workbook questions; a label is the short answer as text."""

    name = "xlsx"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        `metadata["format"]` is the kind of the label: `number`, `list` or `text`.

        Raises:
            RecordError: a record is invalid.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict on the last `@answer[…]`, or on the entire answer without one.

        Strict is the label character for character, the narrowest reading.
        """
        said = final_answer(outcome.answer)
        label: str = item.label
        right = bool(said) and answers_equal(label, said)
        strict = bool(said) and said == label.strip()
        return ItemScore(right, strict, {"answer": right}, {"answer": strict})

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:  # noqa: ARG002
        """Return whether the two short answers say the same."""
        return final_answers_agree(one.answer, other.answer)


def _item(record: Record) -> Sample:
    label = record.text("answer")
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(record.data_file("file"),),
        answer_format=SHORT_ANSWER_FORMAT,
        concepts=tuple(filter(None, (record.text("qtype", ""), record.text("qsubtype", "")))),
        metadata={
            "suite": XlsxQuestions.name,
            "evaluation_only": True,
            "format": kind_of(label),
            "structure": record.text("structure", ""),
        },
    )
    return Sample(task, label)
