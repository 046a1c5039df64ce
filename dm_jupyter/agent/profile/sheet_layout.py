"""Where the table begins in a sheet: titles above, headers of several rows, notes below."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import pandas as pd

__all__ = ["SEARCHED_ROWS", "SheetLayout", "find_footer", "find_sheet_layout"]

SEARCHED_ROWS = 70
_HEADER_ROWS = 40
_FOOTER_ROWS = 200
_LEVELS = 3
_BODY_ROWS = 30


@dataclass(frozen=True)
class SheetLayout:
    """What `read_excel` has to be told."""

    header: tuple[int, ...] = (0,)
    """Row numbers of the header, from 0; several where it has levels."""
    titles: tuple[str, ...] = ()
    """Texts above the header."""


def find_sheet_layout(grid: pd.DataFrame) -> SheetLayout:
    """Returns where the header stands, from a sheet's first `SEARCHED_ROWS` rows as they are."""
    rows = [[_cell(value) for value in row] for row in grid.to_numpy()]
    first = _first_header_row(rows)
    last = first
    while last - first < _LEVELS - 1 and _is_lower_level(rows, last + 1):
        last += 1
    while last - first < _LEVELS - 1 and _is_upper_level(rows, first - 1, last):
        first -= 1
    titles = [value for row in rows[:first] for value in row]
    return SheetLayout(
        tuple(range(first, last + 1)),
        tuple(str(title) for title in titles if title is not None)[:4],
    )


def find_footer(frame: pd.DataFrame) -> tuple[int, str]:
    """Returns how many rows the notes below a table take, and the first of them.

    A note is a lone text; blank rows between notes count, those above the first do not.
    """
    if frame.shape[1] < 3:
        return 0, ""
    found, first = 0, ""
    tail = frame.iloc[max(1, len(frame) - _FOOTER_ROWS) :].to_numpy(dtype=object)
    for count, row in enumerate(reversed(tail), start=1):
        cells = [value for value in map(_cell, row) if value is not None]
        if len(cells) > 1 or (cells and not isinstance(cells[0], str)):
            break
        if cells:
            found, first = count, cells[0]
    return found, first


def _cell(value: Any) -> Any:
    """Returns the value; None for an empty cell, and for one that holds only blanks."""
    if isinstance(value, str):
        return value if value.strip() else None
    return None if value is None or pd.isna(value) else value


def _filled(row: list[Any]) -> int:
    return sum(value is not None for value in row)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_label(value: Any) -> bool:
    """Says whether a cell can head a column: text, or a whole number such as a year."""
    return isinstance(value, str) or (_is_number(value) and 1000 <= value <= 2999)


def _first_header_row(rows: list[list[Any]]) -> int:
    """Returns the first row that is about as wide as the table."""
    widths = sorted(width for width in map(_filled, rows) if width > 1)
    if not widths:
        return next((index for index, row in enumerate(rows) if _filled(row)), 0)
    usual = widths[len(widths) // 2]
    for index, row in enumerate(rows[:_HEADER_ROWS]):
        if _filled(row) >= max(2, 0.5 * usual):
            return index
    return 0


def _is_lower_level(rows: list[list[Any]], index: int) -> bool:
    """Says whether a row continues the header: labels only, above columns of numbers."""
    if index >= len(rows):
        return False
    row, body = rows[index], [line for line in rows[index + 1 :][:_BODY_ROWS] if _filled(line) > 1]
    labelled = [position for position, value in enumerate(row) if value is not None]
    if len(labelled) < 2 or not body or not all(isinstance(row[p], str) for p in labelled):
        return False
    numeric = sum(1 for position in labelled if _is_numeric_below(body, position))
    return numeric >= 0.5 * len(labelled)


def _is_numeric_below(body: list[list[Any]], position: int) -> bool:
    values = [line[position] for line in body if line[position] is not None]
    return bool(values) and sum(map(_is_number, values)) >= 0.6 * len(values)


def _is_upper_level(rows: list[list[Any]], index: int, last: int) -> bool:
    """Says whether the row above heads groups of columns: several labels, with gaps between."""
    if index < 0:
        return False
    row = rows[index]
    labels = [value for value in row if value is not None]
    below = rows[index + 1 : last + 1]
    is_grouping = len(labels) >= 2 and all(map(_is_label, labels))
    width = max(_filled(line) for line in below)
    return is_grouping and _filled(row) < max(width, len(row))
