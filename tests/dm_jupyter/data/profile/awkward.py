"""The awkward files, the tables they hold, and a judge of what the load code makes of them.

`tests/data/awkward/README.md` says how the manifests are written.
"""

from __future__ import annotations

import math
import re
import tempfile
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pandas.api import types

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import FileProfile, TableProfile, profile_file
from tests.dm_jupyter.data.profile.awkward_books import BOOKS
from tests.dm_jupyter.data.profile.reading import loaded, said

FOLDER = Path(__file__).resolve().parents[3] / "data" / "awkward"
PRECISION = 1e-12
"""pandas' own reader of decimals may differ from the nearest float by its last bit."""
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
Words = str | list[str]
"""What has to be said; of a list, one is enough."""


@dataclass(frozen=True)
class Expected:
    """One table, or another way to read it that is as good."""

    rows: int
    columns: list[tuple[Words, str]]
    """Names, or a list of names that serve, each with its type."""
    values: list[list[Any]]
    """Rows: the position, then all values; `nan` is a missing one."""
    undecided: dict[str, list[str]] = field(default_factory=dict)
    """Columns that one warning or note has to name, with more words that it must contain."""
    says: list[Words] = field(default_factory=list)
    """What all warnings and notes together have to say."""
    index: list[Any] | None = None
    """The labels of the rows, where they carry data."""

    @property
    def cells(self) -> int:
        """How many cells are compared."""
        return len(self.values) * len(self.columns)


@dataclass(frozen=True)
class AwkwardFile:
    """A file and its tables, each with the ways to read it."""

    kind: str
    name: str
    tables: list[list[Expected]]
    says: list[Words]
    first_alone: list[str]
    """Where not empty: one of these words may stand in for the tables after the first."""
    ignored: list[str]
    """Sheets without a table."""


@dataclass
class Verdict:
    """What is wrong with a file's load code."""

    faults: list[str] = field(default_factory=list)
    wrong_values: int = 0
    left_values: int = 0
    """Values left as text, with a word about it: no table yet, but nothing wrong either."""
    cells: int = 0


def awkward_files() -> list[AwkwardFile]:
    """Returns all files of all manifests."""
    return [
        _file(manifest.parent.name, name, entry)
        for manifest in sorted(FOLDER.glob("*/manifest.toml"))
        for name, entry in tomllib.loads(manifest.read_text("utf-8")).items()
    ]


def _file(kind: str, name: str, entry: dict[str, Any]) -> AwkwardFile:
    tables = []
    for raw in entry["tables"]:
        others = raw.pop("accept", [])
        first = Expected(**raw)
        tables.append([first, *(replace(first, **other) for other in others)])
    lists = [entry.get(key, []) for key in ("says", "first_alone", "ignored")]
    return AwkwardFile(kind, name, tables, *lists)


@cache
def verdict(kind: str, name: str) -> Verdict:
    """Returns what the load code of a file gets wrong, from its profile and a run in pandas."""
    file = next(one for one in awkward_files() if (one.kind, one.name) == (kind, name))
    with ExitStack() as stack:
        folder = FOLDER / kind
        if name in BOOKS:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            BOOKS[name](folder / name)
        try:
            profile = profile_file(folder / name)
        except DataFileError as refused:
            return Verdict([f"refused: {refused}"])
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        return _judged(file, folder, profile, patch)


def _judged(
    file: AwkwardFile, folder: Path, profile: FileProfile, patch: pytest.MonkeyPatch
) -> Verdict:
    whole, told = Verdict(), _told(profile)
    for words in file.says:
        _demand(words, told, whole.faults)
    found = [
        table
        for table in profile.tables
        if table.load_code and table.columns and table.name not in file.ignored
    ]
    for position, ways in enumerate(file.tables):
        if position >= len(found):
            if position and any(word in told for word in file.first_alone):
                continue
            whole.faults.append(f"table {position + 1} is not there: {len(found)} found")
            continue
        try:
            frame = loaded(folder, found[position], patch)
        except Exception as error:  # noqa: BLE001 - whatever the load code raises is the verdict
            whole.faults.append(f"table {position + 1}: {found[position].load_code}: {error!r}")
            continue
        tried = [compared(frame, way, profile, found[position]) for way in ways]
        best = min(tried, key=lambda one: (one.wrong_values, len(one.faults)))
        name = f"table {position + 1}: " if len(file.tables) > 1 else ""
        whole.faults += [name + fault for fault in best.faults]
        whole.wrong_values += best.wrong_values
        whole.left_values += best.left_values
        whole.cells += best.cells
    if len(found) > len(file.tables):
        whole.faults.append(f"{len(found)} tables instead of {len(file.tables)}")
    return whole


def _told(profile: FileProfile) -> str:
    notes = [column.note for table in profile.tables for column in table.columns if column.note]
    return "\n".join([said(profile), *notes])


def _demand(words: Words, told: str, faults: list[str]) -> None:
    choice = [words] if isinstance(words, str) else words
    if not any(word.casefold() in told.casefold() for word in choice):
        faults.append(f"nothing says {' or '.join(map(repr, choice))}")


def compared(
    frame: pd.DataFrame, expected: Expected, profile: FileProfile, table: TableProfile
) -> Verdict:
    """Returns how a frame differs from the table that it has to be."""
    result = Verdict(cells=expected.cells)
    names = [_name(label) for label in frame.columns]
    choices = [[name] if isinstance(name, str) else name for name, _ in expected.columns]
    shape = (expected.rows, len(choices))
    if frame.shape != shape:
        result.faults.append(f"shape {frame.shape} instead of {shape}")
    if len(names) != len(choices) or any(n not in c for n, c in zip(names, choices, strict=True)):
        result.faults.append(f"columns {names} instead of {[choice[0] for choice in choices]}")
    for position, (_, kind) in enumerate(expected.columns):
        at = position if len(names) == len(choices) else _position(names, choices[position])
        values = frame.iloc[:, at] if at is not None else None
        wrong = _compare_column(values, choices[position][0], position, expected, result)
        if _is_left(values, kind) and _lines(choices[position][0], profile, table):
            result.left_values += wrong
        else:
            result.wrong_values += wrong
        if values is not None and not (_is_of(values, kind) or _is_told_date(values, kind, table)):
            result.faults.append(f"column {choices[position][0]!r}: {values.dtype}, not {kind}")
    if expected.index is not None and frame.index.tolist() != expected.index:
        result.faults.append(f"index {frame.index.tolist()} instead of {expected.index}")
    for words in expected.says:
        _demand(words, _told(profile), result.faults)
    for name, more in expected.undecided.items():
        if not any(all(word in line for word in more) for line in _lines(name, profile, table)):
            result.faults.append(f"nothing says of column {name!r}: {', '.join(more)}")
    return result


def _position(names: list[str], choice: list[str]) -> int | None:
    return next((at for at, name in enumerate(names) if name in choice), None)


def _name(label: Any) -> str:
    if isinstance(label, tuple):
        return " | ".join(str(part) for part in label if not str(part).startswith("Unnamed"))
    return str(label)


def _compare_column(
    values: pd.Series[Any] | None, name: str, position: int, expected: Expected, result: Verdict
) -> int:
    wrong = 0
    for row, *meant in expected.values:
        found = "no such cell"
        if values is not None and row < len(values):
            found = values.iloc[row]
            if is_same(meant[position], found):
                continue
        wrong += 1
        result.faults.append(f"row {row}, {name!r}: {found!r} instead of {meant[position]!r}")
    return wrong


def is_same(meant: Any, found: Any) -> bool:
    """Says whether a cell holds what it has to: the same number, text, date or nothing."""
    if isinstance(meant, float) and math.isnan(meant):
        return found is None or (not isinstance(found, (str, list, dict)) and bool(pd.isna(found)))
    if isinstance(meant, bool) or isinstance(found, bool):
        return isinstance(meant, bool) and types.is_bool(found) and bool(found) == meant
    if isinstance(meant, (int, float)):
        is_number = isinstance(found, Real) and not pd.isna(found)
        return is_number and (found == meant or math.isclose(found, meant, rel_tol=PRECISION))
    if isinstance(meant, date):
        return _is_moment(meant, found)
    return isinstance(found, type(meant)) and bool(found == meant)


def _is_moment(meant: date, found: Any) -> bool:
    if isinstance(found, str) and not _ISO.fullmatch(found):
        return False
    if not isinstance(found, (str, date)) or pd.isna(found):
        return False
    moment, wanted = pd.Timestamp(found), pd.Timestamp(meant)
    if (moment.tzinfo is None) != (wanted.tzinfo is None):
        return False
    return abs(moment - wanted) < timedelta(microseconds=1)


def _is_of(values: pd.Series[Any], kind: str) -> bool:
    present = values.dropna().tolist()
    checks: dict[str, Callable[[], bool]] = {
        "int": lambda: types.is_integer_dtype(values.dtype),
        "float": lambda: types.is_float_dtype(values.dtype),
        "number": lambda: (
            types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype)
        ),
        "text": lambda: all(isinstance(value, str) for value in present),
        "date": lambda: all(isinstance(value, (date, datetime)) for value in present),
        "bool": lambda: all(types.is_bool(value) for value in present),
        "empty": lambda: not present,
        "any": lambda: True,
    }
    return checks[kind]()


def _is_left(values: pd.Series[Any] | None, kind: str) -> bool:
    return values is not None and kind not in {"text", "any"} and _is_of(values, "text")


def _is_told_date(values: pd.Series[Any], kind: str, table: TableProfile) -> bool:
    """Says whether ISO dates stay text, which sorts as they do, and the profile says so."""
    if kind != "date":
        return False
    at = [_name(column.name) for column in table.columns].index(_name(values.name))
    note = table.columns[at].note or ""
    return "date" in note and all(
        isinstance(value, str) and _ISO.fullmatch(value) for value in values.dropna()
    )


def _lines(name: str, profile: FileProfile, table: TableProfile) -> list[str]:
    """Returns the warnings that name a column, and its note."""
    lines = [*profile.warnings, *table.warnings, *profile.notes]
    notes = [column.note or "" for column in table.columns if column.name == name]
    return [line for line in lines if f"'{name}'" in line] + notes
