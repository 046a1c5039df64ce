"""Labels that differ only in case or blanks, such as "Travel" and " travel": made alike by code.

Otherwise a group is divided, and no error tells. Only columns of few labels are changed, and only
to their most frequent spelling. The code names each change, so a person can take it back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.columns import column_name
from dm_jupyter.data.profile.frame_steps import FrameStep
from dm_jupyter.data.profile.literals import literal
from dm_jupyter.data.profile.suspicion import is_text

__all__ = ["other_spellings", "with_one_spelling"]

_MOST_COLUMNS = 1_000
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


def with_one_spelling(frame: pd.DataFrame) -> tuple[list[FrameStep], list[str]]:
    """Return the steps that give each label one spelling, and what they change in words.

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
        if changes := other_spellings(counts.items()):
            steps.append(_step(label, {text: changes.get(text, text) for text in counts}))
            left = len(counts) - len(changes)
            told.append(
                f"{len(counts)} spellings in {column_name(label)!r} made {left} alike in case and "
                f"blanks, such as {literal(next(iter(changes)))}"
            )
    return steps, told


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


def _step(label: Any, spelt: Mapping[str, str]) -> FrameStep:
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
