"""Text whose columns stand at fixed places in every line, with blanks between them.

Values may hold single blanks and may be missing, so the number of words in a line tells nothing:
columns are parted where no line of data has a letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["AlignedText", "aligned_text"]

_SEARCHED_LINES = 2_000
_TITLE_LINES = 12
_LEAST_DATA = 2
_LONGEST_LINE = 2_000
_MOST_COLUMNS, _EDGE_LINES = 200, 100
_RULE = re.compile(r"[\s\-=_+|]+")
_FIGURE = re.compile(r"[-+(]?[$€£]?[\d.,]*\d[\d.,]*\s?%?\)?")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class AlignedText:
    """The cells of an aligned text, header first."""

    rows: tuple[list[str], ...]
    """Without blanks around each; the header first."""
    lines: tuple[int, ...]
    """The line of each row, counted from 0."""
    colspecs: tuple[tuple[int, int | None], ...]
    """First place of each column, and the one after its last."""
    preamble: tuple[str, ...]
    """Lines above the header that are not blank."""
    footer_lines: int
    """Lines below the last row, to the end of the text."""

    def row_count(self, header_rows: int) -> int | None:
        """Returns the rows of data where lines stand below them; None where none does."""
        return len(self.rows) - header_rows if self.footer_lines else None


def aligned_text(text: str) -> AlignedText | None:
    """Returns the cells of a text with columns at fixed places; None where it has none."""
    lines = text.splitlines()[:_SEARCHED_LINES]
    if any("\t" in line or len(line) > _LONGEST_LINE for line in lines):
        return None
    tops = [at for at, line in enumerate(lines) if _is_filled(line)][:_TITLE_LINES]
    for top in tops:
        found = _from(lines, top)
        if found is not None:
            return found
    return None


def _is_filled(line: str) -> bool:
    return bool(line.strip()) and not _RULE.fullmatch(line)


def _from(lines: list[str], top: int) -> AlignedText | None:
    """Returns the table whose header is in the line `top`; None where none begins there."""
    end = _end(lines, top)
    places = [at for at in range(top, end) if _is_filled(lines[at])]
    data = [lines[at] for at in places[1:]]
    if len(data) < _LEAST_DATA or not any("  " in line.strip() for line in (lines[top], *data)):
        return None  # single blanks part words
    cuts = _cuts(lines[top], data)
    if not cuts:
        return None
    ends: list[int | None] = [*cuts[1:], None]
    colspecs = tuple(zip(cuts, ends, strict=True))
    rows = [[lines[at][start:stop].strip() for start, stop in colspecs] for at in places]
    if not _is_table(rows):
        return None
    above = tuple(line for line in lines[:top] if _is_filled(line))
    return AlignedText(tuple(rows), tuple(places), colspecs, above, len(lines) - end)


def _end(lines: list[str], top: int) -> int:
    """Returns where the lines of a table end: at the first blank line with data above it."""
    filled = 0
    for at in range(top, len(lines)):
        if not lines[at].strip() and filled > 2:
            return at if any(map(_is_filled, lines[at:])) else len(lines)
        filled += _is_filled(lines[at])
    return len(lines)


def _cuts(header: str, data: Sequence[str]) -> list[int]:
    """Returns where columns begin; empty where header and data do not agree on it."""
    width = max(map(len, data))
    used = [False] * (width + 1)
    for line in data:
        for match in _WORD.finditer(line):
            used[match.start() : match.end()] = [True] * (match.end() - match.start())
    cuts = [0]
    place = next((at for at, is_used in enumerate(used) if is_used), 0)
    while place < width:
        if used[place]:
            place += 1
            continue
        gap = place
        while place <= width and not used[place]:
            place += 1
        if place > width:
            break
        cut = _cut(header, gap, place, data)
        if cut is None or len(cuts) > _MOST_COLUMNS:
            return []
        if cut >= 0:
            cuts.append(cut)
    ends = [*cuts[1:], None]
    named = all(header[start:stop].strip() for start, stop in zip(cuts, ends, strict=True))
    return cuts if len(cuts) > 1 and named else []


def _cut(header: str, gap: int, end: int, data: Sequence[str]) -> int | None:
    """Returns where in a gap of the data the next column begins.

    -1 where the gap is inside a column of texts, None where names and columns don't agree.
    """
    padded = header.ljust(end + 1)
    free = [match.span() for match in re.compile(" +").finditer(padded, gap, end)]
    if not free:
        # A name that covers the gap has both sides below it.
        return None if _is_edge(data, gap, end) else -1
    names = [match.span() for match in _WORD.finditer(header)]
    if end - gap == 1 and not _is_edge(data, gap, end):
        # One blank in every line, between texts: a column only where a name begins behind it.
        begins = any(start == end for start, _ in names)
        if not begins or (len(data) < 5 and padded[end - 2 : end] != "  "):
            return -1
    # A name may hold a blank: the widest run of them parts it from its neighbour.
    return max(free, key=lambda run: (run[1] - run[0], run[1]))[1]


def _is_edge(data: Sequence[str], gap: int, end: int) -> bool:
    """Says whether blanks stand beside a column of figures."""
    lefts = [line[:gap].split()[-1:] for line in data[:_EDGE_LINES]]
    rights = [line[end:].split()[:1] for line in data[:_EDGE_LINES]]
    return _are_figures(lefts) or _are_figures(rights)


def _are_figures(words: Sequence[Sequence[str]]) -> bool:
    known = [word[0] for word in words if word]
    return bool(known) and all(_FIGURE.fullmatch(word) for word in known)


def _is_table(rows: list[list[str]]) -> bool:
    """Says whether cells look like a table: names that differ, few gaps, a column of figures."""
    names, body = rows[0], rows[1:]
    if len(set(names)) < len(names):
        return False
    cells = [cell for row in body for cell in row]
    if sum(map(bool, cells)) < 0.6 * len(cells):
        return False
    columns = list(zip(*body, strict=True))
    if any(_ends_in_sign(column) for column in columns):
        return False
    figures = [all(_FIGURE.fullmatch(cell) for cell in column if cell) for column in columns]
    named = [_FIGURE.fullmatch(name) is not None for name in names]
    # Years head columns of figures; other figures there are data of a file without a header.
    if any(is_name and not below for is_name, below in zip(named, figures, strict=True)):
        return False
    lengths = {len(cell) for cell in columns[0] if cell}
    return any(figures) or (len(columns) > 2 and len(body) > 2 and len(lengths) > 1)


def _ends_in_sign(cells: Sequence[str]) -> bool:
    """Says whether the cells of a column end in what parts fields elsewhere."""
    known = [cell for cell in cells if cell]
    return bool(known) and sum(cell[-1] in ",;|" for cell in known) > len(known) / 2
