"""One pass over the rows of a delimited text: which don't fit, and which are a footer."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass

from dm_jupyter.agent.profile.csv_layout import CsvLayout
from dm_jupyter.agent.profile.encoding import TextEncoding
from dm_jupyter.agent.profile.source import Source

__all__ = ["RowScan", "scan_rows"]

_LISTED_LINES = 5
_FOOTER_ROWS = 30
_REPEATS = 100
"""Headers left out; a load line that names more would be no line."""
_NOTE = re.compile(r"\s*(notes?|sources?|\*|†|\(?\d\)|quelle|footnotes?)\b", re.IGNORECASE)


@dataclass(frozen=True)
class RowScan:
    """Rows that differ in width from the header, by line number as an editor counts."""

    expected: int = 0
    long_lines: tuple[tuple[int, int], ...] = ()
    """Line number and width of the first few."""
    long_count: int = 0
    """How many there are."""
    short_lines: tuple[tuple[int, int], ...] = ()
    """Line number and width of the first few."""
    short_count: int = 0
    """How many there are."""
    row_count: int = 0
    """Rows of data that are not blank."""
    has_stray_first_row: bool = False
    """The first row of data is too long while others fit: pandas would take it for an index."""
    has_row_names: bool = False
    """Every row of data has one field more than the header: pandas makes the first the index."""
    footer_rows: int = 0
    """Rows from the first note below the table to the end, blank ones included."""
    footer: str = ""
    """The first note."""
    repeated_headers: tuple[int, ...] = ()
    """Lines, counted from 0, on which the header comes again: files that were put together."""

    def warnings(self) -> list[str]:
        """Returns what to tell of the rows that don't fit."""
        texts: list[str] = []
        if self.long_lines:
            texts.append(
                f"{_lines(self.long_lines, self.long_count)} instead of {self.expected}: the load "
                "line leaves out rows that are too long; mend the file to keep them"
            )
        # Where it is the custom of the file to drop empty fields at the end, it is no news.
        if self.short_lines and 0 < self.short_count <= max(3, self.row_count // 10):
            lines = _lines(self.short_lines, self.short_count)
            texts.append(f"{lines} instead of {self.expected}: the rest is missing")
        if self.has_row_names:
            texts.append("each row has one field more than the header: pandas makes it the index")
        if self.repeated_headers:
            count = len(self.repeated_headers)
            first = self.repeated_headers[0] + 1
            times = "" if count == 1 else f", {count:,} times in all"
            texts.append(f"the header comes again in line {first}{times}: left out when loading")
        if self.footer_rows:
            texts.append(f"a note below the table is left out: {self.footer[:80]!r}")
        return texts


def scan_rows(
    source: Source, encoding: TextEncoding, layout: CsvLayout, *, limit_bytes: int
) -> RowScan:
    """Returns the misfits of a file; of a larger one only those in its first `limit_bytes`.

    Raises:
        OSError: the file can't be read.
    """
    width = len(layout.header) + layout.has_trailing_separator
    if layout.separator == r"\s+" or not layout.header:
        return RowScan(width)
    raw = source.head(limit_bytes + 1)
    text = raw[:limit_bytes].decode(encoding.codec, "replace")
    walk = _Walk(width)
    walk.over(text, layout)
    if walk.widths and max(walk.widths, key=walk.widths.__getitem__) == width + 1 == walk.first:
        walk = _Walk(width + 1)
        walk.over(text, layout)
        return walk.scan(has_row_names=True, is_whole=len(raw) <= limit_bytes)
    return walk.scan(has_row_names=False, is_whole=len(raw) <= limit_bytes)


class _Walk:
    """A pass over the rows of data, in constant memory."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.widths: Counter[int] = Counter()
        self.first = 0
        self.long_lines: list[tuple[int, int]] = []
        self.short_lines: list[tuple[int, int]] = []
        self.tail: deque[tuple[int, list[str]]] = deque(maxlen=_FOOTER_ROWS)
        self.is_complete = True
        self.repeats: list[int] = []

    def over(self, text: str, layout: CsvLayout) -> None:
        """Reads the rows behind the header."""
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=layout.separator)
        is_header_due = layout.has_header
        rows, header = 0, list(layout.header)
        may_repeat = layout.has_header and any(cell.strip()[:1].isalpha() for cell in header)
        try:
            for row in reader:
                rows += 1
                if reader.line_num <= layout.skipped_lines:
                    continue
                if is_header_due:
                    is_header_due = not row
                    continue
                if may_repeat and row == header and reader.line_num == rows:
                    self.repeats.append(rows - 1)
                    continue
                self.tail.append((reader.line_num, row))
                if row:
                    self._row(reader.line_num, len(row))
        except csv.Error:
            # A field beyond the csv module's limit; pandas has none, so only this pass ends.
            self.is_complete = False

    def _row(self, line: int, width: int) -> None:
        self.first = self.first or width
        self.widths[width] += 1
        misfits = self.long_lines if width > self.expected else self.short_lines
        if width != self.expected and len(misfits) <= _LISTED_LINES:
            misfits.append((line, width))

    def scan(self, *, has_row_names: bool, is_whole: bool) -> RowScan:
        """Returns what was seen, with a footer told apart from rows that are too short."""
        footer = _footer(self.tail) if is_whole and self.is_complete and self.expected > 1 else []
        first_note = footer[0][0] if footer else None
        notes = sum(1 for _, row in footer if row)
        short = sum(count for width, count in self.widths.items() if width < self.expected)
        return RowScan(
            self.expected,
            tuple(self.long_lines[:_LISTED_LINES]),
            sum(count for width, count in self.widths.items() if width > self.expected),
            tuple(
                misfit
                for misfit in self.short_lines[:_LISTED_LINES]
                if first_note is None or misfit[0] < first_note
            ),
            short - notes,
            sum(self.widths.values()),
            self.first > self.expected,
            has_row_names,
            len(footer),
            footer[0][1][0] if footer else "",
            tuple(self.repeats[:_REPEATS]),
        )


def _footer(tail: Iterable[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Returns the notes at the end, from the first one on, blank rows between them included."""
    rows = list(tail)
    start = len(rows)
    while start and _is_note(rows[start - 1][1]):
        start -= 1
    is_set_off = start < len(rows) and not rows[start][1]
    while start < len(rows) and not rows[start][1]:
        start += 1
    footer = rows[start:]
    # A last row that was cut off is short too; a note stands apart or begins like one.
    return footer if footer and (is_set_off or _NOTE.match(footer[0][1][0])) else []


def _is_note(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip().replace(".", "", 1).isdigit())


def _lines(misfits: tuple[tuple[int, int], ...], count: int) -> str:
    shown = ", ".join(f"line {line} has {width}" for line, width in misfits)
    more = count - len(misfits)
    return f"{shown} fields" + (f" (and {more:,} more lines)" if more > 0 else "")
