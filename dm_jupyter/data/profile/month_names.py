"""Dates with the name of a month, in the languages of the files: read, and converted by code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.cell_words import is_missing_word
from dm_jupyter.data.profile.dates import MONTH_NUMBERS, written_date
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import literal
from dm_jupyter.data.profile.suspicion import is_text

__all__ = ["MonthDates", "with_month_dates"]

_MOST_COLUMNS = 1_000
_NAMED_WORDS = 3
_PATTERN = r"(\d{1,2})\D*?([^\W\d_]{3,})\D*(\d{4})"
"""Pattern of the load code: day, month and year of a text that is known to be a date."""


@dataclass
class MonthDates:
    """Steps that convert a frame's texts with names of months to dates."""

    steps: tuple[FrameStep, ...] = ()
    """Conversions, verified on every value of the frame."""
    notes: dict[int, str] = field(default_factory=dict)
    """Notes by column position."""

    def finish(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame after all steps."""
        for step in self.steps:
            frame = step.run(frame)
        return frame


def with_month_dates(frame: pd.DataFrame) -> MonthDates:
    """Return the steps that convert columns in which each text is a date, day first.

    Not covered: two-digit years and times of day, which the texts would lose; they stay as they
    are, and `suspicions_of` notes that they are dates.

    Args:
        frame: the frame as loaded.
    """
    found = MonthDates()
    for position in range(min(_MOST_COLUMNS, frame.shape[1])):
        label, values = frame.columns[position], frame.iloc[:, position]
        is_one = isinstance(label, (str, int)) and (frame.columns == label).sum() == 1
        if not is_one or not is_text(values):
            continue
        dates = _dates_of(values.dropna().tolist())
        if not dates:
            continue
        words = {text: word for text in dates if (word := _month_word(text))}
        example = next(iter(words), "")
        remark = f"{example!r} becomes {dates.get(example)}"
        step = _step(label, sorted(set(words.values()), key=_number), remark)
        if not _is_right(values, step.run(frame[[label]])[label], dates):
            continue
        found.steps = (*found.steps, step)
        found.notes[position] = _note(example, values, dates)
    return found


def _dates_of(values: Iterable[object]) -> dict[str, date]:
    """Return the date of each distinct text; empty if some value is neither date nor missing."""
    dates: dict[str, date] = {}
    others: set[str] = set()
    for value in values:
        if not isinstance(value, str):
            return {}
        if value in dates or value in others:
            continue
        meant = written_date(value)
        if meant is not None:
            dates[value] = meant
        elif is_missing_word(value):
            others.add(value)
        else:
            return {}
    return dates


def _month_word(text: str) -> str:
    match = re.search(_PATTERN, text)
    return match[2].lower() if match else ""


def _number(word: str) -> int:
    return MONTH_NUMBERS.get(word, 0)


def _step(label: str | int, words: list[str], remark: str) -> FrameStep:
    """Return the step for one column; its code has the names of months that are in the file."""
    months = {word: f"{_number(word):02}" for word in words}

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        parts = frame[label].str.extract(_PATTERN)
        month = parts[1].str.lower().map(months)
        frame[label] = pd.to_datetime(parts[2] + "-" + month + "-" + parts[0], format="%Y-%m-%d")
        return frame

    column = f"df[{literal(label)}]"
    code = f"""\
# {remark}
months = {literal(months)}
parts = {column}.str.extract(r"{_PATTERN}")
month = parts[1].str.lower().map(months)
{column} = pd.to_datetime(parts[2] + "-" + month + "-" + parts[0], format="%Y-%m-%d")"""
    return FrameStep(code, run)


def _is_right(before: pd.Series[Any], after: pd.Series[Any], dates: dict[str, date]) -> bool:
    """Return whether each text became its date, and all else is missing."""
    for text, moment in zip(before.tolist(), after.tolist(), strict=True):
        meant = dates.get(text) if isinstance(text, str) else None
        if meant is None:
            if not pd.isna(moment):
                return False
        elif pd.isna(moment) or moment != datetime(meant.year, meant.month, meant.day):
            return False
    return True


def _note(example: str, values: pd.Series[Any], dates: dict[str, date]) -> str:
    lost = [value for value in values.dropna().tolist() if value not in dates]
    shown = ", ".join(map(repr, list(dict.fromkeys(lost))[:_NAMED_WORDS]))
    missing = f"; {len(lost):,} read as missing: {shown}" if lost else ""
    return f"dates, from text such as {example!r}{missing}"
