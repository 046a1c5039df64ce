"""Columns of text with one meaning in several forms: dates in several formats, labels spelt freely.

pandas reads dates of several formats by that of the first, or guesses anew for each, and may take a
day for a month. Labels that differ only in case or blanks, such as "Travel" and " travel", divide a
group without an error. Both are changed only where it is sure, and the code shows how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.cell_words import is_missing_word
from dm_jupyter.data.profile.columns import column_name
from dm_jupyter.data.profile.dates import DateKind, kind_of_dates
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import literal
from dm_jupyter.data.profile.suspicion import is_text

__all__ = ["other_spellings", "unified_texts"]

_MOST_COLUMNS = 1_000
_MOST_TEXTS = 20_000
_LOOKED_AT = 2_000
_RIVALS = (("%d/%m/%Y", "%m/%d/%Y"), ("%d-%m-%Y", "%m-%d-%Y"))
"""Formats that only a day above 12 tells apart."""
_FORMATS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y"),
    *(form for pair in _RIVALS for form in pair),
)
_MOST_LABELS = 60
"""Most different labels: names of people and places may differ in case alone."""
_MOST_CHANGES = 40
_LEAST_LETTERS = 3
"""Fewest letters of a label: shorter ones are codes and units, such as "m" and "M"."""
_MOST_OTHERS = 0.4
"""Largest share of other spellings among the rows of a label."""
_CHAINS: tuple[tuple[str, ...], ...] = (
    ("strip",),
    ("strip", "lower"),
    ("strip", "title"),
    ("strip", "upper"),
)
"""Methods of `Series.str` that may give all labels one spelling, the simplest first."""


def unified_texts(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[FrameStep], list[str]]:
    """Return the frame after all steps, the steps, and what they change in words.

    Args:
        frame: all rows, as loaded.
    """
    steps, told = [], []
    for position in range(min(_MOST_COLUMNS, frame.shape[1])):
        label, values = frame.columns[position], frame.iloc[:, position]
        is_one = isinstance(label, (str, int)) and (frame.columns == label).sum() == 1
        if not is_one or not is_text(values):
            continue
        present = values.dropna().tolist()
        if not all(isinstance(value, str) for value in present):
            continue
        counts = Counter(present)
        found = _with_dates(label, values, counts) or _with_one_spelling(label, counts)
        if found is not None:
            frame = found[0].run(frame)
            steps.append(found[0])
            told.append(found[1])
    return frame, steps, told


def _with_dates(
    label: Any, values: pd.Series[Any], counts: Counter[str]
) -> tuple[FrameStep, str] | None:
    """Return the step that reads dates in two or more formats, and what it does in words."""
    texts = Counter({text: count for text, count in counts.items() if not is_missing_word(text)})
    if len(texts) > _MOST_TEXTS:
        return None
    if kind_of_dates([*texts][:_LOOKED_AT]) is not DateKind.MIXED:
        return None
    formats = _formats(texts)
    if len(formats) < 2:
        return None
    step = _date_step(label, formats)
    if not _is_right(values, step.run(values.to_frame(label))[label], formats):
        return None
    shown = " and ".join(repr(_example(texts, form)) for form in formats)
    return step, f"dates in {column_name(label)!r} have {len(formats)} formats: {shown}"


def _formats(counts: Counter[str]) -> list[str]:
    """Return the formats of the texts, the most frequent first; empty if one is not sure."""
    possible = {text: [form for form in _FORMATS if _date(text, form)] for text in counts}
    sure = {forms[0] for forms in possible.values() if len(forms) == 1}
    if any(sure.issuperset(pair) for pair in _RIVALS):
        return []
    found = Counter[str]()
    for text, forms in possible.items():
        left = forms if len(forms) == 1 else [form for form in forms if form in sure]
        if len(left) != 1:
            return []
        found[left[0]] += counts[text]
    return [form for form, _ in found.most_common()]


def _date(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


def _example(counts: Counter[str], form: str) -> str:
    return next(text for text in counts if _date(text, form))


def _date_step(label: Any, formats: Sequence[str]) -> FrameStep:
    def run(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        texts = frame[label]
        frame[label] = pd.to_datetime(texts, format=formats[0], errors="coerce")
        for form in formats[1:]:
            frame[label] = frame[label].fillna(pd.to_datetime(texts, format=form, errors="coerce"))
        return frame

    column = f"df[{literal(label)}]"
    lines = [
        f"texts = {column}",
        f'{column} = pd.to_datetime(texts, format="{formats[0]}", errors="coerce")',
        *(
            f'{column} = {column}.fillna(pd.to_datetime(texts, format="{form}", errors="coerce"))'
            for form in formats[1:]
        ),
    ]
    return FrameStep("\n".join(lines), run)


def _is_right(before: pd.Series[Any], after: pd.Series[Any], formats: Sequence[str]) -> bool:
    """Return whether each text became its date, and all else is missing."""
    for text, moment in zip(before.tolist(), after.tolist(), strict=True):
        dates = (_date(text, form) for form in formats if isinstance(text, str))
        meant = next(filter(None, dates), None)
        if pd.isna(moment) if meant is not None else not pd.isna(moment):
            return False
        if meant is not None and moment != meant:
            return False
    return True


def _with_one_spelling(label: Any, counts: Counter[str]) -> tuple[FrameStep, str] | None:
    """Return the step that gives each label one spelling, and what it does in words."""
    changes = other_spellings(counts.items())
    if not changes:
        return None
    left = len(counts) - len(changes)
    told = (
        f"{len(counts)} spellings in {column_name(label)!r} made {left} alike in case and blanks, "
        f"such as {literal(next(iter(changes)))}"
    )
    return _spelling_step(label, {text: changes.get(text, text) for text in counts}), told


def other_spellings(counts: Iterable[tuple[str, int]]) -> Mapping[str, str]:
    """Return the spellings to change, each with the most frequent one of its label.

    Empty if the texts are not labels, or a label has no spelling that is the rule.

    Args:
        counts: all texts of a column with their counts.
    """
    spellings: dict[str, Counter[str]] = {}
    for text, count in counts:
        spellings.setdefault(" ".join(text.split()).casefold(), Counter())[text] += count
        if len(spellings) > _MOST_LABELS:
            return {}
    changes: dict[str, str] = {}
    for key, found in spellings.items():
        if len(found) == 1:
            continue
        rule, count = found.most_common(1)[0]
        is_label = sum(map(str.isalpha, key)) >= _LEAST_LETTERS and rule == " ".join(rule.split())
        if not is_label or found.total() - count > _MOST_OTHERS * found.total():
            return {}
        changes |= dict.fromkeys(sorted(found.keys() - {rule}), rule)
    return changes if len(changes) <= _MOST_CHANGES else {}


def _spelling_step(label: Any, spelt: Mapping[str, str]) -> FrameStep:
    """Return the step that spells each text as given, by the shortest code that does so."""
    fitting = (
        chain
        for chain in _CHAINS
        if all(_after(chain, text) == wanted for text, wanted in spelt.items())
    )
    methods = next(fitting, ())
    changes = {text: wanted for text, wanted in spelt.items() if text != wanted}

    def run(frame: pd.DataFrame) -> pd.DataFrame:
        texts = frame[label]
        for method in methods:
            texts = getattr(texts.str, method)()
        frame = frame.copy()
        frame[label] = texts if methods else texts.replace(changes)
        return frame

    column = f"df[{literal(label)}]"
    code = "".join(f".str.{method}()" for method in methods) or f".replace({literal(changes)})"
    return FrameStep(f"{column} = {column}{code}", run)


def _after(methods: Iterable[str], text: str) -> str:
    for method in methods:
        text = getattr(text, method)()
    return text
