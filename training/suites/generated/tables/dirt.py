"""Dirt for clean tables: gaps, repeats, units, decimal commas, words among numbers, and more.

Each piece of dirt has one meaning. A fact that the cells alone don't show, such as a sentinel, is
in the column's `Form`. A question that depends on such a fact must state it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Literal

from training.suites.generated.data import read_data_file
from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.domains import Column
from training.suites.generated.tables.tables import Table, Value

__all__ = ["FORMATS", "Cell", "DateForm", "DirtyTable", "Form", "Format", "header", "soil"]

Format = Literal["csv", "xlsx", "sqlite"]
FORMATS: tuple[Format, ...] = ("csv", "xlsx", "sqlite")
DateForm = Literal["iso", "dotted", "long", "cell"]
Cell = str | int | float | date | None

CLEAN = 0.22
"""Share of tables without dirt."""
GAPS = (0.02, 0.09)
GROUPED_FROM = 300
"""Only numbers of columns with a larger typical value get thousands separators."""
_KINDS = ("gaps", "gaps", "words", "sentinel", "sign", "others", "grouped", "text")
FLAGS = (("yes", "no"), ("Y", "N"), ("1", "0"), ("true", "false"))
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class Form:
    """Notation of the values of one column."""

    header: str
    marks: tuple[str, ...] = ()
    """Texts that mark a missing value; empty if no value is missing."""
    words: tuple[str, ...] = ()
    """Entries of a number column that are not numbers."""
    sentinel: int | None = None
    """Number that marks a missing value."""
    is_comma: bool = False
    """Whether the decimal sign is a comma, and a point groups thousands."""
    is_grouped: bool = False
    """Whether thousands are grouped."""
    sign: str = ""
    """Unit after each number."""
    other_sign: str = ""
    """Unit that follows some numbers instead."""
    other_factor: Decimal = Decimal(1)
    """Number of the column's units in one of the other unit."""
    is_text: bool = False
    """Whether the numbers or dates are text in a file with types."""
    dates: tuple[DateForm, ...] = ("iso",)
    is_varied: bool = False
    """Whether labels vary in case and in spaces around them."""
    flags: tuple[str, str] = ("yes", "no")

    @property
    def has_gaps(self) -> bool:
        """Whether values are missing."""
        return bool(self.marks or self.words or self.sentinel is not None)


@dataclass(frozen=True, slots=True)
class DirtyTable:
    """A table with the cells of its file."""

    table: Table
    """The values that a careful reader finds; `None` for a missing one."""
    format: Format
    forms: Mapping[str, Form]
    """Forms by column."""
    rows: tuple[tuple[Cell, ...], ...]
    """Cells in the order of the table's columns, including repeated rows."""
    repeats: int
    """Number of rows that repeat an earlier one."""


def header(column: Column, style: str) -> str:
    """Return the header of a column in a style: `snake`, `title`, `camel` or `unit`."""
    words = (column.name.replace("_", " ") if column.kind == "flag" else column.noun).split()
    match style:
        case "title":
            return " ".join(word if word == "of" else word[0].upper() + word[1:] for word in words)
        case "camel":
            return column.name.split("_")[0] + "".join(
                word.capitalize() for word in column.name.split("_")[1:]
            )
        case "unit":
            named = " ".join(words)
            unit = f" ({column.unit})" if column.unit and column.kind == "number" else ""
            return f"{named[0].upper()}{named[1:]}{unit}"
    return column.name


def soil(table: Table, file_format: Format, chance: Chance) -> DirtyTable:
    """Return the table with dirt that its format can represent."""
    style = "snake"
    if file_format != "sqlite":
        style = chance.weighted(("snake", "title", "camel", "unit"), (3, 3, 1, 2))
    forms = {one.name: Form(header(one, style)) for one in table.columns}
    if not chance.happens(CLEAN):
        forms = _forms(table, file_format, forms, chance)
    table = _with_gaps(table, forms, chance)
    rows = [
        tuple(
            _Writer(column, forms[column.name], file_format, chance).cell(
                table.values[column.name][place]
            )
            for column in table.columns
        )
        for place in range(table.size)
    ]
    repeats = 0
    if file_format != "sqlite" and chance.happens(0.45):
        repeats = chance.whole(2, max(3, len(rows) // 30))
        for _ in range(repeats):
            place = chance.whole(0, len(rows) - 1)
            rows.insert(chance.whole(place + 1, len(rows)), rows[place])
    for place, column in enumerate(table.columns):
        if forms[column.name].is_varied:
            rows = _mostly_plain(
                rows, place, {str(one) for one in table.values[column.name] if one}
            )
    return DirtyTable(table, file_format, forms, tuple(rows), repeats)


def _mostly_plain(
    rows: list[tuple[Cell, ...]], place: int, labels: set[str]
) -> list[tuple[Cell, ...]]:
    """Return the rows, without variants of labels whose plain spelling is not the most common.

    A reader takes the most common spelling for the label, with or without repeated rows.
    """
    plain = {label.casefold(): label for label in labels}
    outdone = set()
    for some in (rows, list(dict.fromkeys(rows))):
        counts = Counter(str(row[place]) for row in some)
        for written, count in counts.items():
            key = written.strip().casefold()
            if key in plain and written != plain[key] and count >= counts[plain[key]]:
                outdone.add(key)

    def cell(value: Cell) -> Cell:
        key = value.strip().casefold() if isinstance(value, str) else ""
        return plain[key] if key in outdone else value

    return [(*row[:place], cell(row[place]), *row[place + 1 :]) for row in rows]


def _forms(
    table: Table, file_format: Format, forms: Mapping[str, Form], chance: Chance
) -> dict[str, Form]:
    made = dict(forms)
    is_comma = file_format == "csv" and chance.happens(0.3)
    numbers = [column for column in table.columns if column.kind == "number"]
    soiled = {column.name for column in chance.shuffled(numbers)[: chance.whole(1, 3)]}
    labels = [column.name for column in table.columns if column.kind == "label"]
    if file_format == "sqlite":  # a foreign key must match exactly
        labels.remove(table.domain.lookup.key)
    varied = chance.choose(labels) if chance.happens(0.35) else ""
    gappy = {one for one in labels if chance.happens(0.15)}
    marks = _marks(file_format, chance)
    for column in table.columns:
        form = made[column.name]
        if column.kind == "number":
            if is_comma and column.decimals > 0:
                form = replace(form, is_comma=True, is_grouped=column.typical > GROUPED_FROM)
            if column.name in soiled:
                form = _number_form(column, form, file_format, marks, chance)
        elif column.kind == "date":
            form = _date_form(form, file_format, is_comma, chance)
        elif column.kind == "flag":
            form = replace(form, flags=chance.choose(FLAGS))
        elif column.name == varied:
            form = replace(form, is_varied=True)
        elif column.name in gappy:
            form = replace(form, marks=marks)
        made[column.name] = form
    return made


def _marks(file_format: Format, chance: Chance) -> tuple[str, ...]:
    """Return the one or two marks of this file for missing values."""
    if file_format == "sqlite" or chance.happens(0.4):
        return ("",)
    return tuple(chance.shuffled(read_data_file("dirt.toml")["marks"])[: chance.whole(1, 2)])


def _number_form(
    column: Column, form: Form, file_format: Format, marks: tuple[str, ...], chance: Chance
) -> Form:
    """Return the form of a number column with one kind of dirt; gaps if that kind does not fit."""
    dirt = read_data_file("dirt.toml")
    sign = dirt["signs"].get(column.unit, "")
    changes: dict[str, object] = {"marks": marks}
    match chance.choose(_KINDS):
        case "others" if column.unit in dirt["others"] and sign:
            other, factor = dirt["others"][column.unit]
            changes = {"sign": sign, "other_sign": other, "other_factor": Decimal(factor)}
        case "sign" | "others" if sign:
            changes = {"sign": sign, "marks": marks if chance.happens(0.5) else ()}
        case "grouped" if column.typical > GROUPED_FROM and not form.is_comma:
            changes = {"is_grouped": True}
        case "words":
            words = tuple(chance.shuffled(dirt["words"])[: chance.whole(1, 2)])
            return replace(form, words=words, is_text=file_format != "xlsx")
        case "sentinel":
            return replace(form, sentinel=chance.choose(dirt["sentinels"]))
        case "text" if file_format == "xlsx":
            pass
        case _:
            return replace(form, marks=marks)
    return replace(form, is_text=True, **changes)  # type: ignore[arg-type]


def _date_form(form: Form, file_format: Format, is_comma: bool, chance: Chance) -> Form:
    if file_format == "xlsx" and chance.happens(0.6):
        return replace(form, dates=("cell",))
    dates: tuple[DateForm, ...] = ("dotted",) if is_comma else ("iso",)
    if chance.happens(0.3):
        dates = chance.choose((("iso", "dotted"), ("iso", "long"), ("iso", "dotted", "long")))
    return replace(form, dates=dates, is_text=True)


def _with_gaps(table: Table, forms: Mapping[str, Form], chance: Chance) -> Table:
    values = dict(table.values)
    for column in table.columns:
        if forms[column.name].has_gaps:
            share = chance.between(*GAPS)
            values[column.name] = tuple(
                None if chance.happens(share) else value for value in values[column.name]
            )
    return replace(table, values=values)


class _Writer:
    """Writer of the cells of one column."""

    def __init__(self, column: Column, form: Form, file_format: Format, chance: Chance) -> None:
        self._column = column
        self._form = form
        self._is_text = form.is_text or file_format == "csv"
        self._format = file_format
        self._chance = chance

    def cell(self, value: Value) -> Cell:
        """Return the cell of the file for a value."""
        if value is None:
            return self._gap()
        if isinstance(value, date):
            return self._date(value)
        if isinstance(value, int | float):
            return self._number(value)
        if self._column.kind == "flag":
            written = self._form.flags[value == "no"]
            return int(written) if written in "01" and self._format != "csv" else written
        return self._label(value)

    def _gap(self) -> Cell:
        form = self._form
        if form.sentinel is not None:
            return str(form.sentinel) if self._is_text else form.sentinel
        mark = self._chance.choose(form.marks or form.words)
        return None if mark == "" and self._format != "csv" else mark

    def _label(self, value: str) -> str:
        if not self._form.is_varied or not self._chance.happens(0.3):
            return value
        return self._chance.choose((value.upper(), value.lower(), f"{value} ", f" {value}"))

    def _date(self, value: date) -> Cell:
        return written_date(value, self._chance.choose(self._form.dates))

    def _number(self, value: int | float) -> Cell:
        if not self._is_text:
            return value
        form, decimals = self._form, self._column.decimals
        sign = form.sign
        text = f"{value:,.{decimals}f}" if form.is_grouped else f"{value:.{decimals}f}"
        if form.other_sign and self._chance.happens(0.25):
            other = Decimal(text.replace(",", "")) / form.other_factor
            if other == round(other, 3) and other >= Decimal("0.01"):
                sign, text = form.other_sign, f"{other.normalize():f}"
        if form.is_comma:
            text = text.replace(",", "_").replace(".", ",").replace("_", ".")
        return f"{text} {sign}" if sign else text


def written_date(value: date, form: DateForm) -> Cell:
    """Return a date in one of the forms; a workbook cell is the date itself."""
    match form:
        case "dotted":
            return f"{value.day:02d}.{value.month:02d}.{value.year}"
        case "long":
            return f"{value.day} {MONTHS[value.month - 1]} {value.year}"
        case "cell":
            return value
    return value.isoformat()
