"""A finished run, read and never written to: what a comparison or a report begins with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from training.evaluation.records import EvalRecord

__all__ = ["RunError", "read_run"]

_KINDS: dict[str, type] = {"id": str, "trial": int, "right": bool, "strict": bool}
_NAMES = {str: "a string", int: "a whole number", bool: "true or false"}


class RunError(ValueError):
    """A run that can't be read; the message names the file, and the line where there is one."""


def read_run(path: Path) -> list[EvalRecord]:
    """Returns the records of a run: a folder with `records.jsonl`, or a file of records.

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
    records: dict[tuple[str, int], EvalRecord] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        record = _record(line, f"{file}, line {number}")
        if record.key in records:
            raise RunError(f"{file}, line {number}: {record.id}, try {record.trial}, stands twice")
        records[record.key] = record
    if not records:
        raise RunError(f"{file} holds no records: the run has not finished a question")
    return list(records.values())


def _record(line: str, place: str) -> EvalRecord:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise RunError(f"{place}: not JSON ({error}); give the run's command again") from error
    if not isinstance(fields, dict):
        raise RunError(f"{place}: expected a JSON object, found {type(fields).__name__}")
    for name, kind in _KINDS.items():
        _check(fields, name, kind, place)
    try:
        return EvalRecord(**fields)
    except TypeError as error:
        raise RunError(f"{place}: not a record of this release ({error})") from error


def _check(fields: dict[str, Any], name: str, kind: type, place: str) -> None:
    if name not in fields:
        raise RunError(f"{place}, field {name!r}: is missing")
    if type(fields[name]) is not kind:
        found = type(fields[name]).__name__
        raise RunError(f"{place}, field {name!r}: expected {_NAMES[kind]}, found {found}")
