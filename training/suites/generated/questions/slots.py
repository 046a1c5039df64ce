"""Slots of a template, filled with columns, values, limits and periods of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from training.suites.generated.data import read_data_file
from training.suites.generated.programs.steps import ProgramAnswer, UnfitError
from training.suites.generated.questions.amounts import plain_amount, rounded, slug
from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.dirt import MONTHS
from training.suites.generated.tables.domains import Column, Effect, Formula
from training.suites.generated.tables.files import DataFile

__all__ = ["Slot", "SlotFiller", "is_late", "late_slot", "mention"]

LEAST_OF_VALUE = 12
"""Fewest rows of a label that a question may name."""
LEAST_OF_MONTH = 8
LEAST_OF_YEAR = 25
_LATE = ("near", "claimed")
_QUARTERS = ("first", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Slot:
    """Content of a filled slot."""

    raw: Any
    """Value of `$slot` in steps."""
    words: Mapping[str, str]
    """Words of `{slot}` in texts, under "", and of each `{slot.word}`."""
    columns: tuple[str, ...] = ()
    """Columns that a question uses through the slot."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Values of `$slot.part` in steps."""


def mention(column: str) -> str:
    """Return the mark that represents a column's noun until the question is finished."""
    return f"\x02{column}\x03"


def is_late(spec: str) -> bool:
    """Return whether a slot needs a value that earlier steps compute."""
    return spec.split(maxsplit=1)[0] in _LATE


class SlotFiller:
    """Filler of the slots of one question; it uses no column twice."""

    def __init__(self, file: DataFile, chance: Chance) -> None:
        """Prepare to fill slots.

        Args:
            file: the file that the question is about.
            chance: the draws of the question.
        """
        self._file = file
        self._table = file.dirty.table
        self._chance = chance
        self._taken: set[str] = set()

    def fill(self, specs: Mapping[str, str]) -> dict[str, Slot]:
        """Return the filled slots of a template, without the late ones.

        Raises:
            UnfitError: nothing in the table fits.
        """
        filled: dict[str, Slot] = {}
        for name, spec in specs.items():
            if not is_late(spec):
                filled[name] = self._slot(spec, filled)
        return _in_time(specs, filled)

    def _slot(self, spec: str, filled: Mapping[str, Slot]) -> Slot:
        kind, *rest = spec.split()
        if " of " in spec:
            owner = filled[rest[-1]]
            return getattr(self, f"_{kind}")(owner, filled)  # type: ignore[no-any-return]
        if kind == "sound":
            return self._column(rest[0], is_sound=True)
        if kind == "label":
            return self._column("label", least=int(rest[0]) if rest else 3)
        if kind in _FREE:
            return _FREE[kind](self._chance, rest)
        if kind in ("formula", "effect"):
            return getattr(self, f"_{kind}")()  # type: ignore[no-any-return]
        return self._column(kind)

    # Columns

    def _column(self, kind: str, least: int = 0, *, is_sound: bool = False) -> Slot:
        of_lookup = kind.startswith("lookup_")
        columns: Sequence[Column] = self._table.columns
        if of_lookup:
            columns = self._table.domain.lookup.columns if self._file.lookup_name else ()
            kind = kind.removeprefix("lookup_")
        fitting = [
            column
            for column in columns
            if column.name not in self._taken
            and self._fits(column, kind)
            and not (is_sound and self._file.dirty.forms[column.name].has_gaps)
            and (not least or len({*self._table.present(column.name)}) >= least)
        ]
        if not fitting:
            raise UnfitError("no such column")
        column = self._chance.choose(fitting)
        self._taken.add(column.name)
        used = (self._table.domain.lookup.key, column.name) if of_lookup else (column.name,)
        return self._of_column(column, used)

    def _fits(self, column: Column, kind: str) -> bool:
        match kind:
            case "total":
                return column.total
            case "gappy":
                return column.kind == "number" and self._file.dirty.forms[column.name].has_gaps
            case "positive":
                return column.kind == "number" and all(
                    isinstance(one, int | float) and one > 0
                    for one in self._table.present(column.name)
                )
        return column.kind == kind

    def _of_column(self, column: Column, used: tuple[str, ...]) -> Slot:
        words = {
            "": mention(column.name),
            "plural": column.plural,
            "slug": slug(column.noun),
            "unit": column.unit,
            "behind": _with_unit("", column),
            "decimals": str(column.decimals),
            "yes": column.yes,
            "no": column.no,
        }
        return Slot(column.name, words, used)

    def _formula(self) -> Slot:
        names = {column.name for column in self._table.columns}
        fitting = [
            one
            for one in self._table.domain.formulas
            if {one.over, one.under} <= names and not {one.over, one.under} & self._taken
        ]
        if not fitting:
            raise UnfitError("no such column")
        formula = self._chance.choose(fitting)
        self._taken |= {formula.over, formula.under}
        return _of_formula(formula, self._table.domain.row)

    def _effect(self) -> Slot:
        if not self._table.domain.effects:
            raise UnfitError("no such column")
        effect: Effect = self._chance.choose(self._table.domain.effects)
        self._taken |= {effect.treatment, effect.outcome}
        flag = self._table.domain.column(effect.treatment)
        outcome = self._table.domain.column(effect.outcome)
        words = {
            "": effect.cause,
            "cause": effect.cause,
            "outcome": mention(outcome.name),
            "unit": outcome.unit,
            "decimals": str(outcome.decimals),
            "yes": flag.yes,
            "no": flag.no,
        }
        parts = {"treatment": effect.treatment, "outcome": effect.outcome}
        return Slot(None, words, (effect.treatment, effect.outcome), parts)

    # Values of a column, by the word before `of`

    def _value(self, owner: Slot, filled: Mapping[str, Slot]) -> Slot:
        column = self._table.domain.column(owner.raw)
        values = self._table.present(owner.raw)
        least = 1 if owner.raw in self._table.lookup else LEAST_OF_VALUE
        taken = {slot.raw for slot in filled.values() if slot.columns == owner.columns}
        fitting = sorted(
            str(value) for value in {*values} if values.count(value) >= least and value not in taken
        )
        if len(fitting) < 2:
            raise UnfitError("too few rows")
        value = self._chance.choose(fitting)
        clause = column.clause.format(value=value)
        return Slot(value, {"": value, "clause": clause}, owner.columns)

    def _numbers(self, owner: Slot) -> list[float]:
        return sorted(
            float(one) for one in self._table.present(owner.raw) if isinstance(one, int | float)
        )

    def _threshold(self, owner: Slot, _: Mapping[str, Slot]) -> Slot:
        column, numbers = self._table.domain.column(owner.raw), self._numbers(owner)
        if column.clause:  # a lookup column: each number occurs once
            raw = Decimal(str(numbers[self._chance.whole(0, len(numbers) // 2)]))
        else:
            share = self._chance.between(0.3, 0.75)
            raw = rounded(numbers[int(share * len(numbers))], 2, column.decimals)
        limit = float(raw)
        if not numbers[0] < limit < numbers[-1] and not column.clause:
            raise UnfitError("too few rows")
        text = plain_amount(raw)
        number = int(limit) if limit.is_integer() else limit
        words = {
            "": _with_unit(text, column),
            "clause": column.clause.format(value=text),
        }
        return Slot(number, words, owner.columns)

    def _bands(self, owner: Slot, _: Mapping[str, Slot]) -> Slot:
        column, numbers = self._table.domain.column(owner.raw), self._numbers(owner)
        shares = (0.22, 0.5, 0.78)
        limits = [
            rounded(numbers[int(share * len(numbers))], 2, column.decimals) for share in shares
        ]
        if not limits[0] < limits[1] < limits[2]:
            raise UnfitError("too few rows")
        low, middle, high = map(plain_amount, limits)
        names = [
            f"below {low}",
            f"{low} to below {middle}",
            f"{middle} to below {high}",
            f"{high} or more",
        ]
        unit = f" (in {column.unit})" if column.unit and column.unit not in column.noun else ""
        words = {"": f"four bands{unit}: {', '.join(names)}", "list": f"{', '.join(names)}{unit}"}
        edges = [float(limit) for limit in limits]
        return Slot(None, words, owner.columns, {"edges": edges, "names": names})

    # Periods

    def _days(self, owner: Slot) -> list[date]:
        return sorted(one for one in self._table.present(owner.raw) if isinstance(one, date))

    def _period(self, owner: Slot, filled: Mapping[str, Slot], name: str, least: int) -> Slot:
        column = self._table.domain.column(owner.raw)
        raws = [_PERIODS[name](day) for day in self._days(owner)]
        taken = {slot.raw for slot in filled.values()}
        fitting = sorted(raw for raw in {*raws} if raws.count(raw) >= least and raw not in taken)
        if len(fitting) < 2:
            raise UnfitError("too few rows")
        raw = self._chance.choose(fitting)
        text = period_text(raw)
        return Slot(raw, {"": text, "clause": column.within.format(period=text)}, owner.columns)

    def _month(self, owner: Slot, filled: Mapping[str, Slot]) -> Slot:
        return self._period(owner, filled, "month", LEAST_OF_MONTH)

    def _quarter(self, owner: Slot, filled: Mapping[str, Slot]) -> Slot:
        return self._period(owner, filled, "quarter", LEAST_OF_VALUE)

    def _year(self, owner: Slot, filled: Mapping[str, Slot]) -> Slot:
        return self._period(owner, filled, "year", LEAST_OF_YEAR)

    def _day(self, owner: Slot, _: Mapping[str, Slot]) -> Slot:
        column, days = self._table.domain.column(owner.raw), self._days(owner)
        raw = days[int(len(days) * self._chance.between(0.3, 0.7))].replace(day=1)
        text = f"{raw.day} {MONTHS[raw.month - 1]} {raw.year}"
        words = {
            "": text,
            "since": column.since.format(day=text),
            "before": column.before.format(day=text),
        }
        return Slot(raw.isoformat(), words, owner.columns)


def _with_unit(text: str, column: Column) -> str:
    is_named = not column.unit or column.unit in column.noun
    return text if is_named else f"{text} {column.unit}"


def _of_formula(formula: Formula, row: str) -> Slot:
    over, under = mention(formula.over), mention(formula.under)
    scaled = "" if formula.factor == 1 else f", times {formula.factor:g}"
    words = {
        "": formula.noun,
        "slug": slug(formula.name),
        "unit": formula.unit,
        "totals": f"The {formula.noun} is the total {over} divided by the total {under}{scaled}.",
        "rows": f"The {formula.noun} of a {row} is its {over} divided by its {under}{scaled}.",
    }
    # In SQL and in pandas, a factor with a decimal point keeps a quotient a float.
    parts = {"over": formula.over, "under": formula.under, "factor": f"{float(formula.factor)}"}
    return Slot(None, words, (formula.over, formula.under), parts)


_PERIODS: Mapping[str, Callable[[date], str]] = {
    "month": lambda day: f"{day:%Y-%m}",
    "quarter": lambda day: f"{day.year}-Q{(day.month + 2) // 3}",
    "year": lambda day: str(day.year),
}


def period_text(raw: str) -> str:
    """Return a month, quarter or year in words."""
    year, _, rest = raw.partition("-")
    if not rest:
        return year
    if rest.startswith("Q"):
        return f"the {_QUARTERS[int(rest[1]) - 1]} quarter of {year}"
    return f"{MONTHS[int(rest) - 1]} {year}"


def _in_time(specs: Mapping[str, str], filled: dict[str, Slot]) -> dict[str, Slot]:
    """Return the slots with periods of one kind in chronological order."""
    for kind in _PERIODS:
        names = [name for name, spec in specs.items() if spec.split()[0] == kind]
        if len(names) > 1:
            ordered = sorted((filled[name] for name in names), key=lambda slot: str(slot.raw))
            filled.update(zip(names, ordered, strict=True))
    return filled


# Slots that need no column


def _pick(chance: Chance, rest: Sequence[str]) -> Slot:
    raw = chance.choose(rest[0].split("|"))
    phrases = read_data_file("phrases.toml")
    words = {"": phrases["words"].get(raw, raw), "divisor": phrases["divisors"].get(raw, "")}
    return Slot(int(raw) if raw.isdecimal() else raw, words)


def _ordinal(chance: Chance, _: Sequence[str]) -> Slot:
    raw = chance.whole(1, 3)
    return Slot(raw, {"": _QUARTERS[raw]})


def _whole(chance: Chance, rest: Sequence[str]) -> Slot:
    raw = chance.whole(int(rest[0]), int(rest[1]))
    return Slot(raw, {"": str(raw)})


def _percent(chance: Chance, _: Sequence[str]) -> Slot:
    raw = chance.choose((4, 5, 6, 8, 10, 12, 15, 20))
    return Slot(raw, {"": str(raw)})


_FREE: Mapping[str, Callable[[Chance, Sequence[str]], Slot]] = {
    "pick": _pick,
    "ordinal": _ordinal,
    "whole": _whole,
    "percent": _percent,
}


def late_slot(
    spec: str, values: Mapping[str, ProgramAnswer], labels: Sequence[str], chance: Chance
) -> Slot:
    """Return the slot of a claim: a value close to the true one, or a label that may be true.

    Args:
        spec: `near VALUE` or `claimed VALUE of SLOT`.
        values: the values of the steps so far.
        labels: the labels that may be claimed.
        chance: the draws of the question.

    Raises:
        UnfitError: the value rounds to nearly the true one, or to 0.
    """
    kind, name, *_ = spec.split()
    true = values[name]
    if kind == "claimed":
        others = sorted({*labels} - {str(true)})
        raw = str(true) if chance.happens(0.5) else chance.choose(others)
        return Slot(raw, {"": raw})
    number = float(str(true))
    off = chance.between(0.012, 0.035) if chance.happens(0.5) else chance.between(0.075, 0.2)
    near = rounded(number * (1 + off if chance.happens(0.5) else 1 - off), 3, 2)
    if abs(float(near) - number) < 0.004 * abs(number) or not near:
        raise UnfitError("on the edge")
    return Slot(float(near), {"": plain_amount(near)})
