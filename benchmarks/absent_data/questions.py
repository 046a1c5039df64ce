"""The questions of `questions.jsonl`: 40 about what the data do not have, and 40 ordinary ones.

Each line has a question about files of this repository, and how a capable analyst works on it:
`cells` are its code, `answer` is what it says without a look at what the figure rests on. The `{}`
of an answer is the last word of the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.absent_data.judged import Asked, says_absent
from dm_jupyter.core.task import Task
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["AbsentData", "Script", "asked_of", "scripts"]

FOLDER = Path(__file__).resolve().parent
"""The split: the files of its questions are named from the checkout that it lies in."""
_FILE = FOLDER / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Script:
    """How a capable analyst works on one question."""

    question: str
    cells: tuple[str, ...]
    """One runs after another that failed."""
    answer: str
    """What the analyst says at first."""


def scripts() -> dict[str, Script]:
    """Returns the scripts by the names of their questions.

    Raises:
        RecordError: the file is not as it should be.
    """
    return {
        record.text("id"): Script(
            record.text("question"), record.texts("cells"), record.text("answer")
        )
        for record in read_records(_FILE)
    }


def asked_of(item: Sample) -> Asked:
    """Returns what is known of a question, from the label of its item.

    Args:
        item: that `AbsentData` has loaded.
    """
    label: Mapping[str, Any] = item.label
    return Asked(item.task.question, **{**label, "states": tuple(label["states"])})


class AbsentData:
    """The 80 questions as a suite; a split is this folder in a checkout of this repository."""

    name = "absent-data"

    def load(self, split: Path) -> list[Sample]:
        """Returns the items, in the order of the file.

        Raises:
            RecordError: a record is not as it should be.
        """
        checkout = split.resolve().parents[1]
        return [_item(record, checkout) for record in read_records(_FILE)]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Returns whether the words of an answer are right; a mark below it is not among them."""
        asked = asked_of(item)
        if asked.is_absent:
            right = says_absent(outcome.answer, asked)
        else:
            right = asked.is_stated(outcome.answer) and not says_absent(outcome.answer, asked)
        return ItemScore(right, right)

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:  # noqa: ARG002
        """Returns whether two answers have the same words."""
        first, second = one.answer.split(), other.answer.split()
        return bool(first) and first == second


def _item(record: Record, checkout: Path) -> Sample:
    files = tuple(checkout / name for name in record.texts("files"))
    for file in files:
        if not file.is_file():
            raise record.fault("files", f"there is no file {file}")
    is_absent, kind = record.flag("is_absent"), record.text("kind")
    label = {
        "kind": kind,
        "is_absent": is_absent,
        "is_zero": record.flag("is_zero"),
        "states": record.fields.get("states", []),
    }
    task = Task(
        record.text("id"),
        record.text("question"),
        files,
        level="absent" if is_absent else "ordinary",
        concepts=(kind,),
    )
    return Sample(task, label)
