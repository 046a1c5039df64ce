"""Layout of a delimited or aligned text: its grid, passed to the one model of layout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from dm_jupyter.data.profile.cell_words import is_missing_word
from dm_jupyter.data.profile.csv_dialect import (
    AlignedText,
    CsvDialect,
    aligned_text,
    find_dialect,
    parsed_rows,
)
from dm_jupyter.data.profile.header_rows import FigureText
from dm_jupyter.data.profile.numbers import PERCENT, parse_number
from dm_jupyter.data.profile.table_layout import SheetBlock, find_blocks, text_breaks

__all__ = ["BLANKS", "TABS", "CsvLayout", "Remarks", "figure_cells", "find_layout", "is_rule"]

_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ]\d{1,2}:.*)?")
_LONGEST_FIGURE = 40
_ALIGNED_AGREEMENT = 0.9
_DIALECT_CHARS = 256 * 1024
_SEARCHED_ROWS = 50_000
_SAMPLE_ROWS, _SAMPLE_COLUMNS = 100, 50
"""Rows and columns that show where figures are."""
_RULE = re.compile(r"[\s\-=+:_|]*[-=_]{3}[\s\-=+:_|]*")
BLANKS, TABS = r"\s+", r"\t+"
"""Separators of columns that runs of blanks or tabs separate."""


@dataclass(frozen=True)
class Remarks:
    """What distinguishes remarks from records such as `#1001,5`, which begin with a hash sign too.

    A record has figures where the others have them, and a remark has words.
    """

    above: int = 0
    """Number of remarks above the header."""
    width: int = 0
    """Usual number of fields."""
    figures: tuple[int, ...] = ()
    """Positions of columns of figures."""

    def include(self, row: Sequence[str]) -> bool:
        """Return whether a row below the header is a remark."""
        if not row or not row[0].startswith("#"):
            return False
        is_full = len(row) >= self.width
        if is_full and not self.above:
            return False
        cells = [row[at].strip() for at in self.figures if at < len(row)]
        are_figures = [_is_figure(cell) for cell in cells if cell and not is_missing_word(cell)]
        if not all(are_figures):
            return True
        if self.figures:
            return not (is_full or are_figures)
        return not is_full or not row[0][1:2].strip()


@dataclass(frozen=True)
class CsvLayout:
    """What a csv reader needs to know of one table, and further findings."""

    separator: str = ","
    dialect: CsvDialect = field(default_factory=CsvDialect)
    skipped_lines: int = 0
    """Rows before the header that belong to no table, as `skiprows` counts them."""
    has_header: bool = True
    header: tuple[str, ...] = ()
    """The fields of the header's last row, as in the file."""
    has_trailing_separator: bool = False
    """Whether every row of data ends with one separator more than the header."""
    preamble: tuple[str, ...] = ()
    """The skipped lines that are not blank."""
    names: tuple[str, ...] = ()
    """The columns' names, if the header has several rows."""
    is_deep: bool = False
    """Whether the header has several rows."""
    units: tuple[str | None, ...] = ()
    """Units by column, if a row below the header contains them."""
    data_start: int = 1
    """The first row that may be data, counted as `skipped_lines`."""
    dropped: tuple[int, ...] = ()
    """Rows between the header's first and the data that belong to neither."""
    row_count: int | None = None
    """Rows of data, if the table is one of several."""
    columns: tuple[int, int] | None = None
    """First column and the one after the last, if tables are side by side."""
    title: str = ""
    """The last text above a table that is one of several."""
    texts: tuple[tuple[str, ...], ...] = ()
    """The rows of data as written, if the table is one of several."""
    last_row: int = 0
    """The last row of data, if the table is one of several."""
    colspecs: tuple[tuple[int, int | None], ...] = ()
    """Positions of the columns of an aligned text."""
    remarks: Remarks = field(default_factory=Remarks)
    """What distinguishes remarks from records."""
    remark_count: int = 0
    """Number of remarks among the dropped rows."""
    breaks: tuple[int, ...] = ()
    """Rows that may begin another table of texts."""
    fields: int = 0
    """Fields of a row, if there are more than the table has columns."""

    @property
    def width(self) -> int:
        """Fields of a row of data."""
        return self.fields or len(self.header) + self.has_trailing_separator

    @property
    def skipped(self) -> int | list[int] | None:
        """Rows to leave out, as for `skiprows`; with those of the header if names are given."""
        skipped = [*range(self.skipped_lines), *self.dropped]
        if self.names:
            skipped = sorted({*skipped, *range(self.skipped_lines, self.data_start)})
        if skipped == list(range(len(skipped))):
            return len(skipped) or None
        return skipped


def find_layout(
    text: str, *, is_whole: bool, may_be_aligned: bool = False
) -> tuple[CsvLayout, ...]:
    """Return one layout for each table that the start of a file shows.

    Args:
        text: the decoded start of the file.
        is_whole: whether the text is the entire file; otherwise the last line is cut and left out.
        may_be_aligned: whether to look for columns separated only by runs of blanks.
    """
    if not is_whole:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    dialect = find_dialect(text if len(text) <= _DIALECT_CHARS else _first_lines(text))
    if not dialect.agreement and may_be_aligned and _is_aligned(text):
        rows = [line.split() for line in text.splitlines()]
        return _layouts(rows, CsvDialect(BLANKS), is_whole=False)
    if dialect.agreement < _ALIGNED_AGREEMENT and not dialect.sep_lines:
        aligned = aligned_text(text)
        if aligned is not None:
            return (_aligned_layout(aligned),)
    rows = parsed_rows(text, dialect)
    return _layouts(rows, dialect, is_whole=is_whole)


def _first_lines(text: str) -> str:
    head = text[:_DIALECT_CHARS]
    return head[: max(head.rfind("\n"), head.rfind("\r")) + 1] or head


def _layouts(
    rows: list[list[str]], dialect: CsvDialect, *, is_whole: bool
) -> tuple[CsvLayout, ...]:
    if len(rows) > _SEARCHED_ROWS:
        rows, is_whole = rows[:_SEARCHED_ROWS], False
    remarks = _remarks(rows)
    # Lines that are not table rows are blank in the grid: comments, rules, the separator line.
    header = _first_row(rows, remarks)
    is_left = [at < dialect.sep_lines or is_rule(row) or (at != header and remarks.include(row))
               for at, row in enumerate(rows)]  # fmt: skip
    # Without a separator a line is one cell, whatever characters are in it.
    most = None if dialect.agreement or dialect.separator == BLANKS else 1
    grid = [
        [] if left else figure_cells(row[:most]) for row, left in zip(rows, is_left, strict=True)
    ]
    if not any(grid):
        return (CsvLayout(dialect.separator, dialect),)
    blocks = find_blocks(_rectangle(grid))
    is_part = is_whole and len(blocks) > 1
    if not is_part:
        blocks = (_only(blocks, _rectangle(grid)),)
    return tuple(
        replace(
            _layout(rows, is_left, dialect, remarks, block, is_part=is_part),
            breaks=tuple(text_breaks(grid, block)),
        )
        for block in blocks
    )


def _only(blocks: tuple[SheetBlock, ...], grid: list[list[str | None]]) -> SheetBlock:
    return blocks[0] if len(blocks) == 1 else find_blocks(grid[: blocks[0].bottom])[0]


def _layout(
    rows: list[list[str]],
    is_left: list[bool],
    dialect: CsvDialect,
    remarks: Remarks,
    block: SheetBlock,
    *,
    is_part: bool,
) -> CsvLayout:
    header, start = block.header, block.header.top
    named = rows[header.rows[-1]] if header.rows else rows[start]
    kept = [at for at in range(header.end, len(rows)) if any(rows[at]) and not is_left[at]]
    data_start = kept[0] if kept else header.end
    above = [row for row, is_out in zip(rows[:start], is_left[:start], strict=True) if any(row)]
    dropped = [at for at in range(start, data_start) if at not in header.rows and rows[at]]
    found = CsvLayout(
        separator=TABS if dialect.has_runs else dialect.separator,
        dialect=dialect,
        skipped_lines=start,
        has_header=bool(header.rows),
        header=tuple(named),
        has_trailing_separator=_is_trailing(named, [rows[at] for at in kept]),
        preamble=tuple(dialect.separator.join(row) for row in above[dialect.sep_lines :]),
        names=tuple(header.names[: len(named)]),
        is_deep=header.is_deep,
        units=header.units,
        data_start=data_start,
        dropped=tuple(dropped),
        remarks=remarks,
        remark_count=sum(remarks.include(rows[at]) for at in dropped),
    )
    if is_part:
        columns = (block.left, len(named) if block.right is None else block.right)
        return _as_part(found, rows, is_left, block, columns)
    return _drawn(found, [rows[at] for at in kept])


def _drawn(found: CsvLayout, data: list[list[str]]) -> CsvLayout:
    """Return the layout without the columns outside the lines of a drawn table.

    Such lines are at both ends of each row, and blanks around the names.
    """
    header = found.header
    outside = [place for place, name in enumerate(header) if not name.strip() and
               not any(row[place].strip() for row in data if place < len(row))]  # fmt: skip
    left = 1 if 0 in outside else 0
    right = len(header)
    while right - 1 in outside:
        right -= 1
    is_padded = sum(name != name.rstrip() for name in header) >= len(header) / 2
    if right - left < 1 or not (found.is_deep or found.separator == "|" or is_padded):
        return found
    own = found.names[left:right] or _own_names(header[left:right])
    if found.is_deep and (left, right) == (0, len(header)):
        return found
    is_cut = (left, right) != (0, len(header))
    if not is_cut and not is_padded:
        return found
    return replace(
        found,
        header=header[left:right],
        fields=len(header) + found.has_trailing_separator,
        columns=(left, right) if is_cut else None,
        names=own,
        has_trailing_separator=found.has_trailing_separator and not is_cut,
    )


def _as_part(
    found: CsvLayout,
    rows: list[list[str]],
    is_left: list[bool],
    block: SheetBlock,
    columns: tuple[int, int],
) -> CsvLayout:
    """Return the layout of one of several tables, with the rows that its load must return."""
    left, right = columns
    bottom = block.bottom or len(rows)
    body = [
        at for at in range(found.data_start, bottom)
        if not is_left[at] and any(cell.strip() for cell in rows[at][left:right])
    ]  # fmt: skip
    blank = [at for at in range(found.data_start, bottom) if at not in set(body) and rows[at]]
    texts = [(*rows[at][left:right], *[""] * (right - left - len(rows[at][left:right])))
             for at in body]  # fmt: skip
    header = found.header[left:right]
    while (
        len(header) > 1
        and not header[-1].strip()
        and not any(row[len(header) - 1] for row in texts)
    ):
        header, texts = header[:-1], [row[:-1] for row in texts]
    is_cut = block.right is not None or (found.is_deep and len(header) < len(found.header))
    return replace(
        found,
        header=header,
        has_trailing_separator=False,
        names=found.names[left : left + len(header)] or (_own_names(header) if left else ()),
        dropped=(*found.dropped, *blank),
        remark_count=found.remark_count + sum(found.remarks.include(rows[at]) for at in blank),
        row_count=len(body),
        last_row=body[-1] if body else found.data_start,
        columns=(left, left + len(header)) if is_cut else None,
        title=block.titles[-1] if block.titles else "",
        texts=tuple(texts),
    )


def _own_names(header: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a table beside another one; pandas would continue its numbering."""
    counts: Counter[str] = Counter()
    names = []
    for place, cell in enumerate(header):
        name = cell.strip() or f"Unnamed: {place}"
        names.append(f"{name}.{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return tuple(names)


def _aligned_layout(aligned: AlignedText) -> CsvLayout:
    """Return the layout of columns at fixed positions."""
    grid = [figure_cells(row) for row in aligned.rows]
    block = find_blocks(_rectangle(grid))[0]
    header = block.header
    start = header.top
    named = aligned.rows[header.rows[-1]] if header.rows else aligned.rows[start]
    lines = aligned.lines
    at_start = lines[start]
    kept = {lines[row] for row in header.rows} | set(lines[header.end :])
    return CsvLayout(
        separator=BLANKS,
        skipped_lines=at_start,
        has_header=bool(header.rows),
        header=tuple(named),
        preamble=aligned.preamble,
        names=tuple(header.names[: len(named)]),
        is_deep=header.is_deep,
        units=header.units,
        data_start=lines[header.end] if header.end < len(lines) else lines[-1] + 1,
        dropped=tuple(line for line in range(at_start, lines[-1]) if line not in kept),
        row_count=aligned.row_count(header.end),
        colspecs=aligned.colspecs,
        texts=tuple(tuple(row) for row in aligned.rows[header.end :]),
    )


def figure_cells(row: list[str]) -> list[str | None]:
    """Return the cells for the model of layout: blank ones as `None`, figures marked."""
    return [_cell(text) for text in row]


def _cell(text: str) -> str | None:
    bare = text.strip()
    if not bare:
        return None
    return FigureText(text) if _is_figure(bare) else text


def _is_figure(text: str) -> bool:
    if _NUMBER.fullmatch(text) or _DATE.fullmatch(text):
        return True
    if len(text) > _LONGEST_FIGURE or not any(character.isdecimal() for character in text):
        return False
    number = parse_number(text)
    return number is not None and number.unit in {"", *PERCENT}


def _rectangle(grid: list[list[str | None]]) -> list[list[str | None]]:
    width = max(map(len, grid), default=0)
    return [[*row, *[None] * (width - len(row))] for row in grid]


def _remarks(rows: list[list[str]]) -> Remarks:
    """Return what distinguishes remarks from records in a text."""
    above = _leading_comments(rows)
    filled = [row for row in rows if any(row)][above:]
    plain = [row for row in filled if not row[0].startswith("#")]
    widths = Counter(len(row) for row in plain or filled if len(row) > 1)
    width = max(widths, key=lambda size: (widths[size], size), default=1)
    sample = plain[1:_SAMPLE_ROWS] or filled[1:_SAMPLE_ROWS]
    columns = [[row[at].strip() for row in sample if at < len(row)]
               for at in range(min(width, _SAMPLE_COLUMNS))]  # fmt: skip
    figures = (
        at for at, cells in enumerate(columns) if sum(map(_is_figure, cells)) > len(cells) / 2
    )
    return Remarks(above, width, tuple(figures))


def _first_row(rows: list[list[str]], remarks: Remarks) -> int | None:
    """Return the first row that is neither blank nor a remark above the header."""
    filled = (at for at, row in enumerate(rows) if any(row))
    return next(islice(filled, remarks.above, None), None)


def _leading_comments(rows: list[list[str]]) -> int:
    """Return the number of remarks, lines with a hash sign, above the header."""
    filled = [row for row in rows if any(row)]
    comments = 0
    while comments < len(filled) and filled[comments][0].startswith("#"):
        comments += 1
    if comments in {0, len(filled)}:
        return 0
    following = filled[comments]
    # "#id,name" over figures is a header that begins with a hash sign; so is the row of its units.
    if len(following) > 1 and any(map(_is_figure, following)):
        while comments and len(filled[comments - 1]) == len(following):
            comments -= 1
    return comments


def is_rule(row: Sequence[str]) -> bool:
    """Return whether a row only draws a line, such as the one below a header."""
    return bool(row) and _RULE.fullmatch(" ".join(row)) is not None


def _is_aligned(text: str) -> bool:
    widths = {len(line.split()) for line in text.splitlines()[:200] if line.strip()}
    return len(widths) == 1 and widths.pop() > 1


def _is_trailing(header: list[str], body: list[list[str]]) -> bool:
    return bool(body) and all(len(row) == len(header) + 1 and not row[-1] for row in body)
