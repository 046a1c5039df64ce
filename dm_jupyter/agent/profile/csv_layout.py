"""How a delimited text is laid out: separator, header line, what is no data."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["CsvLayout", "find_layout", "parsed_rows"]

_SEPARATORS = (",", ";", "\t", "|")
_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class CsvLayout:
    """What has to be told to a csv reader, and what was seen on the way."""

    separator: str = ","
    skipped_lines: int = 0
    """Lines before the header that belong to no table."""
    has_header: bool = True
    header: tuple[str, ...] = ()
    """The header's fields as they stand in the file."""
    has_trailing_separator: bool = False
    """Every row of data ends with one separator more than the header."""
    preamble: tuple[str, ...] = ()
    """The skipped lines that are not blank."""


def parsed_rows(text: str, separator: str) -> list[list[str]]:
    """Returns the rows of a text; blank lines are empty rows, and a broken end is left out."""
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error:
        # A field beyond the csv module's limit: the rows before it say enough.
        return rows
    return rows


def find_layout(text: str, *, is_whole: bool, may_be_aligned: bool = False) -> CsvLayout:
    """Returns the layout that the start of a file shows.

    Args:
        text: the decoded start of the file.
        is_whole: whether that is all of it; otherwise the last line is cut and left out.
        may_be_aligned: whether columns parted by runs of spaces are looked for.
    """
    if not is_whole:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    separator = _separator(text)
    if separator is None and may_be_aligned and _is_aligned(text):
        return CsvLayout(r"\s+", header=tuple(text.lstrip().splitlines()[0].split()))
    separator = separator or ","
    rows = parsed_rows(text, separator)
    start = _header_row(rows)
    if start is None:
        return CsvLayout(separator)
    header, body = rows[start], [row for row in rows[start + 1 :] if any(row)]
    return CsvLayout(
        separator=separator,
        skipped_lines=_lines_before(text, separator, start),
        has_header=not _is_data(header, body),
        header=tuple(header),
        has_trailing_separator=_is_trailing(header, body),
        preamble=tuple(separator.join(row) for row in rows[:start] if any(row)),
    )


def _separator(text: str) -> str | None:
    """Returns the separator whose rows agree best on a width above one; None when none does."""
    best, best_score = None, 0.0
    for candidate in _SEPARATORS:
        rows = parsed_rows(text, candidate)
        widths = [len(row) for row in rows if any(row) and not row[0].startswith("#")]
        wide = [width for width in widths if width > 1]
        if not wide:
            continue
        usual = max(set(wide), key=wide.count)
        agreement = widths.count(usual) / len(widths)
        # Agreement counts most, then width; text with a comma here and there agrees badly.
        score = agreement * agreement * (1 - 1 / (1 + usual))
        # The header is the best witness: a separator that it lacks is not one.
        if widths[0] == usual:
            score *= 1.5
        if score > best_score:
            best, best_score = candidate, score
    return best if best_score >= 0.12 else None


def _is_aligned(text: str) -> bool:
    widths = {len(line.split()) for line in text.splitlines()[:200] if line.strip()}
    return len(widths) == 1 and widths.pop() > 1


def _header_row(rows: list[list[str]]) -> int | None:
    """Returns the index of the header: past a preamble of comments, titles and blank lines."""
    filled = [index for index, row in enumerate(rows) if any(row)]
    if not filled:
        return None
    comments = 0
    while comments < len(filled) and rows[filled[comments]][0].startswith("#"):
        comments += 1
    filled = _after_comments(rows, filled, comments)
    widths = [len(rows[index]) for index in filled]
    usual = max(set(widths), key=widths.count)
    if usual < 2 or widths[0] >= usual - 1:
        return filled[0]
    # Titles are narrower than the table that follows; look no further than a person would.
    for index in filled[:20]:
        row = rows[index]
        if len(row) >= usual and sum(1 for cell in row if cell.strip()) > len(row) / 2:
            return index
    return filled[0]


def _after_comments(rows: list[list[str]], filled: list[int], comments: int) -> list[int]:
    if comments == 0 or comments == len(filled):
        return filled
    first, following = rows[filled[0]], rows[filled[comments]]
    # "#id,name" over numbers is a header that begins with a hash sign.
    is_header = comments == 1 and len(first) == len(following) and any(map(_is_number, following))
    return filled if is_header else filled[comments:]


def _lines_before(text: str, separator: str, start: int) -> int:
    """Returns how many physical lines stand before row `start`, as `skiprows` counts them."""
    if start == 0:
        return 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    for _ in range(start):
        next(reader)
    return reader.line_num


def _is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text))


def _is_data(header: list[str], body: list[list[str]]) -> bool:
    """Says whether the first row is data: numbers only, and not a run such as years."""
    if not all(_is_number(cell) for cell in header):
        return False
    try:
        numbers = [int(cell) for cell in header]
    except ValueError:
        return True
    if len(numbers) == 1:
        return bool(body) and all(_is_number(cell) for row in body for cell in row)
    return any(after - before != 1 for before, after in pairwise(numbers))


def _is_trailing(header: list[str], body: list[list[str]]) -> bool:
    return bool(body) and all(len(row) == len(header) + 1 and not row[-1] for row in body)
