"""How a text separates its fields: by a separator and quotes, or by fixed positions in every line.

In aligned text, values may contain single blanks and may be missing, so the number of words in a
line proves nothing. Columns are separated where no line of data has a character.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["AlignedText", "CsvDialect", "aligned_text", "find_dialect", "parsed_rows"]

_SEPARATORS = (",", ";", "\t", "|")
_LEAST_SCORE, _GOOD = 0.12, 0.9
_FIRST_LINES = re.compile(r'(?:(?![ \t"]*(?:-{3,}|={3,})?[ \t"]*\r?$).*\r?\n){3,}', re.MULTILINE)
"""Three or more lines up to a blank one, or one that draws a line."""
_SEP_LINE = re.compile(r'\ufeff?"?sep=(.)"?[ ;,\t]*(?:\r\n|\r|\n|$)', re.IGNORECASE)
_SEARCHED_LINES = 2_000
_TITLE_LINES = 12
_LEAST_DATA = 2
_LONGEST_LINE = 2_000
_MOST_COLUMNS, _EDGE_LINES = 200, 100
_RULE = re.compile(r"[\s\-=_+|]+")
_FIGURE = re.compile(r"[-+(]?[$€£]?[\d.,]*\d[\d.,]*\s?%?\)?")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class CsvDialect:
    """What a reader of delimited text needs to know to split fields."""

    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    """The sign before a quote inside a quoted field; `None` if the quote is doubled."""
    sep_lines: int = 0
    """1 if the first line only names the separator, as spreadsheet programs understand it."""
    agreement: float = 0.0
    """Share of the rows that have the usual number of fields; 0 if no separator was found."""
    has_spaces: bool = False
    """Whether a blank follows each separator."""
    has_runs: bool = False
    """Whether several separators in a row count as one, as tabs that align columns do."""


def parsed_rows(text: str, dialect: CsvDialect) -> list[list[str]]:
    """Return the rows of a text; blank lines are empty rows, and a broken end is left out."""
    rows: list[list[str]] = []
    if dialect.has_runs:
        return [re.sub("\t+", "\t", line).split("\t") for line in text.splitlines()]
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=dialect.separator,
        quotechar=dialect.quote,
        escapechar=dialect.escape,
        skipinitialspace=dialect.has_spaces,
    )
    try:
        rows.extend(reader)
    except csv.Error:
        # A field beyond the csv module's limit: the rows before it say enough.
        return rows
    return rows


def find_dialect(text: str) -> CsvDialect:
    """Return the dialect that the start of a file shows; with a comma if nothing shows one."""
    told = _SEP_LINE.match(text)
    if told:
        found = CsvDialect(told[1], sep_lines=1)
        found = replace(found, agreement=_agreement(text[told.end() :], found)[0])
    else:
        found = _separated(text)
    found = _spaced(text, _escaped(text, _quoted(text, found)))
    return _with_runs(text, found)


def _candidates(text: str) -> list[CsvDialect]:
    spaced = [sign for sign in _SEPARATORS if sign != "\t" and f'{sign} "' in text]
    plain = [CsvDialect(sign) for sign in _SEPARATORS]
    return [*plain, *(CsvDialect(sign, has_spaces=True) for sign in spaced)]


def _separated(text: str) -> CsvDialect:
    """Return the separator whose rows agree best on a width above one."""
    best, best_score = CsvDialect(), 0.0
    for dialect in _candidates(text):
        share, usual, is_first = _agreement(text, dialect)
        if not usual:
            continue
        # Agreement counts most, then width; text with a comma here and there agrees badly.
        score = share * share * (1 - 1 / (1 + usual))
        # The header is the best witness: a separator that it lacks is not one.
        if is_first:
            score *= 1.5
        if score > best_score:
            best, best_score = replace(dialect, agreement=share), score
    if best_score >= _LEAST_SCORE:
        return best
    # Long notes below a short table outvote it: ask its first lines alone.
    first = _FIRST_LINES.match(text)
    if first and len(first[0]) < len(text):
        return _separated(first[0])
    return _alone(text)


def _alone(text: str) -> CsvDialect:
    """Return the dialect of a file with one column: a separator that is in none of its texts."""
    if "," not in text:
        return CsvDialect()
    return CsvDialect(next((sign for sign in "\t|;" if sign not in text), ","))


def _with_runs(text: str, dialect: CsvDialect) -> CsvDialect:
    """Return the dialect with runs of tabs as one, if that leaves no name and no gap empty."""
    if dialect.separator != "\t" or "\t\t" not in text or '"' in text:
        return dialect
    lines = [re.sub("\t+", "\t", line).split("\t") for line in text.splitlines() if line.strip()]
    is_even = len({len(line) for line in lines}) == 1 and len(lines[0]) > 1
    plain = parsed_rows(text, dialect)
    if is_even and len(lines) > 2 and "" in plain[0] and all(map(all, lines)):
        return replace(dialect, has_runs=True, agreement=1.0)
    return dialect


def _agreement(text: str, dialect: CsvDialect) -> tuple[float, int, bool]:
    """Return the share of rows of the usual width, that width, and whether the first row has it.

    The width is 0 if no row has more than one field.
    """
    rows = parsed_rows(text, dialect)
    widths = [len(row) for row in rows if any(row) and not row[0].startswith("#")]
    wide = [width for width in widths if width > 1]
    if not wide:
        return 0.0, 0, False
    usual = max(set(wide), key=wide.count)
    return widths.count(usual) / len(widths), usual, widths[0] == usual


def _quoted(text: str, dialect: CsvDialect) -> CsvDialect:
    """Return the dialect with the apostrophe as quote if fields begin and end with it."""
    mark, head = re.escape(dialect.separator), text[:50_000]
    field = rf"(?:^|{mark}) ?(['\"])(?:(?!\1).)*\1(?= ?(?:{mark}|\r|\n|$))"
    fields = re.findall(field, head, re.MULTILINE)
    singles, doubles = fields.count("'"), fields.count('"')
    rows = head.count("\n") + 1
    if singles <= doubles or singles < min(2, rows):
        return dialect
    single = replace(dialect, quote="'")
    before, after = _agreement(text, dialect)[0], _agreement(text, single)[0]
    return replace(single, agreement=after) if after >= before else dialect


def _escaped(text: str, dialect: CsvDialect) -> CsvDialect:
    """Return the dialect with a backslash before quotes, if that makes rows fit better."""
    quote = dialect.quote
    if f"\\{quote}" not in text:
        return dialect
    escaped = replace(dialect, escape="\\")
    before, after = _agreement(text, dialect), _agreement(text, escaped)
    inside = re.search(rf"\\{quote}[^{re.escape(dialect.separator)}\r\n{quote}]", text)
    is_better = (after[0], len(parsed_rows(text, escaped))) > (
        before[0],
        len(parsed_rows(text, dialect)),
    )
    if is_better or (inside and after[0] >= before[0]):
        return replace(escaped, agreement=after[0])
    return dialect


def _spaced(text: str, dialect: CsvDialect) -> CsvDialect:
    """Return the dialect with blanks after separators, if quotes or all fields have them."""
    mark = re.escape(dialect.separator)
    is_odd = dialect.agreement < (0.5 if dialect.separator == "|" else _GOOD)
    if dialect.separator == "\t" or is_odd or dialect.has_spaces:
        return dialect
    head = text[:20_000]
    spaced = len(re.findall(rf"{mark} +\S", head))
    every = len(re.findall(rf"{mark}[^\r\n]", head))
    # In a drawn table, the lines between header and rows have no blanks.
    if spaced and spaced >= every * (0.6 if dialect.separator == "|" else 1):
        return replace(dialect, has_spaces=True)
    return dialect


@dataclass(frozen=True)
class AlignedText:
    """The cells of an aligned text, header first."""

    rows: tuple[list[str], ...]
    """Cells without blanks around them; the header first."""
    lines: tuple[int, ...]
    """The line of each row, counted from 0."""
    colspecs: tuple[tuple[int, int | None], ...]
    """First position of each column, and the one after its last."""
    preamble: tuple[str, ...]
    """Lines above the header that are not blank."""
    footer_lines: int
    """Lines below the last row, to the end of the text."""

    def row_count(self, header_rows: int) -> int | None:
        """Return the number of rows of data if lines follow them, else `None`."""
        return len(self.rows) - header_rows if self.footer_lines else None


def aligned_text(text: str) -> AlignedText | None:
    """Return the cells of a text with columns at fixed positions; `None` if it has none."""
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
    """Return the table whose header is in the line `top`; `None` if none begins there."""
    end = _end(lines, top)
    places = [at for at in range(top, end) if _is_filled(lines[at])]
    data = [lines[at] for at in places[1:]]
    if len(data) < _LEAST_DATA or not any("  " in line.strip() for line in (lines[top], *data)):
        return None  # single blanks separate words
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
    """Return where the lines of a table end: at the first blank line with data above it."""
    filled = 0
    for at in range(top, len(lines)):
        if not lines[at].strip() and filled > 2:
            return at if any(map(_is_filled, lines[at:])) else len(lines)
        filled += _is_filled(lines[at])
    return len(lines)


def _cuts(header: str, data: Sequence[str]) -> list[int]:
    """Return where columns begin; empty if header and data do not agree on it."""
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
    """Return where in a gap of the data the next column begins.

    -1 if the gap is inside a column of texts, `None` if names and columns don't agree.
    """
    padded = header.ljust(end + 1)
    free = [match.span() for match in re.compile(" +").finditer(padded, gap, end)]
    if not free:
        # A name that covers the gap has both sides below it.
        return None if _is_edge(data, gap, end) else -1
    names = [match.span() for match in _WORD.finditer(header)]
    if end - gap == 1 and not _is_edge(data, gap, end):
        # One blank in every line, between texts: a column only if a name begins after it.
        begins = any(start == end for start, _ in names)
        if not begins or (len(data) < 5 and padded[end - 2 : end] != "  "):
            return -1
    # A name may contain a blank: the widest run of them separates it from its neighbour.
    return max(free, key=lambda run: (run[1] - run[0], run[1]))[1]


def _is_edge(data: Sequence[str], gap: int, end: int) -> bool:
    """Return whether blanks are beside a column of figures."""
    lefts = [line[:gap].split()[-1:] for line in data[:_EDGE_LINES]]
    rights = [line[end:].split()[:1] for line in data[:_EDGE_LINES]]
    return _are_figures(lefts) or _are_figures(rights)


def _are_figures(words: Sequence[Sequence[str]]) -> bool:
    known = [word[0] for word in words if word]
    return bool(known) and all(_FIGURE.fullmatch(word) for word in known)


def _is_table(rows: list[list[str]]) -> bool:
    """Return whether cells look like a table: names that differ, few gaps, a column of figures."""
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
    """Return whether the cells of a column end in what separates fields elsewhere."""
    known = [cell for cell in cells if cell]
    return bool(known) and sum(cell[-1] in ",;|" for cell in known) > len(known) / 2
