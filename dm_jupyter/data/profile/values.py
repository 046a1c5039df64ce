"""Index of a file's short texts, which links the words of a question to cells.

The index is built once, with the profile, and kept with it. The alternative is to search the file
for each question. That finds rare values too, but reads the entire file again between Enter and the
first token, where the index costs nothing. The index is bounded, so a column with too many values
is known in part, and `is_complete` says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dm_jupyter.data.profile.model import ColumnProfile, FileProfile, TableProfile

__all__ = [
    "MOST_VALUES",
    "VALUE_CHARS",
    "indexed",
    "is_complete",
    "with_bounded_values",
    "without_values",
]

VALUE_CHARS = 60
"""Longest text in the index: a longer one is prose, and no question repeats it."""
MOST_VALUES = 500
"""Most texts of one column."""
_FILE_CHARS = 60_000
"""Most characters in the texts of all columns of a file together."""


def indexed(counts: Iterable[tuple[object, int]]) -> tuple[tuple[str, int], ...]:
    """Return the first short texts with their counts, at most `MOST_VALUES`.

    Args:
        counts: values with their counts, most frequent first; other values than short texts are
            left out.
    """
    kept: list[tuple[str, int]] = []
    for value, count in counts:
        if isinstance(value, str) and 0 < len(value) <= VALUE_CHARS and not value.isspace():
            kept.append((value, int(count)))
            if len(kept) == MOST_VALUES:
                break
    return tuple(kept)


def is_complete(column: ColumnProfile, table: TableProfile) -> bool:
    """Return whether the index contains every value of a column, as for one with few texts.

    Args:
        column: column of the table.
        table: table whose rows were read entirely or in part.
    """
    if table.sampled_rows is not None or column.is_unique_estimated or column.unique is None:
        return False
    return len(column.values) == column.unique


def with_bounded_values(profile: FileProfile) -> FileProfile:
    """Return the profile with as many indexed texts as a file's bound allows.

    Every column keeps its most frequent texts. The room is shared, and what the columns with few
    texts leave goes to the others.
    """
    sizes = sorted(
        sum(len(value) for value, _ in column.values)
        for table in profile.tables
        for column in table.columns
        if column.values
    )
    if sum(sizes) <= _FILE_CHARS:
        return profile
    share, room = 0, _FILE_CHARS
    for position, size in enumerate(sizes):
        share = room // (len(sizes) - position)
        if size > share:
            break
        room -= size
    return replace(
        profile,
        tables=tuple(
            replace(table, columns=tuple(_cut(column, share) for column in table.columns))
            for table in profile.tables
        ),
    )


def without_values(profile: FileProfile) -> FileProfile:
    """Return the profile without the index, which serves a search and shows a reader little."""
    return replace(
        profile,
        tables=tuple(
            replace(table, columns=tuple(replace(column, values=()) for column in table.columns))
            for table in profile.tables
        ),
    )


def _cut(column: ColumnProfile, chars: int) -> ColumnProfile:
    kept = 0
    for value, _ in column.values:
        chars -= len(value)
        if chars < 0:
            break
        kept += 1
    return column if kept == len(column.values) else replace(column, values=column.values[:kept])
