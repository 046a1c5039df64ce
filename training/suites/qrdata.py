"""QRData (arXiv 2402.17644): statistical and causal questions over csv files.

A split is a folder with `questions.jsonl` and the files it names. Answers are numbers, which may
be 3 % off, or one of several choices. The data is licensed for evaluation only (CC BY-NC 4.0).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dm_jupyter.core.task import Task
from training.scoring.lists import folded_text
from training.scoring.short_answer import answers_equal, final_answer
from training.scoring.values import first_number, is_within, read_number
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["QRData", "QRLabel"]

NUMBER_FORMAT = '@answer[value] where "value" is one number, without words and units.'
CHOICE_FORMAT = '@answer[value] where "value" is one of: '
TOLERANCE = 0.03
"""Tolerance as a share of the label, the benchmark's own (its `eval.py`)."""

_CHOSEN_A = re.compile(r"(?<!\w)a(?!\w)(?! (?!(?:and|or|nor|but|is|isn't|are|was|were)\b)\w)")
"""The choice `a`, not the article before another word."""


@dataclass(frozen=True, slots=True)
class QRLabel:
    """The expected answer."""

    answer: str
    choices: tuple[str, ...] = ()
    """The choices; empty if a number is asked for."""


class QRData:
    """The questions over csv files; a label is a `QRLabel`."""

    name = "qrdata"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        `metadata["format"]` is `number` or `choice`, as the record's `question_type` says.

        Raises:
            RecordError: a record is invalid.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict on the last `@answer[…]`, or on the entire answer without one.

        Strict is the published script: the first number of the text, less than 3 % off, or a text
        that begins with the correct choice. Ours also allows 3 %, if the entire text is one number,
        and accepts a choice as complete words, with no other choice after it. 5.36 answers `5.36%`;
        536% does not. `parts` has `answer`, and `exact` for an answer that needs no tolerance.
        """
        said = final_answer(outcome.answer)
        label: QRLabel = item.label
        right = bool(said) and _is_right(label, said)
        strict = bool(said) and _is_strictly_right(label, said)
        exact = right and (bool(label.choices) or answers_equal(label.answer, said))
        return ItemScore(right, strict, {"answer": right, "exact": exact}, {"answer": strict})

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether each answer is correct with the other as the label.

        If only one has a percent sign, it is the label: 5.36 agrees with 5.36%, and so does 0.0536.
        """
        said, others = final_answer(one.answer), final_answer(other.answer)
        if not said or not others:
            return False
        label: QRLabel = item.label
        if label.choices:
            chosen = _chosen(said, label.choices)
            return chosen is not None and chosen == _chosen(others, label.choices)
        return any(
            is_within(number, other, TOLERANCE) and is_within(other, number, TOLERANCE)
            for number, other in (*_readings(said, others), *_readings(others, said))
        )


def _is_right(label: QRLabel, said: str) -> bool:
    if label.choices:
        return _chosen(said, label.choices) == _plain(label.answer)
    return any(
        is_within(expected, found, TOLERANCE) for expected, found in _readings(label.answer, said)
    )


def _readings(label: str, said: str) -> list[tuple[float, float]]:
    """Return the numbers of label and answer; the answer may omit the label's percent sign."""
    expected, found = read_number(label), read_number(said)
    if expected is None or found is None:
        return []
    is_bare = label.strip().endswith("%") and not said.strip().endswith("%")
    return [(expected, found), *([(100 * expected, found)] if is_bare else [])]


def _chosen(said: str, choices: Sequence[str]) -> str | None:
    """Return the choice that a text begins with, as complete words; the longest if several fit.

    `None` if another choice follows it: that is a guess at both.
    """
    text, offered = _plain(said), {plain for choice in choices if (plain := _plain(choice))}
    fitting = [plain for plain in offered if re.match(re.escape(plain) + r"(?!\w)", text)]
    chosen = max(fitting, key=len, default=None)
    if chosen is None:
        return None
    rest = text[len(chosen) :]
    return None if any(_is_named(other, rest) for other in offered - {chosen}) else chosen


def _is_named(choice: str, text: str) -> bool:
    found = re.search(rf"(?<!\w){re.escape(choice)}(?!\w)", text)
    return found is not None and (choice != "a" or _CHOSEN_A.search(text) is not None)


def _plain(choice: str) -> str:
    return folded_text(choice).strip("\"'*()[] ")


def _is_strictly_right(label: QRLabel, said: str) -> bool:
    if label.choices:
        return said.lower().startswith(label.answer.lower())
    expected, found = read_number(label.answer), first_number(said)
    if expected is None or found is None:
        return False
    return abs(expected - found) < TOLERANCE * abs(expected)


def _item(record: Record) -> Sample:
    label = _label(record)
    kind = f"{CHOICE_FORMAT}{', '.join(label.choices)}." if label.choices else NUMBER_FORMAT
    task = Task(
        id=record.text("id"),
        question="\n\n".join(filter(None, (record.text("context", ""), record.text("question")))),
        files=record.data_files("files"),
        answer_format=kind,
        concepts=record.texts("keywords"),
        metadata={
            "suite": QRData.name,
            "evaluation_only": True,
            "format": "choice" if label.choices else "number",
            "reference": record.text("reference", ""),
        },
    )
    return Sample(task, label)


def _label(record: Record) -> QRLabel:
    answer, kind = record.text("answer"), record.text("question_type")
    if kind == "multiple_choice":
        choices = record.texts("multiple_choices")
        if folded_text(answer) not in map(folded_text, choices):
            raise record.fault("multiple_choices", f"the answer {answer!r} is none of them")
        return QRLabel(answer, choices)
    if kind != "numerical":
        raise record.fault("question_type", f"expected numerical or multiple_choice, found {kind}")
    number = read_number(answer)
    if number is None or not math.isfinite(number):
        raise record.fault("answer", f"{answer!r} is no finite number")
    return QRLabel(answer)
