"""The data context that a model is shown: profiles, names of files in code, and load code."""

from __future__ import annotations

import asyncio
import json
import keyword
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dm_jupyter.core.trajectory import DataContext
from dm_jupyter.data.profile import FileProfile, TableProfile, render
from dm_jupyter.data.profile.links import links_text, years_missed
from dm_jupyter.data.profile.sql_names import quoted_name
from dm_jupyter.data.profile_reader import ProfileReader

__all__ = ["DataContextSize", "build_data_context", "data_context_size", "names_for"]

_LARGE_CONTEXT_TOKENS = 32_000
_IMPORTS = "import pandas as pd\nimport numpy as np\n"
_NAMES_IN_CODE = frozenset({"np", "pd"})
_MAX_TABLES = 12
_MAX_ROWS = 200_000
"""Of all tables of databases together, up to which code may read them whole."""


@dataclass(frozen=True, slots=True)
class DataContextSize:
    """Amount of data context that a model is shown; the default suits a model on a CPU."""

    profile_chars: int = 2_200
    """Characters of a single file's profile; several files share twice as much."""
    links_chars: int = 300
    """Characters of the links from the question's words to the data; 0 for none.
    A local model can't read this part before the question comes."""


_LARGE = DataContextSize(12_000, 2_000)


def data_context_size(context_tokens: int | None) -> DataContextSize:
    """Return the size that a model's context allows: more from 32,000 tokens on.

    Args:
        context_tokens: tokens of prompt and answer together; `None` or 0 if unknown. Local models
            have less than 32,000, so they get what they read in bearable time.
    """
    return _LARGE if (context_tokens or 0) >= _LARGE_CONTEXT_TOKENS else DataContextSize()


async def build_data_context(
    names: Mapping[str, Path],
    reader: ProfileReader,
    question: str = "",
    room: DataContextSize | None = None,
) -> DataContext:
    """Return the data context of the files.

    Args:
        names: each file's name in code, mapped to its path: absolute, without links.
        reader: reads the files that have changed since its last reading.
        question: question whose words are linked to the data; empty if nobody has asked yet. Only
            `links` depends on it.
        room: how much to show; `None` for a small context.

    Raises:
        DataFileError: a file can't be read; the message names it and says what to do.
        SandboxError: no worker can be started to read it.
    """
    if not names:
        return DataContext(preamble=_IMPORTS)
    room = room or DataContextSize()
    profiles = [await reader.profile(path, name) for name, path in names.items()]
    return await asyncio.to_thread(_data_context, list(map(_trimmed, profiles)), question, room)


def _data_context(profiles: list[FileProfile], question: str, room: DataContextSize) -> DataContext:
    chars = room.profile_chars
    share = chars if len(profiles) == 1 else 2 * chars // len(profiles)
    text = "\n\n".join(render(profile, max_chars=share) for profile in profiles)
    loads = _loads(profiles)
    columns = [
        column for profile in profiles for table in profile.tables for column in table.columns
    ]
    return DataContext(
        text=text,
        preamble=_IMPORTS + "\n".join(loads) + "\n" if loads else "",
        incomplete=tuple(dict.fromkeys(column.name for column in columns if column.missing)),
        databases=tuple(profile.name for profile in profiles if profile.kind == "sqlite"),
        whole_tables=_whole_tables(profiles),
        links=links_text(question, profiles, chars=room.links_chars, shown=text),
        years_missed=years_missed(question, profiles),
    )


def _trimmed(profile: FileProfile) -> FileProfile:
    """Return the profile with column names stripped of spaces, as the load line strips them.

    Nobody, person or model, writes `df[' WINDSPEED']`.
    """
    if profile.kind != "csv" or len(profile.tables) != 1:
        return profile
    table = profile.tables[0]
    stripped = [column.name.strip() for column in table.columns]
    is_unchanged = all(
        column.name == name for column, name in zip(table.columns, stripped, strict=True)
    )
    if is_unchanged or len(set(stripped)) < len(stripped) or table.load_code is None:
        return profile
    columns = tuple(
        replace(column, name=name) for column, name in zip(table.columns, stripped, strict=True)
    )
    load = f"{table.load_code}\ndf.columns = df.columns.str.strip()"
    return replace(profile, tables=(replace(table, columns=columns, load_code=load),))


def _loads(profiles: list[FileProfile]) -> list[str]:
    """Return the code that loads each table into its own variable."""
    tables = [
        (profile, table)
        for profile in profiles
        for table in profile.tables
        if table.load_code and not table.is_hidden
    ]
    if len(tables) == 1:
        return [str(tables[0][1].load_code)]
    taken = set(_NAMES_IN_CODE)
    return [_renamed(table, _variable(profile, table, taken)) for profile, table in tables]


def _whole_tables(profiles: list[FileProfile]) -> str:
    """Return the code that reads all tables of the databases; empty if there are none to read."""
    databases = [profile for profile in profiles if profile.kind == "sqlite"]
    tables = [
        (profile, table) for profile in databases for table in profile.tables if not table.is_view
    ]
    # A table that took too long to count is too large.
    rows = sum(_MAX_ROWS + 1 if one.row_count is None else one.row_count for _, one in tables)
    if not 0 < len(tables) <= _MAX_TABLES or rows > _MAX_ROWS:
        return ""
    lines = ["import sqlite3", "from pathlib import Path"]
    taken = {*_NAMES_IN_CODE, "sqlite3", "Path", "connection"}
    for profile in databases:
        address = f'Path({_quoted(profile.name)}).resolve().as_uri() + "?mode=ro"'
        lines.append(f"connection = sqlite3.connect({address}, uri=True)")
        for table in (table for owner, table in tables if owner is profile):
            query = f"SELECT * FROM {quoted_name(table.name)}"  # noqa: S608  (quoted)
            name = _name_of(table.name, taken)
            lines.append(f"{name} = pd.read_sql({_quoted(query)}, connection)")
    return _IMPORTS + "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _renamed(table: TableProfile, variable: str) -> str:
    return re.sub(r"\bdf\b(?=\s*=|\.|\[)", variable, str(table.load_code))


def _variable(profile: FileProfile, table: TableProfile, taken: set[str]) -> str:
    """Return a name for the table's frame, from the sheet's or the file's name."""
    is_part = len(profile.tables) > 1 and not table.sheets
    return _name_of(table.name if is_part else Path(profile.name).stem, taken)


def _name_of(own: str, taken: set[str]) -> str:
    """Return a free name of a variable for a table, and add it to those taken."""
    name = re.sub(r"\W+", "_", own.lower()).strip("_") or "df"
    name = f"df_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
    number, free = 2, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    taken.add(free)
    return free


def names_for(files: tuple[Path, ...], folder: Path | None) -> dict[str, Path]:
    """Return each file's name in code, so that the notebook runs again from `folder`.

    A file below `folder` gets its relative path, any other its absolute one. Without a folder,
    files get their bare names.
    """
    if folder is None:
        return {file.name: file.resolve() for file in files}
    names = {}
    for file in files:
        absolute = Path(os.path.abspath(file))  # noqa: PTH100  (keeps a link's own place)
        inside = absolute.is_relative_to(folder.resolve())
        name = absolute.relative_to(folder.resolve()).as_posix() if inside else str(absolute)
        names[name] = absolute.resolve()
    return names
