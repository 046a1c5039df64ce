"""Which cells of a notebook an output rests on: a backward slice over names, objects and files.

Covered: names that cells read, objects that they change in place under any name, functions that
read or change what is global, files that one cell writes and another reads, options, seeds and
magics. In doubt a cell is needed. Not covered: what only shows at run time; run the needed cells
and compare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from dm_jupyter.assist.cell_effects import Effects, KnownNames, effects_of
from dm_jupyter.assist.loaded_tables import EarlierCell

__all__ = ["made_files", "makes_files", "needed_cells"]

_MOST_CELLS = 2_000
"""Of a notebook that is looked at; of a longer one all cells are needed."""


def needed_cells(cells: Sequence[EarlierCell], wanted: Collection[int]) -> frozenset[int]:
    """Returns the places of the cells that must run so that the wanted ones show what they show.

    Args:
        cells: in the order in which they ran, from an empty kernel on.
        wanted: places of the cells whose outputs are wanted; they are needed themselves.
    """
    last = max(wanted, default=-1)
    if len(cells) > _MOST_CELLS:
        return frozenset(range(last + 1))
    effects = _effects(cells)
    objects = _Objects(effects)
    slice_, needed = _Slice(), set[int]()
    for place in range(last, -1, -1):
        if place in wanted or slice_.needs(effects[place], objects):
            needed.add(place)
            slice_.take(effects[place], is_whole=cells[place].is_whole)
    return frozenset(needed)


def makes_files(cells: Sequence[EarlierCell]) -> frozenset[int]:
    """Returns the places of the cells that write files by a call that is there for that."""
    return frozenset(place for place, one in enumerate(_effects(cells)) if one.makes_files)


def made_files(cells: Sequence[EarlierCell]) -> frozenset[str]:
    """Returns the last parts of the names of files that the cells write before they name them."""
    known, made = set[str](), set[str]()
    for one in _effects(cells):
        made |= one.writes - known
        known |= one.names_files
    return frozenset(made - {"*"})


def _effects(cells: Iterable[EarlierCell]) -> list[Effects]:
    known = KnownNames()
    return [effects_of(cell.source, known) for cell in cells]


class _Objects:
    """Which names may be of one object, over the whole notebook."""

    def __init__(self, effects: Iterable[Effects]) -> None:
        self._parent: dict[str, str] = {}
        for one in effects:
            for group in one.shared:
                first, *others = sorted(group) or [""]
                for name in others:
                    self._parent[self._top(name)] = self._top(first)

    def of(self, names: Iterable[str]) -> set[str]:
        """The objects of some names."""
        return {self._top(name) for name in names}

    def _top(self, name: str) -> str:
        while (above := self._parent.get(name, name)) != name:
            name = above
        return name


@dataclass(slots=True)
class _Slice:
    """What the cells that are needed so far take from those before them."""

    names: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    reads_files: bool = False
    takes_all: bool = False

    def needs(self, before: Effects, objects: _Objects) -> bool:
        """Whether a cell before them leaves something that they take."""
        if self.takes_all or before.sets or before.is_opaque:
            return True
        if (before.binds | before.may_bind) & self.names:
            return True
        if objects.of(before.changes) & objects.of(self.names):
            return True
        is_unknown = "*" in before.writes and self.reads_files
        return is_unknown or bool(before.writes & self.files)

    def take(self, needed: Effects, *, is_whole: bool) -> None:
        """Adds a cell.

        Args:
            needed: what it takes.
            is_whole: whether it ran to its end, and so bound all that it binds.
        """
        if is_whole:
            self.names -= needed.binds
        self.names |= needed.reads
        self.files |= needed.names_files
        self.reads_files |= needed.reads_files
        self.takes_all |= needed.is_opaque
