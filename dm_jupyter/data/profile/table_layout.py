"""Positions of the tables in a grid: the one model of layout, for delimited text and sheets.

A grid is a list of rows; an empty cell is `None`, any other a text, a number or a time. Text files
provide their cells in this form, too: see `figure_cells`. Only this model separates the rows of a
table from the rest of a grid: titles, headers of up to four rows, a row of units, blank rows and
columns between tables, notes below.

Rows that are sums of others stay in the table: their figures are the file's own, a person may ask
for them, and often only the label shows that a row is a sum. A warning names them instead
(`suspicion.py`), for sheets and text alike.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from typing import Any, TypeAlias

import pandas as pd

from dm_jupyter.data.profile.footers import end_of_data, is_note_text
from dm_jupyter.data.profile.header_rows import (
    Fill,
    Header,
    filled,
    find_header,
    is_header_like,
    is_number,
    is_text_cell,
    spread_labels,
)

__all__ = ["Grid", "SheetBlock", "breaks_warning", "find_blocks", "grid_of_values", "text_breaks"]

Grid: TypeAlias = Sequence[Sequence[Any]]
_FOOTER_ROWS = 200
_BODY_ROWS = 30
_TITLE_ROWS = 8
_TITLES = 4
_MOST_BLOCKS = 30
_MOST_GROUPS = 2_000
_LEAST_ALIKE, _ALIKE = 5, 0.8
"""Fewest rows, and least share of them, for which labels to the right belong to the rows."""
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_MOST_BREAKS = 5


@dataclass(frozen=True)
class SheetBlock:
    """One table of a grid: rows and columns count from 0, ends are exclusive."""

    top: int = 0
    """The first row that may contain a part of it, a title for example."""
    bottom: int | None = None
    """The row after its last; `None` if nothing is below it."""
    left: int = 0
    right: int | None = None
    """The column after its last; `None` if nothing is beside it."""
    header: Header = field(default_factory=Header)
    titles: tuple[str, ...] = ()
    """Texts above the header."""

    @property
    def first_row(self) -> int:
        """The first row of data."""
        return self.header.end

    @property
    def is_part(self) -> bool:
        """Whether the grid has something else below or beside it."""
        return self.bottom is not None or self.right is not None or self.left > 0


def grid_of_values(values: Any) -> list[list[Any]]:
    """Return the rows of a two-dimensional array, with empty and blank cells as `None`."""
    return [[_cell(value) for value in row] for row in values]


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.strip() else None
    return None if value is None or pd.isna(value) else value


def find_blocks(
    grid: Grid, fills: Sequence[Fill] = (), *, is_whole: bool = True
) -> tuple[SheetBlock, ...]:
    """Return the tables of a grid, in reading order; one if nothing shows several.

    Args:
        grid: all rows of it, or the first ones.
        fills: merged cells, if the format declares them.
        is_whole: whether the grid contains all rows.
    """
    found: list[SheetBlock] = []
    for area in _areas(grid):
        block = _block(grid, area, fills)
        is_open = not is_whole and area.bottom == len(grid)
        found.append(replace(block, bottom=None) if is_open else block)
        if len(found) == _MOST_BLOCKS:
            break
    return tuple(found) or (SheetBlock(),)


@dataclass(frozen=True)
class _Area:
    """A rectangle with one table and what belongs to it."""

    top: int
    bottom: int
    left: int
    right: int

    def rows(self, grid: Grid) -> list[list[Any]]:
        """Return the cells, in rows of one length."""
        return [_padded(row[self.left : self.right], self) for row in grid[self.top : self.bottom]]


def _padded(row: Sequence[Any], area: _Area) -> list[Any]:
    return [*row, *([None] * (area.right - area.left - len(row)))]


def _areas(grid: Grid) -> list[_Area]:
    """Return the rectangles: cut at blank columns, then between rows, then once more."""
    width = max(map(len, grid), default=0)
    whole = _Area(0, len(grid), 0, width)
    return [
        piece
        for column in _side_by_side(grid, whole)
        for part in _stacked(grid, column)
        for piece in _side_by_side(grid, part)
    ]


def _block(grid: Grid, area: _Area, fills: Sequence[Fill]) -> SheetBlock:
    rows = area.rows(grid)
    inside = [fill.moved(-area.top, -area.left) for fill in fills]
    header = find_header(rows, inside)
    titles = [value for row in rows[: header.top] for value in row if value is not None]
    width = max(map(len, grid), default=0)
    is_beside = area.left > 0 or area.right < width
    is_last = area.bottom == len(grid)
    bottom = None if is_last else area.bottom
    if is_beside or not is_last:
        bottom = area.top + header.end + end_of_data(rows[header.end :])
    names = spread_labels(rows, header, inside) if header.is_deep else ()
    return SheetBlock(
        area.top,
        bottom,
        area.left,
        area.right if is_beside else None,
        header.moved(area.top, names),
        tuple(str(title) for title in titles)[:_TITLES],
    )


def _stacked(grid: Grid, area: _Area) -> list[_Area]:
    """Return the tables one below the other, each with the titles above it."""
    rows = area.rows(grid)
    cuts = [0]
    has_table = False
    names: list[Any] = []
    is_table = False
    for start, end in _groups(rows)[:_MOST_GROUPS]:
        first = next((at for at in range(start, end) if filled(rows[at]) > 1), None)
        if first is None:
            continue
        body = [row for row in rows[first + 1 : end] if filled(row) > 1][:_BODY_ROWS]
        headed = is_header_like(rows[first], body)
        if headed and has_table and _is_new(rows, cuts[-1], first, end, names):
            cuts.append(_first_title(rows, cuts[-1], first))
            is_table = False
            names = rows[first]
        elif headed and not has_table:
            names = rows[first]
        has_table = has_table or headed or len(body) > 1
        is_table = is_table or _is_table_so_far(rows[cuts[-1] : min(end, cuts[-1] + _FOOTER_ROWS)])
        has_table = has_table and is_table
    cuts.append(len(rows))
    return [
        _Area(area.top + top, area.top + bottom, area.left, area.right)
        for top, bottom in itertools.pairwise(cuts)
    ]


def _is_table_so_far(rows: list[list[Any]]) -> bool:
    """Return whether rows are more than remarks: two or more that are not label and value."""
    wide = [row for row in rows if filled(row) > 1]
    values = [row[1] for row in wide[1:] if len(row) > 1]
    if all(filled(row) == 2 for row in wide) and len({_kind(value) for value in values}) > 1:
        return False
    return len(wide) > 1 and (
        any(filled(row) > 2 for row in wide) or is_header_like(wide[0], wide[1:])
    )


def _kind(value: Any) -> str:
    return (
        "text" if is_text_cell(value) else "time" if isinstance(value, (date, time)) else "number"
    )


def _groups(rows: list[list[Any]]) -> list[tuple[int, int]]:
    """Return start and end of the runs of rows between blank rows and lone texts."""
    found: list[tuple[int, int]] = []
    start: int | None = None
    for at, row in enumerate(rows):
        is_break = not filled(row) or (filled(row) == 1 and _is_lone_text(row))
        if is_break and start is not None:
            found.append((start, at))
        if is_break:
            start = None
        elif start is None:
            start = at
    return [*found, (start, len(rows))] if start is not None else found


def _is_lone_text(row: list[Any]) -> bool:
    return isinstance(next(value for value in row if value is not None), str)


def _is_new(rows: list[list[Any]], top: int, first: int, end: int, names: list[Any]) -> bool:
    """Return whether a row that could be a header begins another table than the one above it.

    Pages of a printed table repeat its header: the same names without a title do not begin one.
    """
    has_title = (first > 0 and filled(rows[first - 1]) == 1) or _has_title(rows, first)
    if _texts(rows[first]) == _texts(names):
        return has_title
    above = [row for row in rows[max(top, first - _BODY_ROWS) : first] if filled(row) > 1]
    body = [row for row in rows[first + 1 : end] if filled(row) > 1]
    places = [place for place, value in enumerate(rows[first]) if value is not None]
    if any(_is_figure_column(body, place) for place in places):
        return True
    # Only texts: another width, and separate from the rows above.
    spans = {_span(row) for row in above[-5:]}
    return len(body) > 1 and _span(rows[first]) not in spans


def _has_title(rows: list[list[Any]], first: int) -> bool:
    above = rows[first - 1] if first else []
    return bool(first > 1 and not filled(above) and filled(rows[first - 2]) == 1)


def _texts(row: Sequence[Any]) -> list[str]:
    return [str(value).strip() for value in row if value is not None]


def _span(row: Sequence[Any]) -> tuple[int, int]:
    places = [place for place, value in enumerate(row) if value is not None]
    return (places[0], places[-1]) if places else (0, 0)


def _is_figure_column(body: list[list[Any]], place: int) -> bool:
    values = [row[place] for row in body if row[place] is not None]
    return bool(values) and sum(map(_is_figure, values)) >= 0.6 * len(values)


def _is_figure(value: Any) -> bool:
    return is_number(value) or isinstance(value, (date, time))


def _first_title(rows: list[list[Any]], top: int, first: int) -> int:
    """Return the row where the titles of a table begin, those above a blank row included."""
    at, start, blanks = first, first, 0
    while at - 1 > top and first - at < _TITLE_ROWS:
        row = rows[at - 1]
        if filled(row) > 1:
            break
        blanks += not filled(row)
        if filled(row):
            if blanks > 1 or is_note_text(str(next(v for v in row if v is not None))):
                break
            start = at - 1
        at -= 1
    return start


def _side_by_side(grid: Grid, area: _Area) -> list[_Area]:
    """Return the tables that are side by side with blank columns between them.

    A blank column inside one table only separates its groups of columns. A table of its own has
    names above all its columns and, in its first column, labels or dates of its own.
    """
    rows = area.rows(grid)
    pieces = _column_runs(rows, area.right - area.left)
    if len(pieces) < 2:
        return [area]
    if not all(
        _is_own_table(rows, left, right, place) for place, (left, right) in enumerate(pieces)
    ):
        return [area]
    if all(_are_one(rows, left, right) for left, right in pieces[1:]):
        return [area]
    return [
        _Area(area.top, area.bottom, area.left + left, area.left + right) for left, right in pieces
    ]


def _column_runs(rows: list[list[Any]], width: int) -> list[tuple[int, int]]:
    used = [any(row[place] is not None for row in rows) for place in range(width)]
    runs: list[tuple[int, int]] = []
    for place, is_used in enumerate(used):
        if is_used and place and used[place - 1]:
            runs[-1] = (runs[-1][0], place + 1)
        elif is_used:
            runs.append((place, place + 1))
    return runs


def _is_own_table(rows: list[list[Any]], left: int, right: int, place: int) -> bool:
    """Return whether a run of columns can be read by itself."""
    piece = [row[left:right] for row in rows]
    header = find_header(piece)
    names = piece[header.rows[-1]] if header.rows else []
    body = [row for row in piece[header.end :] if filled(row)]
    if right - left < 2 or not body or filled(names) < right - left:
        return False
    if not all(isinstance(name, str) for name in names):
        return False
    firsts = [row[0] for row in body if row[0] is not None]
    if place == 0:
        return bool(firsts)
    is_label = all(isinstance(value, (str, date)) for value in firsts)
    is_key = len(set(map(str, firsts))) == len(firsts)
    has_figures = any(_is_figure_column(body, at) for at in range(right - left))
    return (
        bool(firsts)
        and is_key
        and (is_label or str(names[0]) in _first_names(rows, left))
        and (has_figures or len(body) > 1)
    )


def _are_one(rows: list[list[Any]], left: int, right: int) -> bool:
    """Return whether the labels of a run of columns describe the rows to their left.

    They share words with nearly each text of their own row, and not with those of other rows.
    """
    header = find_header([row[left:right] for row in rows])
    names = rows[header.rows[-1]] if header.rows else []
    body = [row for row in rows[header.end :] if filled(row)]
    if len(body) < _LEAST_ALIKE or str(names[left]) in _first_names(rows, left):
        return False
    labels = [_long_words([row[left]]) for row in body]
    others = [_long_words(row[:left]) for row in body]
    half = len(body) // 2
    alike = sum(bool(one & two) for one, two in zip(labels, others, strict=True))
    moved = others[half:] + others[:half]
    by_chance = sum(bool(one & two) for one, two in zip(labels, moved, strict=True))
    return alike >= _ALIKE * len(body) and by_chance <= alike / 2


def _long_words(cells: Sequence[Any]) -> set[str]:
    texts = [cell.casefold() for cell in cells if is_text_cell(cell)]
    return {word for text in texts for word in _LONG_WORD.findall(text)}


def _first_names(rows: list[list[Any]], left: int) -> set[str]:
    """Return the texts to the left of a column, including the names of its neighbours."""
    return {str(value) for row in rows[:_BODY_ROWS] for value in row[:left] if value is not None}


def text_breaks(grid: Grid, block: SheetBlock) -> list[int]:
    """Return rows below blank ones that may be the header of another table of texts.

    Among figures a header is visible. Among texts alone, nothing distinguishes it from a row of
    data. Such a row is as wide as the header, and none of its texts appears again in its column.

    Args:
        grid: all rows of it, or the first ones.
        block: a table of the grid.
    """
    rows = [list(row[block.left : block.right]) for row in grid[: block.bottom]]
    body = range(block.first_row, len(rows))
    names = rows[block.header.rows[-1]] if block.header.rows else []
    columns = [Counter(one) for one in itertools.zip_longest(*(rows[at] for at in body))]
    if not names or any(_is_figure(value) for column in columns for value in column):
        return []
    found = [
        at
        for at in body[1:]
        if not filled(rows[at - 1]) and filled(rows[at]) == filled(names) > 1
        if all(value is None or columns[place][value] == 1 for place, value in enumerate(rows[at]))
    ]
    return found if len(found) <= _MOST_BREAKS else []


def breaks_warning(breaks: Sequence[int]) -> list[str]:
    """Return the warning about rows that `text_breaks` found, counted from 0."""
    if not breaks:
        return []
    shown = ", ".join(str(row + 1) for row in breaks)
    return [
        f"blank rows part the rows, and row {shown} of the file may be the header of another table "
        "of texts: all are loaded as one; look, and split them if so"
    ]
