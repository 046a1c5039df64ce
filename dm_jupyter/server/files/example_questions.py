"""Example questions, built from the columns of a data file."""

from __future__ import annotations

import asyncio
import logging
import posixpath
import re
from collections.abc import Awaitable, Callable
from itertools import islice, zip_longest
from pathlib import Path

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile
from dm_jupyter.server.files.data_files import DataFiles, LinkedFilesError
from kernel_sandbox.errors import SandboxError

__all__ = ["first_questions", "questions_about"]

_log = logging.getLogger(__name__)
_MOST = 3
_MOST_FILES = 3
_MOST_GROUPS = 50
"""Most different values of a column that is used for groups to compare."""
_LONGEST_NAME = 40
_ID_ENDINGS = ("id", "no", "nr", "number", "index", "code", "key")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
"""The words of a name such as `EmployeeId` or `employee_id`."""
_NUMBERS = ("int", "float", "real", "numeric", "decimal", "double")


async def first_questions(
    folder: str, files: DataFiles, profile_of: Callable[[Path, str], Awaitable[FileProfile]]
) -> list[dict[str, str]]:
    """Return up to three questions about the first data files of a folder, with the file.

    Args:
        folder: the folder, below the server's root.
        files: the data files of the server.
        profile_of: returns the profile of a file, under the name that the questions use.
    """
    folder = folder.strip("/")
    found = await asyncio.to_thread(files.search.matching, "", folder)
    asked: list[list[dict[str, str]]] = []
    for path in found.paths[:_MOST_FILES]:
        if posixpath.dirname(path) != folder:
            break
        try:
            place = await asyncio.to_thread(files.place, path)
            profile = await profile_of(place, posixpath.basename(path))
        except (DataFileError, SandboxError, LinkedFilesError, OSError) as error:
            _log.debug("no question is made of %s: %s", path, error)
            continue
        asked.append([{"question": text, "file": path} for text in questions_about(profile)])
    # One of each file first.
    in_turn = (one for some in zip_longest(*asked) for one in some if one is not None)
    return list(islice(in_turn, _MOST))


def questions_about(profile: FileProfile) -> tuple[str, ...]:
    """Return up to three questions that name the file and its real columns.

    A file without columns that can be asked about gets questions about the file alone.

    Args:
        profile: the profile of the file; the questions use its `name`.
    """
    is_alone = len(profile.tables) == 1
    asked = [
        (_about_columns(x, profile.name if is_alone else f"{x.name} of {profile.name}"), x)
        for x in profile.tables
    ]
    # Of a database, the table with the most questions; among equals, the largest.
    found, table = max(
        asked, key=lambda one: (len(one[0]), one[1].row_count or 0), default=([], None)
    )
    rest = [
        f"How many rows does {profile.name} have, and what is in each column?",
        f"Which columns of {profile.name} have missing values, and how many?",
    ]
    return tuple((found + rest)[:_MOST]) if table is not None else (f"What is in {profile.name}?",)


def _about_columns(table: TableProfile, place: str) -> list[str]:
    keys = {name for key in table.foreign_keys for name in key.columns} | {*table.primary_key}
    columns = [x for x in table.columns if _is_speakable(x.name) and x.name not in keys]
    numbers = [column.name for column in columns if _is_number(column)]
    groups = [column.name for column in columns if _is_group(column, table)]
    times = [column.name for column in columns if _is_time(column)]
    found = []
    if numbers and groups:
        found.append(f"Which {groups[0]} in {place} has the highest average {numbers[0]}?")
    if numbers and times:
        found.append(f"How does {numbers[0]} change over {times[0]} in {place}? Draw a chart.")
    if len(numbers) > 1:
        found.append(f"How are {numbers[0]} and {numbers[1]} related in {place}?")
    if groups:
        found.append(f"How many rows of {place} are there for each {groups[-1]}?")
    return found


def _is_speakable(name: str) -> bool:
    return name.isprintable() and 0 < len(name.strip()) <= _LONGEST_NAME and "@" not in name


def _is_number(column: ColumnProfile) -> bool:
    kind = column.dtype.lower()
    words = _WORDS.findall(column.name)
    is_id = bool(words) and words[-1].lower() in _ID_ENDINGS
    return any(word in kind for word in _NUMBERS) and not is_id and column.unique != 1


def _is_group(column: ColumnProfile, table: TableProfile) -> bool:
    count = column.unique
    if count is None or not 1 < count <= _MOST_GROUPS or _is_number(column) or _is_time(column):
        return False
    return table.row_count is None or count < table.row_count


def _is_time(column: ColumnProfile) -> bool:
    words = f"{column.dtype} {column.note or ''}".lower()
    return "date" in words or "time" in words
