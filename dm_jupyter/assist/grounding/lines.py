"""Printed lines of words, lists and dictionaries as values with labels."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dm_jupyter.assist.grounding.blocks import NumberCell, TextBlock
from dm_jupyter.assist.grounding.numbers import StatedNumber, dates_in, numbers_in
from dm_jupyter.assist.grounding.statements import scopes
from dm_jupyter.assist.grounding.tables import number_of
from dm_jupyter.assist.grounding.words import Unit, content_words, unit_after

__all__ = [
    "RANGE",
    "literal_of",
    "record_rows",
    "takes_in",
    "tuple_rows",
    "unfolded",
    "words_blocks",
]

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
RANGE = re.compile(r"(?<![\w.,])\d+(?:\s?[-–]\s?\d+|\+)(?![\w.]*\d)")
_ASSIGNED = re.compile(r"(?<![^\s,;(])([^\W\d][\w.%/]*)\s?=\s?[$€£]?\Z")
"""Name before a value, as in `mean=3.1 sd=0.2`."""
_PLAIN_WORDS = re.compile(r"\s+[^\W\d][\w ]*\s")
_NO_NAMES = frozenset(("top", "first", "last", "n", "mean", "total", "count", "sum"))
_HEADED = re.compile(r"([^:=]{1,60}):\s|(\S[^=:]{0,60}?)\s+\w+\s?=\s?[-+\d]")
_OPENING, _CLOSING = frozenset("[({"), frozenset("])}")
_UNIT_CHARS, _NAME_CHARS = 8, 80
_AROUND = " ,;:=-*(@[\"'>"
_WRAPPED = re.compile(r"\b(?:np\.\w+|Decimal|Timestamp|datetime\.date)\(([^()]*)\)")
_TUPLE = re.compile(r"\(([^()]*)\)")
_TUPLES = re.compile(r"\[?\([^()]*\)(?:,?\s*\([^()]*\))+\]?")
_NEXT_VALUE = re.compile(r"\s[$€£]?[-−]?\d")
_FOLDED = re.compile(r"^[\[{](?:\s*|\s*['\"{\[].*,\s*)$", re.MULTILINE)
"""A line that opens a list or a dictionary, which continues below it."""
_MOST_UNFOLDED = 8_000
_STAMP = re.compile(
    r"^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?\]?\s*(?:-\s)?(?:\[?[A-Z]{4,8}\]?:?\s)?"
)
"""Beginning of a line of a log."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_RECORDS = re.compile(
    r"(?:[\w ]{1,40}[:=]\s*)?"
    r"([\[{](?:[^\[\]{}]*:\s*)?\{[^{}\[\]]*\}(?:,[^\[\]{}]*\{[^{}\[\]]*\})+[\]}])"
)
"""Two or more dictionaries in a list or in a dictionary."""
_SHAPE = re.compile(r"\(\s*(\d+)\s*,\s*(\d+)\s*\)")


@dataclass(slots=True)
class _Line:
    """A line of words with its numbers, and the words of each."""

    head: str = ""
    labels: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    numbers: list[StatedNumber] = field(default_factory=list)
    units: list[Unit | None] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    key_name: str = ""


def words_blocks(lines: Iterable[str], source: int) -> list[TextBlock]:
    """Return lines such as `Mean mass: 5076 g` as numbers with the words of their clauses."""
    read_lines = [_line(line) for line in lines]
    blocks: list[TextBlock] = []
    for is_table, run in _runs([line for line in read_lines if line.numbers]):
        block = TextBlock(source, columns=[""])
        if is_table:
            block = TextBlock(source, columns=run[0].labels, total_rows=len(run), is_table=True)
        elif blocks and not blocks[-1].is_table:
            block = blocks.pop()
        for line in run:
            _add_line(block, line)
        blocks.append(block)
    for line in read_lines:
        blocks = blocks or [TextBlock(source, columns=[""])]
        blocks[0].keys += line.keys
        blocks[0].key_names += [line.key_name] if line.key_name else []
    return blocks


def _runs(lines: list[_Line]) -> Iterator[tuple[bool, list[_Line]]]:
    """Yield consecutive lines, grouped if they are rows of one table."""
    run: list[_Line] = []
    for line in lines:
        if run and not _are_alike(run[0], line):
            yield len(run) > 1, _with_heads(run)
            run = []
        run.append(line)
    if run:
        yield len(run) > 1, _with_heads(run)


def _with_heads(run: list[_Line]) -> list[_Line]:
    """Name the lines of a table by their first label, if only that differs."""
    if len(run) > 1 and not run[0].head:
        common = [word for word in content_words(run[0].labels[0]) if _is_shared(word, run)]
        for line in run:
            line.head, line.labels[0] = line.labels[0], " ".join(common)
    return run


def _is_shared(word: str, run: list[_Line]) -> bool:
    return all(word in content_words(line.labels[0]) for line in run)


def _add_line(block: TextBlock, line: _Line) -> None:
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
        block.cells.append(NumberCell(value, text, row, column))
        for part in _split_numbers(number):
            block.cells.append(NumberCell(part.value, part.text, row, column))


def _are_alike(one: _Line, other: _Line) -> bool:
    """Whether two lines are rows of a table: each has a name, and the same words per number."""
    if len(one.numbers) < 2 or bool(one.head) != bool(other.head):
        return False
    mine = [content_words(label) for label in one.labels]
    theirs = [content_words(label) for label in other.labels]
    if one.head:
        return mine == theirs
    return mine[1:] == theirs[1:] and bool(set(mine[0]) & set(theirs[0])) and all(mine[1:])


def _line(line: str) -> _Line:
    """Parse the numbers of a line, without those that are labels: dates, years, `Cluster 3:`."""
    line = _STAMP.sub("", line)
    dates = dates_in(line)
    numbers = [
        number
        for number in numbers_in(line)
        if not any(start <= number.start < end for start, end in dates)
    ]
    every = numbers
    ranges = [match.span() for match in RANGE.finditer(line)]
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
    kept = {number.start for number in numbers}
    found.keys = [number.text for number in every if number.start not in kept]
    found.numbers = numbers
    start = keyed.end() - 1 if found.key_name and keyed else max(0, line.find(found.head))
    start += 0 if found.key_name else len(found.head)
    is_led = _is_led(line, numbers)
    for number, scope in zip(numbers, scopes(start, len(line), line, numbers), strict=True):
        before, after = line[slice(*scope.before)], line[slice(*scope.after)]
        if is_led and number is not numbers[0]:
            before, after = line[numbers[len(found.labels) - 1].end : number.start], ""
        elif is_led:
            after = ""
        assigned = _ASSIGNED.search(line[max(0, number.start - _NAME_CHARS) : number.start])
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


def _is_led(line: str, numbers: list[StatedNumber]) -> bool:
    """Whether each number of a line follows its name, as `crashes 12 sessions 480`."""
    if len(numbers) < 2 or line[numbers[-1].end :].strip():
        return False
    between = [line[one.end : other.start] for one, other in pairwise(numbers)]
    return all(_PLAIN_WORDS.fullmatch(text) for text in between)


def _is_named_year(line: str, number: StatedNumber, numbers: list[StatedNumber]) -> bool:
    """Whether it is a year before another number, as `2014: 500` or `in 2014 it was 500`."""
    if not number.is_year or len(numbers) < 2:
        return False
    before = line[: number.start].rstrip().lower()
    if before[-1:].isalpha() and _NEXT_VALUE.match(line, number.end):
        return True
    return line[number.end : number.end + 1] == ":" or before.endswith((" in", "year", "(in"))


def _split_numbers(number: StatedNumber) -> Iterator[StatedNumber]:
    if "," in number.text:
        yield from numbers_in(number.text.replace(",", " "))


def literal_of(line: str, source: int) -> TextBlock | None:
    """Parse a list, tuple or dictionary into labelled numbers; return `None` for other lines."""
    opened = re.search(r"[\[{(]", line)
    is_closed = not _CLOSING.isdisjoint(re.split(r"\w", line)[-1])
    if not opened or not is_closed or re.match(r"\W*@[^\[\]]+\[", line):
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
        and re.search(r"[A-Za-z]{3} [A-Za-z]{2}", line[opened.start() :])
    ):
        return None
    block = TextBlock(source, columns=[prefix.strip(" :=")], levels=1)
    _take_tokens(block, tokens)
    block.key_names = [(prefix.split() or [""])[-1].strip(":=")] if block.keys else []
    shape = _SHAPE.fullmatch(line.strip()[len(prefix) :]) if "(" in line else None
    if shape:
        block.rows, block.parts = ["rows", "columns"], []
        block.total_rows, block.total_columns = int(shape[1]), int(shape[2])
    else:
        block.total_rows = len(block.rows) or len(block.labels)
    return block


def _take_tokens(block: TextBlock, tokens: list[str]) -> None:
    """Add the numbers of a literal to the block, with the names of all enclosing levels."""
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
            if token.isdecimal() and not _YEAR.fullmatch(token):
                block.keys.append(token)
                key[:] = [f"#{token}"]
            block.labels += key
        elif token[0] in "'\"":
            texts[:] = [*texts[-2:], token.strip("'\"")]
            block.labels.append(texts[-1])
        elif (value := number_of(token.replace("_", ""))) is not None:
            names = tuple(one for level in levels[-4:] for half in level for one in half)
            block.rows.append(", ".join(names))
            block.parts.append(names)
            block.cells.append(NumberCell(value, token, len(block.rows) - 1, 0))


def unfolded(text: str) -> str:
    """Return a text with each list or dictionary of several lines, as in indented JSON, on one.

    Every character keeps its position.
    """
    if not _FOLDED.search(text):
        return text
    found: list[str] = []
    depth = 0
    for line in text.split("\n"):
        opens = line.count("{") + line.count("[")
        closes = line.count("}") + line.count("]")
        if depth and len(found[-1]) < _MOST_UNFOLDED:
            found[-1] += " " + line
            depth += opens - closes
        else:
            found.append(line)
            depth = opens - closes if _FOLDED.match(line) else 0
        depth = max(depth, 0)
    return "\n".join(found)


def tuple_rows(lines: Sequence[str]) -> list[list[str]] | None:
    """Return the cells of tuples as databases return them; `None` if they are not a table.

    Args:
        lines: each a tuple, or all of them in one list.
    """
    text = _WRAPPED.sub(r"\1", "\n".join(lines).strip())
    if not _TUPLES.fullmatch(text):
        return None
    rows = [
        [cell.strip("'\"") for cell in _LITERAL.findall(match[1]) if cell != ","]
        for match in _TUPLE.finditer(text)
    ]
    is_table = len(rows) > 1 and len(rows[0]) > 2 and len({len(row) for row in rows}) == 1
    is_named = is_table and any(
        all(number_of(cell) is None for cell in column) for column in zip(*rows, strict=True)
    )
    return rows if is_named else None


def record_rows(line: str) -> list[list[str]] | None:
    """Return the cells of dictionaries with equal keys, in a list or dictionary, with the head.

    Args:
        line: as Python or JSON writes it, perhaps with a name before it.
    """
    match = _RECORDS.fullmatch(line.strip())
    if not match or len(line) > _MOST_UNFOLDED:
        return None
    text = _WRAPPED.sub(r"\1", match[1])
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    names = list(value) if isinstance(value, dict) else []
    records = list(value.values()) if isinstance(value, dict) else value
    keys = list(records[0]) if records and isinstance(records[0], dict) else []
    if (
        len(records) < 2
        or not keys
        or any(not isinstance(record, dict) or list(record) != keys for record in records)
    ):
        return None
    rows = [[str(record[key]) for key in keys] for record in records]
    if not any(number_of(cell) is not None for row in rows for cell in row):
        return None
    if names:
        return [
            ["", *map(str, keys)],
            *([str(name), *row] for name, row in zip(names, rows, strict=True)),
        ]
    return [list(map(str, keys)), *rows]


def takes_in(block: TextBlock, literal: TextBlock) -> bool:
    """Add a named tuple to those of the previous lines, and return whether it matched them."""
    if len(literal.parts) != 1 or not block.parts or block.is_table or not literal.labels:
        return False
    row = len(block.rows)
    block.rows += literal.rows
    block.parts += literal.parts
    block.labels += literal.labels
    block.cells += [cell._replace(row=row) for cell in literal.cells]
    block.total_rows = len(block.rows)
    return True
