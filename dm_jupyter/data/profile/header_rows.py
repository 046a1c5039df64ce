"""The header of a table in a grid: no row, one, or up to four, and a row of units below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from itertools import pairwise
from numbers import Real
from typing import Any

from dm_jupyter.data.profile.cell_words import (
    is_missing_word,
    is_type_word,
    is_unit,
    is_unit_mark,
)

__all__ = [
    "FigureText",
    "Fill",
    "Header",
    "filled",
    "find_header",
    "is_figure_cell",
    "is_header_like",
    "is_number",
    "is_text_cell",
    "spread_labels",
]

_SEARCHED_ROWS = 40
_LEVELS = 4
_BODY_ROWS = 30
_YEARS, _RECENT = (1000, 2999), (1850, 2100)
_LONG_NAME = 60
_LEVEL_MARK = " | "


class FigureText(str):
    """A text from a file without types that reads as a number or a date."""

    __slots__ = ()


@dataclass(frozen=True)
class Fill:
    """Merged cells that show the value of their first one; counted from 0, ends inclusive."""

    top: int
    left: int
    bottom: int
    right: int

    def moved(self, rows: int, columns: int) -> Fill:
        """Return the same cells, shifted by `rows` and `columns`."""
        return Fill(self.top + rows, self.left + columns, self.bottom + rows, self.right + columns)


@dataclass(frozen=True)
class Header:
    """Rows of a grid, counted from 0, that name its columns."""

    rows: tuple[int, ...] = (0,)
    """From the top level to the names; empty if the first row is data."""
    units_row: int | None = None
    """A row below that contains only the units of the columns."""
    units: tuple[str | None, ...] = ()
    """Units by column, if there is such a row."""
    names: tuple[str, ...] = ()
    """Names by column, if the header has several rows."""
    top: int = 0
    """The first row of the header; without one, the first of the data."""

    @property
    def is_deep(self) -> bool:
        """Whether it has several rows."""
        return len(self.rows) > 1

    @property
    def end(self) -> int:
        """The first row of data, which a blank row may precede."""
        if self.units_row is not None:
            return self.units_row + 1
        return self.rows[-1] + 1 if self.rows else self.top

    def moved(self, rows: int, names: Sequence[str] = ()) -> Header:
        """Return the same header, shifted by `rows` and with names."""
        units_row = None if self.units_row is None else self.units_row + rows
        moved = tuple(row + rows for row in self.rows)
        return replace(self, rows=moved, units_row=units_row, names=tuple(names),
                       top=self.top + rows)  # fmt: skip


def filled(row: Sequence[Any]) -> int:
    """Return the number of cells of a row that are not empty."""
    return sum(value is not None for value in row)


def is_text_cell(value: Any) -> bool:
    """Return whether a cell is a text that reads as nothing else."""
    return isinstance(value, str) and not isinstance(value, FigureText)


def is_number(value: Any) -> bool:
    """Return whether a cell is a number, or a text that reads as a number or a date."""
    return isinstance(value, FigureText) or (
        isinstance(value, Real) and not isinstance(value, bool)
    )


def is_figure_cell(value: Any) -> bool:
    """Return whether a cell is a number or a time."""
    return is_number(value) or isinstance(value, (date, time))


def find_header(rows: Sequence[Sequence[Any]], fills: Sequence[Fill] = ()) -> Header:
    """Return the header of the table in the rows, with or without titles above it.

    Args:
        rows: rows of one length, from the first title on.
        fills: merged cells, as far as they are known.
    """
    first = _first_row(rows)
    if _is_data(rows, first):
        return Header((), top=first)
    last = first
    while last - first < _LEVELS - 1 and _is_lower_level(rows, last + 1):
        last += 1
    header = list(range(first, last + 1))
    while len(header) < _LEVELS:
        upper = header[0] - 1
        if upper > 0 and not filled(rows[upper]):  # a blank row may be in between
            upper -= 1
            if rows[upper][0] is not None:
                break
        is_merged = len(header) == 1 and _is_merged_level(rows, upper, fills)
        if not (is_merged or _is_upper_level(rows, upper, last)):
            break
        header.insert(0, upper)
    units_row = None
    if len(header) > 1 and _is_units(rows, last, header[:-1], fills):
        units_row = header.pop()
    elif _is_units(rows, last + 1, header, fills):
        units_row = last + 1
    units: tuple[str | None, ...] = ()
    if units_row is not None and not all(is_type_word(str(c)) for c in rows[units_row] if c):
        cells = (None if c is None else str(c).strip() for c in rows[units_row])
        units = tuple(None if c is None or is_unit_mark(c) else c for c in cells)
    return Header(tuple(header), units_row, units, top=header[0])


def _is_merged_level(rows: Sequence[Sequence[Any]], index: int, fills: Sequence[Fill]) -> bool:
    """Return whether the row above heads a group by a merged cell, not a title over all."""
    if index < 0 or not all(_is_label(value) for value in rows[index] if value is not None):
        return False
    across = [fill for fill in fills if fill.top == index == fill.bottom and fill.right > fill.left]
    return bool(across) and all(fill.left > 0 for fill in across) and rows[index][0] is None


def is_header_like(row: Sequence[Any], body: Sequence[Sequence[Any]]) -> bool:
    """Return whether a row can head the rows below it: different short texts, side by side.

    Args:
        row: at least as long as those below.
        body: the rows below.
    """
    cells = [value for value in row if value is not None]
    places = [place for place, value in enumerate(row) if value is not None]
    if len(cells) < 2 or not any(map(is_text_cell, cells)):
        return False
    if not all(is_text_cell(cell) or _year(cell, _RECENT) for cell in cells):
        return False
    texts = [str(cell).strip() for cell in cells]
    missing = sum(text != "x" and is_missing_word(text) for text in texts)
    if 2 * missing >= len(cells) or any(len(t) > _LONG_NAME or t.endswith(":") for t in texts):
        return False
    if not body or any(_is_figure_below(body, place) for place in range(places[0])):
        return False
    has_figures = any(_is_figure_below(body, place) for place in places)
    return has_figures or (len(body) > 1 and len(set(texts)) == len(texts))


def spread_labels(
    rows: Sequence[Sequence[Any]],
    header: Header,
    fills: Sequence[Fill] = (),
    *,
    is_numbered: bool = True,
) -> tuple[str, ...]:
    """Return the names that a header of several rows gives the columns, levels joined.

    A label above a group appears once, over its first column. Merged cells show how far it reaches.
    Without any, it reaches to the next label.

    Args:
        rows: rows of the table.
        header: the header, counted in these rows.
        fills: merged cells, as far as they are known.
        is_numbered: whether repeated names get a number, and missing ones a generated name.
    """
    width = max(map(len, rows), default=0)
    levels: list[list[str]] = []
    begun = [False] * width
    for level, at in enumerate(header.rows):
        labels = [_label_text(value) for value in rows[at]]
        is_last = level == len(header.rows) - 1
        across = [fill for fill in fills if fill.top == at and fill.right > fill.left]
        if across:
            for fill in across:
                for place in range(max(0, fill.left), min(width, fill.right + 1)):
                    labels[place] = labels[fill.left] if 0 <= fill.left < width else ""
        elif not is_last:
            labels = _to_the_next(labels, begun)
        begun = [was or bool(label) for was, label in zip(begun, labels, strict=True)]
        levels.append(labels)
    if not is_numbered:
        return tuple(_LEVEL_MARK.join(filter(None, parts)) for parts in zip(*levels, strict=True))
    return _unique(
        _LEVEL_MARK.join(filter(None, parts)) or f"column_{place}"
        for place, parts in enumerate(zip(*levels, strict=True), start=1)
    )


def _to_the_next(labels: list[str], begun: Sequence[bool]) -> list[str]:
    """Return the labels with gaps filled from the left, up to where a level above begins again."""
    last = ""
    spread = []
    for place, label in enumerate(labels):
        if label or (begun[place] and not (place and begun[place - 1])):
            last = label
        spread.append(last)
    return spread


def _unique(names: Any) -> tuple[str, ...]:
    taken: dict[str, int] = {}
    found = []
    for name in names:
        count = taken.get(name, 0)
        taken[name] = count + 1
        found.append(f"{name}.{count}" if count else name)
    return tuple(found)


def _label_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).split())


def _year(value: Any, within: tuple[int, int] = _YEARS) -> bool:
    if isinstance(value, FigureText):
        value = int(value) if value.strip().isdecimal() and len(value.strip()) == 4 else 0
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and within[0] <= value <= within[1]


def _is_label(value: Any) -> bool:
    """Return whether a cell can head a column: text, or a whole number such as a year."""
    return is_text_cell(value) or _year(value)


def _first_row(rows: Sequence[Sequence[Any]]) -> int:
    """Return the first row that is about as wide as the table."""
    # Cells count, not rows, so that a table outweighs the remarks above it.
    widths = sorted(width for width in map(filled, rows) for _ in range(width) if width > 1)
    if not widths:
        return next((index for index, row in enumerate(rows) if filled(row)), 0)
    usual = widths[len(widths) // 2]
    for index, row in enumerate(rows[:_SEARCHED_ROWS]):
        is_wide = filled(row) >= max(2, 0.5 * usual) or _lacks_first(row, usual)
        if is_wide and not _is_remark(rows, index, usual):
            return index - 1 if _is_headed_data(rows, index) else index
    return 0


def _lacks_first(row: Sequence[Any], usual: int) -> bool:
    """Return whether a row names all columns but the first, as above an index."""
    return len(row) == usual and row[0] is None and all(map(is_text_cell, row[1:]))


def _is_remark(rows: Sequence[Sequence[Any]], index: int, usual: int) -> bool:
    """Return whether a row is a label and its value, or a gapped title, above a wider header."""
    width = filled(rows[index])
    if width >= usual:
        return False
    below = list(rows[index : index + _SEARCHED_ROWS])
    blank = next((at for at, row in enumerate(below) if not filled(row)), len(below))
    is_half = 2 * width <= usual and usual >= 4
    if not is_half and any(filled(row) >= usual for row in below[:blank]):
        return False
    table = [row for row in below[1 if is_half else blank :] if filled(row) >= usual]
    return bool(table) and is_header_like(table[0], table[1:])


def _is_headed_data(rows: Sequence[Sequence[Any]], index: int) -> bool:
    """Return whether a row already contains figures, each below a text that can name it."""
    figures = [p for p, value in enumerate(rows[index]) if is_number(value)]
    if index == 0 or not figures or all(_is_label(v) for v in rows[index] if v is not None):
        return False
    named = [p for p, value in enumerate(rows[index - 1]) if value is not None]
    return named == figures and all(is_text_cell(rows[index - 1][p]) for p in named)


def _is_data(rows: Sequence[Sequence[Any]], first: int) -> bool:
    """Return whether the row in the header's position is data.

    It is data if it contains only numbers that are not a run such as years. It is also data if a
    number or date that can't be a name is above a column of them.
    """
    row = rows[first] if first < len(rows) else []
    cells = [value for value in row if value is not None]
    figures = [value for value in cells if is_figure_cell(value)]
    body = [line for line in rows[first + 1 :] if filled(line)][:_BODY_ROWS]
    if not figures:
        return len(cells) == len(row) and _comes_again(row, body)
    if len(cells) < len(row):
        return False
    if len(cells) == len(figures):
        if len(cells) == 1:
            return bool(body) and all(is_figure_cell(value) for line in body for value in line)
        return not _is_run(figures)
    if _is_run(figures) or not any(is_text_cell(value) for value in cells):
        return False
    is_above = all(
        _is_figure_below(body, place) for place, value in enumerate(row) if is_figure_cell(value)
    )
    return is_above and len(body) > 1 and not any(_year(value) for value in figures)


def _comes_again(row: Sequence[Any], body: Sequence[Sequence[Any]]) -> bool:
    """Return whether most texts of a row appear again in their columns, so that it is data.

    A repetition of the entire row is a header of concatenated files.
    """
    others = [line for line in body if list(line) != list(row)]
    again = [place for place, cell in enumerate(row) if any(line[place] == cell for line in others)]
    return len(again) >= 2 and 2 * len(again) > len(row)


def _is_run(figures: Sequence[Any]) -> bool:
    """Return whether numbers follow each other as years and numbered columns do."""
    try:
        numbers = [int(value) for value in figures]
        if any(float(value) != number for value, number in zip(figures, numbers, strict=True)):
            return False
    except (TypeError, ValueError, OverflowError):
        return False
    return all(after - before == 1 for before, after in pairwise(numbers)) and len(numbers) > 1


def _is_lower_level(rows: Sequence[Sequence[Any]], index: int) -> bool:
    """Return whether a row continues the header: labels only, above columns of numbers."""
    if index >= len(rows):
        return False
    row, body = rows[index], [line for line in rows[index + 1 :][:_BODY_ROWS] if filled(line) > 1]
    labelled = [position for position, value in enumerate(row) if value is not None]
    if len(labelled) < 2 or not body or not all(_is_label(row[p]) for p in labelled):
        return False
    if all(is_text_cell(row[p]) and is_missing_word(row[p]) for p in labelled):
        return False  # missing data
    if not all(is_text_cell(row[p]) for p in labelled):
        # Years are also figures: a header if they are below groups, and row labels begin left.
        return labelled[0] > 0 and any(rows[index - 1][p] is None for p in labelled)
    if _is_repeated(rows, index) or _continues_below(rows[index - 1], row, body):
        return False
    numeric = sum(1 for position in labelled if _is_figure_below(body, position))
    return numeric >= 0.5 * len(labelled) or _names_row_labels(rows[index - 1], labelled, body)


def _continues_below(
    above: Sequence[Any], row: Sequence[Any], body: Sequence[Sequence[Any]]
) -> bool:
    """Return whether a row of texts, below names of all columns, is data nevertheless.

    It is data if a text with more digits than letters is above figures, such as "<0.05". It is also
    data if a code or word looks like those below it, as "P01" above "P02".
    """
    if None in above or len(set(map(str, above))) < len(above):
        return False
    for place, value in enumerate(row):
        if value is None:
            continue
        text = str(value)
        if _is_figure_below(body, place):
            if sum(map(str.isdecimal, text)) > sum(map(str.isalpha, text)):
                return True
            continue
        below = [_shape(str(line[place])) for line in body if line[place] is not None]
        if 2 * below.count(_shape(text)) > len(below):
            return True
    return False


def _shape(text: str) -> str:
    """Return a text with every letter replaced by "a" and every digit by "0"."""
    return "".join("a" if c.isalpha() else "0" if c.isdecimal() else c for c in text.strip())


def _is_repeated(rows: Sequence[Sequence[Any]], index: int) -> bool:
    """Return whether a row is the same as the one above it, as in concatenated files."""
    return list(rows[index]) == list(rows[index - 1])


def _names_row_labels(
    above: Sequence[Any], labelled: list[int], body: Sequence[Sequence[Any]]
) -> bool:
    """Return whether a row names the label columns at the left, under one title for all of them.

    Such as `Area | Measure` below `Time period | | 2014 | 2015`.
    """
    headed = [place for place, value in enumerate(above) if value is not None]
    figures = [place for place in headed if place not in labelled]
    names = [place for place in labelled if place < max(figures, default=0)]
    titles = {above[place] for place in names} - {None}
    is_one_title = len(names) >= 2 and len(titles) == 1 and names == labelled[: len(names)]
    numeric = sum(1 for place in figures if _is_figure_below(body, place))
    return is_one_title and len(figures) >= 2 and numeric >= 0.8 * len(figures)


def _is_figure_below(body: Sequence[Sequence[Any]], position: int) -> bool:
    values = [line[position] for line in body if line[position] is not None]
    return bool(values) and sum(map(is_number, values)) >= 0.6 * len(values)


def _is_units(
    rows: Sequence[Sequence[Any]], index: int, header: Sequence[int], fills: Sequence[Fill]
) -> bool:
    """Return whether a row contains only the units of the columns of figures below it.

    Each column must have its own name above; otherwise the unit is part of the name.
    """
    if index >= len(rows):
        return False
    row = rows[index]
    names = spread_labels(rows, Header(tuple(header)), fills, is_numbered=False)
    body = [line for line in rows[index + 1 :][:_BODY_ROWS] if filled(line) > 1]
    labelled = [place for place, value in enumerate(row) if value is not None]
    figures = [place for place in labelled if _is_figure_below(body, place)]
    named = [names[place] for place in labelled]
    if not figures or "" in named or len(set(named)) < len(named):
        return False
    cells = [str(row[place]) for place in labelled]
    measured = sum(is_unit(str(row[place])) for place in figures)
    if all(is_type_word(cell) for cell in cells):
        return True
    is_text_row = all(isinstance(row[place], str) for place in labelled)
    is_all = all(is_unit(cell) or is_unit_mark(cell) for cell in cells)
    return is_text_row and is_all and measured >= len(figures) / 2


def _is_upper_level(rows: Sequence[Sequence[Any]], index: int, last: int) -> bool:
    """Return whether the row above heads groups of columns: labels over all of them, with gaps."""
    if index < 0:
        return False
    row = rows[index]
    labelled = [place for place, value in enumerate(row) if value is not None]
    below = rows[index + 1 : last + 1]
    if len(labelled) < 2 or not all(_is_label(row[place]) for place in labelled):
        return False
    if labelled[0] == 0 and index < last and all(line[0] is None for line in below):
        return filled(row) < len(row)  # it also names the first column
    end = max(place for line in below for place, value in enumerate(line) if value is not None)
    width = max(filled(line) for line in below)
    return labelled[-1] >= end / 2 and filled(row) < max(width, len(row))
