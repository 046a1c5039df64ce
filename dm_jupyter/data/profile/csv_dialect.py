"""How the fields of a delimited text are parted and quoted."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace

__all__ = ["CsvDialect", "find_dialect", "parsed_rows"]

_SEPARATORS = (",", ";", "\t", "|")
_LEAST_SCORE, _GOOD = 0.12, 0.9
_FIRST_LINES = re.compile(r'(?:(?![ \t"]*(?:-{3,}|={3,})?[ \t"]*\r?$).*\r?\n){3,}', re.MULTILINE)
"""Three or more lines up to a blank one, or one that draws a line."""
_SEP_LINE = re.compile(r'\ufeff?"?sep=(.)"?[ ;,\t]*(?:\r\n|\r|\n|$)', re.IGNORECASE)


@dataclass(frozen=True)
class CsvDialect:
    """What a reader of delimited text has to know to tell fields."""

    separator: str = ","
    quote: str = '"'
    escape: str | None = None
    """The sign before a quote inside a quoted field; None where the quote is doubled."""
    sep_lines: int = 0
    """1 where the first line only names the separator, as spreadsheet programs understand it."""
    agreement: float = 0.0
    """Share of the rows that have the usual number of fields; 0 where no separator was found."""
    has_spaces: bool = False
    """A blank follows each separator."""
    has_runs: bool = False
    """Several separators in a row part two fields only, as tabs that align columns do."""


def parsed_rows(text: str, dialect: CsvDialect) -> list[list[str]]:
    """Returns the rows of a text; blank lines are empty rows, and a broken end is left out."""
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
    """Returns the dialect that the start of a file shows; a comma where nothing shows one."""
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
    """Returns the separator whose rows agree best on a width above one."""
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
    """Returns the dialect of a file with one column: a sign that is in none of its texts."""
    if "," not in text:
        return CsvDialect()
    return CsvDialect(next((sign for sign in "\t|;" if sign not in text), ","))


def _with_runs(text: str, dialect: CsvDialect) -> CsvDialect:
    """Returns the dialect with runs of tabs as one, where that leaves no name and no gap empty."""
    if dialect.separator != "\t" or "\t\t" not in text or '"' in text:
        return dialect
    lines = [re.sub("\t+", "\t", line).split("\t") for line in text.splitlines() if line.strip()]
    is_even = len({len(line) for line in lines}) == 1 and len(lines[0]) > 1
    plain = parsed_rows(text, dialect)
    if is_even and len(lines) > 2 and "" in plain[0] and all(map(all, lines)):
        return replace(dialect, has_runs=True, agreement=1.0)
    return dialect


def _agreement(text: str, dialect: CsvDialect) -> tuple[float, int, bool]:
    """Returns the share of rows of the usual width, that width, and whether the first row has it.

    The width is 0 where no row has more than one field.
    """
    rows = parsed_rows(text, dialect)
    widths = [len(row) for row in rows if any(row) and not row[0].startswith("#")]
    wide = [width for width in widths if width > 1]
    if not wide:
        return 0.0, 0, False
    usual = max(set(wide), key=wide.count)
    return widths.count(usual) / len(widths), usual, widths[0] == usual


def _quoted(text: str, dialect: CsvDialect) -> CsvDialect:
    """Returns the dialect with the apostrophe as quote where fields begin and end with it."""
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
    """Returns the dialect with a backslash before quotes, where that makes rows fit better."""
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
    """Returns the dialect with blanks after separators, where quotes or all fields have them."""
    mark = re.escape(dialect.separator)
    is_odd = dialect.agreement < (0.5 if dialect.separator == "|" else _GOOD)
    if dialect.separator == "\t" or is_odd or dialect.has_spaces:
        return dialect
    head = text[:20_000]
    spaced = len(re.findall(rf"{mark} +\S", head))
    every = len(re.findall(rf"{mark}[^\r\n]", head))
    # Lines between header and rows have no blanks, where a table is drawn.
    if spaced and spaced >= every * (0.6 if dialect.separator == "|" else 1):
        return replace(dialect, has_spaces=True)
    return dialect
