"""A database as text: tables with their columns and keys, views, a row or two."""

from __future__ import annotations

from dm_jupyter.core.sql_names import quoted_name
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.data.profile.render_table import frequent_text, row_text, value_text

__all__ = ["database_text"]


def database_text(profile: FileProfile, room: int) -> str:
    """Returns the tables in the fullest form that fits into `room` characters.

    Ranges and frequent values go first, then rows, then the views' columns, then types, so that
    keys, which joins are written by, stay longest.
    """
    tables = [table for table in profile.tables if not table.is_view]
    views = [table for table in profile.tables if table.is_view]
    texts = [_described(table, 2, has_types=True, has_ranges=True) for table in tables]
    texts += [_described(view, 0, has_types=False) for view in views]
    if sum(len(text) + 1 for text in texts) <= room:
        return "\n".join(texts)
    for rows, has_types, has_view_columns in (
        (2, True, True),
        (1, True, True),
        (1, True, False),
        (0, True, False),
        (0, False, False),
    ):
        texts = [_described(table, rows, has_types=has_types) for table in tables]
        if has_view_columns:
            texts += [_described(view, 0, has_types=False) for view in views]
        else:
            texts += _view_names(views, room)
        if sum(len(text) + 1 for text in texts) <= room:
            return "\n".join(texts)
    names = _view_names(views, room // 4)
    left = room - sum(len(line) + 1 for line in names)
    return "\n".join([_first(tables, left), *names])


def _view_names(views: list[TableProfile], room: int) -> list[str]:
    """Returns one line that names the views, as many as fit; no line when there are none."""
    text = "views: "
    for position, view in enumerate(views):
        name = quoted_name(view.name)
        rest = f"… {len(views) - position} more views"
        if len(text) + len(name) + 2 + len(rest) > room:
            return [text + rest]
        text += name if position == len(views) - 1 else f"{name}, "
    return [text] if views else []


def _counted(table: TableProfile) -> str:
    rows = "not counted" if table.row_count is None else f"{table.row_count:,} rows"
    return f"{quoted_name(table.name)} ({rows})"


def _described(table: TableProfile, rows: int, *, has_types: bool, has_ranges: bool = False) -> str:
    columns = ", ".join(
        _column(column, table, has_types=has_types) + (_range(column, table) if has_ranges else "")
        for column in table.columns
    )
    lines = [f"{'view' if table.is_view else 'table'} {_counted(table)}: {columns}"]
    if len(table.primary_key) > 1:
        word = "primary key" if has_types else "PK"
        lines.append(f"  {word} ({', '.join(map(quoted_name, table.primary_key))})")
    for key in table.foreign_keys:
        if len(key.columns) > 1:
            own, other = (", ".join(map(quoted_name, part)) for part in (key.columns, key.targets))
            lines.append(f"  ({own}) -> {quoted_name(key.table)} ({other})")
    lines += [f"  row {row_text(row, 160)}" for row in table.sample_rows[:rows]]
    lines += [f"  warning: {warning}" for warning in table.warnings]
    return "\n".join(lines)


def _column(column: ColumnProfile, table: TableProfile, *, has_types: bool) -> str:
    """Returns a column with its type and what it points at."""
    words = [quoted_name(column.name)]
    if has_types and column.dtype:
        words.append(column.dtype)
    if table.primary_key == (column.name,):
        words.append("primary key" if has_types else "PK")
    for key in table.foreign_keys:
        if key.columns == (column.name,):
            is_same = key.targets in {(), (column.name,)}
            target = "" if is_same else f".{quoted_name(key.targets[0])}"
            words.append(f"-> {quoted_name(key.table)}{target}")
    # A handful of distinct values is what conditions are written against.
    if has_types and column.unique is not None and 0 < column.unique <= len(column.examples):
        words.append(f"[{', '.join(value_text(value) for value in column.examples)}]")
    return " ".join(words)


def _range(column: ColumnProfile, table: TableProfile) -> str:
    """Returns what a column covers, or its frequent values; nothing for keys, and what is shown."""
    keys = {name for key in table.foreign_keys for name in key.columns}
    is_shown = column.unique is not None and column.unique <= len(column.examples)
    if is_shown or column.name in keys or table.primary_key == (column.name,):
        return ""
    if column.minimum is not None:
        return f" [{value_text(column.minimum)} … {value_text(column.maximum)}]"
    frequent = frequent_text(column)
    return f" [{frequent}, …]" if frequent else ""


def _first(tables: list[TableProfile], room: int) -> str:
    """Returns the columns of as many tables as fit, long lists cut, and the others' names."""
    lines: list[str] = []
    used = 0
    for position, table in enumerate(tables):
        text = _described(table, 0, has_types=False)
        line = text if len(text) <= 400 else f"{text[:400]}… (cut)"
        others = ", ".join(quoted_name(other.name) for other in tables[position + 1 :])
        # Room is kept for the names of those that come after.
        if used + len(line) + 1 + min(len(others) + 16, room // 2) > room:
            rest = f"more tables: {quoted_name(table.name)}{', ' if others else ''}{others}"
            left = room - used
            return "\n".join([*lines, rest if len(rest) <= left else f"{rest[: left - 10]}… (cut)"])
        lines.append(line)
        used += len(line) + 1
    return "\n".join(lines)
