"""Names and limits of a question that the data spell otherwise or lack, or that no cell uses.

A model corrects "Gento" to "Gentoo" by itself, and is mostly right. If a column is missing, it uses
another one, sometimes wrongly. It also takes 10 kg as 10 although a column is in grams, or forgets
the limit. The person sees a note, since the data need not mean what they meant.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from dm_jupyter.core.trajectory import RunCell, Step

__all__ = [
    "idle_limit_words",
    "missing_name_words",
    "respelt_words",
    "unused_limit_words",
    "unused_name_words",
]

_QUOTED = re.compile(r"'((?:[^'\n]|''){1,80})'|\"([^\"\n]{1,80})\"")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_NUMBER = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])\d+(?:\.\d+)?")
_LEAST_LETTERS = 4
_LONG_LETTERS = 8
"""Letters from which a word may differ by two letters instead of one."""
_INFLECTIONS = frozenset(("s", "es", "y", "d", "ed", "ing", "n", "an", "ian", "ish", "ly", "er"))
_MOST_VALUES = 200
_MOST_LINES = 3
_LIMIT = re.compile(r"[^<>=|&]{1,80} [<>]=? (-?\d[\d_]*(?:\.\d+)?)")
_ASKED_LIMIT = re.compile(
    rf"""(?ix)\b(?:over | above | below | under | exceed(?:s|ed|ing)? | at\s+(?:least|most)
      | (?:more | less | fewer | (?:great|larg|small|high|low|heavi|light|old|young|long|short)er)
        \s+than)\s+[$€£]?({_NUMBER.pattern})"""
)
_P_VALUE = re.compile(r"(?i)\bp[\s_-]?values?\b|\balpha\b")
_NEAR_CHARS = 40
_IN_CODE = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SCALES = (*(10.0**power for power in range(10)), 7.0, 12.0, 24.0, 30.0, 60.0, 365.0, 3_600.0)
"""Factors between a limit in a question and in code, either way: 10 kg in grams, 2 h in minutes."""
_YEARS = range(1_500, 2_101)


def respelt_words(question: str, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return a sentence for each value that the cells select under another spelling.

    Args:
        question: the question as the person wrote it.
        steps: the steps of the run.
    """
    words = [_POSSESSIVE.sub("", word) for word in _WORD.findall(question)]
    values = dict.fromkeys(value for step in steps for value in _selected(step))
    selected = {_plain(value) for value in values}
    told = []
    for value in list(values)[:_MOST_VALUES]:
        written = _near(value, words, selected)
        if written:
            told.append(f'The question says "{written}"; the cells select "{value}".')
    return tuple(told[:_MOST_LINES])


def unused_name_words(
    names: Iterable[str], question: str, steps: Sequence[Step]
) -> tuple[str, ...]:
    """Return a sentence for each name that no cell uses, with a name that one selects instead.

    Args:
        names: of the question, that no cell uses.
        question: the question as the person wrote it.
        steps: the steps of the run.
    """
    actions = [step.turn.action for step in steps if step.result is not None]
    code = " ".join(one.source for one in actions if isinstance(one, RunCell))
    asked = _plain(question)
    others = (x for step in steps for x in _selected(step) if f'"{x}"' not in code)
    other = next((x for x in others if _is_unlike(x, asked) and x.istitle() and x.isalpha()), "")
    instead = f'; the cells select "{other}"' if other else ""
    told = (f'No cell uses the name "{name}" of the question{instead}.' for name in names)
    return tuple(dict.fromkeys(told))[:_MOST_LINES]


def _is_unlike(word: str, text: str) -> bool:
    """Whether a text has nothing that begins as a word does, which is long enough to tell."""
    plain = _plain(word)
    return len(plain) >= _LEAST_LETTERS and plain[:_LEAST_LETTERS] not in text


def missing_name_words(question: str, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return a sentence for each name of the question that a cell has searched for in vain.

    Names that resemble one in the data, or by which a cell has found rows, are left out.

    Args:
        question: the question as the person wrote it.
        steps: the steps of the run.
    """
    asked = f" {_spaced(question)} "
    facts = [fact for step in steps if step.result is not None for fact in step.result.facts]
    found = [_plain(fact.condition) for fact in facts if fact.kind == "kept" and fact.after]
    missed = dict.fromkeys(
        fact.condition.strip("'") for fact in facts if fact.kind == "unknown" and not fact.after
    )
    told = [
        f'Nothing in the data is called "{name}". Look at what the cells take for it.'
        for name in missed
        if f" {_spaced(name)} " in asked and not any(_plain(name) in one for one in found)
    ]
    return tuple(told[:_MOST_LINES])


def idle_limit_words(question: str, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return a sentence for each limit of the question that every row of the data passes.

    Args:
        question: the question as the person wrote it.
        steps: the steps of the run.
    """
    asked = {float(number.replace(",", "")) for number in _NUMBER.findall(question)}
    worked = (step.result for step in steps if step.result is not None and step.result.ok)
    idle = dict.fromkeys(
        fact.condition
        for result in worked
        for fact in result.facts
        if fact.kind == "kept" and fact.after == fact.before and (fact.after or 0) > 1
    )
    limits = ((condition, _LIMIT.fullmatch(condition)) for condition in idle)
    told = [
        f"Every row has {condition}. Look at its unit."
        for condition, limit in limits
        if limit and float(limit[1]) in asked
    ]
    return tuple(told[:_MOST_LINES])


def unused_limit_words(question: str, steps: Iterable[Step]) -> tuple[str, ...]:
    """Return a sentence for each limit of the question that is in no cell, in whatever unit.

    Years are left out, since code often names a date instead; p-values too, since the answer
    compares them.

    Args:
        question: the question as the person wrote it.
        steps: the steps of the run.
    """
    actions = [step.turn.action for step in steps if step.result is not None and step.result.ok]
    code = [action.source for action in actions if isinstance(action, RunCell)]
    numbers = {float(one.replace("_", "")) for text in code for one in _IN_CODE.findall(text)}
    told = [
        f'No cell uses the limit "{limit[0]}" of the question.'
        for limit in _ASKED_LIMIT.finditer(question)
        if code
        and not _P_VALUE.search(question, max(0, limit.start() - _NEAR_CHARS), limit.start())
        and not _is_used(float(limit[1].replace(",", "")), numbers)
    ]
    return tuple(dict.fromkeys(told))[:_MOST_LINES]


def _is_used(limit: float, numbers: Iterable[float]) -> bool:
    if limit in _YEARS or not limit:
        return True
    return any(
        (limit.is_integer() and abs(number - limit) == 1)  # more than 3 is at least 4
        or math.isclose(abs(number - 1), limit / 100)  # 5 % more or less
        or any(math.isclose(number, limit * scale) for scale in _SCALES)
        or any(math.isclose(number * scale, limit) for scale in _SCALES)
        for number in numbers
    )


def _selected(step: Step) -> Iterator[str]:
    """Yield the texts by which a cell that worked has found rows."""
    if step.result is None or not step.result.ok:
        return
    action = step.turn.action
    if isinstance(action, RunCell) and action.language == "sql":
        conditions: Sequence[str] = (action.source,)
    else:
        conditions = [x.condition for x in step.result.facts if x.kind == "kept" and x.after]
    for condition in conditions:
        for single, double in _QUOTED.findall(condition):
            yield (single or double).replace("''", "'").strip("% ")


def _near(value: str, words: Sequence[str], selected: set[str]) -> str:
    """Return the question's words that resemble a value; "" if it has the value, or none do."""
    parts = _WORD.findall(value)
    plain = _plain(value)
    if len(plain) < _LEAST_LETTERS or any(letter.isdigit() for letter in value):
        return ""
    runs = [words[at : at + len(parts)] for at in range(len(words) - len(parts) + 1)]
    written = [" ".join(run) for run in runs]
    if any(_is_inflected(_plain(one), plain) for one in written):
        return ""
    allowed = 2 if len(plain) >= _LONG_LETTERS else 1
    for one in written:
        other = _plain(one)
        if other not in selected and 0 < _distance(other, plain, allowed) <= allowed:
            return one
    return ""


def _spaced(text: str) -> str:
    """Return the words of a text or a name, case-folded, with one blank between them."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def _plain(text: str) -> str:
    """Return a text case-folded, without accents, hyphens and blanks."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(x for x in letters if x.isalnum() or x in "'’")


def _is_inflected(one: str, other: str) -> bool:
    """Whether two words are forms of the same one, such as rain and rainy."""
    short, long = sorted((one, other), key=len)
    return short == long or (long.startswith(short) and long[len(short) :] in _INFLECTIONS)


def _distance(one: str, other: str, most: int) -> int:
    """Return the Levenshtein distance, or any number above `most` if it exceeds that."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, against in enumerate(other, 1):
            before, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, before + (letter != against)),
            )
    return row[-1]
