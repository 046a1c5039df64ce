"""Whether a value is a stated number: rounded, with a hedge, scaled, or in another unit."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

from dm_jupyter.assist.grounding.blocks import NumberCell, TextBlock
from dm_jupyter.assist.grounding.numbers import magnitude, plain_value
from dm_jupyter.assist.grounding.outputs import Outputs
from dm_jupyter.assist.grounding.statements import Statement
from dm_jupyter.assist.grounding.words import Unit, content_words, smaller_units

__all__ = [
    "FittingValue",
    "Index",
    "StatedReading",
    "Window",
    "derived_windows",
    "misfit",
    "stated_readings",
    "window",
]

_MOST_CANDIDATES, _MOST_BARE = 40, 3
_LOOSE, _LOOSER = 0.1, 0.25
"""Largest distance of `about` and `over` from the value, as a fraction of the number."""
_EXACT = 1e-9
_MONEY = frozenset(("dollar", "euro", "sterling"))
_AS_RATE = frozenset(content_words("inflation unemployment interest"))
"""Words of a label under which a small number may be a percentage already."""
_FIGURES = frozenset(("mean", "median", "max", "min", "std"))
"""Words of columns whose values are no shares of the data."""
_OF_ALL = re.compile(r"\**\s?of\s(?:the\s|all\s)*(?:data(?:set)?|total|whole|sum)\b\W*\Z", re.I)


@dataclass(frozen=True, slots=True)
class Window:
    """The values that a stated number may represent, without their signs."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value is one of them, in either sign."""
        return self.low <= abs(value) <= self.high

    def scaled(self, factor: float) -> Window:
        """Return the window for values that are `factor` times as large."""
        return Window(self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class StatedReading:
    """One interpretation of a stated number."""

    window: Window
    way: str
    """The interpretation: `plain`, `unscaled`, `fraction`, `percent`, `unit`, `scaled`, `assumed`.

    With `unscaled`, 4.2 million is 4.2, although nothing names that scale. With `fraction`, 45 % is
    0.45; with `percent`, 0.45 is 45 %. With `assumed`, a value without unit is read in a smaller
    unit than the stated one."""
    unit: Unit | None = None
    """The unit that the value must have, for `unit`."""
    scale: float = 1.0
    """Factor that the labels of the value must name, for `scaled`."""


@dataclass(frozen=True, slots=True)
class FittingValue:
    """A value that fits in size."""

    source: int
    cell: NumberCell
    block: TextBlock | None
    """`None` for a number without labels."""
    reading: StatedReading


class Index:
    """All values of the outputs, sorted by size."""

    def __init__(self, outputs: Outputs) -> None:
        found: list[tuple[float, int, NumberCell, TextBlock | None]] = [
            (abs(cell.value), block.source, cell, block)
            for block in outputs.blocks
            for cell in block.cells
        ]
        found.sort(key=itemgetter(0))
        self._found = found
        self._sizes = [one[0] for one in found]
        self._bare, self._bare_from = outputs.bare, outputs.bare_from
        values = [abs(plain_value(text)) for text in outputs.bare]
        self._order = sorted(range(len(values)), key=values.__getitem__)
        self._bare_sizes = [values[at] for at in self._order]

    def fitting(self, reading: StatedReading) -> Iterator[FittingValue]:
        """Yield the values within a reading's window, a bounded number of them."""
        start = bisect_left(self._sizes, reading.window.low)
        end = bisect_right(self._sizes, reading.window.high)
        for _, source, cell, block in self._found[start : min(end, start + _MOST_CANDIDATES)]:
            yield FittingValue(source, cell, block, reading)
        start = bisect_left(self._bare_sizes, reading.window.low)
        end = bisect_right(self._bare_sizes, reading.window.high)
        for at in self._order[start : min(end, start + _MOST_BARE)]:
            text = self._bare[at]
            place = bisect_right(self._bare_from, (at, len(self._bare))) - 1
            source = self._bare_from[place][1]
            yield FittingValue(source, NumberCell(plain_value(text), text, 0, 0), None, reading)


def window(statement: Statement, *, scaled: bool = True) -> Window:
    """Return which values a number may represent, by its digits and its hedge.

    Args:
        statement: the number with its words.
        scaled: whether `million` and the like count; a percentage never becomes a fraction.
    """
    number = statement.number
    factor = 10.0 ** max(0, number.exponent) if scaled else 1.0
    size = abs(number.value)
    below = above = number.step / 2
    unit = magnitude(number)
    if statement.hedge == "about":
        below = above = max(below, min(unit / 2, size * _LOOSE))
    elif statement.hedge == "over":
        above = max(above, min(unit, size * _LOOSER))
    elif statement.hedge == "under":
        below = max(below, min(unit, size * _LOOSE))
    slack = (size + number.step) * _EXACT
    return Window(max(0.0, size - below - slack), size + above + slack).scaled(factor)


def stated_readings(
    statement: Statement, units: frozenset[Unit], scales: frozenset[float], *, is_scale_named: bool
) -> list[StatedReading]:
    """Return the interpretations of a number.

    Args:
        statement: the number with its words.
        units: those that values of the outputs have.
        scales: the factors that labels of values name.
        is_scale_named: whether anything names the scale of the number, if it has one.
    """
    number = statement.number
    plain = window(statement)
    found = [StatedReading(plain, "plain")]
    if number.is_percentage:
        found.append(StatedReading(plain.scaled(0.01), "fraction"))
    elif number.exponent > 0:
        way = "plain" if is_scale_named else "unscaled"
        found.append(StatedReading(window(statement, scaled=False), way))
    elif statement.unit is None and abs(number.value) <= 1 and number.decimals:
        found.append(StatedReading(plain.scaled(100.0), "percent"))
    if statement.unit and statement.unit[0] != "percent":
        found += [
            StatedReading(plain.scaled(statement.unit[1] / held[1]), "unit", held)
            for held in units
            if held[0] == statement.unit[0] and held[1] != statement.unit[1]
        ]
        found += [
            StatedReading(plain.scaled(100.0 if held[0] == "cent" else 0.01), "unit", held)
            for held in units
            if {held[0], statement.unit[0]} & _MONEY and "cent" in (held[0], statement.unit[0])
        ]
        found += [
            StatedReading(plain.scaled(factor), "assumed") for factor in _assumed(statement, units)
        ]
    if not number.is_percentage:
        found += [StatedReading(plain.scaled(1 / scale), "scaled", scale=scale) for scale in scales]
    return found


def _assumed(statement: Statement, units: frozenset[Unit]) -> tuple[float, ...]:
    """Return how many of a smaller unit the stated one is, if no output has the stated unit."""
    unit = statement.unit
    if unit is None or unit in units:
        return ()
    return smaller_units(unit)


def derived_windows(
    statement: Statement, units: frozenset[Unit], scales: frozenset[float], *, may_be_unscaled: bool
) -> list[Window]:
    """Return which derived results a number may represent, in the unit of the values.

    Args:
        statement: the number with its words.
        units: those that values of the outputs have.
        scales: the factors that labels of values name.
        may_be_unscaled: whether the values may be in millions if the number is.
    """
    found = [window(statement)]
    if statement.number.exponent > 0 and may_be_unscaled:
        found.append(window(statement, scaled=False))
    if not statement.number.is_percentage:
        is_in_cents = any(held[0] == "cent" for held in units)
        cents = (100.0,) if is_in_cents and statement.unit and statement.unit[0] in _MONEY else ()
        factors = [*_assumed(statement, units), *cents, *(1 / scale for scale in scales)]
        found += [found[0].scaled(factor) for factor in factors]
    return found


def misfit(held: FittingValue, statement: Statement) -> str | None:
    """Return why the unit of a value that fits in size rules it out; `""` if it does not.

    `None` means that the reading does not apply to such values at all.
    """
    unit = held.block.unit(held.cell) if held.block else None
    is_percent = unit is not None and unit[0] == "percent"
    match held.reading.way:
        case "unit":
            return "" if unit == held.reading.unit else None
        case "percent":
            return "" if is_percent else None
        case "fraction" | "assumed":
            return None if unit else ""
        case "scaled":
            is_so = held.block and held.block.scale(held.cell) == held.reading.scale
            return "" if is_so else None
    is_of_other_kind = statement.number.is_percentage and unit is not None and not is_percent
    is_unscaled = held.reading.way == "unscaled"
    if is_of_other_kind or (is_unscaled and _is_whole(held.cell, held.block)):
        return None
    if statement.number.is_percentage:
        why = _no_percentage(held, statement, unit)
    elif is_percent and statement.number.exponent > 0:
        why = "a percentage"
    elif _has_other_scale(held, statement):
        why = "in another unit"
    else:
        why = _other_unit(unit, statement.unit)
    return f"{held.cell.text} is {why} there" if why else ""


def _has_other_scale(held: FittingValue, statement: Statement) -> bool:
    """Whether the label says millions, and the answer says billions for the same figure."""
    exponent = statement.number.exponent
    scale = held.block.scale(held.cell) if held.block and exponent > 0 else 1.0
    return scale not in (1.0, 10.0**exponent)


def _is_whole(cell: NumberCell, block: TextBlock | None) -> bool:
    """Whether a value is whole, as are all others of its column."""
    column = block.column(cell.column) if block is not None and block.is_table else ()
    return all(one.value.is_integer() for one in (cell, *column))


def _no_percentage(held: FittingValue, statement: Statement, unit: Unit | None) -> str:
    if unit is not None:
        return ""
    words = held.block.words(held.cell) if held.block else frozenset()
    if 0 < abs(held.cell.value) < 1 and not words & _AS_RATE:
        return "a fraction and no percentage"
    if held.block is None:
        return ""
    if held.block.column_words(held.cell.column) & _FIGURES and _OF_ALL.match(statement.after):
        return "no share"
    return "a count and no percentage" if _is_count(held, held.block) else ""


def _is_count(held: FittingValue, block: TextBlock) -> bool:
    """Whether a column counts rows, and a value of it is no percentage of them."""
    column = block.column(held.cell.column)
    sizes = [one.value for one in column if one.text.replace(",", "").isdecimal()]
    if not block.is_table or not block.is_complete or not 1 < len(sizes) == len(column):
        return False
    share = 100 * held.cell.value / (sum(sizes) or 1)
    is_counted = "count" in block.column_words(held.cell.column)
    return is_counted and not held.reading.window.holds(share)


def _other_unit(held: Unit | None, stated: Unit | None) -> str:
    if held is None or stated is None or held == stated:
        return ""
    return "a percentage" if held[0] == "percent" else "in another unit"
