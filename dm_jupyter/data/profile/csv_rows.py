"""One pass over the rows of a delimited text: which don't fit, and which are a footer."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from dm_jupyter.data.profile.csv_layout import BLANKS, TABS, CsvLayout, figure_cells, is_rule
from dm_jupyter.data.profile.encoding import TextEncoding
from dm_jupyter.data.profile.footers import find_footer
from dm_jupyter.data.profile.source import Source

__all__ = ["RowScan", "scan_rows"]

_LISTED_LINES = 5
_FOOTER_ROWS = 200
_REPEATS, _MOST_REMARKS = 100, 200
"""Most rows left out by their number; more would not fit in a load line."""
_ASCII_BASED = re.compile(r"utf-8(-sig)?")
_ODD_LINES = re.compile(rb"\r(?!\n)|^#|\n#|---|===|___")
"""Line ends that only a parser counts correctly, and remarks."""


@dataclass(frozen=True)
class RowScan:
    """Rows that differ in width from the header, by line number as an editor counts."""

    expected: int = 0
    long_lines: tuple[tuple[int, int], ...] = ()
    """Line number and width of the first few."""
    long_count: int = 0
    """Number of such rows."""
    short_lines: tuple[tuple[int, int], ...] = ()
    """Line number and width of the first few."""
    short_count: int = 0
    """Number of such rows."""
    row_count: int = 0
    """Rows of data that are not blank."""
    loaded_rows: int | None = None
    """Rows that remain without those too long and the footer; `None` if the scan ended early."""
    has_stray_first_row: bool = False
    """Whether the first row of data is too long while others fit: pandas would infer an index."""
    has_row_names: bool = False
    """Whether each row has one field more than the header: pandas makes the first the index."""
    footer_rows: int = 0
    """Rows from the first note below the table to the end, blank ones included."""
    footer: str = ""
    """The first note."""
    repeated_headers: tuple[int, ...] = ()
    """Lines, counted from 0, that repeat the header, as in concatenated files."""
    remarks: tuple[int, ...] = ()
    """Rows of data, counted as for `skiprows`, that are remarks with a hash sign.
    The first ones, if there are many and no value contains a hash sign."""
    remark_count: int = 0
    """Number of all remarks."""
    has_hash: bool = False
    """Whether a value or a name contains a hash sign."""
    empty_rows: tuple[int, ...] = ()
    """Rows that contain only separators, above the last row of data."""
    is_cut: bool = False
    """Whether something is below the last row of data."""
    unnamed_empty: int = 0
    """Number of empty rows, if there are too many to list."""

    @property
    def has_more_remarks(self) -> bool:
        """Whether there are more remarks than are listed here."""
        return self.remark_count > len(self.remarks)

    @property
    def left_out(self) -> list[int]:
        """Rows among the data that are not data, as for `skiprows`."""
        return sorted([*self.repeated_headers, *self.remarks, *self.empty_rows])

    def warnings(self) -> list[str]:
        """Return the warnings about rows that don't fit."""
        texts: list[str] = []
        if self.long_lines:
            texts.append(
                f"{_lines(self.long_lines, self.long_count)} instead of {self.expected}: the load "
                "line leaves out rows that are too long; mend the file to keep them"
            )
        # If the file usually drops empty fields at the end, short rows need no warning.
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
        if self.loaded_rows is None and self.row_count:
            texts.append(
                f"only the first {self.row_count:,} rows were checked for lines that don't fit"
            )
        if self.has_hash and self.has_more_remarks:
            texts.append(
                "values are cut at '#', since there are many lines of remarks: remove those lines "
                "from the file to read the values whole"
            )
        if self.footer_rows:
            texts.append(f"a note below the table is left out: {self.footer[:80]!r}")
        return texts


def scan_rows(
    source: Source, encoding: TextEncoding, layout: CsvLayout, *, stop_at: float = math.inf
) -> RowScan:
    """Return the misfits of the entire file, in constant memory.

    Args:
        source: the file.
        encoding: encoding of its text.
        layout: where the table begins, and its separator.
        stop_at: latest end, as `time.monotonic` counts; the result then says how many rows were
            read.

    Raises:
        OSError: the file can't be read.
        DataFileError: a compressed file unpacks to more than the limit.
    """
    width = layout.width
    if layout.separator in {BLANKS, TABS} or not layout.header:
        return RowScan(width)
    walk = _Walk(width, stop_at)
    walk.over(_blocks(source, encoding.codec), layout)
    if walk.widths and max(walk.widths, key=walk.widths.__getitem__) == width + 1 == walk.first:
        walk = _Walk(width + 1, stop_at)
        walk.over(_blocks(source, encoding.codec), layout)
        return walk.scan(has_row_names=True)
    return walk.scan(has_row_names=False)


def _blocks(source: Source, codec: str) -> Iterator[bytes]:
    """Yield blocks of whole lines in which separators, quotes and line ends are ASCII bytes."""
    decode = None
    if not _ASCII_BASED.fullmatch(codec):
        decode = codecs.getincrementaldecoder(codec)("replace").decode
    kept = b""
    for chunk in source.chunks():
        kept += decode(chunk).encode("utf-8", "replace") if decode else chunk
        # A \r at the end may be half of a line end.
        end = max(kept.rfind(b"\n"), kept.rfind(b"\r", 0, len(kept) - 1)) + 1
        if end:
            yield kept[:end]
            kept = kept[end:]
    if kept:
        yield kept


class _Lines:
    """The lines of a block, and of the next ones if a quoted field continues there."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._lines: deque[str] = deque()

    def load(self, block: bytes) -> None:
        # Latin-1 keeps one letter per byte; the structure is only in ASCII.
        self._lines.extend(io.StringIO(block.decode("latin-1"), newline=""))

    @property
    def is_drained(self) -> bool:
        return not self._lines

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if not self._lines:
            self.load(next(self._blocks))
        return self._lines.popleft()


class _Walk:
    """A pass over the rows of data, in constant memory."""

    def __init__(self, expected: int, stop_at: float) -> None:
        self.expected = expected
        self.stop_at = stop_at
        self.widths: Counter[int] = Counter()
        self.first = 0
        self.long_lines: list[tuple[int, int]] = []
        self.short_lines: list[tuple[int, int]] = []
        self.tail: deque[tuple[int, list[str]]] = deque(maxlen=_FOOTER_ROWS)
        self.is_complete = True
        self.repeats: list[int] = []
        self.remarks: list[int] = []
        self.empty_rows: list[int] = []
        self.has_hash = False
        self.last_row = 0
        self._lines_read = self._rows_read = 0
        self._header: list[str] = []

    def over(self, blocks: Iterator[bytes], layout: CsvLayout) -> None:
        """Read the rows after the header.

        Blocks without quotes are counted as arrays; only the others are parsed row by row.
        """
        header = [cell.encode("utf-8", "replace").decode("latin-1") for cell in layout.header]
        may_repeat = layout.has_header and any(cell.strip()[:1].isalpha() for cell in header)
        self._header = header if may_repeat else []
        self.has_hash = any("#" in cell for cell in header)
        separator = layout.separator.encode()
        again = separator.join(cell.encode("latin-1") for cell in self._header)
        quote, lines = layout.dialect.quote.encode(), _Lines(blocks)
        try:
            for block in blocks:
                if time.monotonic() > self.stop_at:
                    self.is_complete = False
                    return
                is_plain = self._rows_read > layout.data_start and quote not in block
                is_plain = is_plain and len(separator) == 1 and not _ODD_LINES.search(block)
                is_plain = is_plain and not (again and again in block)
                if not (is_plain and self._count(block, separator)):
                    lines.load(block)
                    self._parse(lines, layout)
        except csv.Error:
            # A field beyond the csv module's limit; pandas has none, so only this pass ends.
            self.is_complete = False

    def _parse(self, lines: _Lines, layout: CsvLayout) -> None:
        dialect = layout.dialect
        reader = csv.reader(
            lines,
            delimiter=layout.separator,
            quotechar=dialect.quote,
            escapechar=dialect.escape,
            skipinitialspace=dialect.has_spaces,
        )
        before = self._lines_read
        for row in reader:
            self._rows_read += 1
            self._lines_read = before + reader.line_num
            self._take(row, layout)
            if lines.is_drained:
                return

    def _take(self, row: list[str], layout: CsvLayout) -> None:
        line, at = self._lines_read, self._rows_read - 1
        if at < layout.data_start:
            return
        if self._header and row == self._header and line == self._rows_read:
            self.repeats.append(at)
            return
        if layout.remarks.include(row):
            self.remarks.append(at)
            return
        self.has_hash = self.has_hash or any("#" in cell for cell in row)
        if row and self.expected > 1 and (is_rule(row) or not any(map(str.strip, row))):
            if len(row) > 1 or row[0].strip():
                self.empty_rows.append(at)
            row = []
        self.tail.append((line, row))
        if row:
            self.first = self.first or len(row)
            self.last_row = at
            self._note(len(row), 1)
            self._list(line, len(row))

    def _count(self, block: bytes, separator: bytes) -> bool:
        """Count the fields of each line of a block without quotes.

        Return False, with nothing counted, if a line contains only separators.
        """
        if not block.endswith((b"\n", b"\r")):
            block += b"\n"
        content = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(content == 10)
        separators = np.flatnonzero(content == separator[0])
        widths = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
        starts = np.concatenate(([0], ends[:-1] + 1))
        lengths = ends - starts
        is_row = (lengths > 1) | ((lengths == 1) & (content[starts] != 13))
        bare = lengths - (content[np.maximum(ends - 1, 0)] == 13)
        if bool(np.any(is_row & (widths > 1) & (widths == bare + 1))):
            return False
        self.has_hash = self.has_hash or b"#" in block
        for width, count in zip(*np.unique(widths[is_row], return_counts=True), strict=True):
            self._note(int(width), int(count))
        for misfit in np.flatnonzero(is_row & (widths != self.expected)).tolist():
            self._list(self._lines_read + misfit + 1, int(widths[misfit]))
            if min(len(self.long_lines), len(self.short_lines)) > _LISTED_LINES:
                break
        for at in range(max(0, len(ends) - _FOOTER_ROWS), len(ends)):
            text = block[starts[at] : ends[at]].decode("latin-1").removesuffix("\r")
            row = text.split(separator.decode()) if text else []
            self.tail.append((self._lines_read + at + 1, row))
        if is_row.any():
            self.last_row = self._rows_read + int(np.flatnonzero(is_row)[-1])
        self._lines_read += len(ends)
        self._rows_read += len(ends)
        return True

    def _note(self, width: int, count: int) -> None:
        self.widths[width] += count

    def _list(self, line: int, width: int) -> None:
        misfits = self.long_lines if width > self.expected else self.short_lines
        if width != self.expected and len(misfits) <= _LISTED_LINES:
            misfits.append((line, width))

    def scan(self, *, has_row_names: bool) -> RowScan:
        """Return the findings, with a footer separated from rows that are too short."""
        footer = _footer(self.tail, self.expected) if self.is_complete else []
        first_note = footer[0][0] if footer else None
        notes = [row for _, row in footer if row]
        short_notes = sum(len(row) < self.expected for row in notes)
        long = sum(count for width, count in self.widths.items() if width > self.expected)
        short = sum(count for width, count in self.widths.items() if width < self.expected)
        inside = [at for at in self.empty_rows if at < self.last_row]
        return RowScan(
            self.expected,
            tuple(self.long_lines[:_LISTED_LINES]),
            long,
            tuple(
                misfit
                for misfit in self.short_lines[:_LISTED_LINES]
                if first_note is None or misfit[0] < first_note
            ),
            short - short_notes,
            sum(self.widths.values()),
            sum(self.widths.values()) - long - len(notes) if self.is_complete else None,
            self.first > self.expected,
            has_row_names,
            len(footer),
            _text(next(filter(None, footer[0][1]))) if footer else "",
            tuple(self.repeats[:_REPEATS]),
            # A list of many makes a long load line, but pandas would cut values at the sign.
            tuple(self.remarks[: _MOST_REMARKS if self.has_hash else _REPEATS]),
            len(self.remarks),
            self.has_hash,
            tuple(inside) if len(inside) <= _REPEATS else (),
            is_cut=bool(footer) or len(inside) < len(self.empty_rows),
            unnamed_empty=len(inside) if len(inside) > _REPEATS else 0,
        )


def _footer(tail: Iterable[tuple[int, list[str]]], width: int) -> list[tuple[int, list[str]]]:
    """Return the notes at the end, from the first one on, blank rows between them included."""
    rows = list(tail)
    if width < 2:
        return []
    count, _ = find_footer([figure_cells(row) for _, row in rows], width)
    return rows[len(rows) - count :] if count else []


def _text(cell: str) -> str:
    """Return the text of a cell that was read byte by byte."""
    return cell.encode("latin-1").decode("utf-8", "replace")


def _lines(misfits: tuple[tuple[int, int], ...], count: int) -> str:
    shown = ", ".join(f"line {line} has {width}" for line, width in misfits)
    more = count - len(misfits)
    return f"{shown} fields" + (f" (and {more:,} more lines)" if more > 0 else "")
