"""The schema of a database, from its profile: what hints after a failed query are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dm_jupyter.core.schema import DatabaseTable, Link

if TYPE_CHECKING:
    from dm_jupyter.data.profile import FileProfile, ForeignKey, TableProfile

__all__ = ["database_tables"]


def database_tables(profile: FileProfile) -> tuple[DatabaseTable, ...]:
    """Returns the tables of a database; none for a file of another kind."""
    if profile.kind != "sqlite":
        return ()
    named = {table.name.casefold(): table for table in profile.tables}
    return tuple(
        DatabaseTable(
            table.name,
            tuple(column.name for column in table.columns),
            tuple(link for key in table.foreign_keys if (link := _link(key, named)) is not None),
        )
        for table in profile.tables
    )


def _link(key: ForeignKey, named: Mapping[str, TableProfile]) -> Link | None:
    """The key with the columns it points at; `None` where the schema does not tell which.

    Keys name columns that are not there more often than one would think: SQLite does not look.
    """
    target = named.get(key.table.casefold())
    if target is None:
        return None
    columns = {column.name for column in target.columns}
    for targets in (key.targets or target.primary_key, key.columns):
        if len(targets) == len(key.columns) and columns.issuperset(targets):
            return Link(target.name, tuple(zip(key.columns, targets, strict=True)))
    return None
