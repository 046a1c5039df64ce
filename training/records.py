"""What an evaluation keeps of each item: one line of JSON, written as soon as the item is done."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dm_jupyter.core.closed_form import find_answers, is_undefined
from dm_jupyter.core.trajectory import StopReason, Trajectory
from kernel_sandbox.types import CellResult, CellStatus
from training.tasks.suite import ItemScore

__all__ = ["EvalRecord", "RecordLog", "failure_of"]


@dataclass(frozen=True, slots=True)
class EvalRecord:
    """The outcome of one item."""

    id: str
    level: str
    right: bool
    strict: bool
    parts: Mapping[str, bool]
    failure: str
    """Which kind of failure it was; empty when the answer is right by the strict rules."""
    answer: str | None
    label: Any
    turns: int
    tokens: int
    seconds: float
    trajectory: Mapping[str, Any]

    def compacted(self) -> EvalRecord:
        """Returns the record without the benchmark's own texts: fit to be kept in a repository."""
        return replace(self, label=None, trajectory={})

    @classmethod
    def of(cls, trajectory: Trajectory, score: ItemScore, label: Any) -> EvalRecord:
        """Returns the record of a run that ended."""
        return cls(
            id=trajectory.task.id,
            level=trajectory.task.level,
            right=score.right,
            strict=score.strict,
            parts=dict(score.parts),
            failure="" if score.strict else failure_of(trajectory),
            answer=trajectory.answer,
            label=label,
            turns=trajectory.turns,
            tokens=trajectory.tokens,
            seconds=round(trajectory.seconds, 2),
            trajectory=trajectory.to_json(),
        )


class RecordLog:
    """A file of records, one JSON object a line, only ever appended to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[EvalRecord]:
        """Returns the records written so far; a last line that broke off is cut away.

        Raises:
            ValueError: a line other than the last is no record.
        """
        if not self._path.exists():
            return []
        raw = self._path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) < len(raw):
            os.truncate(self._path, len(whole))
        records = []
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                records.append(EvalRecord(**json.loads(line)))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{self._path}, line {number}: no record ({error})") from error
        return records

    def append(self, record: EvalRecord) -> None:
        """Writes one record and makes sure that it is on the disk."""
        line = json.dumps(asdict(record), ensure_ascii=False, default=str)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def failure_of(trajectory: Trajectory) -> str:
    """Returns the kind of failure of a run whose answer is wrong or missing."""
    if trajectory.stop is StopReason.ANSWERED:
        values = [value for _, value in find_answers(trajectory.answer or "")]
        return "undefined value" if any(map(is_undefined, values)) else "wrong value"
    if trajectory.stop is StopReason.FAULT:
        return "fault"
    results = [step.result for step in trajectory.steps if step.result is not None]
    if not results:
        return "void"
    last = results[-1]
    if last.status is not CellStatus.OK and last.error is None:
        return str(last.status)
    if last.error is None:
        return "not printed"
    repeated = len(results) > 1 and _same_error(results[-2], last)
    return "same exception again" if repeated else "exception not mended"


def _same_error(before: CellResult, after: CellResult) -> bool:
    if before.error is None or after.error is None:
        return False
    return (before.error.name, before.error.message) == (after.error.name, after.error.message)
