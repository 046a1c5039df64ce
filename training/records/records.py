"""Records of an evaluation, one per run, and the reader of finished evaluations.

A record is one line of JSON, written as soon as the run ends. Damaged lines can be set aside; the
intact ones stay. `read_run` reads a finished run and never writes to it: comparisons and reports
begin with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from dm_jupyter.agent.simplify import AS_ASKED
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
    "difference_in",
    "read_object",
    "read_run",
    "read_run_lines",
    "salvage",
    "suite_of",
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
    """Groups of the item: `level`, `concept`, `format` and `file`, each with its values."""
    correct: bool
    """By our rules."""
    strict_correct: bool
    """By the benchmark's own rules."""
    parts: Mapping[str, bool]
    """Each sub-answer by our rules."""
    strict_parts: Mapping[str, bool]
    """Each sub-answer by the benchmark's own rules; empty if the suite does not distinguish
    them."""
    grades: Mapping[str, float]
    """Graded scores by name, if the benchmark has any."""
    failure: str
    """Kind of failure; empty if the answer is right by the strict rules."""
    answer: str | None
    turns: int
    cells: int
    self_corrected: bool | None
    """Whether it ended with a cell that ran after one had raised; `None` if none had."""
    tokens: int
    """Tokens sampled, summed over all candidates."""
    prompt_tokens: int
    """Tokens read, summed over all candidates."""
    sampled_cells: int
    """Cells run, summed over all candidates."""
    seconds: float
    has_sub_answers: bool | None = None
    """Whether the parts are sub-answers that must all be right; `None` in older records."""
    fault: str = ""
    """Why there is no verdict, if something other than the model failed; empty otherwise."""
    rests_on: list[str] = field(default_factory=list)
    """Premises of the answer that the data lack; empty in older records."""
    ending: list[str] = field(default_factory=list)
    """Other notes shown below the answer; empty in older records."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Sha256 of each data file, by its path in the split; empty in older records."""
    label: Any = None
    trajectory: Mapping[str, Any] = field(default_factory=dict)
    """The run that gave the answer; empty in a compact record."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """The votes or the tree it was chosen from; empty for a single try."""

    @property
    def key(self) -> tuple[str, int]:
        """Unique key within the run."""
        return self.id, self.trial

    def compacted(self) -> EvalRecord:
        """Return the record without the benchmark's texts, so that a repository may contain it."""
        return replace(self, label=None, trajectory={}, search={})

    @classmethod
    def of(
        cls, item: Sample, trial: int, trajectory: Trajectory, score: ItemScore, spent: RunUsage
    ) -> EvalRecord:
        """Return the record of a run that ended.

        Args:
            item: the question.
            trial: number of the try, from 0.
            trajectory: the run that gave the answer.
            score: the verdict on it.
            spent: the usage of all candidates.
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
    """Usage of an answer, summed over all its candidates."""

    tokens: int
    prompt_tokens: int
    cells: int
    seconds: float
    """Clock time."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """The votes or the tree, as JSON."""


class RecordLog(DurableLog[tuple[str, int], EvalRecord]):
    """Append-only file of records, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _encoded, _decoded, lambda record: record.key, _SALVAGE)

    def outcomes(self) -> list[EvalRecord]:
        """Return the records without trajectories and labels, which is fast and saves memory.

        An incomplete last line is removed.

        Raises:
            LogError: a line other than the last is not a record.
        """
        self.cut()
        return list(self.each(_outcome))


def _encoded(record: EvalRecord) -> str:
    return json.dumps(asdict(record), ensure_ascii=False, default=str)


def _decoded(line: bytes) -> EvalRecord:
    return _from_json(json.loads(line))


_OLD_NAMES = {"right": "correct", "strict": "strict_correct", "is_mended": "self_corrected"}
"""Names of fields in the records of older releases, with the current ones."""


def _renamed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record, of this release or an older one, by their current names."""
    return {_OLD_NAMES.get(name, name): value for name, value in found.items()}


def _from_json(found: Mapping[str, Any]) -> EvalRecord:
    return EvalRecord(**_renamed(found))


def _outcome(line: bytes) -> EvalRecord:
    """Return the record up to its label, without decoding the rest, the bulk of a line.

    A line that differs from what `append` writes is decoded completely.
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
    """Move the lines that are not complete records to `records.damaged.jsonl` in the same folder.

    A repeated record of a try moves as well; see `DurableLog.salvage`.

    Args:
        file: the records; no other process may write them at the same time.

    Raises:
        OSError: a file can't be read or written; the records are then unchanged.
    """
    return RecordLog(file).salvage(lambda line: _record_of(line.decode("utf-8"), ""))


_KINDS = get_type_hints(EvalRecord)
"""Required type of each field's value, from the record's annotations."""
_REQUIRED = [
    one.name for one in fields(EvalRecord) if one.default is one.default_factory is MISSING
]


def difference_in(one: EvalRecord, other: EvalRecord) -> str:
    """Return what shows that two records of one id are of different questions.

    It is `suite`, `question` or `label`, and empty if nothing does. A compact record shows nothing.
    """
    first, second = _asked(one), _asked(other)
    differing = (name for name in first if first[name] != second[name])
    return next((name for name in differing if first[name] and second[name]), "")


def suite_of(record: EvalRecord) -> str:
    """Return the name of the suite of a record's question.

    Raises:
        RunError: the record names none, as that of a compact one or of a suite of your own.
    """
    suite = _object(_object(record.trajectory, "task"), "metadata").get("suite")
    if not suite:
        raise RunError("the run doesn't say of which suite it is; add --suite")
    return str(suite)


def _asked(record: EvalRecord) -> dict[str, Any]:
    """Return what a record contains of its question; labels as text, since NaN equals no NaN."""
    task = _object(record.trajectory, "task")
    metadata = _object(task, "metadata")
    return {
        "suite": metadata.get("suite"),
        "question": metadata.get(AS_ASKED) or task.get("question"),
        "label": record.label and json.dumps(record.label, default=str),
    }


def _object(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name)
    return value if isinstance(value, Mapping) else {}


class RunError(ValueError):
    """A run can't be read; the message names the file, and the line if there is one."""


def read_run(path: Path) -> list[EvalRecord]:
    """Return the records of a run: a folder with `records.jsonl`, or a file of records.

    Raises:
        RunError: the file is missing, unreadable or empty, a line is not a record, or a try at a
            question appears twice.
    """
    return list(read_run_lines(path).values())


def read_run_lines(path: Path, *, is_running: bool = False) -> dict[int, EvalRecord]:
    """Return the records of a run by the number of their line, from 1.

    Args:
        path: the run, as for `read_run`.
        is_running: whether the run may still be writing its last line, which is then left out.

    Raises:
        RunError: the file is missing, unreadable or empty, a line is not a record, or a try at a
            question appears twice.
    """
    file = path / "records.jsonl" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise RunError(f"{file} can't be read: {why}") from error
    if is_running:
        text = text[: text.rfind("\n") + 1]
    records: dict[int, EvalRecord] = {}
    seen: set[tuple[str, int]] = set()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        record = _record_of(line, f"{file}, line {number}")
        if record.key in seen:
            raise RunError(
                f"{file}, line {number}: {record.id}, try {record.trial}, appears twice; {_WAY_OUT}"
            )
        seen.add(record.key)
        records[number] = record
    if not records:
        raise RunError(f"{file} holds no records: the run has not finished a question")
    return records


def read_object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file beside the records; empty if there is no such file.

    Raises:
        RunError: the file can't be read, or contains something else.
    """
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} can't be read: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{path}: expected a JSON object, found {type(found).__name__}")
    return found


def _record_of(line: str, place: str) -> EvalRecord:
    """Return the record in a line.

    Args:
        line: of a file of records.
        place: file and line, for the message.

    Raises:
        RunError: the line is not a record; the message names the field if one is at fault.
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
    """Raise if a value, or one inside it, does not match its annotation."""
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
