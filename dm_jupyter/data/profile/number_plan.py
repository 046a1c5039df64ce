"""Plan for the number columns of a frame: which stay text, which are converted, and how."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.columns import column_name
from dm_jupyter.data.profile.dates import kind_of_dates
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import literal
from dm_jupyter.data.profile.number_code import conversion_step, first_difference
from dm_jupyter.data.profile.number_inference import NumberFormat, NumberInference, NumberKind
from dm_jupyter.data.profile.numbers import PERCENT, SeparatorStyle
from dm_jupyter.data.profile.suspicion import is_text

__all__ = [
    "MOST_COLUMNS",
    "READ_KINDS",
    "NumberColumn",
    "NumberPlan",
    "number_plan",
    "texts_read_as_numbers",
]

_DATE_TEXTS = 2000
READ_KINDS = frozenset({NumberKind.PLAIN, NumberKind.FORMATTED})
"""Kinds whose texts are all read as numbers."""
_COMMAS: SeparatorStyle = ("", ",")
"""Commas between thousands, and no decimal sign."""
_NAMED_WORDS = 3
_NAMED_COLUMNS = 8
_PART_OF_TIME = re.compile(
    r"months?|mon|mm|mo|monat|mois|days?|dd|dy|tag|jour|hours?|hh|hr|stunde|minutes?|mn|min|seconds?|ss"
)
MOST_COLUMNS = 3_000
"""Most columns that are inspected; as many as are described."""


@dataclass
class NumberColumn:
    """A column of text, its kind, and how its numbers are written."""

    label: Any
    position: int
    inference: NumberInference
    kind: NumberKind
    reason: str = ""
    form: NumberFormat = field(default_factory=NumberFormat)
    """Format of plain and formatted numbers; meaningless for other kinds."""
    keeps: bool = False
    """Whether there are numbers beside the texts, as in a sheet."""

    @classmethod
    def judged(
        cls, label: Any, position: int, inference: NumberInference, texts: list[str]
    ) -> NumberColumn:
        """Return the column with the kind of its texts.

        Args:
            label: label of the column.
            position: position of the column.
            inference: inference from all of its values.
            texts: some of its texts, by which dates are recognised.
        """
        kind, reason = inference.kind()
        if kind is NumberKind.PARTIAL and kind_of_dates(texts) is not None:
            kind = NumberKind.TEXT
        if kind is NumberKind.CODE and _is_part_of_time(label, texts):
            kind, reason = NumberKind.PLAIN, ""
        column = cls(label, position, inference, kind, reason, keeps=inference.native > 0)
        if kind in READ_KINDS:
            column.form = inference.format(*inference.readings_left()[0])
        return column


@dataclass
class NumberPlan:
    """Conversions of a frame's numbers, and what is reported of them."""

    text_columns: list[Any] = field(default_factory=list)
    """Labels of the columns that a csv reader must read as text."""
    steps: tuple[FrameStep, ...] = ()
    """Conversions, verified on every value of the frame."""
    warnings: list[str] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    """Notes by column position."""
    columns: list[NumberColumn] = field(default_factory=list)
    converted: list[NumberColumn] = field(default_factory=list)
    """Columns that the steps convert to numbers."""

    def finish(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame after all steps."""
        for step in self.steps:
            frame = step.run(frame)
        return frame

    def without_steps(self, why: str) -> NumberPlan:
        """Return the plan with its converted columns left as text, and a warning about them.

        Args:
            why: reason in the warning, after the columns' names.
        """
        if not self.converted:
            return self
        names = ", ".join(repr(column_name(one.label)) for one in self.converted[:_NAMED_COLUMNS])
        more = len(self.converted) - _NAMED_COLUMNS
        names += f" and {more:,} more" if more > 0 else ""
        places = {one.position for one in self.converted}
        return replace(
            self,
            steps=(),
            converted=[],
            notes={at: note for at, note in self.notes.items() if at not in places},
            warnings=[*self.warnings, f"numbers with signs are left as text in {names}: {why}"],
        )


def number_plan(
    frame: pd.DataFrame,
    *,
    separator: str = "",
    reads_plain: bool = False,
    columns: list[NumberColumn] | None = None,
) -> NumberPlan:
    """Return the plan to convert a frame's text columns to numbers; undecided ones are named.

    Args:
        frame: frame with every text as in the file.
        separator: separator of a csv file; empty for other kinds.
        reads_plain: whether the reader itself converts plain numbers.
        columns: columns already known; the frame then only serves to check the code.
    """
    columns = _columns(frame) if columns is None else columns
    _settle(columns, separator)
    plan = NumberPlan(columns=columns)
    for column in columns:
        _tell(plan, column, frame)
    converted = [
        column
        for column in columns
        if column.kind is NumberKind.FORMATTED
        or (column.kind is NumberKind.PLAIN and (column.inference.missing or not reads_plain))
    ]
    plan.steps = tuple(_steps(plan, frame, converted))
    plan.converted = [column for column in converted if column.kind in READ_KINDS]
    if frame.shape[1] > MOST_COLUMNS:
        plan.warnings.append(
            f"number formats and codes were looked for in the first {MOST_COLUMNS:,} columns alone"
        )
    return plan


def texts_read_as_numbers(frame: pd.DataFrame, texts: pd.DataFrame) -> list[Any]:
    """Return the columns of a sheet whose texts pandas wrongly turns into numbers.

    Args:
        frame: as pandas reads the sheet: "007" is 7.
        texts: the same with `dtype=object`, as the cells are.
    """
    kinds = {NumberKind.CODE, NumberKind.AMBIGUOUS}
    return [
        column.label
        for column in _columns(texts)
        if column.kind in kinds and types.is_numeric_dtype(frame.iloc[:, column.position].dtype)
    ]


def _columns(frame: pd.DataFrame) -> list[NumberColumn]:
    """Return the columns of text, judged by all of their values."""
    found = []
    for position, (label, values) in enumerate(frame.iloc[:, :MOST_COLUMNS].items()):
        if not is_text(values):
            continue
        present = values.dropna().tolist()
        texts = Counter(value for value in present if isinstance(value, str))
        others = [value for value in present if not isinstance(value, str)]
        numbers = sum(isinstance(v, Real) and not isinstance(v, bool) for v in others)
        inference = NumberInference()
        inference.add(texts, native=numbers)
        rest = len(others) - numbers
        inference.other_count += rest
        inference.total += rest
        some = [*texts][:_DATE_TEXTS]
        found.append(NumberColumn.judged(label, position, inference, some))
    return found


def _is_part_of_time(label: Any, texts: Iterable[str]) -> bool:
    """Return whether a column has months, days, hours or minutes in two digits: not codes."""
    is_named = isinstance(label, str) and _PART_OF_TIME.fullmatch(label.strip(" #|").casefold())
    return bool(is_named) and all(len(t) <= 2 and t.isdecimal() and int(t) < 60 for t in texts)


def _settle(columns: list[NumberColumn], separator: str) -> None:
    """Choose a reading for columns with two, if the rest of the file shows only one.

    One program writes a file, in one locale: the decimal sign of one column groups no digits in
    another. Without such a column, bare numbers in a comma-separated file are read as programs
    write them, with a decimal point. A warning names the other reading. In such a file, a comma
    that only numbers from 1000 on have separates thousands.
    """
    for column in columns if separator == "," else ():
        small = column.inference.bare_below_thousand()
        if (
            small
            and column.kind is NumberKind.AMBIGUOUS
            and _COMMAS in column.inference.readings_left()
        ):
            _choose(column, _COMMAS)
            column.reason = f"as values without it tell, such as {small!r}"
    shown = [column.form for column in columns if column.kind in READ_KINDS]
    for column in columns:
        if column.kind is not NumberKind.AMBIGUOUS:
            continue
        # Amounts with a currency may be formatted for people, in a file that a program wrote.
        is_marked = _is_marked(column.inference.format(".", ""))
        alike = [form for form in shown if _is_marked(form) == is_marked]
        decimals = {form.decimal for form in alike} - {""}
        groupings = {form.grouping for form in alike} - {""}
        left = [
            reading
            for reading in column.inference.readings_left()
            if reading[0] not in groupings
            and reading[1] not in decimals
            and (not decimals or reading[0] in {"", *decimals})
        ]
        is_told = bool(decimals or groupings) and len(left) == 1
        bare = column.inference.format(".", "")
        if not is_told and not (separator == "," and _is_bare_point(column, bare)):
            continue
        if is_told:
            _choose(column, left[0])
            sign = f"decimal {next(iter(decimals))!r}" if decimals else "grouping sign"
            column.reason = f"as the {sign} of other columns tells"
        elif not (decimals or groupings):
            _choose(column, (".", ""))
            column.reason = "point"


def _is_marked(form: NumberFormat) -> bool:
    return bool(form.currency or form.unit)


def _is_bare_point(column: NumberColumn, form: NumberFormat) -> bool:
    return (".", "") in column.inference.readings_left() and form.is_plain


def _choose(column: NumberColumn, reading: SeparatorStyle) -> None:
    column.form = column.inference.format(*reading)
    column.kind = NumberKind.PLAIN if column.form.is_plain else NumberKind.FORMATTED


def _tell(plan: NumberPlan, column: NumberColumn, frame: pd.DataFrame) -> None:
    """Add the notes and warnings of a column, and whether a csv reader must leave it text."""
    name, seen = column_name(column.label), column.inference
    if column.reason == "point":
        texts = [*seen.readings.values(), *seen.examples()]
        example = next((text for text in texts if "." in text), texts[0])
        plan.warnings.append(
            f"column {name!r}: {example!r} is read with a decimal point, for commas part the "
            f"fields; with a point between thousands it would be {example.replace('.', '')}"
        )
    if column.kind in {NumberKind.TEXT, NumberKind.PLAIN} and not seen.missing:
        return
    if column.kind is NumberKind.TEXT:
        return
    plan.text_columns.append(column.label)
    if column.kind is NumberKind.CODE:
        plan.notes[column.position] = f"identifiers, kept as text ({column.reason})"
    elif column.kind is NumberKind.AMBIGUOUS:
        plan.warnings.append(_ambiguity(name, column))
    elif column.kind is NumberKind.MIXED:
        shown = ", ".join(map(repr, seen.examples()[:4]))
        plan.warnings.append(
            f"column {name!r} mixes {column.reason} ({shown}): left as text; convert each kind by "
            "itself, never the whole column with one rule"
        )
    elif column.kind is NumberKind.PARTIAL:
        shown = ", ".join(repr(text[:40]) for text in list(seen.others)[:_NAMED_WORDS])
        plan.warnings.append(
            f"column {name!r} (numbers, and text such as {shown}) is left as it is: "
            f"{seen.other_count:,} of {seen.total:,} values are no numbers{_way_on(column, frame)}"
        )
    else:
        plan.notes[column.position] = _conversion_note(column)


def _way_on(column: NumberColumn, frame: pd.DataFrame) -> str:
    """Return how to compute with numbers among other texts, checked on every value."""
    readings = column.inference.readings_left()
    is_one = len(readings) == 1 and (frame.columns == column.label).sum() == 1
    if not is_one or column.inference.mixture():
        return ""
    form = column.inference.format(*readings[0])
    step = conversion_step([column.label], form, remark="", keeps=column.keeps, coerces=True)
    before = frame[[column.label]]
    after = step.run(before)
    lines = step.source.splitlines()[1:]
    if len(lines) > 1 or first_difference(before[column.label], after[column.label], form):
        return ""
    code = lines[0].partition(" = ")[2]
    return f"; {code.replace(f'df[{literal(column.label)}]', 'column')} makes these missing"


def _ambiguity(name: str, column: NumberColumn) -> str:
    example = next((t for r, t in column.inference.readings.items() if len(r) > 1), "")
    readings = column.inference.readings_left()
    forms = [column.inference.format(*reading) for reading in readings]
    meanings = sorted({f"{value}" for form in forms if (value := form.value(example)) is not None})
    ways = [
        f"{_expression(column, form)} reads {value}"
        for form in forms
        if (value := form.value(example)) is not None
    ]
    return (
        f"column {name!r}: {example!r} can be {' or '.join(meanings)}, and nothing in the file "
        f"tells which: left as text; ask, or say which reading you chose: {', '.join(ways)}"
    )


def _expression(column: NumberColumn, form: NumberFormat) -> str:
    """Return the code that converts a column, which it calls `column`, to numbers."""
    step = conversion_step([column.label], form, remark="", keeps=False, coerces=False)
    code = step.source.splitlines()[-1].partition(" = ")[2]
    return code.replace(f"df[{literal(column.label)}]", "column")


def _conversion_note(column: NumberColumn) -> str:
    seen, form = column.inference, column.form
    example = seen.example
    words = [f"from text such as {example!r}"]
    if form.unit in PERCENT:
        words.append("in per cent, not divided by 100" if form.unit == "%" else "in per mille")
    elif form.currency or form.unit:
        words.append(f"in {form.currency or form.unit}")
    if others := [unit for unit, factor in form.factors if factor != 1]:
        words.append(f"{' and '.join(others)} converted")
    if form.currency and seen.has_bare:
        words.append("some values without the currency")
    if column.reason:
        words.append(column.reason)
    if seen.missing:
        shown = ", ".join(map(repr, list(seen.missing)[:_NAMED_WORDS]))
        words.append(f"{seen.missing.total():,} read as missing: {shown}")
    return "; ".join(words)


def _steps(plan: NumberPlan, frame: pd.DataFrame, columns: list[NumberColumn]) -> list[FrameStep]:
    """Return the steps that passed the check, one for all columns that share the code."""
    groups: dict[str, list[NumberColumn]] = {}
    for column in columns:
        is_name = (
            isinstance(column.label, (str, int)) and (frame.columns == column.label).sum() == 1
        )
        if is_name and _is_verified(column, frame):
            groups.setdefault(_step([column], "").source.split("]", 1)[1], []).append(column)
        else:
            plan.notes.pop(column.position, None)
            plan.warnings.append(
                f"column {column_name(column.label)!r}: numbers kept as text such as "
                f"{column.inference.example!r}; no code was found that reads each of them"
            )
            column.kind = NumberKind.PARTIAL
    # The name of a column with "]" makes a group of its own, which is harmless.
    return [_step(group, _remark(group[0])) for group in groups.values()]


def _step(columns: list[NumberColumn], remark: str) -> FrameStep:
    first = columns[0]
    return conversion_step(
        [column.label for column in columns],
        first.form,
        remark=remark,
        keeps=first.keeps,
        coerces=bool(first.inference.missing),
    )


def _is_verified(column: NumberColumn, frame: pd.DataFrame) -> bool:
    before = frame[[column.label]]
    try:
        after = _step([column], "").run(before)
    except (ValueError, TypeError):
        return False
    return first_difference(before[column.label], after[column.label], column.form) is None


def _remark(column: NumberColumn) -> str:
    unit = {"%": "per cent stays per cent: ", "‰": "per mille stays per mille: "}
    example = column.inference.example
    told = [column.inference.units[one] for one, _ in column.form.factors] or [example]
    shown = ", ".join(f"{text!r} becomes {_shown(column.form.value(text))}" for text in told)
    text = f"{unit.get(column.form.unit, '')}{shown}"
    if column.inference.missing:
        words = ", ".join(map(repr, list(column.inference.missing)[:_NAMED_WORDS]))
        text += f"; {words} NaN"
    return text


def _shown(value: Decimal | None) -> str:
    return f"{float(value):.15g}" if value is not None else ""
