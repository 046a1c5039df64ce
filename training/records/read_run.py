"""A finished run, read and never written to: what a comparison or a report begins with."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from training.records.records import EvalRecord

__all__ = ["RunError", "read_run", "record_of"]

_KINDS = get_type_hints(EvalRecord)
"""What a field's value must be: all that the record says of it."""
_WAY_OUT = "give the run's command again, with --salvage where that does not help"
_REQUIRED = [
    one.name for one in fields(EvalRecord) if one.default is one.default_factory is MISSING
]
_WORDS: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    NoneType: "null",
    list: "a list",
    Mapping: "an object",
}


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
        record = record_of(line, f"{file}, line {number}")
        if record.key in records:
            raise RunError(
                f"{file}, line {number}: {record.id}, try {record.trial}, stands twice; {_WAY_OUT}"
            )
        records[record.key] = record
    if not records:
        raise RunError(f"{file} holds no records: the run has not finished a question")
    return list(records.values())


def record_of(line: str, place: str) -> EvalRecord:
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
