"""The ledger of one kernel while a cell runs: what was recorded, and when to stop recording.

Covered: facts, time and memory are bounded, and no table is kept alive. Not covered: cells that
write into it themselves.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from kernel_sandbox.ledger.facts import MOST_FACTS, Coverage, Fact

__all__ = ["CONDITION_CHARS", "Book", "CallNote", "ColumnOrigin", "Condition", "TableCall"]

CONDITION_CHARS = 200
"""Most characters of a condition in words."""

_PER_LINE = 8
"""Most facts of one operation on one line; more from a loop add nothing."""
_MOST_LOOKS = 2_000
"""Most operations inspected in a cell; more from a loop add nothing."""
_REMEMBERED = 64
"""Most masks, columns, and tables without rows, whose origin is kept."""
_MOST_EXPLAINED, _EXPLAINING_S = 8, 0.06
_COMPARING_S = 0.2
"""Time in a cell for comparing values with columns, seconds; the last comparison may exceed it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition that produced a mask."""

    text: str
    coverage: tuple[Coverage, ...] = ()
    """What the data contain instead; empty if the mask selects rows."""
    rows: int = 0
    """Rows that met it."""
    digest: int = 0
    """Of the mask's truths; a mask with another one was changed since."""
    joined_by: str = ""
    """The word that joins its parts; empty if there is only one."""
    is_of_missing: bool = False
    """Whether it asks for missing values: finding none is no absence of data."""
    is_computed: bool = False
    """Whether it is about computed values: finding none is no absence of data."""


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """Where a Series comes from."""

    table: weakref.ref[Any] | None
    is_derived: bool
    """Whether it has the name of a column and other values."""


@dataclass(slots=True)
class TableCall:
    """One call of a wrapped operation, recorded after it has returned."""

    name: str
    line: int
    before: int
    """Rows of the first argument before the call, which may have changed it."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any = None
    earlier: Any = None
    """What was known of the table before a call that may change it; see `wrapping`."""

    @property
    def table(self) -> Any:
        """The table that it was called on."""
        return self.args[0]

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """Return an argument.

        Args:
            place: its index among the positional ones, the table itself being 0.
            name: the name of the argument.
            default: the value if it was not given.
        """
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)


class Book:
    """Book of one kernel: wrapped operations write to it, and the cell's runner reads it."""

    def __init__(self) -> None:
        """Create a book, which is closed until a cell begins."""
        self.is_quiet = True
        """Whether nothing is recorded: no cell runs, or an operation is being recorded."""
        self.namespace: object = None
        """The names of the cell's code; only calls from there are recorded."""
        self.thread = 0
        """The thread that the cell runs in."""
        self._facts: list[Fact] = []
        self._per_line: dict[tuple[int, str], int] = {}
        self._looks = 0
        self._explaining = self._comparing = _Budget(0)
        self._masks: dict[int, tuple[weakref.ref[Any], Condition]] = {}
        self._columns: dict[int, tuple[weakref.ref[Any], ColumnOrigin]] = {}
        self._voids: dict[int, tuple[weakref.ref[Any], Condition]] = {}

    def open(self, namespace: object) -> None:
        """Begin a cell.

        Args:
            namespace: the dictionary of the cell's global names.
        """
        self.namespace, self.thread = namespace, threading.get_ident()
        self._facts, self._per_line, self._looks = [], {}, 0
        self._explaining = _Budget(_EXPLAINING_S, _MOST_EXPLAINED)
        self._comparing = _Budget(_COMPARING_S)
        self._masks, self._columns = {}, {}
        self.is_quiet = False

    def close(self) -> list[Fact]:
        """End the cell and return what was recorded, in order."""
        self.is_quiet, self.namespace = True, None
        self._masks, self._columns = {}, {}
        facts, self._facts = self._facts, []
        return facts

    @property
    def has_looked_enough(self) -> bool:
        """Whether a loop has used up the operations to inspect in one cell; counts this one."""
        self._looks += 1
        return self._looks > _MOST_LOOKS

    @property
    def has_voids(self) -> bool:
        """Whether the origin of some table without rows is known."""
        return bool(self._voids)

    def note(self, fact: Fact) -> None:
        """Record a fact; a repeated one is only counted, and too many from a loop are dropped.

        Args:
            fact: what happened.
        """
        for place, known in enumerate(self._facts):
            if replace(known, times=fact.times) == fact:
                self._facts[place] = replace(known, times=known.times + 1)
                return
        site = (fact.line, fact.operation)
        count = self._per_line.get(site, 0)
        if count >= _PER_LINE * (2 if fact.is_absence else 1) or len(self._facts) >= MOST_FACTS:
            return
        self._per_line[site] = count + 1
        self._facts.append(fact)

    def remember(self, mask: Any, condition: Condition) -> None:
        """Keep what produced a mask for as long as the mask lives.

        Args:
            mask: a mask with one value per row.
            condition: the condition that produced it.
        """
        _put(self._masks, mask, condition)

    def condition_of(self, mask: Any) -> Condition | None:
        """Return the condition that produced a mask, or `None` if it is unknown."""
        found: Condition | None = _known(self._masks, mask)
        return found

    def remember_column(self, column: Any, table: Any = None, *, is_derived: bool = False) -> None:
        """Keep where a Series comes from, for as long as it lives.

        Args:
            column: a Series.
            table: the table that it is a column of.
            is_derived: whether it was computed from one.
        """
        origin = ColumnOrigin(None if table is None else weakref.ref(table), is_derived)
        _put(self._columns, column, origin)

    def column(self, values: Any) -> ColumnOrigin | None:
        """Return where a Series comes from, or `None` if it is unknown."""
        found: ColumnOrigin | None = _known(self._columns, values)
        return found

    def tables(self) -> list[Any]:
        """Return the tables that the cell has taken columns from, if they still live."""
        known = [origin.table() for _, origin in self._columns.values() if origin.table]
        return list({id(table): table for table in known if table is not None}.values())

    def remember_void(self, table: Any, why: Condition) -> None:
        """Keep why a table has no rows, for as long as it lives.

        Args:
            table: a table without rows.
            why: the condition that no row met.
        """
        _put(self._voids, table, why)

    def void_of(self, table: Any) -> Condition:
        """Return why a table has no rows; a condition without text if it is unknown."""
        return _known(self._voids, table) or Condition("")

    def explaining(self) -> AbstractContextManager[bool]:
        """Return a context for finding what the data contain instead: whether there is time."""
        return self._explaining.use()

    def comparing(self) -> AbstractContextManager[bool]:
        """Return a context for comparing values with a column: whether there is time."""
        return self._comparing.use()


@dataclass(slots=True)
class _Budget:
    """What a cell may use for one purpose."""

    seconds: float
    most: float = math.inf
    used: int = 0
    spent_s: float = 0.0

    @contextmanager
    def use(self) -> Iterator[bool]:
        """Yield whether anything is left, and count the use and its time."""
        if self.used >= self.most or self.spent_s > self.seconds:
            yield False
            return
        self.used += 1
        began = time.perf_counter()
        try:
            yield True
        finally:
            self.spent_s += time.perf_counter() - began


def _put(known: dict[int, Any], thing: Any, value: object) -> None:
    if len(known) >= _REMEMBERED:
        del known[next(iter(known))]
    known[id(thing)] = (weakref.ref(thing), value)


def _known(known: dict[int, Any], thing: Any) -> Any:
    """Return what is kept about an object; another one may have the same `id` by now."""
    kept = known.get(id(thing))
    return kept[1] if kept is not None and kept[0]() is thing else None


CallNote = Callable[[Book, TableCall], None]
"""Function that records what a call did."""
