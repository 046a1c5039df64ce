"""The profile as compact text for a prompt, never longer than asked."""

from __future__ import annotations

from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.data.profile.render_table import (
    fitted_list,
    frequent_text,
    row_text,
    shape,
    table_text,
    value_text,
)
from dm_jupyter.data.profile.sql_names import quoted_name

__all__ = ["render"]

_CUT = "… (profile cut here)"
_DATABASES = ("sqlite", "duckdb")
_OF_TABLES = (*_DATABASES, "xlsx", "xlsb", "xls", "ods")
_NOUNS = {
    **dict.fromkeys(_DATABASES, ("table", "tables and views")),
    **dict.fromkeys(("zip", "tar"), ("file", "tables")),
    **dict.fromkeys(("csv", "html"), ("table", "tables")),
}
"""Words for one table and for several, by kind of file; other kinds have sheets."""


def render(profile: FileProfile, *, max_chars: int = 2200) -> str:
    """Return the profile as text for a prompt; every cut in it is marked.

    Args:
        profile: result of `profile_file`.
        max_chars: longest text; a very small value leaves little more than the file's name.
    """
    head = _head(profile)
    warnings = fitted_list("Warnings:", list(profile.warnings), max_chars // 3)
    notes = f"Notes: {'; '.join(profile.notes)}" if profile.notes else ""
    room = max_chars - sum(len(part) + 1 for part in (head, warnings, notes) if part)
    tables = _database_text if profile.kind in _DATABASES else _tables
    parts = (head, tables(profile, room), notes, warnings)
    whole = "\n".join(part for part in parts if part)
    if len(whole) <= max_chars:
        return whole
    return whole[: max(0, max_chars - len(_CUT))] + _CUT[: max(0, max_chars)]


def _head(profile: FileProfile) -> str:
    name = repr(profile.name if len(profile.name) <= 200 else profile.name[:200] + "…")
    head = f"File {name} ({profile.kind}, {_size(profile.size_bytes)})"
    if len(profile.tables) == 1 and profile.kind not in _DATABASES:
        return f"{head}: {shape(profile.tables[0])}"
    if not profile.tables and profile.kind not in _OF_TABLES:
        return head  # it was not read
    _, noun = _NOUNS.get(profile.kind, ("sheet", "sheets"))
    return f"{head}: {sum(len(table.sheets) or 1 for table in profile.tables)} {noun}"


def _size(size_bytes: int) -> str:
    if size_bytes < 1000:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1e3:,.0f} kB" if size_bytes < 1e6 else f"{size_bytes / 1e6:,.1f} MB"


def _tables(profile: FileProfile, room: int) -> str:
    """Return the text of each table; what small ones leave of the room goes to large ones."""
    if len(profile.tables) == 1:
        return table_text(profile.tables[0], room)
    noun, nouns = _NOUNS.get(profile.kind, ("sheet", "sheets"))
    titles = [
        f"{(nouns if table.sheets else noun).capitalize()} {table.name!r}"
        f"{', hidden' if table.is_hidden else ''}: {shape(table)}"
        for table in profile.tables
    ]
    wanted = [
        len(title) + len(table_text(table, room)) + 2
        for title, table in zip(titles, profile.tables, strict=True)
    ]
    texts: list[str] = []
    for position, (title, table) in enumerate(zip(titles, profile.tables, strict=True)):
        left = len(profile.tables) - position
        share = _share(wanted[position:], room) - len(title) - 1
        if share < 0 and left > 1:
            texts.append(f"… {left} more {nouns} not shown")
            break
        body = table_text(table, share)
        texts.append(f"{title}\n{body}" if body else title)
        room -= len(texts[-1]) + 1
    return "\n".join(texts)


def _share(wanted: list[int], room: int) -> int:
    """Return the room of the first of several that divide it, none getting more than it wants."""
    first, left = wanted[0], len(wanted)
    for each in sorted(wanted):
        if each >= min(first, room // left):
            break
        room, left = room - each, left - 1
    return min(first, room // left)


def _database_text(profile: FileProfile, room: int) -> str:
    """Return the tables in the fullest form that fits into `room` characters.

    Ranges and frequent values are dropped first, then rows, the views' columns, and types. Keys,
    which joins need, stay longest.
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
    """Return one line that names the views, as many as fit; no line if there are none."""
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
    """Return a column with its type and what it references."""
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
    # Conditions are written against columns with a handful of distinct values.
    if has_types and column.unique is not None and 0 < column.unique <= len(column.examples):
        words.append(f"[{', '.join(value_text(value) for value in column.examples)}]")
    return " ".join(words)


def _range(column: ColumnProfile, table: TableProfile) -> str:
    """Return a column's range, or its frequent values; empty for keys and values already shown."""
    keys = {name for key in table.foreign_keys for name in key.columns}
    is_shown = column.unique is not None and column.unique <= len(column.examples)
    if is_shown or column.name in keys or table.primary_key == (column.name,):
        return ""
    if column.minimum is not None:
        return f" [{value_text(column.minimum)} … {value_text(column.maximum)}]"
    frequent = frequent_text(column)
    return f" [{frequent}, …]" if frequent else ""


def _first(tables: list[TableProfile], room: int) -> str:
    """Return the columns of as many tables as fit, long lists cut, and the others' names."""
    lines: list[str] = []
    used = 0
    for position, table in enumerate(tables):
        text = _described(table, 0, has_types=False)
        line = text if len(text) <= 400 else f"{text[:400]}… (cut)"
        others = ", ".join(quoted_name(other.name) for other in tables[position + 1 :])
        # Room is kept for the names of the tables that follow.
        if used + len(line) + 1 + min(len(others) + 16, room // 2) > room:
            rest = f"more tables: {quoted_name(table.name)}{', ' if others else ''}{others}"
            left = room - used
            return "\n".join([*lines, rest if len(rest) <= left else f"{rest[: left - 10]}… (cut)"])
        lines.append(line)
        used += len(line) + 1
    return "\n".join(lines)
