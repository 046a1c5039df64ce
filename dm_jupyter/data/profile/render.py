"""The profile as compact text for a prompt, never longer than asked."""

from __future__ import annotations

from dm_jupyter.data.profile.model import FileProfile
from dm_jupyter.data.profile.render_sql import database_text
from dm_jupyter.data.profile.render_table import fitted_list, shape, table_text

__all__ = ["render"]

_CUT = "… (profile cut here)"
_DATABASES = ("sqlite", "duckdb")
_OF_TABLES = (*_DATABASES, "xlsx", "xlsb", "xls", "ods")
_NOUNS = {
    **dict.fromkeys(_DATABASES, ("table", "tables and views")),
    **dict.fromkeys(("zip", "tar"), ("file", "tables")),
    **dict.fromkeys(("csv", "html"), ("table", "tables")),
}
"""What a table of a file is called, one and several; sheets, unless named here."""


def render(profile: FileProfile, *, max_chars: int = 2200) -> str:
    """Returns the profile as text for a prompt; every cut in it is said.

    Args:
        profile: what `profile_file` gave.
        max_chars: the bound; a very small one leaves little more than the file's name.
    """
    head = _head(profile)
    warnings = fitted_list("Warnings:", list(profile.warnings), max_chars // 3)
    notes = f"Notes: {'; '.join(profile.notes)}" if profile.notes else ""
    room = max_chars - sum(len(part) + 1 for part in (head, warnings, notes) if part)
    tables = database_text if profile.kind in _DATABASES else _tables
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
        return head  # nobody has looked into it
    _, noun = _NOUNS.get(profile.kind, ("sheet", "sheets"))
    return f"{head}: {len(profile.tables)} {noun}"


def _size(size_bytes: int) -> str:
    if size_bytes < 1000:
        return f"{size_bytes} bytes"
    return f"{size_bytes / 1e3:,.0f} kB" if size_bytes < 1e6 else f"{size_bytes / 1e6:,.1f} MB"


def _tables(profile: FileProfile, room: int) -> str:
    """Returns the text of each table; the room is shared, what one leaves goes to the next."""
    if len(profile.tables) == 1:
        return table_text(profile.tables[0], room)
    texts: list[str] = []
    noun, nouns = _NOUNS.get(profile.kind, ("sheet", "sheets"))
    for position, table in enumerate(profile.tables):
        left = len(profile.tables) - position
        hidden = ", hidden" if table.is_hidden else ""
        title = f"{noun.capitalize()} {table.name!r}{hidden}: {shape(table)}"
        share = room // left - len(title) - 1
        if share < 0 and left > 1:
            texts.append(f"… {left} more {nouns} not shown")
            break
        body = table_text(table, share)
        texts.append(f"{title}\n{body}" if body else title)
        room -= len(texts[-1]) + 1
    return "\n".join(texts)
