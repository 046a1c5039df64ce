"""Tables in plain text, as pandas, databases and people write them: values with their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dm_jupyter.assist.grounding.blocks import NumberCell, TextBlock
from dm_jupyter.assist.grounding.words import content_words

__all__ = ["delimited_cells", "number_of", "text_block_of", "text_cells"]

_NUMBER = re.compile(
    r"(?P<money>[$€£]\s?)?(?P<number>[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?(?:[eE][-+]?\d{1,3})?"
    r"|[-+]?\.\d+)\s?(?P<unit>%|[kMB]\b)?"
)
_EMPTY = frozenset(("NaN", "nan", "None", "<NA>", "NaT", "-", "—", ""))
_SOLID = bytes(48 if code in (9, 32) else 49 for code in range(256))
"""Translation of a line to 0 for each space and 1 for all else."""
_GAP = frozenset(("...", ".."))
_RULE = re.compile(r"[\s|+:=-]*")
_LONE = re.compile(r"(?<![^\s(=])[-+]?\d[\d,]*(?:\.\d+)?%?(?![^\s)%,])")
_VERSIONED = frozenset(("version", "release", "build"))
"""Words of columns whose numbers are labels: `version 1.1`."""
_COUNTED = frozenset(("count", "sum", "mean"))
_YEARS = range(1500, 2101)


def number_of(text: str) -> float | None:
    """Return the value of a numeric cell; `None` for another one."""
    try:
        value = float(text)
    except ValueError:
        match = _NUMBER.fullmatch(text)
        if not match:
            return None
        value = float(match["number"].replace(",", "").replace("−", "-"))
        return value * {"k": 1e3, "M": 1e6, "B": 1e9}.get(match["unit"] or "", 1)
    return value if value == value and "_" not in text else None  # noqa: PLR0124 - not NaN


def text_cells(lines: Sequence[str]) -> list[list[str]]:
    """Return the cells of an aligned table: columns end where every line has a space.

    Args:
        lines: of one table, including the header.
    """
    width = max(map(len, lines))
    solid = 0
    for line in lines:
        padded = line.ljust(width).encode("latin-1", "replace")
        solid |= int(padded.translate(_SOLID), 2)
    places = [match.span() for match in re.finditer("1+", f"{solid:0{width}b}")]
    return [[line[start:end].strip() for start, end in places] for line in lines]


def delimited_cells(lines: Sequence[str], delimiter: str) -> list[list[str]] | None:
    """Return the cells of lines as `a,b` or `| a | b |`; `None` if their counts differ."""
    kept = [line.strip() for line in lines if not _RULE.fullmatch(line)]
    if delimiter == "|":
        kept = [line.strip("|") for line in kept]
    rows = [[cell.strip().strip("*`\"'") for cell in line.split(delimiter)] for line in kept]
    widths = {len(row) for row in rows}
    return rows if len(widths) == 1 and widths != {1} else None


def text_block_of(
    rows: list[list[str]],
    source: int,
    *,
    is_series: bool = False,
    name: str = "",
    index_name: str = "",
) -> TextBlock | None:
    """Return a table's values with their labels; `None` if it contains neither.

    Args:
        rows: its cells, all rows of equal width.
        source: the index of its output.
        is_series: whether only the last column contains values, as shown by `dtype:` below it.
        name: of a series.
        index_name: of a series' index, if it appeared above the values.
    """
    rows = [row for row in rows if not _RULE.fullmatch("".join(row)) or any(map(_is_value, row))]
    rows = _without_gaps(rows)
    if not rows:
        return None
    heads, every = _split(rows, is_series)
    body = [row for row in every if not _GAP.issuperset(filter(None, row))]
    if not body:
        return None
    total = len(body) if len(body) == len(every) else None
    if is_series and not heads:  # spaces inside the labels of one index
        body = [[" ".join(filter(None, row[:-1])), row[-1]] for row in body]
    heads, body = _merged(heads, body)
    index = _index_width(heads, body, is_series)
    block = TextBlock(source, is_table=True, total_rows=total, levels=max(1, index))
    block.columns = _column_labels(heads, index, len(body[0]))
    if is_series:
        block.columns[-1] = name or block.columns[-1]
    block.index_name = index_name or (" ".join(heads[-1][:index]).strip() if heads else "")
    _fill(block, body, index, is_series=is_series)
    block.total_columns = len(body[0]) - index
    return block if block.cells or block.labels else None


def _without_gaps(rows: list[list[str]]) -> list[list[str]]:
    """Return the cells without the columns of dots that represent omitted ones."""
    columns = zip(*rows, strict=True)
    kept = [not _GAP.issuperset(filter(None, column)) or not any(column) for column in columns]
    if all(kept):
        return rows
    return [[cell for cell, is_kept in zip(row, kept, strict=True) if is_kept] for row in rows]


def _is_value(text: str) -> bool:
    return number_of(text) is not None or text in ("NaN", "<NA>", "True", "False")


def _split(rows: list[list[str]], is_series: bool) -> tuple[list[list[str]], list[list[str]]]:
    """Return the lines of the header, and those below it."""
    first = rows[0]
    if is_series:
        count = int(not first[-1] and any(first))
        return rows[:count], rows[count:]
    values = [number_of(cell) for cell in first]
    numbers = [value for value in values if value is not None]
    are_years = len(rows) > 1 and all(value in _YEARS for value in numbers) and len(numbers) > 1
    below = rows[1] if len(rows) > 1 else []
    is_named = any(below) and not any(below[1:])
    if numbers and first[0] and not is_named and not (are_years and values[0] is None):
        return [], rows
    count = 1
    while count < len(rows) and not rows[count][0] and not any(map(_is_value, rows[count])):
        count += 1
    if count < len(rows) - 1 and not rows[count][-1] and not any(map(_is_value, rows[count])):
        count += 1  # the names of the index
    return rows[:count], rows[count:]


def _merged(
    heads: list[list[str]], body: list[list[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the cells, rejoining those that a space inside a name or a text has split."""
    width = len(body[0])
    if not heads:
        return heads, body
    has_head = [any(head[at] for head in heads) for at in range(width)]
    has_body = [any(row[at] for row in body) for at in range(width)]
    is_text = [not any(_is_value(row[at]) for row in body) for at in range(width)]
    first = has_head.index(True) if any(has_head) else width
    is_ranked = first > 0 and all(row[0].isdecimal() for row in body)
    columns = _first_column(heads)
    with_next = [False] * width
    for at in range(width - 1):  # which of the next two cells a lone one belongs to
        if 0 < at + 1 < columns and not has_head[at + 1]:
            with_next[at] = True  # a part of the labels, whose name is above the first part
        elif at < first:  # names of rows, or their numbers and a text
            with_next[at] = not (is_ranked and at == 0) and (at + 1 < first or is_ranked)
        elif at and not has_body[at] and not any(head[at] for head in heads[:-1]):
            with_next[at - 1] = True  # a word of the index's name
        else:
            is_text_of_next = is_text[at + 1] and has_body[at + 1] and at >= columns
            with_next[at] = not has_body[at] or (not has_head[at] and is_text_of_next)
        if not has_head[at + 1] and at >= first and is_text[at] and is_text[at + 1]:
            is_of_next = at + 2 < width and has_head[at + 2] and is_text[at + 2]
            with_next[at] = with_next[at] or not is_of_next
    return _joined(heads, with_next), _joined(body, with_next)


def _first_column(heads: list[list[str]]) -> int:
    """Return where the columns begin next to a named index; 0 if it has no name."""
    if len(heads) < 2 or heads[-1][-1]:
        return 0
    width = len(heads[0])
    return next((at for at in range(width) if any(head[at] for head in heads[:-1])), 0)


def _joined(rows: list[list[str]], with_next: list[bool]) -> list[list[str]]:
    """Return the rows with each marked cell joined to the next one."""
    groups: list[list[int]] = [[]]
    for at, is_joined in enumerate(with_next):
        groups[-1].append(at)
        if not is_joined and at < len(with_next) - 1:
            groups.append([])
    return [[" ".join(filter(None, (row[at] for at in group))) for group in groups] for row in rows]


def _index_width(heads: list[list[str]], body: list[list[str]], is_series: bool) -> int:
    """Return how many of the first columns are labels of rows."""
    width = len(body[0])
    if is_series:
        return width - 1
    if not heads:
        texts = [not any(_is_value(row[at]) for row in body) for at in range(width)]
        return min((at for at in range(width) if not texts[at]), default=0)
    if len(heads) > 1 and not heads[-1][-1]:
        return max(1, sum(1 for cell in heads[-1] if cell))
    return min((at for at in range(width) if any(head[at] for head in heads)), default=0)


def _column_labels(heads: list[list[str]], index: int, width: int) -> list[str]:
    names = heads[:-1] if len(heads) > 1 and not heads[-1][-1] else heads
    labels = [""] * width
    for head in names:
        last = ""
        for at in range(index, width):
            last = head[at] or (last if head is not names[-1] else "")
            labels[at] = f"{labels[at]} {last}".strip()
    for at in range(index):
        labels[at] = " ".join(filter(None, (head[at] for head in heads[-1:])))
    return labels


def _fill(block: TextBlock, body: list[list[str]], index: int, *, is_series: bool) -> None:
    """Add the rows to the block: labels from some columns, values from others."""
    columns = list(zip(*body, strict=True))
    values = [[number_of(cell) for cell in column] for column in columns]
    block.is_ranked = _is_rank(block, columns, values, index, is_series)
    first = int(block.is_ranked)
    leading = index if first == index else -1
    versions = {
        at
        for at in range(first, len(columns))
        if _VERSIONED & set(content_words(block.columns[at]))
    }
    keys = {
        at
        for at in range(first, len(columns))
        if _is_key(at, columns, values, index) or (at == leading and _tells_apart(at, columns))
    }
    texts = {
        at
        for at in range(first, len(columns))
        if at not in keys
        and (at < index or at in versions or not any(one is not None for one in values[at]))
    }
    if block.is_ranked and not keys and not texts:
        keys = {0}  # nothing else names the rows
    keys = {at for at in keys if not set(content_words(_key_name(block, at))) & _COUNTED}
    block.key_names = [_key_name(block, at) for at in sorted(keys)]
    before = [""] * index
    for number, row in enumerate(body):
        before = [cell or above for cell, above in zip(row[:index], before, strict=True)]
        full = [*before, *row[index:]]
        named = [
            _named_key(block, full[at], at)
            if at in keys
            else f"{block.columns[at]} {full[at]}"
            if at in versions
            else full[at]
            if at < index
            else _without_numbers(full[at])
            for at in sorted(keys | texts)
        ]
        block.rows.append(", ".join(name for name in named if name not in _EMPTY))
        block.parts.append(tuple(name for name in named if name not in _EMPTY))
        block.labels += [
            f"{block.columns[at]} {full[at]}" if at in versions else full[at]
            for at in sorted(texts)
            if full[at] not in _EMPTY
        ]
        block.keys += [full[at] for at in sorted(keys)]
        for at in range(index, len(row)):
            value = values[at][number] if at not in versions else None
            if value is not None:
                block.cells.append(NumberCell(value, row[at], number, at))
            elif any(map(str.isdecimal, row[at])):
                block.cells += [
                    NumberCell(size, text, number, at) for size, text in _inside(row[at])
                ]


def _without_numbers(text: str) -> str:
    """Return the words of a cell that also contains values."""
    numbers = [written for _, written in _inside(text) if "." in written]
    for written in numbers if not text[:1].isdecimal() else ():
        text = text.replace(written, "", 1)
    return text.strip()


def _is_rank(
    block: TextBlock,
    columns: list[tuple[str, ...]],
    values: list[list[float | None]],
    index: int,
    is_series: bool,
) -> bool:
    """Whether the index only numbers the rows; the result of `value_counts` has no order."""
    if index != 1 or block.index_name or not all(map(str.isdecimal, columns[0])):
        return False
    if block.total_rows is None:
        return columns[0][0] == "0"
    if all(value in _YEARS for value in values[0]):
        return False
    in_order = list(columns[0]) == [str(at) for at in range(len(columns[0]))]
    return in_order or not is_series


def _inside(text: str) -> Iterator[tuple[float, str]]:
    """Yield the numbers of a cell with other text, as `344 non-null`; none of a date or a name."""
    for match in _LONE.finditer(text[:200]):
        value = number_of(match.group(0).rstrip("%,"))
        if value is not None:
            yield value, match.group(0)


def _is_key(
    at: int, columns: list[tuple[str, ...]], values: list[list[float | None]], index: int
) -> bool:
    """Whether the numbers of a column identify its rows: those of an index, or years."""
    if not all(map(str.isdecimal, columns[at])):
        return False
    return at < index or all(value in _YEARS for value in values[at])


def _tells_apart(at: int, columns: list[tuple[str, ...]]) -> bool:
    """Whether a first column has unique whole numbers, as `class` without an index."""
    cells = columns[at]
    return all(map(str.isdecimal, cells)) and len(set(cells)) == len(cells) > 1 < len(columns) - at


def _key_name(block: TextBlock, at: int) -> str:
    if block.is_ranked and at == 0:
        return ""
    return block.columns[at] or block.index_name or block.columns[-1]


def _named_key(block: TextBlock, cell: str, at: int) -> str:
    """Return a number that is a label as an answer names it: `class #3`; a year unchanged."""
    if not cell.isdecimal() or int(cell) in _YEARS:
        return cell
    return f"{_key_name(block, at)} #{cell}"
