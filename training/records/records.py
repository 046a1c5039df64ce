"""What an evaluation keeps of each run, and what is read back of a finished one.

One line of JSON, written as soon as the run ended. Damaged lines can be taken out: the good ones
stay, the others are set aside. `read_run` reads a finished run and never writes to it: a comparison
or a report begins with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from dm_jupyter.core.trajectory import Trajectory
from training.durable.log import DurableLog, Salvaged
from training.records.failures import failure_of, self_corrected_in
from training.suites.suite import ItemScore, Sample

__all__ = [
    "DAMAGED",
    "EvalRecord",
    "RecordLog",
    "RunError",
    "RunUsage",
    "read_run",
    "salvage",
]

DAMAGED = "records.damaged.jsonl"
_SALVAGE = "Add --salvage to the command to keep the whole records and set the damaged lines aside."
_WAY_OUT = "give the run's command again, with --salvage where that does not help"
_WORDS: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    NoneType: "null",
    list: "a list",
    Mapping: "an object",
}


@dataclass(frozen=True, slots=True)
class EvalRecord:
    """The outcome of one try at one item."""

    id: str
    trial: int
    """Counted from 0."""
    groups: Mapping[str, list[str]]
    """What it counts among: `level`, `concept`, `format` and `file`, each with its values."""
    correct: bool
    """By our rules."""
    strict_correct: bool
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
    self_corrected: bool | None
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
    data: Mapping[str, str] = field(default_factory=dict)
    """Sha256 of each data file, by its path in the split; empty in older records."""
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
            correct=score.correct,
            strict_correct=score.strict_correct,
            parts=dict(score.parts),
            strict_parts=dict(score.strict_parts),
            grades=dict(score.grades),
            failure=""
            if score.strict_correct
            else failure_of(trajectory, is_right_by_ours=score.correct),
            answer=trajectory.answer,
            turns=trajectory.turns,
            cells=trajectory.cells,
            self_corrected=self_corrected_in(trajectory),
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


class RecordLog(DurableLog[tuple[str, int], EvalRecord]):
    """A file of records, one JSON object a line, only ever appended to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _encoded, _decoded, lambda record: record.key, _SALVAGE)

    def outcomes(self) -> list[EvalRecord]:
        """Returns the records without trajectories and labels: quick, and small in memory.

        A last line that broke off is cut away.

        Raises:
            LogError: a line other than the last is no record.
        """
        self.cut()
        return list(self.each(_outcome))


def _encoded(record: EvalRecord) -> str:
    return json.dumps(asdict(record), ensure_ascii=False, default=str)


def _decoded(line: bytes) -> EvalRecord:
    return _from_json(json.loads(line))


_OLD_NAMES = {"right": "correct", "strict": "strict_correct", "is_mended": "self_corrected"}
"""What fields were called in the records of older releases."""


def _renamed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record, of this release or an older one, by today's names."""
    return {_OLD_NAMES.get(name, name): value for name, value in found.items()}


def _from_json(found: Mapping[str, Any]) -> EvalRecord:
    return EvalRecord(**_renamed(found))


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
        return _from_json(fields)
    return _from_json(json.loads(line)).compacted()


_OUTCOME_FIELDS = len(fields(EvalRecord)) - 3
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


def salvage(file: Path) -> Salvaged:
    """Moves the lines that are no whole records into `records.damaged.jsonl` beside the file.

    Also moved is the second record of a try; see `DurableLog.salvage`.

    Args:
        file: the records; nobody else writes them meanwhile.

    Raises:
        OSError: a file can't be read or written; the records are then as they were.
    """
    return RecordLog(file).salvage(lambda line: _record_of(line.decode("utf-8"), ""))


_KINDS = get_type_hints(EvalRecord)
"""What a field's value must be: all that the record says of it."""
_REQUIRED = [
    one.name for one in fields(EvalRecord) if one.default is one.default_factory is MISSING
]


class RunError(ValueError):
    """A run that can't be read; the message names the file, and the line where there is one."""


def read_run(path: Path, *, is_running: bool = False) -> list[EvalRecord]:
    """Returns the records of a run: a folder with `records.jsonl`, or a file of records.

    Args:
        path: the folder or file.
        is_running: whether the run may be writing its last line, which is then left out.

    Raises:
        RunError: there is no such file, it can't be read or is empty, a line is no record, or a try
            at a question stands in it twice.
    """
    file = path / "records.jsonl" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{file} can't be read: {why}") from error
    if is_running:
        text = text[: text.rfind("\n") + 1]
    records: dict[tuple[str, int], EvalRecord] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        record = _record_of(line, f"{file}, line {number}")
        if record.key in records:
            raise RunError(
                f"{file}, line {number}: {record.id}, try {record.trial}, stands twice; {_WAY_OUT}"
            )
        records[record.key] = record
    if not records:
        raise RunError(f"{file} holds no records: the run has not finished a question")
    return list(records.values())


def _record_of(line: str, place: str) -> EvalRecord:
    """Returns the record that a line holds.

    Args:
        line: of a file of records.
        place: file and line, for the message.

    Raises:
        RunError: the line is no record; the message names the field where one is at fault.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{place}: not JSON ({error}); {_WAY_OUT}") from error
    if not isinstance(found, dict):
        raise RunError(f"{place}: expected a JSON object, found {type(found).__name__}")
    found = _renamed(found)
    for name in _REQUIRED:
        if name not in found:
            raise RunError(f"{place}, field {name!r}: is missing")
    for name, value in found.items():
        _check(value, _KINDS.get(name, Any), name, place)
    try:
        return EvalRecord(**found)
    except TypeError as error:
        raise RunError(f"{place}: not a record of this release ({error})") from error


def _check(value: Any, annotation: Any, name: str, place: str) -> None:
    """Refuses a value that is not what its field is annotated as, or that holds such a one."""
    if annotation is Any:
        return
    kinds = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    kind = next((one for one in kinds if _is(value, get_origin(one) or one)), None)
    if kind is None:
        expected = " or ".join(_WORDS[get_origin(one) or one] for one in kinds)
        found = value if isinstance(value, float) else type(value).__name__
        raise RunError(f"{place}, field {name!r}: expected {expected}, found {found}")
    held = dict(enumerate(value)) if isinstance(value, list) else value
    for key, one in held.items() if isinstance(held, dict) else ():
        _check(one, get_args(kind)[-1], f"{name}.{key}", place)


def _is(value: Any, kind: Any) -> bool:
    if kind is float:
        return type(value) in {int, float} and abs(value) <= sys.float_info.max
    return type(value) is (dict if kind is Mapping else kind)
