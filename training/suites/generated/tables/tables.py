"""Clean rows of a table: what the written file means once its dirt is understood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from training.suites.generated.tables.chance import Chance, grown
from training.suites.generated.tables.domains import Column, Domain

__all__ = ["Table", "Value", "draw_table"]

Value = str | int | float | date | None

ROWS = (110, 480)
YEARS = (2018, 2024)
SPAN_DAYS = (330, 730)
LABEL_EFFECT = 0.16
"""Largest relative difference in the mean of a number between two labels of a column."""
TREND = 0.25
SEASON = 0.12
EFFECT = (0.06, 0.3)
OUTLIERS = 0.012
"""Share of rows with an unusually large number in a skewed column."""
ABSENT = 0.35
"""Share of tables that lack an optional column."""


@dataclass(frozen=True, slots=True)
class Table:
    """Clean rows of one table, and of the lookup table beside it."""

    name: str
    domain: Domain
    columns: tuple[Column, ...]
    """Columns of the domain that this table has."""
    values: Mapping[str, tuple[Value, ...]]
    """Values by column; `None` where added dirt removed the value."""
    lookup: Mapping[str, tuple[Value, ...]]
    """Values by column of the lookup table, its key first."""

    @property
    def size(self) -> int:
        """Number of rows, without the repeats of the file."""
        return len(self.values[self.columns[0].name])

    def present(self, name: str) -> list[Value]:
        """Return the values of a column of either table that are not missing."""
        values = self.values[name] if name in self.values else self.lookup[name]
        return [value for value in values if value is not None]


class _Numbers:
    """Generator of a table's numbers row by row, with the effects that questions ask about."""

    def __init__(self, domain: Domain, columns: Sequence[Column], chance: Chance) -> None:
        self._chance = chance
        self._numbers = [column for column in columns if column.kind == "number"]
        labels = [column for column in columns if column.is_label]
        self._scale = {one.name: grown(chance.normal(), 0.12) for one in self._numbers}
        self._by_label = {
            (one.name, label.name, value): 1 + chance.between(-LABEL_EFFECT, LABEL_EFFECT) / 2
            for one in self._numbers
            for label in labels
            if label.kind == "label"
            for value in label.values
        }
        self._trend = {one.name: chance.between(-TREND, TREND) for one in self._numbers}
        self._season = {
            one.name: [1 + chance.between(-SEASON, SEASON) for _ in range(12)]
            for one in self._numbers
        }
        self._effects = {}
        for effect in domain.effects:
            sign = -1 if chance.happens(0.5) else 1
            self._effects[effect.outcome] = (effect.treatment, 1 + sign * chance.between(*EFFECT))

    def row(self, row: Mapping[str, Value], passed: float) -> dict[str, Value]:
        """Return the numbers of a row.

        Args:
            row: the labels, flags and date of the row.
            passed: the elapsed share of the table's period, 0 to 1.
        """
        deviations: dict[str, float] = {}
        drawn: dict[str, Value] = {}
        for column in self._numbers:
            own = self._chance.normal()
            if column.follows in deviations:
                rest = math.sqrt(1 - column.pull * column.pull)
                own = column.pull * deviations[column.follows] + rest * own
            factor = self._factor(column, row, passed)
            deviations[column.name] = own + (factor - 1) / column.spread
            drawn[column.name] = self._value(column, own, factor)
        return drawn

    def _factor(self, column: Column, row: Mapping[str, Value], passed: float) -> float:
        factor = 1 + self._trend[column.name] * (passed - 0.5)
        for name, value in row.items():
            if isinstance(value, date):
                factor *= self._season[column.name][value.month - 1]
            factor *= self._by_label.get((column.name, name, str(value)), 1.0)
        treatment, change = self._effects.get(column.name, ("", 1.0))
        if row.get(treatment) == "yes":
            factor *= change
        return 1 + (factor - 1) * min(1.0, 3 * column.spread)

    def _value(self, column: Column, deviation: float, factor: float) -> int | float:
        middle = column.typical
        if column.shape == "even":
            scale = 1 + (self._scale[column.name] - 1) * column.spread
            value = middle * scale * (1 + (factor - 1) + column.spread * deviation)
        else:
            value = middle * self._scale[column.name] * factor * grown(deviation, column.spread)
            if self._chance.happens(OUTLIERS):
                value *= self._chance.between(2.2, 4.5)
        value = min(column.high, max(column.low, value))
        return round(value) if column.decimals == 0 else round(value, column.decimals)


def draw_table(domain: Domain, seed: int, number: int) -> Table:
    """Return table `number` of a domain.

    Args:
        domain: the domain of the table.
        seed: the seed of the entire data set.
        number: the number of the table, from 1; the same seed gives the same table.
    """
    chance = Chance("table", seed, domain.name, number)
    needed = {name for one in domain.formulas for name in (one.over, one.under)}
    needed |= {column.follows for column in domain.columns}
    columns = tuple(
        column
        for column in domain.columns
        if not column.optional or column.name in needed or not chance.happens(ABSENT)
    )
    values = _rows(domain, columns, chance)
    return Table(
        f"{domain.table}_{number:02d}", domain, columns, values, _lookup_rows(domain, chance)
    )


def _rows(
    domain: Domain, columns: Sequence[Column], chance: Chance
) -> dict[str, tuple[Value, ...]]:
    numbers = _Numbers(domain, columns, chance)
    weights = {column.name: [chance.between(0.5, 1.6) for _ in column.values] for column in columns}
    shares = [chance.between(0.6, 1.4) for _ in domain.column(domain.lookup.key).values]
    start = date(chance.whole(*YEARS), chance.whole(1, 12), 1)
    days = chance.whole(*SPAN_DAYS)
    passed = sorted(chance.whole(0, days - 1) for _ in range(chance.whole(*ROWS)))
    count = chance.whole(1000, 40000)
    rows = []
    for day in passed:
        count += chance.whole(1, 3)
        row: dict[str, Value] = {}
        for column in columns:
            if column.kind == "id":
                row[column.name] = f"{column.prefix}{count:05d}"
            elif column.kind == "date":
                row[column.name] = start + timedelta(days=day)
            elif column.kind == "label":
                row[column.name] = chance.weighted(column.values, weights[column.name])
        key = domain.column(domain.lookup.key).values.index(str(row[domain.lookup.key]))
        for column in columns:
            if column.kind == "flag":
                is_set = chance.happens(min(0.85, column.share * shares[key]))
                row[column.name] = "yes" if is_set else "no"
        row |= numbers.row(row, day / days)
        rows.append(row)
    if chance.happens(0.35):
        rows = chance.shuffled(rows)
    return {column.name: tuple(row[column.name] for row in rows) for column in columns}


def _lookup_rows(domain: Domain, chance: Chance) -> dict[str, tuple[Value, ...]]:
    """Return the lookup table, in which label columns have every value once if there is room."""
    keys = tuple(chance.shuffled(domain.column(domain.lookup.key).values))
    rows: dict[str, tuple[Value, ...]] = {domain.lookup.key: keys}
    for column in domain.lookup.columns:
        if column.kind == "label":
            order = chance.shuffled(column.values)
            drawn: list[Value] = [order[place % len(order)] for place in range(len(keys))]
            rows[column.name] = tuple(chance.shuffled(drawn))
        else:
            rows[column.name] = tuple(_apart(column, len(keys), chance))
    return rows


def _apart(column: Column, count: int, chance: Chance) -> list[int | float]:
    """Return distinct numbers, so that "more than" never depends on a tie."""
    found: list[int | float] = []
    while len(found) < count:
        if column.shape == "even":
            value = column.typical * (1 + column.spread * chance.normal())
        else:
            value = column.typical * grown(chance.normal(), column.spread)
        value = min(column.high, max(column.low, value))
        near = round(value) if column.decimals == 0 else round(value, column.decimals)
        if near not in found:
            found.append(near)
    return found
