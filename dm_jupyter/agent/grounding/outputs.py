"""What cells have shown, as values with labels: tables, lines of words, lists and dictionaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from dm_jupyter.agent.grounding.numbers import Number, dates_in, numbers_in, plain_numbers
from dm_jupyter.agent.grounding.statements import Vocabulary, scopes
from dm_jupyter.agent.grounding.tables import (
    Block,
    Cell,
    delimited_cells,
    number_of,
    table_of,
    text_cells,
)
from dm_jupyter.agent.grounding.words import Unit, content_words, unit_after

__all__ = ["Outputs", "read"]

_TABULAR = re.compile(r"\S(?: {2,}|\t)\s*\S|^\s+\S|\S {2,}$|^[^\s:]+ -\d")
_FOOTER = re.compile(
    r"^(?:(?:Freq: [^,]*, )?(?:Name: (?P<name>.*?), )?(?:Length: (?P<length>\d+), )?"
    r"(?:Freq: [^,]*, )?dtype: \S.*|\[(?P<rows>\d+) rows x (?P<columns>\d+) columns\])\s*$"
)
_ENTRIES = re.compile(
    r"^(?:(?:Range|\w*)Index: (?P<rows>\d+) entries|.*\btotal (?P<columns>\d+) columns)"
    r"|^(?P<saved>\d+) rows x (?P<wide>\d+) columns"
)
_SHAPE = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_NOTHING = re.compile(
    r"\bEmpty DataFrame|\bSeries\(\[\]|^\s*(?:\[\]|\{\}|\(\))\s*$|\bno rows\b|\(0, \d+\)|^0 rows\b",
    re.M | re.I,
)
_SKIPPED = re.compile(r"^(?:line: |\[… [\d,]+ |.*\bmemory usage\b)")
_LITERAL = re.compile(
    r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|[\[\](){},:]|[-+]?\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?%?"
    r"|[A-Za-z_][\w.]*"
)
_KEYED = re.compile(
    r"\W*(?P<name>[^\W\d]+)[ #]+(?P<key>\d+)(?![.,]\d)(?P<rest>[^\d:=(]{0,30}[:=(]|\W*-)"
)
_PAIRED = re.compile(
    r"(?P<head>[^:=,;]{1,60}?)\s*(?:->|=>|→|:|=)\s+(?P<value>[-+−$€£]?\d[\d.,eE+-]*\s?[^\s\d,;]{0,12})\s*$"
)
_NAMED = re.compile(r"\W*@(?P<head>[^\[\]]{1,60})\[(?P<value>[^\[\]]*)\]\s*$")
_RANGE = re.compile(r"(?<![\w.,])\d+(?:\s?[-–]\s?\d+|\+)(?![\w.]*\d)")
_ASSIGNED = re.compile(r"(?<![^\s,;(])([^\W\d][\w.%/]*)\s?=\s?[$€£]?\Z")
"""Before a value, as in `mean=3.1 sd=0.2`."""
_NO_NAMES = frozenset(("top", "first", "last", "n", "mean", "total", "count", "sum"))
_HEADED = re.compile(r"([^:=]{1,60}):\s|(\S[^=:]{0,60}?)\s+\w+\s?=\s?[-+\d]")
_QUANTILE = re.compile(r"p?(\d{1,2})%?")
_NUMBERING = frozenset(("id", "cod", "key", "no", "nr", "num"))
_INDEX_NAME = re.compile(r"[^\W\d]\w*(?: \w+){0,3}\s*")
_OPENING, _CLOSING = frozenset("[({"), frozenset("])}")
_JOINED = re.compile(r"(?<![\d.])\d{1,3},\d{3}(?!\d)")
_TWO_TABLES = 4
_UNIT_CHARS = 8
_AROUND = " ,;:=-*(@[\"'>"
_LONG_LINE, _LONG_GROUP = 1_000, 200
_MOST_LABELLED = 1_500
"""Values that are read with their labels; those after them are only numbers."""
_MOST_LABELS = 2_000
_LABEL_WORDS, _MOST_ALIKE = 6, 100


@dataclass(slots=True)
class Outputs:
    """All that the cells of a run have shown."""

    blocks: list[Block] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    """Numbers without labels, as written."""
    bare_from: list[tuple[int, int]] = field(default_factory=list)
    """Where in `bare` those of an output begin, and which output that is."""
    texts: Sequence[str] = ()
    empty: int | None = None
    """The output that said that there is nothing."""
    vocabulary: Vocabulary = field(default_factory=Vocabulary)


def read(texts: Sequence[str]) -> Outputs:
    """Returns what outputs hold, in time linear in their length.

    Args:
        texts: of each cell, as plain text.
    """
    found = Outputs(texts=texts)
    left = _MOST_LABELLED
    for source, text in reversed(list(enumerate(texts))):  # the last ones are what is answered from
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
    """Lines of an output that are read as one."""

    kind: str
    """`table` for aligned ones, `|`, `,` or `\t` for delimited ones, else `words`."""
    lines: list[str] = field(default_factory=list)
    is_series: bool = False
    name: str = ""
    total: tuple[int | None, int | None] = (None, None)
    is_long: bool = False
    start: int = 0
    """Where it begins in the output."""


def _parts(text: str) -> Iterator[_Part]:
    part = _Part("words")
    start = following = 0
    for line in text.split("\n"):
        start, following = following, following + len(line) + 1
        footer = _FOOTER.match(line) if len(line) < _LONG_LINE else None
        if footer:
            yield from _closed(part, footer)
            part = _Part("words", start=following)
            continue
        if _SKIPPED.match(line):
            continue
        kind = _kind(line, part)
        starts_anew = kind == part.kind == "table" and _is_new_head(line, part.lines[-1])
        if kind != part.kind or starts_anew or len(part.lines) >= _LONG_GROUP or not line.strip():
            head = _taken_over(part, line) if kind == "table" and part.kind != "table" else []
            if part.lines:
                yield part
            part = _Part(kind, head, start=start)
        if line.strip():
            part.lines.append(line.rstrip("\\") if kind == "table" else line)
            part.is_long = part.is_long or len(line) > _LONG_LINE
    if part.lines:
        yield part


def _of_one_width(part: _Part) -> list[_Part]:
    """A table as it is, or two that follow each other without a line between, each as wide."""
    if part.kind != "table" or len(part.lines) < _TWO_TABLES:
        return [part]
    widths = [len(line.rstrip()) if _has_number(line) else 0 for line in part.lines]
    begin = next((at for at, width in enumerate(widths) if width), len(widths))
    cut = next((at for at in range(begin, len(widths)) if widths[at] != widths[begin]), 0)
    rest = set(widths[cut:])
    is_short = not cut or cut - begin < 2 or len(widths) - cut < 2
    if is_short or rest & {0, widths[begin]} or len(rest) > 1:
        return [part]
    first = replace(part, lines=part.lines[:cut], is_series=False, name="", total=(None, None))
    return [first, replace(part, lines=part.lines[cut:])]


def _has_number(line: str) -> bool:
    return any(number_of(cell) is not None for cell in line.split())


def _closed(part: _Part, footer: re.Match[str]) -> Iterator[_Part]:
    """The lines above a footer, with what it says of them."""
    if footer["rows"]:
        part.total = int(footer["rows"]), int(footer["columns"])
    else:
        part.name = (footer["name"] or "").strip()
        part.is_series = True
        part.total = (int(footer["length"]) if footer["length"] else None, None)
    if part.lines or part.total != (None, None):
        yield part


def _taken_over(part: _Part, line: str) -> list[str]:
    """The last line of the words before a table, where it is the table's head."""
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
    if stripped[:1] in "[{(" or "{'" in line or ": [" in line or ": (" in line:
        return "words"
    if "\t" in line.strip():
        return "\t"
    if _TABULAR.search(line):
        return "table"
    if part.kind == "table" and part.lines and len(line.rstrip()) == len(part.lines[-1].rstrip()):
        return "table" if len(stripped.split()) > 1 and stripped[-1] not in ".:" else "words"
    is_listed = "," in line and ": " not in line and not re.search(r", \S|[.:]$", line)
    return "," if is_listed else "words"


def _is_new_head(line: str, before: str) -> bool:
    """Whether a line begins the next table: no number, after one with numbers."""
    if not line[:1].isspace() or not line.strip() or re.search(r"\bNaN\b", line):
        return False
    numbers = [cell for cell in line.split() if number_of(cell) is not None]
    last = [cell for cell in before.split() if number_of(cell) is not None]
    return not numbers and bool(last)


def _blocks(part: _Part, source: int) -> list[Block]:
    block = None
    if part.kind == "table" and (len(part.lines) > 1 or part.is_series):
        block = _aligned(part, source)
    elif part.kind in "|,\t" and len(part.lines) > 1:
        cells = delimited_cells(part.lines, part.kind)
        block = table_of(cells, source) if cells else None
    if block is not None:
        _describe(block, part)
        return [block, *_joined_numbers(part, source)]
    found = []
    if part.total != (None, None):
        found.append(Block(source, total_rows=part.total[0], total_columns=part.total[1]))
    return [*found, *_lines(part.lines, source)]


def _aligned(part: _Part, source: int) -> Block | None:
    """The table of aligned lines; the name of a series' index is not aligned."""
    lines, index_name, is_series = part.lines, "", part.is_series
    is_short = len(lines) > 1 and len(lines[0].rstrip()) < len(lines[1].rstrip())
    is_name = len(lines) > 1 and bool(_INDEX_NAME.fullmatch(lines[0]))
    if is_name and (is_series or (is_short and len(lines) > 2)):
        index_name, lines, is_series = lines[0].strip(), lines[1:], True
    return table_of(
        _ragged_cells(lines) or text_cells(lines),
        source,
        is_series=is_series,
        name=part.name,
        index_name=index_name,
    )


def _ragged_cells(lines: Sequence[str]) -> list[list[str]] | None:
    """The cells of lines that are not aligned, where two spaces split all alike."""
    aligned = {len(line.rstrip()) for line in lines}
    rows = [re.split(r" {2,}", line.strip()) for line in lines]
    if len(aligned) == 1 or len(rows[-1]) < 3:
        return None
    if lines[0][:1].isspace() and len(rows[0]) == len(rows[-1]) - 1:
        rows[0] = ["", *rows[0]]
    return rows if len({len(row) for row in rows}) == 1 else None


def _describe(block: Block, part: _Part) -> None:
    """Takes what a footer says, and cuts off what an index of `describe` names in its own way."""
    rows, columns = part.total
    if rows is not None:
        block.total_rows = rows
    block.total_columns = columns or block.total_columns


def _joined_numbers(part: _Part, source: int) -> list[Block]:
    """`100,200` in a line of a csv file may be one number, too."""
    if part.kind != ",":
        return []
    found = [match.group(0) for line in part.lines for match in _JOINED.finditer(line)]
    cells = [Cell(float(text.replace(",", "")), text, at, 0) for at, text in enumerate(found)]
    return [Block(source, rows=[""] * len(cells), columns=[""], cells=cells)] if cells else []


def _lines(lines: list[str], source: int) -> list[Block]:
    found: list[Block] = []
    words: list[str] = []
    for line in lines:
        entries = _ENTRIES.match(line)
        literal = None if entries else _literal(line, source)
        if literal is not None:
            if not (found and _continues(found[-1], literal)):
                found.append(literal)
        elif entries:
            rows = entries["rows"] or entries["saved"]
            columns = entries["columns"] or entries["wide"]
            found.append(
                Block(
                    source,
                    total_rows=int(rows) if rows else None,
                    total_columns=int(columns) if columns else None,
                )
            )
        else:
            words.append(line)
    return [*found, *(block for block in _words_blocks(words, source) if block.cells)]


@dataclass(slots=True)
class _Line:
    """A line of words with its numbers, and which words each of them has."""

    head: str = ""
    labels: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    numbers: list[Number] = field(default_factory=list)
    units: list[Unit | None] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    key_name: str = ""


def _words_blocks(lines: Iterable[str], source: int) -> list[Block]:
    """Lines such as `Mean mass: 5076 g`: each number with the words of its clause."""
    read_lines = [_line(line) for line in lines]
    blocks: list[Block] = []
    for is_table, run in _runs([line for line in read_lines if line.numbers]):
        block = Block(source, columns=[""])
        if is_table:
            block = Block(source, columns=run[0].labels, total_rows=len(run), is_table=True)
        elif blocks and not blocks[-1].is_table:
            block = blocks.pop()
        for line in run:
            _add_line(block, line)
        blocks.append(block)
    for line in read_lines:
        blocks = blocks or [Block(source, columns=[""])]
        blocks[0].keys += line.keys
        blocks[0].key_names += [line.key_name] if line.key_name else []
    return blocks


def _runs(lines: list[_Line]) -> Iterator[tuple[bool, list[_Line]]]:
    """Lines that follow each other, those together that are rows of one table."""
    run: list[_Line] = []
    for line in lines:
        if run and not _are_alike([run[0], line]):
            yield len(run) > 1, run
            run = []
        run.append(line)
    if run:
        yield len(run) > 1, run


def _add_line(block: Block, line: _Line) -> None:
    if block.is_table:
        block.labels.append(line.head)
        block.rows.append(line.head)
    for at, number in enumerate(line.numbers):
        if not block.is_table:
            head = line.head if len(line.numbers) > 1 else ""
            block.rows.append(f"{head} {line.labels[at]}".strip())
            if line.names[at]:
                block.labels.append(line.names[at])
        row = len(block.rows) - 1
        column = at if block.is_table else 0
        unit = line.units[at]
        if unit:
            block.units[row, column] = unit
        value = number.value * 10.0 ** max(0, number.exponent)
        text = number.digits + ("%" if number.is_percentage else "")
        block.cells.append(Cell(value, text, row, column))
        for part in _split_numbers(number):
            block.cells.append(Cell(part.value, part.text, row, column))


def _are_alike(lines: list[_Line]) -> bool:
    """Whether lines are rows of a table: each with a name, and the same words for its numbers."""
    if len(lines) < 2 or len(lines[0].numbers) < 2 or not all(line.head for line in lines):
        return False
    first = [content_words(label) for label in lines[0].labels]
    return all([content_words(label) for label in line.labels] == first for line in lines)


def _line(line: str) -> _Line:
    """The numbers of a line, without those that are names: dates, years, `Cluster 3:`."""
    dates = dates_in(line)
    numbers = [
        number
        for number in numbers_in(line)
        if not any(start <= number.start < end for start, end in dates)
    ]
    every = numbers
    ranges = [match.span() for match in _RANGE.finditer(line)]
    if len(numbers) > 1:
        numbers = [
            number
            for number in numbers
            if not any(start <= number.start < end for start, end in ranges)
        ]
    numbers = [number for number in numbers if not _is_named_year(line, number, numbers)]
    found = _Line()
    keyed = _KEYED.match(line)
    paired = _PAIRED.match(line) or _NAMED.match(line)
    if paired and not keyed and re.search(r"\d", paired["head"]):
        numbers = [number for number in numbers if number.start >= paired.start("value")]
    if keyed and len(numbers) > 1 and keyed["name"].lower() not in _NO_NAMES:
        numbers = [number for number in numbers if number.start != keyed.start("key")]
        found.key_name = keyed["name"]
        found.head = f"{keyed['name']} #{keyed['key']} {keyed['rest'].strip(' :=(-')}".strip()
    elif paired and len(numbers) == 1:
        found.head = paired["head"].strip(_AROUND)
    elif headed := _HEADED.match(line):
        found.head = (headed[1] or headed[2]).strip(_AROUND)
        numbers = [number for number in numbers if number.start >= len(found.head)]
    found.keys = [number.text for number in every if number not in numbers]
    found.numbers = numbers
    start = keyed.end() - 1 if found.key_name and keyed else max(0, line.find(found.head))
    start += 0 if found.key_name else len(found.head)
    for number, scope in zip(numbers, scopes(start, len(line), line, numbers), strict=True):
        before, after = line[slice(*scope.before)], line[slice(*scope.after)]
        assigned = _ASSIGNED.search(line[: number.start])
        label = f"{before.strip(' ,;:')} {after.strip(' ,;')}".strip()
        found.labels.append(assigned[1] if assigned and len(numbers) > 1 else label)
        found.units.append(unit_after(line, number.start, number.end))
        name = before.strip(_AROUND)
        behind = after.strip(" ,;)]")
        is_name = name and len(behind) < _UNIT_CHARS and " " not in behind and len(name) < 60
        found.names.append(name if is_name else "")
    if len(numbers) == 1 and found.head:
        found.labels = [f"{found.head} {found.labels[0]}"]
        found.names[0] = found.names[0] or found.head
    return found


def _is_named_year(line: str, number: Number, numbers: list[Number]) -> bool:
    """Whether it is a year before another number, as `2014: 500` or `in 2014 it was 500`."""
    if not number.is_year or len(numbers) < 2:
        return False
    before = line[: number.start].rstrip().lower()
    return line[number.end : number.end + 1] == ":" or before.endswith((" in", "year", "(in"))


def _split_numbers(number: Number) -> Iterator[Number]:
    if "," in number.text:
        yield from numbers_in(number.text.replace(",", " "))


def _literal(line: str, source: int) -> Block | None:
    """A list, tuple or dictionary with what each of its numbers belongs to; `None` for others."""
    opened = re.search(r"[\[{(]", line)
    if not opened or not re.search(r"[\]})]\W*$", line) or re.match(r"\W*@[^\[\]]+\[", line):
        return None
    prefix = line[: opened.start()]
    if re.search(r"\d", prefix) or not re.search(r"(?:^|[:=]\s*|\w)$", prefix):
        return None
    if not re.match(r"[\[{(][\s\[({'\"\d.+-]|\S*\(", line[opened.start() :]):
        return None
    tokens = _LITERAL.findall(line[opened.start() :])
    if (
        len(tokens) > 3
        and not re.search(r"['\"]", line)
        and re.search(r"[A-Za-z]{3,} [A-Za-z]{2,}", line[opened.start() :])
    ):
        return None
    block = Block(source, columns=[prefix.strip(" :=")], levels=1)
    _take_tokens(block, tokens)
    shape = _SHAPE.fullmatch(line.strip()[len(prefix) :]) if "(" in line else None
    if shape:
        block.rows, block.parts = ["rows", "columns"], []
        block.total_rows, block.total_columns = int(shape[1]), int(shape[2])
    else:
        block.total_rows = len(block.rows) or len(block.labels)
    return block


def _take_tokens(block: Block, tokens: list[str]) -> None:
    """Takes the numbers of a literal into the block, with the names of all that they are in."""
    levels: list[tuple[list[str], list[str]]] = [([], [])]
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        texts, key = levels[-1]
        if token in _OPENING:
            levels.append(([], []))
        elif token in _CLOSING:
            levels = levels[:-1] or [([], [])]
        elif following == ":":
            key[:] = [token.strip("'\"")]
            block.labels += key
        elif token[0] in "'\"":
            texts[:] = [*texts[-2:], token.strip("'\"")]
            block.labels.append(texts[-1])
        elif (value := number_of(token.replace("_", ""))) is not None:
            names = tuple(one for level in levels[-4:] for half in level for one in half)
            block.rows.append(", ".join(names))
            block.parts.append(names)
            block.cells.append(Cell(value, token, len(block.rows) - 1, 0))


def _continues(block: Block, literal: Block) -> bool:
    """Takes a tuple with a name into those of the lines before, where they are alike."""
    if len(literal.parts) != 1 or not block.parts or block.is_table or not literal.labels:
        return False
    row = len(block.rows)
    block.rows += literal.rows
    block.parts += literal.parts
    block.labels += literal.labels
    block.cells += [cell._replace(row=row) for cell in literal.cells]
    block.total_rows = len(block.rows)
    return True


def _vocabulary(blocks: list[Block]) -> Vocabulary:
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
        for name in block.key_names:
            named = [word for word in content_words(name) if word not in _NUMBERING]
            names |= set(named[-1:])
            columns.add(name.lower().split("_")[-1].split(" ")[-1])
    words: set[str] = set()
    for label in list(labels)[:_MOST_LABELS]:
        phrase = content_words(label, is_label=True)
        words |= set(phrase)
        if phrase and len(phrase) <= _LABEL_WORDS:
            alike = phrases.setdefault(phrase[0], {})
            if len(alike) < _MOST_ALIKE:
                alike[phrase] = None
        if re.search(r"\d", label) and number_of(label) is None and len(with_digits) < 300:
            with_digits[label.lower()] = None
            for part in _RANGE.findall(label):
                with_digits[part] = None
    return Vocabulary(
        {first: list(found) for first, found in phrases.items()},
        frozenset(words),
        frozenset(names),
        frozenset(columns),
        frozenset(keys),
        frozenset(match[1] for label in labels if (match := _QUANTILE.fullmatch(label))),
        tuple(with_digits),
    )
