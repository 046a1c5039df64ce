"""Questions of `questions.jsonl`: 40 about data that do not exist, and 40 ordinary ones.

Each line has a question about files of this repository, and a capable analyst's work on it. `cells`
are its code. `answer` is its answer without a check of what the figure rests on. The `{}` of an
answer is the last word of the output.
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
"""The split; its questions name files relative to the checkout that contains it."""
_FILE = FOLDER / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Script:
    """A capable analyst's work on one question."""

    question: str
    cells: tuple[str, ...]
    """Attempts: each runs if the one before failed."""
    answer: str
    """The analyst's first answer."""


def scripts() -> dict[str, Script]:
    """Return the scripts by the names of their questions.

    Raises:
        RecordError: the file is invalid.
    """
    return {
        record.text("id"): Script(
            record.text("question"), record.texts("cells"), record.text("answer")
        )
        for record in read_records(_FILE)
    }


def asked_of(item: Sample) -> Asked:
    """Return a question with its expected answer, from the label of its item.

    Args:
        item: loaded by `AbsentData`.
    """
    label: Mapping[str, Any] = item.label
    return Asked(item.task.question, **{**label, "states": tuple(label["states"])})


class AbsentData:
    """The 80 questions as a suite; a split is this folder in a checkout of this repository."""

    name = "absent-data"

    def load(self, split: Path) -> list[Sample]:
        """Return the items, in the order of the file.

        Raises:
            RecordError: a record is invalid.
        """
        checkout = split.resolve().parents[1]
        return [_item(record, checkout) for record in read_records(_FILE)]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return whether the words of an answer are right; a mark below it does not count."""
        asked = asked_of(item)
        if asked.is_absent:
            right = says_absent(outcome.answer, asked)
        else:
            right = asked.is_stated(outcome.answer) and not says_absent(outcome.answer, asked)
        return ItemScore(right, right)

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:  # noqa: ARG002
        """Return whether two answers have the same words."""
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
