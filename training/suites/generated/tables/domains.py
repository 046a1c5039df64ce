"""Descriptions of the tables of each domain, read from `data/domains`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, TypeVar

from training.suites.generated.data import folder

__all__ = ["SPLITS", "Column", "Domain", "DomainError", "Effect", "Formula", "Lookup", "domains"]

Kind = Literal["id", "date", "label", "flag", "number"]
SPLITS = ("train", "development", "held")
_KINDS = ("id", "date", "label", "flag", "number")
T = TypeVar("T")


class DomainError(ValueError):
    """A domain file is invalid; the message names domain and field."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: the distribution of its values, and the words for it."""

    name: str
    kind: Kind
    noun: str
    """Noun as in "the average NOUN"; for a label column as in "each NOUN"."""
    plural: str = ""
    unit: str = ""
    clause: str = ""
    """Clause that selects one value, after the plural of the row: "orders CLAUSE"."""
    values: tuple[str, ...] = ()
    """Possible labels."""
    absent: tuple[str, ...] = ()
    """Labels that no table has, for questions on absent data."""
    yes: str = ""
    """Clause of a flag that is set."""
    no: str = ""
    within: str = ""
    """Clause for a period of a date, with `{period}`."""
    since: str = ""
    """Clause from a day on, with `{day}`, that day included."""
    before: str = ""
    prefix: str = ""
    """Letters before an ID's number."""
    share: float = 0.5
    """Share of rows in which a flag is set."""
    typical: float = 1.0
    spread: float = 0.3
    """Spread of the numbers, relative to `typical`."""
    low: float = 0.0
    high: float = 1e12
    decimals: int = 2
    total: bool = False
    """Whether a sum of the numbers is meaningful."""
    shape: Literal["skewed", "even"] = "skewed"
    follows: str = ""
    """Number column that this one depends on."""
    pull: float = 0.0
    """Strength of that dependence, -1 to 1."""
    optional: bool = False
    """Whether some tables of the domain lack the column."""

    @property
    def is_label(self) -> bool:
        """Whether rows can be grouped by it."""
        return self.kind in ("label", "flag")


@dataclass(frozen=True, slots=True)
class Formula:
    """A figure of the domain: `factor` times one column divided by another one."""

    name: str
    noun: str
    over: str
    under: str
    factor: float
    unit: str


@dataclass(frozen=True, slots=True)
class Effect:
    """A flag that changes a number."""

    treatment: str
    outcome: str
    cause: str
    """Cause as in "the effect of CAUSE"."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A second table, one row for each value of a label column of the first."""

    table: str
    row: str
    key: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """A kind of table."""

    name: str
    split: str
    topic: str
    row: str
    rows: str
    table: str
    """Name of a sheet, a database table and, with a number, of a file."""
    columns: tuple[Column, ...]
    lookup: Lookup
    formulas: tuple[Formula, ...] = ()
    effects: tuple[Effect, ...] = field(default=())

    def column(self, name: str) -> Column:
        """Return a column of either table.

        Raises:
            KeyError: there is no column of that name.
        """
        for column in (*self.columns, *self.lookup.columns):
            if column.name == name:
                return column
        raise KeyError(name)


@cache
def domains() -> tuple[Domain, ...]:
    """Return all domains, with the splits taking turns as long as each has domains left.

    Raises:
        DomainError: a file is invalid.
    """
    found = [_domain(raw) for raw in folder("domains")]
    by_split = {split: [one for one in found if one.split == split] for split in SPLITS}
    ordered = []
    for place in range(max(map(len, by_split.values()))):
        ordered += [by_split[split][place] for split in SPLITS if place < len(by_split[split])]
    return tuple(ordered)


def _domain(raw: Mapping[str, Any]) -> Domain:
    name = str(raw.get("name", "?"))
    lookup = dict(raw["lookup"])
    lookup["columns"] = _columns(name, lookup["columns"])
    made = _make(
        Domain,
        name,
        {
            **raw,
            "columns": _columns(name, raw["columns"]),
            "lookup": _make(Lookup, name, lookup),
            "formulas": tuple(_make(Formula, name, one) for one in raw.get("formulas", ())),
            "effects": tuple(_make(Effect, name, one) for one in raw.get("effects", ())),
        },
    )
    if made.split not in SPLITS:
        raise DomainError(f"domain {name}: there is no split {made.split!r}")
    for formula in made.formulas:
        _expect(made, formula.over, "number")
        _expect(made, formula.under, "number")
    for effect in made.effects:
        _expect(made, effect.treatment, "flag")
        _expect(made, effect.outcome, "number")
    _expect(made, made.lookup.key, "label")
    return made


def _columns(domain: str, raw: list[Mapping[str, Any]]) -> tuple[Column, ...]:
    columns = []
    for one in raw:
        labels = {key: tuple(one.get(key, ())) for key in ("values", "absent")}
        column = _make(Column, domain, {**one, **labels})
        if column.kind not in _KINDS:
            raise DomainError(f"domain {domain}: column {column.name} is no {column.kind!r}")
        columns.append(column)
    return tuple(columns)


def _make(kind: type[T], domain: str, raw: Mapping[str, Any]) -> T:
    known = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(raw.keys() - known):
        raise DomainError(f"domain {domain}: {kind.__name__} has no {', '.join(unknown)}")
    try:
        return kind(**raw)
    except TypeError as error:
        raise DomainError(f"domain {domain}: {error}") from error


def _expect(domain: Domain, column: str, kind: str) -> None:
    try:
        found = domain.column(column).kind
    except KeyError:
        raise DomainError(f"domain {domain.name}: there is no column {column!r}") from None
    if found != kind:
        raise DomainError(f"domain {domain.name}: {column} is a {found} and should be a {kind}")
