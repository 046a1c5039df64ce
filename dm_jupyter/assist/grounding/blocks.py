"""Parts of an output whose values belong together: cells, and the labels of each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from dm_jupyter.assist.grounding.words import Unit, content_words, scale_of_label, unit_of_label

__all__ = ["NumberCell", "TextBlock"]

_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_QUANTILE = re.compile(r"(?:^|\s)\d+(?:\.\d+)?%$")
_MOST_NAMED = 50
"""Most rows that one word may name."""


class NumberCell(NamedTuple):
    """A number in an output."""

    value: float
    text: str
    row: int
    column: int


@dataclass(slots=True)
class TextBlock:
    """A part of an output whose values belong together: a table, a few lines, a list."""

    source: int
    """Index of the output."""
    rows: list[str] = field(default_factory=list)
    """The label of each row, for a person."""
    columns: list[str] = field(default_factory=list)
    cells: list[NumberCell] = field(default_factory=list)
    units: dict[tuple[int, int], Unit] = field(default_factory=dict)
    """Unit of a cell, by row and column, if one followed it."""
    index_name: str = ""
    labels: list[str] = field(default_factory=list)
    """Every label that is an entire cell: names of rows, texts in them."""
    keys: list[str] = field(default_factory=list)
    """Labels that are numbers, which an answer may repeat."""
    key_names: list[str] = field(default_factory=list)
    """Things that these number."""
    total_rows: int | None = None
    """Number of rows; `None` if an unknown number is left out."""
    total_columns: int | None = None
    is_table: bool = False
    is_ranked: bool = False
    """Whether the rows are numbered 0, 1, 2, which are not values."""
    levels: int = 1
    """Number of columns in the index."""
    parts: list[tuple[str, ...]] = field(default_factory=list)
    """Labels that a row's label is composed of."""
    _words: dict[tuple[int, int], frozenset[str]] = field(default_factory=dict)
    _grid: dict[tuple[int, int], NumberCell] = field(default_factory=dict)
    _columns: list[int] = field(default_factory=list)
    _by_word: dict[str, list[int]] = field(default_factory=dict)
    _daily: bool | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all rows are shown."""
        return not self.is_table or self.total_rows == len(self.rows)

    @property
    def is_square(self) -> bool:
        """Whether rows and columns have the same names, as in a correlation matrix."""
        return self.is_table and len(self.rows) > 1 and self.rows == self.columns[-len(self.rows) :]

    @property
    def is_single(self) -> bool:
        """Whether it is one value with a name, as `('King', 1667)`."""
        return not self.is_table and len(self.cells) == 1 == len(self.parts)

    def words(self, cell: NumberCell) -> frozenset[str]:
        """Return the words of a cell's labels, its row's and its column's."""
        return self.row_words(cell.row) | self.column_words(cell.column)

    def row_words(self, row: int) -> frozenset[str]:
        """Return the words of a row's label."""
        found = self._words.get((row, -1))
        if found is None:
            text = self.rows[row]
            found = frozenset(content_words(text, is_label=True) or text.lower().split()[:3])
            self._words[row, -1] = found
        return found

    def column_words(self, column: int) -> frozenset[str]:
        """Return the words of a column's label."""
        found = self._words.get((-1, column))
        if found is None:
            found = frozenset(content_words(self.columns[column]))
            self._words[-1, column] = found
        return found

    def at(self, row: int, column: int) -> NumberCell | None:
        """Return the value at a position of the table."""
        if not self._grid:
            self._grid = {(cell.row, cell.column): cell for cell in reversed(self.cells)}
        return self._grid.get((row, column))

    def places(self) -> list[tuple[int, int]]:
        """Return the row and column of each value; `1,200` has one, though it may be two values."""
        self.at(0, 0)
        return sorted(self._grid)

    def column(self, column: int) -> list[NumberCell]:
        """Return the values of a column, from the top."""
        return [cell for row in range(len(self.rows)) if (cell := self.at(row, column))]

    def value_columns(self) -> list[int]:
        """Return the columns that contain values."""
        if not self._columns:
            self._columns = sorted({cell.column for cell in self.cells})
        return self._columns

    def rows_named(self, words: frozenset[str]) -> list[int]:
        """Return the rows with an entire label among the words, from the top."""
        if not self._by_word:
            for row in range(len(self.rows)):
                for word in self.row_words(row):
                    self._by_word.setdefault(word, []).append(row)
        rows = {row for word in words for row in self._by_word.get(word, ())[:_MOST_NAMED]}
        return [
            row
            for row in sorted(rows)
            if any(part and part <= words for part in self.named_parts(row))
        ]

    def rows_met(self, words: frozenset[str]) -> list[int]:
        """Return the rows with any label word among the words, from the top."""
        self.rows_named(frozenset())
        rows = {row for word in words for row in self._by_word.get(word, ())[:_MOST_NAMED]}
        return sorted(rows)[:_MOST_NAMED]

    def named_parts(self, row: int) -> list[frozenset[str]]:
        """Return the word sets that name a row, one per label, without common words."""
        common = self.common_words()
        parts = [_without_date(part - common) for part in self.part_words(row)]
        return parts if self._is_daily() else [_without_day(part) for part in parts]

    def _is_daily(self) -> bool:
        """Whether some rows are days of one month, so that the month alone names none of them."""
        if self._daily is None:
            months = [_without_day(self.row_words(row)) for row in range(len(self.rows))]
            dates = [words for words in map(_without_date, months) if words]
            self._daily = len(set(dates)) < len(dates) and "@" in "".join(
                word[:1] for row in range(len(self.rows)) for word in self.row_words(row)
            )
        return self._daily

    def common_words(self) -> frozenset[str]:
        """Return the words that all rows' labels share, if there are several rows."""
        found = self._words.get((-1, -1))
        if found is None:
            every = [self.row_words(row) for row in range(len(self.rows))]
            found = frozenset.intersection(*every) if len(every) > 1 else frozenset()
            self._words[-1, -1] = found
        return found

    def part_words(self, row: int) -> list[frozenset[str]]:
        """Return the words of each label of a row."""
        parts = self.parts[row] if self.parts else (self.rows[row],)
        return [frozenset(content_words(part, is_label=True)) for part in parts]

    def scale(self, cell: NumberCell) -> float:
        """Return the factor of a cell that its labels name."""
        scale = scale_of_label(self.columns[cell.column])
        return scale if scale > 1 else scale_of_label(self.rows[cell.row])

    def unit(self, cell: NumberCell) -> Unit | None:
        """Return the unit of a cell, if it or a label names one."""
        own = self.units.get((cell.row, cell.column))
        if own:
            return own
        if cell.text.endswith("%"):
            return "percent", 1.0
        if cell.text[:1] in "$€£":
            return unit_of_label(f"({cell.text[0]})")
        row = self.rows[cell.row]
        return unit_of_label(self.columns[cell.column]) or (
            None if _QUANTILE.search(row) else unit_of_label(row)
        )


def _without_date(words: frozenset[str]) -> frozenset[str]:
    """Return the words of a label without written dates, whose parts are words as well."""
    rest = frozenset(word for word in words if not _DATE.fullmatch(word))
    return rest or words


def _without_day(words: frozenset[str]) -> frozenset[str]:
    """Return the words of a label without a day, as an answer may name only month and year."""
    rest = frozenset(word for word in words if word[:1] != "@")
    return rest or words
