"""Rows: the token ids of one conversation, and which of them the model learns.

A file of rows has one JSON object per line:
`{"id": "q7 #1", "ids": [151644, …], "mask": [0, …, 1], "weight": 1.0}`. `mask` has one number for
each id: 1 if the model learns the token. The reader checks the ids against the model's vocabulary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dm_jupyter.core.errors import DmJupyterError
from training.durable.json_lines import numbered_lines, write_lines

__all__ = ["Row", "RowFile", "Rows", "TrainerError", "read_rows", "write_rows"]


class TrainerError(DmJupyterError):
    """The training can't start or continue; the message names the file or setting at fault."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One conversation as tokens."""

    id: str
    ids: NDArray[np.int64]
    """Token ids, shape (T,)."""
    mask: NDArray[np.bool_]
    """Which ids the model learns, shape (T,); never the first, which nothing predicts."""
    weight: float = 1.0
    """Relative weight of the row; above 0."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Values for a loss other than SFT, such as an advantage; SFT ignores them."""

    def __post_init__(self) -> None:
        if problem := _problem(self):
            raise TrainerError(f"row {self.id}: {problem}")

    @property
    def learned(self) -> NDArray[np.int64]:
        """Positions of the learned ids, shape (|y|,), ascending."""
        return np.flatnonzero(self.mask)


class Rows(Protocol):
    """Source of the rows that the trainer learns from.

    The trainer requests each row several times, in an order of its own, and again after a resume.
    So a number must give the same row for the lifetime of a training, restarts included.
    """

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def __getitem__(self, number: int, /) -> Row:
        """Return one row; 0 is the first."""
        ...


@dataclass(frozen=True, slots=True)
class RowFile:
    """Rows of a file that fit the token limit."""

    rows: tuple[Row, ...]
    too_long: tuple[str, ...] = ()
    """Ids of the rows that were left out; no row is truncated."""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int, /) -> Row:
        return self.rows[number]


def read_rows(
    files: Path | Sequence[Path], vocabulary: int, max_tokens: int | None = None
) -> RowFile:
    """Return the rows of a file, or of several one after the other.

    Args:
        files: JSON lines, as described in this module's docstring. Row ids are unique over all.
        vocabulary: token ids must be below it.
        max_tokens: rows with more tokens are left out; `None` takes all.

    Raises:
        TrainerError: a file can't be read, a line is not a row, or a file has no row left.
    """
    rows: list[Row] = []
    too_long: list[str] = []
    seen: dict[str, str] = {}
    for file in [files] if isinstance(files, Path) else files:
        before, left_out = len(rows), len(too_long)
        for number, line in _lines(file):
            row = _parsed(line, vocabulary, f"{file}, line {number}")
            if row.id in seen:
                raise TrainerError(f"{file}, line {number}: row {row.id} is in {seen[row.id]} too")
            seen[row.id] = f"line {number}" if isinstance(files, Path) else f"{file}:{number}"
            if max_tokens is not None and len(row.ids) > max_tokens:
                too_long.append(row.id)
            else:
                rows.append(row)
        if len(rows) == before:
            long = len(too_long) - left_out
            why = f"all {long} have more than {max_tokens} tokens" if long else "it is empty"
            raise TrainerError(f"{file} has no row to train on: {why}")
    return RowFile(tuple(rows), tuple(too_long))


def write_rows(rows: Sequence[Row], file: Path) -> None:
    """Write rows for `read_rows`.

    Raises:
        OSError: the file can't be written; an old one is then unchanged.
    """
    write_lines((_to_json(row) for row in rows), file)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        yield from numbered_lines(file)
    except (OSError, UnicodeDecodeError) as error:
        raise TrainerError(f"{file} can't be read: {error}") from error


def _to_json(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "ids": row.ids.tolist(),
        "mask": row.mask.astype(int).tolist(),
        "weight": row.weight,
        **({"extra": dict(row.extra)} if row.extra else {}),
    }


def _parsed(line: str, vocabulary: int, where: str) -> Row:
    raw = _fields(line, where)
    ids = _whole_numbers(raw["ids"], f"{where}: ids")
    if len(ids) and (ids.min() < 0 or ids.max() >= vocabulary):
        at = int(np.flatnonzero((ids < 0) | (ids >= vocabulary))[0])
        raise TrainerError(
            f"{where}: id {ids[at]} at position {at} is not in the model's vocabulary of "
            f"{vocabulary}; was the file made for another model?"
        )
    mask = _whole_numbers(raw["mask"], f"{where}: mask")
    if not np.isin(mask, (0, 1)).all():
        raise TrainerError(f"{where}: the mask may hold 0 and 1 only")
    weight, extra = raw.get("weight", 1.0), raw.get("extra", {})
    if isinstance(weight, bool) or not isinstance(weight, int | float):
        raise TrainerError(f"{where}: the weight {weight!r} is not a number")
    if not isinstance(extra, dict):
        raise TrainerError(f"{where}: extra is not a JSON object")
    try:
        return Row(str(raw["id"]), ids, mask.astype(np.bool_), float(weight), extra)
    except TrainerError as error:
        raise TrainerError(f"{where}: {error}") from error


def _fields(line: str, where: str) -> dict[str, Any]:
    try:
        raw = json.loads(line)
    except ValueError as error:
        raise TrainerError(f"{where}: not JSON: {error}") from error
    if not isinstance(raw, dict):
        raise TrainerError(f"{where}: not a JSON object")
    if unknown := raw.keys() - {"id", "ids", "mask", "weight", "extra"}:
        raise TrainerError(f"{where}: unknown field {min(unknown)!r}")
    for name in ("id", "ids", "mask"):
        if name not in raw:
            raise TrainerError(f"{where}: the field {name!r} is missing")
    return raw


def _whole_numbers(raw: object, what: str) -> NDArray[np.int64]:
    if not isinstance(raw, list) or not all(type(one) is int for one in raw):
        raise TrainerError(f"{what} must be a list of whole numbers")
    try:
        return np.array(raw, dtype=np.int64)
    except OverflowError as error:
        raise TrainerError(f"{what} hold a number that is too large") from error


def _problem(row: Row) -> str:
    if row.ids.ndim != 1 or len(row.ids) != len(row.mask):
        return f"{len(row.ids)} ids but a mask of {len(row.mask)}"
    if not row.mask.any():
        return "the mask has no 1, so there is nothing to learn"
    if row.mask[0]:
        return "the mask is 1 at the first id, which no token comes before"
    if not (np.isfinite(row.weight) and row.weight > 0):
        return f"the weight {row.weight} is not above 0"
    return ""
