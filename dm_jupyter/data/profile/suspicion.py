"""Causes of a wrong analysis without an error: dates kept as text, sum rows, damage."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.cell_words import MISSING_WORDS
from dm_jupyter.data.profile.columns import column_name, scalar
from dm_jupyter.data.profile.dates import (
    DateKind,
    compact_form,
    far_dates,
    kind_of_dates,
    texts_among_dates,
)

__all__ = ["Suspicions", "is_text", "suspicions_of"]

_CHECKED_VALUES = 2000
_DETAILED = 1_000
"""Most columns of figures that are inspected; as many as are described."""
_LOOKED_AT = 20_000
_LISTED_COLUMNS = 8
_MAX_LABELS = 5000
_TAIL_ROWS = 200
_TOTAL = re.compile(
    r"((grand|sub|sous|overall)[ -]?)?totals?([ :].*)?|(zwischen|gesamt|teil)?summen?([ :].*)?|sum"
    r"|gesamt([ :].*)?|insgesamt|totaal([ :].*)?|totale([ :].*)?|total général|subtotaal|suma",
    re.IGNORECASE,
)


@dataclass
class Suspicions:
    """Findings from the values of a table."""

    warnings: list[str] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    """Notes by column position."""
    day_first: list[str] = field(default_factory=list)
    """Text columns with day-first dates throughout."""


def suspicions_of(
    frame: pd.DataFrame, label_counts: Mapping[int, Mapping[Any, int]] | None = None
) -> Suspicions:
    """Return what a frame's text columns hide from someone who sees only their type.

    Args:
        frame: the table, or distinct texts of each column of a table too large for memory.
        label_counts: in the second case the count of each value, by position of the column.
    """
    found = Suspicions()
    damaged: list[str] = []
    for position, (label, values) in enumerate(frame.items()):
        if not is_text(values) and position >= _DETAILED:
            continue
        if not is_text(values):
            counted = (label_counts or {}).get(position, ())
            _judge_figures(found, position, column_name(label), values, counted)
            continue
        texts = _distinct_texts(values)
        _judge_column(found, position, column_name(label), texts)
        damaged += _mojibake_example(column_name(label), _spread(texts))
    if damaged:
        found.warnings.append(
            f"text looks damaged (UTF-8 once decoded as latin-1): {_listed(damaged)}; left as it is"
        )
    found.warnings += _sum_rows(frame, label_counts)
    return found


def is_text(values: pd.Series[Any]) -> bool:
    """Return whether a column is text, in pandas 2 (`object`) and in pandas 3 (`str`)."""
    return bool(types.is_object_dtype(values.dtype) or types.is_string_dtype(values.dtype))


def _distinct(values: pd.Series[Any]) -> list[Any]:
    """Return up to 20,000 distinct values of a column, from all over it."""
    present = values.dropna()
    try:
        return _spread(present.unique().tolist(), _LOOKED_AT)
    except TypeError:  # lists and dictionaries have no hash
        return present.head(_LOOKED_AT).tolist()


def _distinct_texts(values: pd.Series[Any]) -> list[str]:
    """Return distinct text values without the words people write for "missing"."""
    texts = dict.fromkeys(
        value.strip()[:200] for value in _distinct(values) if isinstance(value, str)
    )
    return [text for text in texts if text.casefold() not in MISSING_WORDS]


def _spread(values: list[Any], most: int = _CHECKED_VALUES) -> list[Any]:
    """Return all values if they are few, else some of them at equal distances."""
    return values[:: -(-len(values) // most) or 1]


def _judge_figures(
    found: Suspicions, position: int, name: str, values: pd.Series[Any], counted: Iterable[Any]
) -> None:
    """Report whole numbers that are dates, and dates that mean "no date".

    Args:
        found: the findings so far.
        position: position of the column.
        name: name of the column.
        values: values of the column; empty for a table too large for memory.
        counted: its distinct values, in that case.
    """
    if types.is_datetime64_any_dtype(values.dtype):
        days = values.dropna().dt.normalize().drop_duplicates().dt.strftime("%Y-%m-%d")
        _tell_far(found, name, days.tolist())
        return
    numbers = list(counted)
    if types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype):
        numbers = numbers or _distinct(values)
    if _compact(_spread(numbers)) and (form := _compact(numbers)):
        formats = {"YYYYMM": "%Y%m", "YYYYMMDD": "%Y%m%d", "YYYYMMDDhhmm": "%Y%m%d%H%M"}
        code = formats.get(form, "%Y%m%d%H%M%S")
        found.notes[position] = f"dates as whole numbers ({form}, format={code!r})"


def _compact(numbers: list[Any]) -> str:
    is_real = all(isinstance(n, (int, float)) and math.isfinite(n) for n in numbers)
    return compact_form(numbers) if is_real else ""


def _tell_far(found: Suspicions, name: str, texts: list[str]) -> None:
    if far := far_dates(texts):
        found.warnings.append(
            f"column {name!r}: {_quoted(far[:3])}, far from all other dates, may stand for "
            '"no date"; left as it is: leave such rows out of spans and averages'
        )


def _judge_column(found: Suspicions, position: int, name: str, texts: list[str]) -> None:
    sample = _spread(texts)
    if kind_of_dates(sample) is None and not texts_among_dates(sample):
        texts = sample
    kind = kind_of_dates(texts)
    _tell_far(found, name, texts)
    if others := texts_among_dates(texts):
        found.warnings.append(
            f"column {name!r} holds dates, and texts such as {_quoted(others[:3])}: left as text; "
            "decide what each of them means before parsing the rest"
        )
    elif kind is DateKind.DAY_FIRST:
        found.day_first.append(name)
    if kind is DateKind.MIXED:
        found.warnings.append(
            f"column {name!r} mixes date formats ({_quoted(texts[:4])}): parse each format by "
            "itself, never the whole column with one order"
        )
    elif kind is DateKind.AMBIGUOUS:
        found.warnings.append(
            f"column {name!r} holds dates such as {_quoted(texts[:2])}: day first or month first "
            "can't be told from the values"
        )
    elif kind is DateKind.SHORT_YEAR:
        found.warnings.append(
            f"column {name!r} holds dates such as {_quoted(texts[:2])}: the year may come first or "
            "last; left as text, parse it with the format that you know to be right"
        )
    if kind is not None and kind.note:
        found.notes[position] = kind.note


def _mojibake_example(name: str, texts: list[str]) -> list[str]:
    damaged = [text for text in [name, *texts] if _is_mojibake(text)]
    return [f"{name!r} ({damaged[0][:40]!r})"] if damaged else []


def _is_mojibake(text: str) -> bool:
    """Return whether the text is UTF-8 that was decoded as a western code page and saved again."""
    if text.isascii():
        return False
    for codec in ("cp1252", "latin-1"):
        try:
            text.encode(codec).decode("utf-8")
        except UnicodeError:
            continue
        return True
    return False


def _sum_rows(
    frame: pd.DataFrame, label_counts: Mapping[int, Mapping[Any, int]] | None
) -> list[str]:
    """Return a warning for each label column in which some rows are sums of others."""
    warnings: list[str] = []
    for position in range(min(3, frame.shape[1])):
        values = frame.iloc[:, position]
        if frame.shape[1] < 2 or not is_text(values):
            continue
        if label_counts is None:
            sums, present = _sum_labels(values), int(values.count())
        else:
            labels = label_counts.get(position, {})
            sums, present = _total_labels(labels.items()), sum(labels.values())
        count = sum(sums.values())
        if count and count <= max(1, present / (2 if len(sums) > 2 else 3)):
            name = column_name(frame.columns[position])
            warnings.append(
                f"{count:,} row(s) where {name!r} is {_quoted(list(sums)[:3])} look like sums "
                "of other rows and would double every aggregate: take a total from them, "
                "anything else without them"
            )
    return warnings


def _sum_labels(values: pd.Series[Any]) -> dict[str, int]:
    """Return the labels that say "total", in order of appearance, with their row counts."""
    try:
        counts = values.value_counts(sort=False)
    except TypeError:  # lists and dictionaries have no hash
        return {}
    # Nearly every row has another text: no grouping, and a sum row can only be at the end.
    if len(counts) > _MAX_LABELS:
        counts = values.tail(_TAIL_ROWS).value_counts(sort=False)
    return _total_labels(counts.items())


def _total_labels(counts: Iterable[tuple[Any, int]]) -> dict[str, int]:
    return {
        label: int(count)
        for label, count in counts
        if isinstance(label, str) and _TOTAL.fullmatch(label.strip())
    }


def _quoted(texts: list[str]) -> str:
    return ", ".join(repr(scalar(text)) for text in texts)


def _listed(items: list[str]) -> str:
    more = len(items) - _LISTED_COLUMNS
    tail = f" and {more:,} more columns" if more > 0 else ""
    return ", ".join(items[:_LISTED_COLUMNS]) + tail
