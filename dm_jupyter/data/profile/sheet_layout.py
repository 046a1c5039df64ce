"""Arguments of `read_excel` for a sheet, from the one model of layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.footers import end_of_data, find_footer
from dm_jupyter.data.profile.frame_steps import JOIN_HEADER_LEVELS
from dm_jupyter.data.profile.header_rows import Fill, filled
from dm_jupyter.data.profile.read_call import ReadCall
from dm_jupyter.data.profile.table_layout import (
    SheetBlock,
    find_blocks,
    grid_of_values,
    text_breaks,
)
from dm_jupyter.data.profile.workbook_scan import Merge

__all__ = ["SEARCHED_ROWS", "SheetPart", "column_letters", "find_sheet_layout"]

SEARCHED_ROWS = 70
_MOST_REPEATS = 100


@dataclass(frozen=True)
class SheetPart:
    """One table of a sheet."""

    block: SheetBlock
    width: int
    """Columns of the sheet."""
    labels: tuple[str, ...] = ()
    """Labels in the last row of the header, by column of the table."""
    is_named_before: bool = False
    """Whether a column to the left has one of these names: pandas would number them on."""
    repeats: tuple[int, ...] = ()
    """Rows, counted from 0, that repeat the header."""
    blanks: tuple[int, ...] = ()
    """Rows, counted from 0, that are blank between rows of data."""
    last_row: int = 0
    """The last row of the table, counted from 0."""
    row_count: int | None = None
    """Rows of data without blanks and repeated headers; `None` if not all rows were seen."""
    repeated_names: tuple[str, ...] = ()
    """Names that several columns have."""
    breaks: tuple[int, ...] = ()
    """Rows that may begin another table of texts."""

    @property
    def above(self) -> int:
        """Rows of the sheet above the first one of data."""
        return self.block.first_row

    @property
    def range(self) -> str:
        """The cells of the table in a spreadsheet program's notation, including its header."""
        used = [at for at, name in enumerate(self.labels) if not name.startswith("Unnamed:")]
        left, right = (used[0], used[-1]) if used else (0, len(self.labels) - 1)
        letters = [column_letters(self.block.left + place) for place in (left, right)]
        return f"{letters[0]}{self.block.header.top + 1}:{letters[1]}{self.last_row + 1}"

    def call(
        self, call: ReadCall, *, is_named: bool = False, skips_blanks: bool = False
    ) -> ReadCall:
        """Return the call that reads the table.

        Args:
            call: the call that reads the sheet.
            is_named: whether it must name the columns, if pandas would name them differently.
            skips_blanks: whether blank rows are skipped by their numbers, so that integers stay
                integers.
        """
        block, header = self.block, self.block.header
        if block.right is not None or block.left:
            letters = (column_letters(block.left), column_letters((block.right or self.width) - 1))
            call = call.with_arguments(usecols=":".join(letters))
        inner = sorted([*self.repeats, *(self.blanks if skips_blanks else ())])
        skipped: int | list[int] | None = inner or None
        if is_named or not header.rows:
            names = list(self.names)
            skipped = [*range(self.above), *inner] if inner else self.above or None
            call = replace(call, arguments=(*call.arguments, ("header", None), ("names", names)))
        else:
            if header.units_row is not None:
                skipped = sorted([header.units_row, *inner])
            rows: object = list(header.rows) if header.is_deep else header.rows[0] or None
            call = call.with_arguments(header=rows)
            call = replace(call, steps=(JOIN_HEADER_LEVELS,) if header.is_deep else ())
        call = call.with_arguments(skiprows=skipped)
        if block.bottom is not None:
            rest = sum(row < block.bottom for row in inner)
            call = call.with_arguments(nrows=max(0, block.bottom - self.above - rest))
        return call

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, as the header gives them."""
        header = self.block.header
        if not header.rows:
            return tuple(f"column_{place}" for place in range(1, len(self.labels) + 1))
        return header.names if header.is_deep else self.labels

    def merges(self, merges: Sequence[Merge]) -> tuple[Merge, ...]:
        """Return the merged cells of the table, with its first column as column 1."""
        left, right = self.block.left, self.block.right or self.width
        inside = [merge for merge in merges if left < merge.left <= right]
        return tuple(
            replace(merge, left=merge.left - left, right=min(merge.right, right) - left)
            for merge in inside
        )


def find_sheet_layout(
    grid: pd.DataFrame, merges: Sequence[Merge] = (), *, is_whole: bool = True
) -> tuple[SheetPart, ...]:
    """Return the tables of a sheet; one if nothing shows several.

    Args:
        grid: raw cells of the entire sheet, or of its first `SEARCHED_ROWS` rows.
        merges: merged cells, as far as they are known.
        is_whole: whether the grid contains all rows.
    """
    rows = grid_of_values(grid.to_numpy(dtype=object))
    fills = [Fill(m.top - 1, m.left - 1, m.bottom - 1, m.right - 1) for m in merges]
    blocks = find_blocks(rows, fills, is_whole=is_whole)
    return tuple(_part(rows, block, is_whole=is_whole) for block in blocks)


def _part(rows: list[list[Any]], block: SheetBlock, *, is_whole: bool) -> SheetPart:
    width = max(map(len, rows), default=0)
    header = block.header
    right = block.right or width
    if not header.rows:
        names = ("",) * (right - block.left)
        return SheetPart(block, width, names, last_row=(block.bottom or len(rows)) - 1)
    named = rows[header.rows[-1]] if rows else []
    own = named[block.left : right]
    before = {str(name) for name in named[: block.left] if name is not None}
    bottom = len(rows) if block.bottom is None else block.bottom
    counts = Counter(str(name).strip() for name in own if name is not None)
    repeats = [
        row
        for row in range(block.first_row, bottom)
        if own == rows[row][block.left : right] and any(isinstance(name, str) for name in own)
    ]
    lines = [row[block.left : right] for row in rows[:bottom]]
    data = lines[block.first_row :]
    notes = find_footer(data, right - block.left)[0] if right - block.left > 1 else 0
    shown = data[: len(data) - notes]
    blanks = [block.first_row + at for at, line in enumerate(shown) if not filled(line)]
    lines = lines[: block.first_row + end_of_data(data)]
    return SheetPart(
        block,
        width,
        _numbered(own, block.left),
        any(str(name) in before for name in own if name is not None),
        tuple(repeats[:_MOST_REPEATS]) if not header.is_deep else (),
        tuple(blanks) if len(blanks) <= _MOST_REPEATS else (),
        max(len(lines) - 1, header.top),
        sum(map(bool, map(filled, shown))) - len(repeats) if is_whole else None,
        tuple(sorted(name for name, times in counts.items() if times > 1)),
        breaks=tuple(text_breaks(rows, block)),
    )


def _numbered(labels: Sequence[Any], left: int) -> tuple[str, ...]:
    """Return the names that pandas would give if nothing were to the left."""
    counts: Counter[str] = Counter()
    names = []
    for place, label in enumerate(labels, start=left):
        name = f"Unnamed: {place}" if label is None else str(label)
        names.append(f"{name}.{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return tuple(names)


def column_letters(place: int) -> str:
    """Return the letters of a column, counted from 0, in a spreadsheet program."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
