"""Records of runs that nobody ran: what counts of each is said, the rest is plain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from training.records.records import EvalRecord, RecordLog

_PLAIN = EvalRecord(
    id="q", trial=0, groups={}, correct=True, strict_correct=True, parts={}, strict_parts={},
    grades={}, failure="", answer="x", turns=2, cells=1, self_corrected=None, tokens=100,
    prompt_tokens=1000, sampled_cells=1, seconds=3.0,
)  # fmt: skip


def tried(name: str, right: bool, trial: int = 0, **changes: Any) -> EvalRecord:
    """Returns the record of a try that is right, or wrong, by both rules."""
    failure = "" if right else "wrong value"
    plain = replace(
        _PLAIN, id=name, trial=trial, correct=right, strict_correct=right, failure=failure
    )
    return replace(plain, **changes)


def tries(name: str, rights: Sequence[bool]) -> list[EvalRecord]:
    """Returns the records of several tries at one question."""
    return [tried(name, right, trial) for trial, right in enumerate(rights)]


def write_run(folder: Path, records: Sequence[EvalRecord]) -> Path:
    """Writes records as a run's folder, which it returns."""
    folder.mkdir(parents=True)
    log = RecordLog(folder / "records.jsonl")
    for record in records:
        log.append(record)
    return folder
