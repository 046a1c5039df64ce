"""Short questions about workbooks with titles, merged cells and notes (RealHiTBench's kind).

A split is a folder with `questions.jsonl` and the workbooks it names. The golds are weak (a few
are wrong or name half of what was asked): a score here is a smoke test and no result to report.
"""

from __future__ import annotations

from pathlib import Path

from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.task import Task
from training.scoring.short_answer import answers_equal
from training.tasks.records import Record, read_records
from training.tasks.suite import EvalItem, ItemScore

__all__ = ["XlsxQuestions"]

ANSWER_FORMAT = (
    '@answer[value] where "value" is the short answer alone: a number, a name, or several of them '
    "separated by commas in the order asked for."
)


class XlsxQuestions:
    """The workbook questions; a label is the short answer as text."""

    name = "xlsx"

    def load(self, split: Path) -> list[EvalItem]:
        """Returns the items of `questions.jsonl`.

        Raises:
            RecordError: a record is not as it should be.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: EvalItem, answer: str, folder: Path) -> ItemScore:  # noqa: ARG002
        """Returns the verdict on the last `@answer[…]`, or on the whole answer without one."""
        values = [value for name, value in find_answers(answer) if name.casefold() == "answer"]
        said = values[-1] if values else answer.strip()
        label: str = item.label
        right = bool(said) and answers_equal(label, said)
        return ItemScore(right, bool(said) and said == label.strip(), {"answer": right})


def _item(record: Record) -> EvalItem:
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(record.data_file("file"),),
        answer_format=ANSWER_FORMAT,
        concepts=tuple(filter(None, (record.text("qtype", ""), record.text("qsubtype", "")))),
        metadata={"suite": XlsxQuestions.name, "structure": record.text("structure", "")},
    )
    return EvalItem(task, record.text("answer"))
