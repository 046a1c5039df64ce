"""One table as text: its load line, a line per column or group of columns, some rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby

from dm_jupyter.data.profile.model import ColumnProfile, Scalar, TableProfile

__all__ = [
    "columns_text",
    "fitted_list",
    "frequent_text",
    "key_text",
    "row_text",
    "shape",
    "table_text",
    "value_text",
]

_NUMBERED = re.compile(r"(.*?)(\d{1,9})(\D*)")
_LONG_NAME_CHARS = 120
_VALUE_CHARS = 40
_ROW_CHARS = 400
_WHOLE_CHARS = 1_000
"""Length up to which all rows of a table are shown: about ten seconds of a local model."""
_RUN = 4
_OFTEN = 3
"""Number of most frequent values that are shown of many."""
_LEAST_ROWS = 8
"""Fewest rows to look for a key: in fewer, almost anything is unique."""
_OF_KEYS = re.compile(
    r"(?:^|[\W_])(?:id|key|code|no|nr|number|index|uuid|date|time|timestamp|year)(?:$|[\W_])",
    re.IGNORECASE,
)
_ID_AT_END = re.compile(r"[a-z]I[dD]$")


def shape(table: TableProfile) -> str:
    """Return how many rows and columns a table has, as a person would say it."""
    if not table.columns and not table.row_count:
        return "empty"
    if table.row_count is None:
        rows = "rows not counted"
    else:
        rows = f"{table.row_count:,} row{'' if table.row_count == 1 else 's'}"
    columns = f"{len(table.columns):,} column{'' if len(table.columns) == 1 else 's'}"
    sampled = f" (statistics from {table.sampled_rows:,} rows)" if table.sampled_rows else ""
    return f"{rows} x {columns}{sampled}"


def table_text(table: TableProfile, room: int) -> str:
    """Return load line, columns, warnings and rows in at most `room` characters, best first."""
    parts: list[str] = []
    if table.load_code:
        load = table.load_code
        parts.append(f"Load:\n{load}" if "\n" in load else f"Load: {load}")
        room -= len(parts[0]) + 1
    if room < 0:
        # Half a line of code is worse than none: say that it is missing.
        return "(load line too long to show here)"
    if table.warnings:
        parts.append(fitted_list("Warnings:", list(table.warnings), room // 3))
        room -= len(parts[-1]) + 1
    if table.columns:
        parts.insert(1 if table.load_code else 0, columns_text(table.columns, room))
        room -= len(parts[1 if table.load_code else 0]) + 1
    if (key := key_text(table)) and len(key) < room:
        parts.insert(2 if table.load_code else 1, key)
        room -= len(key) + 1
    rows = _rows_text(table, room)
    if rows:
        parts.append(rows)
    return "\n".join(part for part in parts if part)


def columns_text(columns: Sequence[ColumnProfile], room: int) -> str:
    """Return the columns in the fullest form that fits."""
    title = "Columns:"
    groups = _runs(columns)
    forms = (
        [_full_line(column, _counted(column)) for column in columns],
        [_full_line(column) for column in columns],
        [_group_line(group, _full_line) for group in groups],
        [_group_line(group, _short_line) for group in groups],
    )
    for lines in forms:
        if len(title) + sum(len(line) + 1 for line in lines) <= room:
            return "\n".join([title, *lines])
    return _ends(title, columns, groups, room)


def row_text(row: Sequence[Scalar], room: int) -> str:
    """Return one row in the form of a tuple in code, cut with a mark if it is too long."""
    cells = ", ".join(value_text(cell) for cell in row[:200])
    if len(row) > 200 or len(cells) + 2 > room:
        return f"({cells[: max(0, room - 3)]}…)"
    return f"({cells},)" if len(row) == 1 and len(cells) + 3 <= room else f"({cells})"


def fitted_list(title: str, items: list[str], room: int) -> str:
    """Return a list of as many items as fit, and how many don't."""
    if not items:
        return ""
    lines, used = [title], len(title)
    for position, item in enumerate(items):
        line = f"- {item if len(item) <= 400 else item[:400] + '…'}"
        rest = len(items) - position
        reserve = 0 if rest == 1 else 30
        if used + len(line) + 1 + reserve > room:
            lines.append(f"- … {rest} more not shown")
            break
        lines.append(line)
        used += len(line) + 1
    text = "\n".join(lines)
    return text if len(text) <= room else ""


def _rows_text(table: TableProfile, room: int) -> str:
    rows = table.sample_rows
    if len(rows) == table.row_count:
        whole = "\n".join(["All rows:", *(row_text(row, _ROW_CHARS) for row in rows)])
        if len(whole) <= min(room, _WHOLE_CHARS):
            return whole
    lines, used = ["Rows:"], 5
    for row in (*rows[:2], *rows[max(2, len(rows) // 2) :])[:3]:
        left = room - used - 1
        # A row of which little can be shown says nothing.
        if left < min(60, 8 * len(row)):
            break
        lines.append(row_text(row, min(left, _ROW_CHARS)))
        used += len(lines[-1]) + 1
    return "\n".join(lines) if len(lines) > 1 else ""


def _full_line(column: ColumnProfile, values: str = "") -> str:
    """Return all that is known of a column; `values` describes its values instead of examples."""
    words = [column.dtype]
    if column.missing:
        words.append(f"{column.missing:,} missing")
    if column.minimum is not None and column.minimum != column.maximum:
        words.append(f"{value_text(column.minimum)} … {value_text(column.maximum)}")
    elif column.minimum is not None:
        words.append(f"always {value_text(column.minimum)}")
    elif values:
        words.append(values)
    elif column.examples:
        shown = ", ".join(value_text(value) for value in column.examples)
        is_all = column.unique is not None and column.unique <= len(column.examples)
        count = f"{_distinct(column)}: " if column.unique is not None else ""
        words.append(f"{count}{shown}" if is_all else f"{count}{shown}, …")
    if column.note:
        words.append(column.note)
    return f"- {_name(column)}: {', '.join(words)}"


def _distinct(column: ColumnProfile) -> str:
    return f"{'about ' if column.is_unique_estimated else ''}{column.unique or 0:,} distinct"


def _counted(column: ColumnProfile) -> str:
    """Return the most frequent texts with their counts; empty if none appears twice."""
    found = frequent_text(column)
    if not found or column.unique is None:
        return ""
    is_all = column.unique <= len(column.frequent)
    return f"{_distinct(column)}{':' if is_all else ', most frequent'} {found}"


def frequent_text(column: ColumnProfile) -> str:
    """Return all of a column's few texts with their counts, or the first of many.

    Empty if the counts say nothing, as for names that appear once each.
    """
    if not column.frequent or column.frequent[0][1] < 2 or column.unique == 1:
        return ""
    is_all = column.unique is not None and column.unique <= len(column.frequent)
    shown = column.frequent if is_all else column.frequent[:_OFTEN]
    return ", ".join(f"{value_text(value)} ({count:,})" for value, count in shown)


def key_text(table: TableProfile) -> str:
    """Return what identifies a row; empty if that is not sure.

    A single column is found by its counts. It is named only if it comes first or has a name typical
    of keys: among a few rows a measure can be unique by accident. It is never named if it has
    fractions.
    """
    if table.key:
        return f"One row for each {' and '.join(map(value_text, table.key))} (no two are alike)"
    if table.sampled_rows is not None or (table.row_count or 0) < _LEAST_ROWS:
        return ""
    unique = [
        (place, column.name)
        for place, column in enumerate(table.columns)
        if column.unique == table.row_count and column.missing == 0
        if not column.is_unique_estimated and "float" not in column.dtype
    ]
    named = [
        name
        for place, name in unique
        if place == 0 or _OF_KEYS.search(name) or _ID_AT_END.search(name)
    ]
    return f"One row for each {value_text(named[0])} (no two are alike)" if named else ""


def _short_line(column: ColumnProfile) -> str:
    return f"- {_name(column)}: {column.dtype}"


def _name(column: ColumnProfile) -> str:
    """Return the name as a literal: whatever it says, it reads as data."""
    if len(column.name) <= _LONG_NAME_CHARS:
        return repr(column.name)
    return f"{column.name[:_LONG_NAME_CHARS]!r}… (name of {len(column.name):,} characters)"


def value_text(value: Scalar) -> str:
    """Return a cell as a literal, cut if it is long."""
    if isinstance(value, str):
        return repr(value if len(value) <= _VALUE_CHARS else f"{value[:_VALUE_CHARS]}…")
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def _runs(columns: Sequence[ColumnProfile]) -> list[list[ColumnProfile]]:
    """Return neighbours that differ only in a rising number as one group, others alone."""
    groups: list[list[ColumnProfile]] = []
    keyed = ((_stem(column, position), column) for position, column in enumerate(columns))
    for _, members in groupby(keyed, key=lambda pair: pair[0]):
        group = [column for _, column in members]
        groups += [group] if len(group) >= _RUN else [[column] for column in group]
    return groups


def _stem(column: ColumnProfile, position: int) -> tuple[object, ...]:
    """Return what members of a run share: the words around the number and its distance."""
    match = _NUMBERED.fullmatch(column.name)
    if match is None:
        return (position, column.name)
    return (match[1], match[3], column.dtype, int(match[2]) - position)


def _group_line(group: list[ColumnProfile], line: Callable[[ColumnProfile], str]) -> str:
    if len(group) == 1:
        return line(group[0])
    first, last = group[0], group[-1]
    missing = sum(column.missing or 0 for column in group)
    text = f"- {_name(first)} … {_name(last)} ({len(group):,} columns): {first.dtype}"
    return f"{text}, {missing:,} missing" if missing else text


def _ends(
    title: str, columns: Sequence[ColumnProfile], groups: list[list[ColumnProfile]], room: int
) -> str:
    """Return the first columns that fit, the last one, and the rest counted by type."""
    last = _group_line(groups[-1], _short_line)
    kinds = Counter(column.dtype for column in columns)
    counted = ", ".join(f"{count:,} {dtype}" for dtype, count in kinds.most_common(6))
    template = f"- … {{}} more columns not shown; of all {len(columns):,}: {counted}"
    used = len(title) + len(template) + 12 + len(last) + 1
    lines, shown = [title], 0
    for group in groups[:-1]:
        line = _group_line(group, _short_line)
        if used + len(line) + 1 > room:
            break
        lines.append(line)
        used += len(line) + 1
        shown += len(group)
    rest = len(columns) - shown - len(groups[-1])
    text = "\n".join([*lines, template.format(f"{rest:,}"), last])
    if len(text) <= room:
        return text
    short = f"({len(columns):,} columns, not shown)"
    return short if len(short) <= room else "…"
