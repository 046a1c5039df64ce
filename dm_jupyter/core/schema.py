"""Tables as code sees them: those of a database, with which columns point where, and frames."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["DatabaseTable", "Join", "Link", "LoadedTable", "join_path"]


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key."""

    table: str
    """The table it points at."""
    pairs: tuple[tuple[str, str], ...]
    """Own column and the column it points at; several where the key has."""


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or a view."""

    name: str
    columns: tuple[str, ...]
    links: tuple[Link, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The table as plain JSON values."""
        links = [{"table": link.table, "pairs": list(map(list, link.pairs))} for link in self.links]
        return {"name": self.name, "columns": list(self.columns), "links": links}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> DatabaseTable:
        """The inverse of `to_json`.

        Raises:
            KeyError: a field is missing.
            TypeError: a field is of the wrong kind.
            ValueError: a pair does not hold two columns.
        """
        links = (
            Link(link["table"], tuple((own, other) for own, other in link["pairs"]))
            for link in raw["links"]
        )
        return cls(raw["name"], tuple(raw["columns"]), tuple(links))


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table of a data file in the variable that the loading code puts it in."""

    variable: str
    load: str
    """The code."""
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The table as plain JSON values."""
        return {"variable": self.variable, "load": self.load, "columns": list(self.columns)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> LoadedTable:
        """The inverse of `to_json`.

        Raises:
            KeyError: a field is missing.
        """
        return cls(raw["variable"], raw["load"], tuple(raw["columns"]))


@dataclass(frozen=True, slots=True)
class Join:
    """A table that is joined."""

    table: str
    on: tuple[tuple[str, str, str, str], ...]
    """What has to be equal: table and column, table and column."""


def join_path(tables: Sequence[DatabaseTable], start: str, end: str) -> tuple[Join, ...]:
    """Returns the fewest joins along foreign keys that lead from one table to another.

    Args:
        tables: of the database.
        start: name of the first table.
        end: name of the last.

    Returns:
        The joins in order; nothing where no way leads there.
    """
    paths: dict[str, tuple[Join, ...]] = {start: ()}
    waiting = deque([start])
    while waiting and end not in paths:
        here = waiting.popleft()
        for join in _joins(tables, here):
            if join.table not in paths:
                paths[join.table] = (*paths[here], join)
                waiting.append(join.table)
    return paths.get(end, ())


def _joins(tables: Sequence[DatabaseTable], name: str) -> Iterator[Join]:
    """Yields the tables that a key ties to this one, whichever of the two holds the key."""
    for table in tables:
        for link in table.links:
            if name in {table.name, link.table}:
                on = tuple((table.name, own, link.table, other) for own, other in link.pairs)
                yield Join(link.table if table.name == name else table.name, on)
