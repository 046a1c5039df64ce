"""Where the table begins in a sheet: titles above, headers of several rows, notes below."""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Real
from typing import Any

import pandas as pd

__all__ = ["SEARCHED_ROWS", "SheetLayout", "find_footer", "find_sheet_layout"]

_NOTE = re.compile(r"\s*(©|(foot)?notes?\b|sources?\b)", re.IGNORECASE)
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
    header = list(range(first, last + 1))
    while len(header) < _LEVELS:
        upper = header[0] - 1
        upper -= upper > 0 and not _filled(rows[upper])  # a blank row may stand between
        if not _is_upper_level(rows, upper, last):
            break
        header.insert(0, upper)
    first = header[0]
    titles = [value for row in rows[:first] for value in row]
    return SheetLayout(
        tuple(header),
        tuple(str(title) for title in titles if title is not None)[:4],
    )


def find_footer(frame: pd.DataFrame) -> tuple[int, str]:
    """Returns how many rows the notes below a table take, and the first of them.

    A note is a lone text, or says that it is one; blank rows between notes count, those above the
    first do not.
    """
    if frame.shape[1] < 3:
        return 0, ""
    found, first = 0, ""
    tail = frame.iloc[max(1, len(frame) - _FOOTER_ROWS) :].to_numpy(dtype=object)
    for count, row in enumerate(reversed(tail), start=1):
        cells = [value for value in map(_cell, row) if value is not None]
        if cells and not _is_note(cells):
            break
        if cells:
            found, first = count, cells[0]
    return found, first


def _is_note(cells: list[Any]) -> bool:
    if not all(isinstance(cell, str) for cell in cells):
        return False
    return len(cells) == 1 or _NOTE.match(cells[0]) is not None


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
    # Every cell has a voice, not every row: a table counts for more than the remarks above it.
    widths = sorted(width for width in map(_filled, rows) for _ in range(width) if width > 1)
    if not widths:
        return next((index for index, row in enumerate(rows) if _filled(row)), 0)
    usual = widths[len(widths) // 2]
    for index, row in enumerate(rows[:_HEADER_ROWS]):
        if _filled(row) >= max(2, 0.5 * usual):
            return index - 1 if _is_headed_data(rows, index) else index
    return 0


def _is_headed_data(rows: list[list[Any]], index: int) -> bool:
    """Says whether a row holds figures already, each below a text that can name it."""
    figures = [p for p, value in enumerate(rows[index]) if _is_number(value)]
    if index == 0 or not figures or all(map(_is_label, filter(None, rows[index]))):
        return False
    named = [p for p, value in enumerate(rows[index - 1]) if value is not None]
    return named == figures and all(isinstance(rows[index - 1][p], str) for p in named)


def _is_lower_level(rows: list[list[Any]], index: int) -> bool:
    """Says whether a row continues the header: labels only, above columns of numbers."""
    if index >= len(rows):
        return False
    row, body = rows[index], [line for line in rows[index + 1 :][:_BODY_ROWS] if _filled(line) > 1]
    labelled = [position for position, value in enumerate(row) if value is not None]
    if len(labelled) < 2 or not body or not all(_is_label(row[p]) for p in labelled):
        return False
    if not all(isinstance(row[p], str) for p in labelled):
        # Years are also figures: a header where they stand below groups, and row labels begin left.
        return labelled[0] > 0 and any(rows[index - 1][p] is None for p in labelled)
    numeric = sum(1 for position in labelled if _is_numeric_below(body, position))
    return numeric >= 0.5 * len(labelled) or _names_row_labels(rows[index - 1], labelled, body)


def _names_row_labels(above: list[Any], labelled: list[int], body: list[list[Any]]) -> bool:
    """Says whether a row names the label columns at the left, under one title for all of them.

    Such as `Area | Measure` below `Time period | | 2014 | 2015`.
    """
    headed = [place for place, value in enumerate(above) if value is not None]
    figures = [place for place in headed if place not in labelled]
    names = [place for place in labelled if place < max(figures, default=0)]
    titles = {above[place] for place in names} - {None}
    is_one_title = len(names) >= 2 and len(titles) == 1 and names == labelled[: len(names)]
    numeric = sum(1 for place in figures if _is_numeric_below(body, place))
    return is_one_title and len(figures) >= 2 and numeric >= 0.8 * len(figures)


def _is_numeric_below(body: list[list[Any]], position: int) -> bool:
    values = [line[position] for line in body if line[position] is not None]
    return bool(values) and sum(map(_is_number, values)) >= 0.6 * len(values)


def _is_upper_level(rows: list[list[Any]], index: int, last: int) -> bool:
    """Says whether the row above heads groups of columns: labels over all of them, with gaps."""
    if index < 0:
        return False
    row = rows[index]
    labelled = [place for place, value in enumerate(row) if value is not None]
    below = rows[index + 1 : last + 1]
    if len(labelled) < 2 or not all(_is_label(row[place]) for place in labelled):
        return False
    end = max(place for line in below for place, value in enumerate(line) if value is not None)
    width = max(_filled(line) for line in below)
    return labelled[-1] >= end / 2 and _filled(row) < max(width, len(row))
