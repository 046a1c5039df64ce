"""A judge's column of a finished run: its records, and its agreement with the rules.

`judged.jsonl` contains one line per try and is append-only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dm_jupyter.core.task import Task
from training.durable.log import DurableLog
from training.records.records import EvalRecord, read_run
from training.suites.suite import Sample

__all__ = [
    "Agreement",
    "JudgedLog",
    "JudgedRecord",
    "agreement_of",
    "expected_text",
    "item_of",
    "judgeable",
    "read_column",
]


_WAY_OUT = "Delete the file and judge again; replies that were cached are not paid for twice."


@dataclass(frozen=True, slots=True)
class JudgedRecord:
    """The judge's verdict on one answer, next to those of the rules."""

    id: str
    trial: int
    answer: str
    """The judged answer; if the record changes, it is judged again."""
    judge: str
    """The model's name."""
    prompt: str
    """Fingerprint of the judge's prompt."""
    right: bool
    """Verdict of our rules, from the record."""
    strict: bool
    """Verdict of the benchmark's own rules, from the record."""
    judged: bool | None
    """Verdict of the judge; `None` if it gave none, which does not mean wrong."""
    reason: str
    """The judge's reason."""
    error: str
    """Why there is no verdict; empty if there is one."""
    reformat: str = ""
    """Fingerprint of the reformat prompt; empty if the step was not requested."""
    reformatted: str | None = None
    """The answer in the requested form; `None` if there is none."""
    reformatted_right: bool | None = None
    reformatted_strict: bool | None = None
    reformat_error: str = ""
    """Why a requested reformatted answer is missing; empty otherwise."""

    @property
    def key(self) -> tuple[str, int]:
        """Unique key within the run."""
        return self.id, self.trial


class JudgedLog(DurableLog[tuple[str, int], JudgedRecord]):
    """File of a judge's column; of several lines with one key, the last counts."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _encoded, _decoded, lambda row: row.key, _WAY_OUT)


def _encoded(row: JudgedRecord) -> str:
    return json.dumps(asdict(row), ensure_ascii=False)


def _decoded(line: bytes) -> JudgedRecord:
    return JudgedRecord(**json.loads(line))


def read_column(folder: Path) -> dict[tuple[str, int], JudgedRecord]:
    """Return a run's column without changing it; empty if the run has none.

    Raises:
        ValueError: a line other than an incomplete last one is not a record.
        OSError: it can't be read.
    """
    return {row.key: row for row in JudgedLog(folder / "judged.jsonl").peek()}


def judgeable(folder: Path) -> list[EvalRecord]:
    """Return the records of a finished run, without changing anything.

    Raises:
        RunError: there are none, or a line is not a record.
        ValueError: the records are compact, without the questions and labels that a judge needs.
    """
    records = read_run(folder)
    for record in records:
        if not record.trajectory or record.label is None:
            raise ValueError(
                f"{folder}: the record of {record.id} is compact, without question and label; "
                "judge the run in the folder where it was made"
            )
    return records


def item_of(record: EvalRecord) -> Sample:
    """Return the item of a record; lists in its label, read from JSON, become tuples.

    Raises:
        ValueError: the record's task is incomplete.
    """
    try:
        task = Task.from_json(record.trajectory["task"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the record of {record.id} has no whole task: {error}") from error
    return Sample(task, _frozen(record.label))


def expected_text(label: Any) -> str:
    """Return a label as text for the judge: pairs as `@name[value]`, text unchanged."""
    if isinstance(label, str):
        return label
    if isinstance(label, list | tuple) and label and all(map(_is_pair, label)):
        return "\n".join(f"@{name}[{value}]" for name, value in label)
    if isinstance(label, Mapping) and all(isinstance(value, str) for value in label.values()):
        return "\n".join(f"@{name}[{value}]" for name, value in label.items())
    return json.dumps(label, ensure_ascii=False, default=str)


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(part, str) for part in value)
    )


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Agreement:
    """Confusion table of a judge and the rules; answers without a verdict are excluded."""

    both_right: int
    judge_only: int
    """Right only according to the judge."""
    rules_only: int
    """Right only according to the rules."""
    both_wrong: int
    unscored: int
    """Answers without a verdict of the judge."""
    differing: tuple[str, ...]
    """Ids on which they differ, `id#trial` after the first try, in the order of the run."""

    @property
    def total(self) -> int:
        """Answers that have both verdicts."""
        return self.both_right + self.judge_only + self.rules_only + self.both_wrong

    @property
    def accuracy(self) -> float | None:
        """Share of answers on which they agree; `None` without answers."""
        return (self.both_right + self.both_wrong) / self.total if self.total else None

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance: (p_o - p_e) / (1 - p_e), Cohen 1960.

        `None` if chance alone explains everything: without answers, or if both give the same single
        verdict everywhere. Test: `test_kappa_by_hand`.
        """
        if self.accuracy is None:
            return None
        judge = (self.both_right + self.judge_only) / self.total
        rules = (self.both_right + self.rules_only) / self.total
        chance = judge * rules + (1 - judge) * (1 - rules)
        return (self.accuracy - chance) / (1 - chance) if chance < 1 else None


def agreement_of(
    rows: Iterable[JudgedRecord], rules: Literal["right", "strict"] = "right"
) -> Agreement:
    """Return the agreement of the judge's verdicts with one set of rules.

    Args:
        rows: a judge's column.
        rules: our rules, or the benchmark's own.
    """
    known = list(rows)
    marked: Sequence[tuple[JudgedRecord, bool]] = [
        (row, row.right if rules == "right" else row.strict)
        for row in known
        if row.judged is not None
    ]
    return Agreement(
        both_right=sum(bool(row.judged) and right for row, right in marked),
        judge_only=sum(bool(row.judged) and not right for row, right in marked),
        rules_only=sum(not row.judged and right for row, right in marked),
        both_wrong=sum(not row.judged and not right for row, right in marked),
        unscored=len(known) - len(marked),
        differing=tuple(_name(row) for row, right in marked if row.judged is not right),
    )


def _name(row: JudgedRecord) -> str:
    return f"{row.id}#{row.trial}" if row.trial else row.id
