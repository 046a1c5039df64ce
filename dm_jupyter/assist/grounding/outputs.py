"""Outputs of cells as values with labels: tables, lines of words, lists and dictionaries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from unicodedata import normalize

from dm_jupyter.assist.grounding.blocks import NumberCell, TextBlock
from dm_jupyter.assist.grounding.lines import (
    RANGE,
    literal_of,
    record_rows,
    takes_in,
    tuple_rows,
    unfolded,
    words_blocks,
)
from dm_jupyter.assist.grounding.names import Vocabulary
from dm_jupyter.assist.grounding.numbers import plain_numbers
from dm_jupyter.assist.grounding.spans import INTERVAL, interval_edges, interval_spellings
from dm_jupyter.assist.grounding.tables import delimited_cells, number_of, text_block_of, text_cells
from dm_jupyter.assist.grounding.words import content_words

__all__ = ["Outputs", "read_outputs"]

_TABULAR = re.compile(r"\S {2}|^\s+\S|^[^\s:]+ -\d")
_FOOTER = re.compile(
    r"^(?:(?:Freq: [^,]*, )?(?:Name: (?P<name>.*?), )?(?:Length: (?P<length>\d+), )?"
    r"(?:Freq: [^,]*, )?dtype: \S.*|\[(?P<rows>\d+) rows x (?P<columns>\d+) columns\])\s*$"
)
_ENTRIES = re.compile(
    r"^(?:(?:Range|\w*)Index: (?P<rows>\d+) entries|.*\btotal (?P<columns>\d+) columns)"
    r"|^(?P<saved>\d+) rows x (?P<wide>\d+) columns"
)
_BOX = str.maketrans("│┆║", "|||")
_TYPES = re.compile(
    r"(?:varchar|str|string|utf8|cat|u?int(?:eger)?\d*|[iuf]\d+|(?:big|huge|small|tiny)int|double|"
    r"float\d*|real|decimal.*|numeric.*|bool(?:ean)?|date|time.*|datetime.*)?",
    re.IGNORECASE,
)
"""Types of columns, as printed in the cells below a table's head."""
_NOTHING = re.compile(
    r"\bEmpty DataFrame|\bSeries\(\[\]|^[^\S\n]*(?:\[\]|\{\}|\(\))[^\S\n]*$|\bno rows\b|\(0, \d+\)"
    r"|^0 rows\b",
    re.M | re.I,
)
_SKIPPED = re.compile(r"^(?:line: |\[… [\d,]+ |.*\bmemory usage\b|\s*[┌├└╞╭╰╒╘]|\s*\+[-=+]+\+\s*$)")
_QUANTILE = re.compile(r"(?<!\S)(\d{1,2})%(?!\S)")
_QUANTITY = re.compile(
    r"(?<=\s)\d[\d.,]* ?[^\W\d_]+\d?(?!\w)|\b(?:over|under|above|below|than|least|most) \d+(?!\w)"
)
"""A number in a label with what it counts, as in `prediction for 100 m2`."""
_NUMBERING = frozenset(("id", "cod", "key", "no", "nr", "num"))
_LETTERED = re.compile(r"([A-Za-z])(\d{1,3})")
_CALLED = {"k": {"clusters", "neighbors", "neighbours", "components", "topics", "folds"}}
"""Things that a letter counts."""
_GENERIC = frozenset(content_words("class cluster group category label level"))
"""Things that unnamed numbers may be labels of."""
_INDEX_NAME = re.compile(r"[^\W\d]\w*(?: \w+){0,3}\s*")
_JOINED = re.compile(r"(?<![\d.])\d{1,3},\d{3}(?!\d)")
_TWO_TABLES = 4
_LONG_LINE, _LONG_LITERAL, _LONG_GROUP = 1_000, 8_000, 200
_MOST_LABELLED = 1_500
"""Values that are read with their labels; further ones are only numbers."""
_MOST_LABELS = 2_000
_LABEL_WORDS, _MOST_ALIKE = 6, 100


@dataclass(slots=True)
class Outputs:
    """Everything that the cells of a run have shown."""

    blocks: list[TextBlock] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    """Numbers without labels, as written."""
    bare_from: list[tuple[int, int]] = field(default_factory=list)
    """Index in `bare` at which the numbers of an output begin, and the index of that output."""
    texts: Sequence[str] = ()
    empty: int | None = None
    """The output that reported an empty result."""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)


def read_outputs(texts: Sequence[str]) -> Outputs:
    """Return the contents of outputs, in time linear in their length.

    Args:
        texts: of each cell, as plain text.
    """
    found = Outputs(texts=texts)
    left = _MOST_LABELLED
    for source, text in reversed(list(enumerate(texts))):  # answers rely on the last outputs
        if found.empty is None and _NOTHING.search(text[:10_000]):
            found.empty = source
        found.bare_from.append((len(found.bare), source))
        for part in chain.from_iterable(map(_of_one_width, _parts(text))):
            if left <= 0:
                found.bare += plain_numbers(text[part.start :])
                break
            if part.is_long:
                found.bare += plain_numbers("\n".join(part.lines))
                continue
            blocks = _blocks(part, source)
            left -= sum(len(block.cells) + len(block.labels) // 4 for block in blocks)
            found.blocks += blocks
    found.vocabulary = _vocabulary(found.blocks)
    return found


@dataclass(slots=True)
class _Part:
    """Lines of an output that are read together."""

    kind: str
    """Kind of lines: `table` if aligned, `|`, `,` or `\t` if delimited, else `words`."""
    lines: list[str] = field(default_factory=list)
    is_series: bool = False
    name: str = ""
    total: tuple[int | None, int | None] = (None, None)
    is_long: bool = False
    start: int = 0
    """Position in the output at which it begins."""


def _parts(text: str) -> Iterator[_Part]:
    part = _Part("words")
    start = following = 0
    for written in unfolded(text).split("\n"):
        start, following = following, following + len(written) + 1
        line = written.translate(_BOX)
        footer = _FOOTER.match(line) if len(line) < _LONG_LINE else None
        if footer:
            yield from _closed(part, footer)
            part = _Part("words", start=following)
            continue
        if _SKIPPED.match(line) or (not line.strip() and _is_open(part)):
            continue
        kind = _kind(line, part)
        starts_anew = kind == part.kind == "table" and (
            _is_new_head(line, part.lines[-1]) or (line == part.lines[0] and _is_head(line))
        )
        if kind != part.kind or starts_anew or len(part.lines) >= _LONG_GROUP or not line.strip():
            head = _taken_over(part, line) if kind == "table" and part.kind != "table" else []
            if part.lines:
                yield part
            part = _Part(kind, head, start=start)
        if line.strip():
            part.lines.append(line.rstrip("\\") if kind == "table" else line)
            is_literal = kind == "words" and line[:1] in "[{("
            part.is_long = part.is_long or len(line) > (_LONG_LITERAL if is_literal else _LONG_LINE)
    if part.lines:
        yield part


def _is_open(part: _Part) -> bool:
    """Whether a table is only a head so far, which an empty line may follow."""
    return part.kind == "table" and len(part.lines) == 1 and not _has_number(part.lines[0])


def _of_one_width(part: _Part) -> list[_Part]:
    """Return a table, or two if its lines have two widths: adjacent tables without a blank line."""
    if part.kind != "table" or len(part.lines) < _TWO_TABLES:
        return [part]
    widths = [len(line.rstrip()) for line in part.lines]
    begin = next((at for at, line in enumerate(part.lines) if _has_number(line)), len(widths))
    cut = next((at for at in range(begin, len(widths)) if widths[at] != widths[begin]), 0)
    rest = set(widths[cut:])
    if (
        not cut
        or cut - begin < 2
        or len(widths) - cut < 2
        or widths[begin] in rest
        or len(rest) > 1
        or not any(map(_has_number, part.lines[cut:]))
    ):
        return [part]
    first = replace(part, lines=part.lines[:cut], is_series=False, name="", total=(None, None))
    return [first, replace(part, lines=part.lines[cut:])]


def _has_number(line: str) -> bool:
    return any(number_of(cell) is not None for cell in line.split())


def _closed(part: _Part, footer: re.Match[str]) -> Iterator[_Part]:
    """Yield the lines above a footer, with what it says of them."""
    if footer["rows"]:
        part.total = int(footer["rows"]), int(footer["columns"])
    else:
        part.name = (footer["name"] or "").strip()
        part.is_series = True
        part.total = (int(footer["length"]) if footer["length"] else None, None)
    if part.lines or part.total != (None, None):
        yield part


def _taken_over(part: _Part, line: str) -> list[str]:
    """Remove and return the last line of the words before a table, if it is the table's head."""
    last = part.lines[-1] if part.lines else ""
    is_level = len(last.rstrip()) == len(line.rstrip()) and not last.rstrip().endswith((":", "."))
    is_name = bool(_INDEX_NAME.fullmatch(last)) and bool(line[:1].strip())
    if last and (is_level or is_name):
        part.lines.pop()
        return [last]
    return []


def _kind(line: str, part: _Part) -> str:
    if line.count("|") >= 2 or (part.kind == "|" and "|" in line):
        return "|"
    stripped = line.strip()
    is_literal = stripped[:1] in "[{(" or "{'" in line or ": [" in line or ": (" in line
    if is_literal:
        return "table" if INTERVAL.match(stripped) else "words"
    if "\t" in line.strip():
        return "\t"
    if _TABULAR.search(line):
        return "table"
    if part.kind == "table" and part.lines and len(line.rstrip()) == len(part.lines[-1].rstrip()):
        return "table" if len(stripped.split()) > 1 and stripped[-1] not in ".:" else "words"
    is_listed = "," in line and ": " not in line and not re.search(r", \S|[.:]$", line)
    return "," if is_listed else "words"


def _is_head(line: str) -> bool:
    """Whether a line may name columns."""
    return not _has_number(line) and len(line.split()) > 1


def _is_new_head(line: str, before: str) -> bool:
    """Whether a line begins the next table: it has no number, the line before it has one."""
    if not line[:1].isspace() or not line.strip() or re.search(r"\bNaN\b", line):
        return False
    numbers = [cell for cell in line.split() if number_of(cell) is not None]
    last = [cell for cell in before.split() if number_of(cell) is not None]
    return not numbers and bool(last)


def _blocks(part: _Part, source: int) -> list[TextBlock]:
    block = None
    if part.kind == "table" and (len(part.lines) > 1 or part.is_series):
        block = _aligned(part, source)
    elif part.kind in "|,\t" and len(part.lines) > 1:
        cells = delimited_cells(part.lines, part.kind)
        cells = cells and [row for row in cells if not all(map(_TYPES.fullmatch, row))]
        block = text_block_of(cells, source) if cells else None
    if block is not None:
        _describe(block, part)
        return [block, *_joined_numbers(part, source)]
    found = []
    if part.total != (None, None):
        found.append(TextBlock(source, total_rows=part.total[0], total_columns=part.total[1]))
    return [*found, *_lines(part.lines, source)]


def _aligned(part: _Part, source: int) -> TextBlock | None:
    """Return the table of aligned lines; the name of a series' index is not aligned."""
    lines, index_name, is_series = part.lines, "", part.is_series
    is_short = len(lines) > 1 and len(lines[0].rstrip()) < len(lines[1].rstrip())
    is_name = len(lines) > 1 and bool(_INDEX_NAME.fullmatch(lines[0]))
    if is_name and (is_series or (is_short and len(lines) > 2)):
        index_name, lines, is_series = lines[0].strip(), lines[1:], True
    return text_block_of(
        _ragged_cells(lines) or text_cells(lines),
        source,
        is_series=is_series,
        name=part.name,
        index_name=index_name,
    )


def _ragged_cells(lines: Sequence[str]) -> list[list[str]] | None:
    """Return the cells of unaligned lines, if two spaces split all into equally many."""
    aligned = {len(line.rstrip()) for line in lines}
    rows = [re.split(r" {2,}", line.strip()) for line in lines]
    if len(aligned) == 1 or len(rows[-1]) < 3:
        return None
    if lines[0][:1].isspace() and len(rows[0]) == len(rows[-1]) - 1:
        rows[0] = ["", *rows[0]]
    return rows if len({len(row) for row in rows}) == 1 else None


def _describe(block: TextBlock, part: _Part) -> None:
    """Add the totals of a footer to the block."""
    rows, columns = part.total
    if rows is not None:
        block.total_rows = rows
    block.total_columns = columns or block.total_columns


def _joined_numbers(part: _Part, source: int) -> list[TextBlock]:
    """Return numbers such as `100,200` of csv lines, which may also be one number each."""
    if part.kind != ",":
        return []
    found = [match.group(0) for line in part.lines for match in _JOINED.finditer(line)]
    cells = [NumberCell(float(text.replace(",", "")), text, at, 0) for at, text in enumerate(found)]
    return [TextBlock(source, rows=[""] * len(cells), columns=[""], cells=cells)] if cells else []


def _lines(lines: list[str], source: int) -> list[TextBlock]:
    found: list[TextBlock] = []
    others: list[str] = []
    for is_tuple, run in groupby(lines, _is_tuple):
        part = list(run)
        rows = tuple_rows(part) if is_tuple else None
        table = text_block_of(rows, source) if rows else None
        if table:
            found += [*_words(others, source), table]
            others = []
        else:
            others += part
    return [*found, *_words(others, source)]


def _is_tuple(line: str) -> bool:
    stripped = line.strip()
    return stripped[:1] in "[(" and stripped[-1:] in ")]," and "(" in stripped


def _words(lines: list[str], source: int) -> list[TextBlock]:
    found: list[TextBlock] = []
    words: list[str] = []
    for line in lines:
        entries = _ENTRIES.match(line)
        records = record_rows(line)
        literal = text_block_of(records, source) if records else None
        literal = literal or (None if entries else literal_of(line, source))
        if literal is not None:
            if not (found and takes_in(found[-1], literal)):
                found.append(literal)
        elif entries:
            rows = entries["rows"] or entries["saved"]
            columns = entries["columns"] or entries["wide"]
            found.append(
                TextBlock(
                    source,
                    total_rows=int(rows) if rows else None,
                    total_columns=int(columns) if columns else None,
                )
            )
        else:
            words.append(line)
    return [*found, *(block for block in words_blocks(words, source) if block.cells)]


def _in_one_form(label: str) -> str:
    words = content_words(label, is_label=True) if re.search(r"\d|median", label) else ()
    return " ".join(words).replace("median", "50%")


def _vocabulary(blocks: list[TextBlock]) -> Vocabulary:
    phrases: dict[str, dict[tuple[str, ...], None]] = {}
    names: set[str] = set()
    columns: set[str] = set()
    keys: set[str] = set()
    with_digits: dict[str, None] = {}
    labels: dict[str, None] = {}
    for block in blocks:
        labels |= dict.fromkeys(block.labels[:_MOST_LABELS])
        if not block.is_table:
            labels |= dict.fromkeys(block.rows[:_MOST_LABELS])
        keys |= set(block.keys[:_MOST_LABELS])
        names |= _GENERIC if "" in block.key_names else set()
        for name in block.key_names:
            named = [word for word in content_words(name, is_label=True) if word not in _NUMBERING]
            names |= set(named[-1:])
            columns |= _CALLED.get(name, set())
            columns.add(name.lower().split("_")[-1].split(" ")[-1])
    heads = {word for block in blocks for name in block.columns for word in content_words(name)}
    words: set[str] = set()
    for label in list(labels)[:_MOST_LABELS]:
        phrase = content_words(label, is_label=True)
        words |= set(phrase)
        if phrase and len(phrase) <= _LABEL_WORDS:
            alike = phrases.setdefault(phrase[0], {})
            if len(alike) < _MOST_ALIKE:
                alike[phrase] = None
        if re.search(r"\d", label) and number_of(label) is None and len(with_digits) < 300:
            with_digits |= {
                normalize("NFC", label.lower()): None,
                normalize("NFD", label.lower()): None,
            }
            with_digits |= dict.fromkeys(_QUANTITY.findall(label.lower()))
            with_digits |= dict.fromkeys([*RANGE.findall(label), *interval_spellings(label)])
    return Vocabulary(
        {first: list(found) for first, found in phrases.items()},
        frozenset(words),
        frozenset(names),
        frozenset(columns),
        frozenset(keys),
        frozenset(word for word in heads if len(word) in (3, 4)),
        frozenset(edge for label in labels for edge in interval_edges(label)),
        frozenset(
            match[1] for label in labels for match in _QUANTILE.finditer(_in_one_form(label))
        ),
        {
            f"{match[1]}{int(match[2])}".lower(): label.lower()
            for label in labels
            if (match := _LETTERED.fullmatch(label))
        },
        tuple(with_digits),
    )
