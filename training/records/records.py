"""What an evaluation keeps of each run: one line of JSON, written as soon as the run ended."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from dm_jupyter.core.trajectory import Trajectory
from training.records.failures import failure_of, was_mended
from training.suites.suite import ItemScore, Sample

__all__ = ["EvalRecord", "RecordLog", "RunUsage"]


@dataclass(frozen=True, slots=True)
class EvalRecord:
    """The outcome of one try at one item."""

    id: str
    trial: int
    """Counted from 0."""
    groups: Mapping[str, list[str]]
    """What it counts among: `level`, `concept`, `format` and `file`, each with its values."""
    right: bool
    """By our rules."""
    strict: bool
    """By the benchmark's own."""
    parts: Mapping[str, bool]
    """Each sub-answer by our rules."""
    strict_parts: Mapping[str, bool]
    """Each sub-answer by the benchmark's own; empty where the suite does not tell them apart."""
    grades: Mapping[str, float]
    """Graded scores by name, where the benchmark has such."""
    failure: str
    """Which kind of failure it was; empty when the answer is right by the strict rules."""
    answer: str | None
    turns: int
    cells: int
    is_mended: bool | None
    """Whether it ended with a cell that ran after one had raised; `None` where none had."""
    tokens: int
    """Tokens sampled, those of all candidates together where there were several."""
    prompt_tokens: int
    """Tokens read, likewise."""
    sampled_cells: int
    """Cells run, likewise."""
    seconds: float
    has_sub_answers: bool | None = None
    """Whether the parts are answers of which all must be right; `None` in older records."""
    fault: str = ""
    """Why there is no verdict, where something but the model failed; empty otherwise."""
    rests_on: list[str] = field(default_factory=list)
    """What the answer rests on that the data do not have; empty in older records."""
    ending: list[str] = field(default_factory=list)
    """What a person reads below the answer besides; empty in older records."""
    label: Any = None
    trajectory: Mapping[str, Any] = field(default_factory=dict)
    """The run that gave the answer; empty in a compact record."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """The votes or the tree it was chosen from; empty for a single try."""

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from all others of its run."""
        return self.id, self.trial

    def compacted(self) -> EvalRecord:
        """Returns the record without the benchmark's own texts: fit to be kept in a repository."""
        return replace(self, label=None, trajectory={}, search={})

    @classmethod
    def of(
        cls, item: Sample, trial: int, trajectory: Trajectory, score: ItemScore, spent: RunUsage
    ) -> EvalRecord:
        """Returns the record of a run that ended.

        Args:
            item: what was asked.
            trial: which try it was, from 0.
            trajectory: the run that gave the answer.
            score: the verdict on it.
            spent: what it and the candidates beside it took.
        """
        return cls(
            id=item.task.id,
            trial=trial,
            groups=_groups(trajectory),
            right=score.right,
            strict=score.strict,
            parts=dict(score.parts),
            strict_parts=dict(score.strict_parts),
            grades=dict(score.grades),
            failure="" if score.strict else failure_of(trajectory, is_right_by_ours=score.right),
            answer=trajectory.answer,
            turns=trajectory.turns,
            cells=trajectory.cells,
            is_mended=was_mended(trajectory),
            tokens=spent.tokens,
            prompt_tokens=spent.prompt_tokens,
            sampled_cells=spent.cells,
            seconds=round(spent.seconds, 2),
            has_sub_answers=score.has_sub_answers,
            rests_on=list(trajectory.rests_on),
            ending=list(trajectory.ending),
            label=item.label,
            trajectory=trajectory.to_json(),
            search=spent.search,
        )


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What an answer took, all its candidates together."""

    tokens: int
    prompt_tokens: int
    cells: int
    seconds: float
    """Clock time."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """The votes or the tree, as JSON."""


class RecordLog:
    """A file of records, one JSON object a line, only ever appended to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[EvalRecord]:
        """Returns the records written so far; a last line that broke off is cut away.

        Raises:
            ValueError: a line other than the last is no record.
        """
        return list(self._read(lambda line: EvalRecord(**json.loads(line))))

    def outcomes(self) -> list[EvalRecord]:
        """Returns the same without trajectories and labels: quick, and small in memory.

        Raises:
            ValueError: a line other than the last is no record.
        """
        return list(self._read(_outcome))

    def _read(self, decode: Callable[[bytes], EvalRecord]) -> Iterator[EvalRecord]:
        if not self._path.exists():
            return
        raw = self._path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) < len(raw):
            os.truncate(self._path, len(whole))
        for number, line in enumerate(whole.split(b"\n")[:-1], 1):
            try:
                yield decode(line)
            except (TypeError, ValueError, RecursionError) as error:
                raise ValueError(
                    f"{self._path}, line {number}: no record ({error}). Add --salvage to the "
                    "command to keep the whole records and set the damaged lines aside."
                ) from error

    def append(self, record: EvalRecord) -> None:
        """Writes one record and makes sure that it is on the disk."""
        line = json.dumps(asdict(record), ensure_ascii=False, default=str)
        with self._path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())


def _outcome(line: bytes) -> EvalRecord:
    """The record up to its label: what follows, the bulk of a line, need not be decoded.

    A line that is not as `append` writes it is decoded as a whole.
    """
    head, label, _ = line.partition(b', "label": ')
    try:
        fields = json.loads(head + b"}") if label else {}
    except ValueError:  # another object of the line has a field of this name
        fields = {}
    if len(fields) == _OUTCOME_FIELDS:
        return EvalRecord(**fields)
    return EvalRecord(**json.loads(line)).compacted()


_OUTCOME_FIELDS = len(fields_of(EvalRecord)) - 3
"""All but label, trajectory and search, which come last."""


def _groups(trajectory: Trajectory) -> dict[str, list[str]]:
    task = trajectory.task
    kind = task.metadata.get("format", "")
    groups = {
        "level": [task.level] if task.level else [],
        "concept": list(task.concepts),
        "format": [kind] if kind else [],
        "file": sorted({file.suffix.lstrip(".").lower() or "none" for file in task.files}),
    }
    return {name: values for name, values in groups.items() if values}
