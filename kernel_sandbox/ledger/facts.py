"""Facts about what happened to the data, as values. Standard library only.

Covered: whatever a kernel reports, `facts_from` returns a bounded number of small values of known
kinds, and raises nothing. Not covered: whether a fact is true. Code in a kernel can write into its
own ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

__all__ = ["LEDGER", "MOST_FACTS", "Coverage", "Fact", "FactKind", "facts_from"]

FactKind = Literal[
    "kept", "dropped", "merged", "lost", "nothing", "shown", "read", "filled", "saved", "unknown"
]  # fmt: skip
LEDGER = "dm_jupyter_ledger"
"""Key that requests a cell's ledger in the request's metadata, and contains it in the reply."""
MOST_FACTS = 40
"""Most facts of one cell."""
TEXT_CHARS = 240
_MOST_PARTS, _MOST_NEAR = 6, 4
_MOST_ROWS = 2**53


@dataclass(frozen=True, slots=True)
class Coverage:
    """Contents of a column, for a part of a condition that no row met."""

    part: str
    """The condition, or the part of it that is about this column."""
    rows: int
    """Rows that match this part alone."""
    column: str = ""
    low: str = ""
    """The least value, and in `high` the greatest; empty if the column has no order."""
    high: str = ""
    dtype: str = ""
    """The type of the column, if the searched value is of another kind."""
    near: tuple[tuple[str, int], ...] = ()
    """Values similar to the searched one, each with its number of rows."""
    frequent: tuple[tuple[str, int], ...] = ()
    """The most frequent values, if none is similar."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One operation of a cell and what it did to rows or values."""

    kind: FactKind
    """`kept`: rows that a condition selected. `dropped`: rows removed for another reason.
    `merged`: rows of two tables combined. `lost`: values that became NaN. `nothing`: a figure of
    no rows, or of missing values alone. `shown`: a table without values was shown or saved.
    `read`, `saved`: a table was read from a file, or saved to one. `filled`: missing values were
    filled. `unknown`: the cell failed on a name; `after` of the `before` names are like it."""
    operation: str
    """The name of the called operation."""
    before: int | None = None
    """Rows, or values, that it was given; `None` if unknown."""
    after: int | None = None
    """Rows, or values, that were left."""
    other: int | None = None
    """Rows of the second table of a merge."""
    missed: int | None = None
    """Rows of a merge without a partner in the other table, if known."""
    condition: str = ""
    """Depending on `kind`: what selected the rows, the keys of a merge, the column with lost or
    filled values, the file that was read or saved, or the unknown name."""
    result: str = ""
    """Depending on `kind`: the figure computed from nothing, examples of lost values, or the names
    like the unknown one, else those that exist."""
    coverage: tuple[Coverage, ...] = ()
    line: int = 0
    """Line of the code, counted from 1; 0 if unknown."""
    times: int = 1
    """How often the same fact occurred."""
    is_computed: bool = False
    """Whether its condition is about computed values, of which the data may have none."""

    @property
    def is_absence(self) -> bool:
        """Whether what was asked for was not in the data."""
        if self.is_computed:
            return False
        if self.kind in ("nothing", "shown"):
            return True
        if self.after != 0 or self.before == 0:
            return False
        if self.kind == "merged":
            return self.other != 0
        return self.kind in ("kept", "dropped") or self.operation == "reindex"

    def to_json(self) -> dict[str, Any]:
        """Return the fact as plain JSON values."""
        raw = asdict(self)
        for part in raw["coverage"]:
            part["near"] = [list(pair) for pair in part["near"]]
            part["frequent"] = [list(pair) for pair in part["frequent"]]
        raw["coverage"] = list(raw["coverage"])
        return raw


def facts_from(raw: object) -> tuple[Fact, ...]:
    """Return the facts in what a kernel reports, or a stored result; invalid ones are left out.

    Args:
        raw: JSON values, of which nothing is trusted.
    """
    if not isinstance(raw, list | tuple):
        return ()
    found = (_fact(one) for one in raw[:MOST_FACTS])
    return tuple(fact for fact in found if fact is not None)


def _fact(raw: object) -> Fact | None:
    if not isinstance(raw, Mapping) or raw.get("kind") not in get_args(FactKind):
        return None
    operation = _text(raw.get("operation"))
    if not operation:
        return None
    parts = raw.get("coverage")
    known = parts[:_MOST_PARTS] if isinstance(parts, list | tuple) else ()
    return Fact(
        kind=raw["kind"],
        operation=operation,
        before=_count(raw.get("before")),
        after=_count(raw.get("after")),
        other=_count(raw.get("other")),
        missed=_count(raw.get("missed")),
        condition=_text(raw.get("condition")),
        result=_text(raw.get("result")),
        coverage=tuple(_coverage(part) for part in known if isinstance(part, Mapping)),
        line=_count(raw.get("line")) or 0,
        times=max(1, _count(raw.get("times")) or 1),
        is_computed=raw.get("is_computed") is True,
    )


def _coverage(raw: Mapping[str, object]) -> Coverage:
    return Coverage(
        part=_text(raw.get("part")),
        rows=_count(raw.get("rows")) or 0,
        column=_text(raw.get("column")),
        low=_text(raw.get("low")),
        high=_text(raw.get("high")),
        dtype=_text(raw.get("dtype")),
        near=_pairs(raw.get("near")),
        frequent=_pairs(raw.get("frequent")),
    )


def _pairs(raw: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(raw, list | tuple):
        return ()
    pairs = [one for one in raw[:_MOST_NEAR] if isinstance(one, list | tuple) and len(one) == 2]
    return tuple((_text(value), _count(rows) or 0) for value, rows in pairs)


def _text(value: object) -> str:
    """Return the text on one line, without characters that move a cursor or reverse the text."""
    if not isinstance(value, str):
        return ""
    kept = (mark for mark in value[: 4 * TEXT_CHARS] if mark.isprintable() or mark.isspace())
    return " ".join("".join(kept).split())[:TEXT_CHARS].strip()


def _count(value: object) -> int | None:
    is_int = isinstance(value, int) and not isinstance(value, bool)
    return value if is_int and 0 <= value < _MOST_ROWS else None  # type: ignore[operator, return-value]
