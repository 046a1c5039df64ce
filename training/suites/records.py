"""Records of a question file (JSON lines), with errors that name file, row and field."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["Record", "RecordError", "read_records"]


class RecordError(ValueError):
    """A question file is invalid; the message names the file, row and field."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row, with methods that read and check its fields.

    Raises:
        RecordError: a field contains text that can't be written to a file.
    """

    file: Path
    row: int
    """Line number, from 1, as in an editor."""
    fields: Mapping[str, Any]

    def __post_init__(self) -> None:
        for field, value in self.fields.items():
            self._refuse_unwritable(field, value)

    def fault(self, field: str, problem: str) -> RecordError:
        """Return the error to raise for a field of this row."""
        return RecordError(f"{self.file}, row {self.row}, field {field!r}: {problem}")

    def text(self, field: str, default: str | None = None) -> str:
        """Return a string field; without a default it must be present and not blank.

        Raises:
            RecordError: the field is missing, empty or not a string.
        """
        if default is not None and self.fields.get(field) is None:
            return default
        value = self._field(field)
        if not isinstance(value, str):
            raise self.fault(field, f"expected a string, found {_kind(value)}")
        if default is None and not value.strip():
            raise self.fault(field, "is empty")
        return value

    def flag(self, field: str, *, default: bool = False) -> bool:
        """Return a true or false field.

        Raises:
            RecordError: the field is something else.
        """
        value = self.fields.get(field, default)
        if not isinstance(value, bool):
            raise self.fault(field, f"expected true or false, found {_kind(value)}")
        return value

    def number(self, field: str) -> float:
        """Return a finite number.

        Raises:
            RecordError: the field is missing or something else.
        """
        value = self._field(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fault(field, f"expected a number, found {_kind(value)}")
        if not abs(value) <= sys.float_info.max:  # also nan, and an int too large for a float
            raise self.fault(field, f"expected a finite number, found {value}")
        return float(value)

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of strings; a missing field is an empty list.

        Raises:
            RecordError: the field is not a list of strings.
        """
        value = self.fields.get(field)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fault(field, "expected a list of strings")
        return tuple(value)

    def pairs(self, field: str) -> tuple[tuple[str, str], ...]:
        """Return a non-empty list of (name, value) pairs of strings.

        Raises:
            RecordError: the field is missing or something else.
        """
        value = self._field(field)
        if not isinstance(value, list) or not value or not all(map(_is_text_pair, value)):
            raise self.fault(field, "expected a list of [name, value] pairs of strings")
        return tuple((name, said) for name, said in value)

    def rows(self, field: str) -> tuple[tuple[Any, ...], ...]:
        """Return the rows of a table, all of one width.

        Raises:
            RecordError: the field is missing or not a table.
        """
        return self.table(field, self._field(field))

    def table(self, field: str, value: object) -> tuple[tuple[Any, ...], ...]:
        """Return a value of this row as the rows of a table, all of one width.

        Raises:
            RecordError: the value is not a table.
        """
        if not isinstance(value, list) or not all(isinstance(row, list) for row in value):
            raise self.fault(field, "expected a list of rows, each a list")
        if len({len(row) for row in value}) > 1:
            raise self.fault(field, "the rows are not all of one width")
        return tuple(tuple(row) for row in value)

    def decoded(self, field: str, text: str) -> Any:
        """Return the value of a JSON text of this row.

        Raises:
            RecordError: the text is not valid JSON, or contains text that can't be written.
        """
        try:
            value = _read_json(text)
        except ValueError as error:
            raise self.fault(field, f"can't be read as JSON ({error})") from error
        self._refuse_unwritable(field, value)
        return value

    def data_file(self, field: str) -> Path:
        """Return the file that the field names, relative to the folder of the questions.

        Raises:
            RecordError: the name is missing, leads out of the folder or names no file.
        """
        return self.inside(field, self.text(field))

    def data_files(self, field: str) -> tuple[Path, ...]:
        """Return the files that the field names in a list, at least one.

        Raises:
            RecordError: the list is missing or empty, or a name leads out of the folder or names no
                file.
        """
        names = self.texts(field)
        if not names:
            raise self.fault(field, "expected a list with at least one file name")
        return tuple(self.inside(field, name) for name in names)

    def inside(self, field: str, name: str) -> Path:
        """Return a file by its name relative to the folder of the questions.

        Args:
            field: the field that errors name.
            name: the name of the file.

        Raises:
            RecordError: the name leads out of the folder or names no file.
        """
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            raise self.fault(field, f"{name!r} leads out of the folder of the questions")
        path = self.file.parent / place
        try:
            is_file = path.is_file()
        except OSError as error:  # the name is too long, or a folder can't be entered
            raise self.fault(field, f"the file can't be looked up: {error}") from error
        if not is_file:
            raise self.fault(field, f"there is no file {name!r} beside the questions")
        return path

    def _field(self, field: str) -> Any:
        if field not in self.fields:
            raise self.fault(field, "is missing")
        return self.fields[field]

    def _refuse_unwritable(self, field: str, value: object) -> None:
        """Refuse half a surrogate pair, which JSON can write and UTF-8 can't encode."""
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except (RecursionError, UnicodeEncodeError) as error:
            raise self.fault(field, f"can't be written: {error}") from error


def read_records(file: Path) -> Iterator[Record]:
    """Yield the rows of a question file in order; blank lines are skipped.

    Raises:
        RecordError: the file can't be read or contains no questions, a line is not a JSON object, a
            field can't be written again, or an `id` occurs twice.
    """
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{file} can't be read: {error}") from error
    seen: dict[str, int] = {}
    for row, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record = Record(file, row, _json_object(file, row, line))
        name = record.text("id")
        if name in seen:
            raise record.fault("id", f"{name!r} stands in row {seen[name]} already")
        seen[name] = row
        yield record
    if not seen:
        raise RecordError(f"{file} holds no questions")


def _json_object(file: Path, row: int, line: str) -> Mapping[str, Any]:
    try:
        value = _read_json(line)
    except ValueError as error:
        raise RecordError(f"{file}, row {row}: can't be read as JSON ({error})") from error
    if not isinstance(value, dict):
        raise RecordError(f"{file}, row {row}: expected a JSON object, found {_kind(value)}")
    return value


def _read_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: the text is not JSON, or its numbers are too long or its lists nested too deep.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _is_text_pair(value: object) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and len(value) == 2
        and all(isinstance(part, str) for part in value)
    )


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
