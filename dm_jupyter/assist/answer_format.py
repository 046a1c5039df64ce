"""Whether the values of a closed-form answer are of the kind that its format asks for.

A format says in words what stands in each bracket: `@p[p_value] where "p_value" is a number between
0 and 1`. Only what it says beyond doubt is held against a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dm_jupyter.core.closed_form import find_answers, is_no_value

__all__ = ["Misfit", "misfits"]

_QUOTE = "[\"“'‘]([^\"“”'‘’\n]{1,80})[\"”'’]"
_QUOTED = re.compile(_QUOTE)
_MORE_NAMES = re.compile(rf"(?:,? (?:and )?{_QUOTE})*")
"""The rest of a list: `"a", "b", and "c" are numbers`."""
_CLAUSE_END = re.compile(rf"\n|\.(?=\s|$)|,? and {_QUOTE} (?:is|are|should)\b")
_LIMIT = r"(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
_RANGE = re.compile(rf"\b(?:between|range of|from) {_LIMIT} (?:and|to) {_LIMIT}(?![\d%])")
_CHOICE = re.compile(r"\b(?:either|can be|one of|exact values?|takes the value)\b")
_NUMBER = re.compile(r"\b(?:number|float|floating[- ]point|integer|decimal)s?\b")
_OTHER = re.compile(r"\b(?:list|string|tuple|names?|dictionary|array|date)s?\b")
_FLAGS = ("True", "False")
_ORDER = " (a test gives the statistic first, then the p-value)"


class Misfit(NamedTuple):
    """A value that is not of the kind asked for."""

    tag: str
    """The name of the answer."""
    wanted: str
    """The kind, in words."""
    value: str
    """Cut where it is long."""


def misfits(answer_format: str, values: Mapping[str, str]) -> tuple[Misfit, ...]:
    """Returns the values that are not of the kind asked for, each once.

    Args:
        answer_format: the format of the question.
        values: what was printed, by name.
    """
    found = []
    for name, placeholder in find_answers(answer_format):
        value = values.get(name)
        clause = _clause(answer_format, placeholder)
        if value is None or is_no_value(value) or not clause:
            continue
        if wanted := _unmet(clause, value):
            found.append(Misfit(name, wanted, value[:60]))
    return tuple(dict.fromkeys(found))


def _clause(answer_format: str, placeholder: str) -> str:
    """What the format says of a placeholder, from its quoted name to the end of the sentence."""
    for quoted in _QUOTED.finditer(answer_format):
        rest = placeholder.removeprefix(quoted[1])
        is_meant = not rest or (rest != placeholder and rest.lstrip().startswith("("))
        if is_meant:
            more = _MORE_NAMES.match(answer_format, quoted.end())
            start = more.end() if more else quoted.end()
            end = _CLAUSE_END.search(answer_format, start)
            return answer_format[start : end.start() if end else len(answer_format)]
    return ""


def _unmet(clause: str, value: str) -> str:
    """What the clause asks for, where the value is something else."""
    if choice := _CHOICE.search(clause):
        options = _QUOTED.findall(clause, choice.end())
        if len(options) > 1:
            return "" if _is_among(value, options) else " or ".join(map(repr, options))
    if re.search(r"\bboolean\b", clause):
        return "" if _is_among(value, _FLAGS) else " or ".join(_FLAGS)
    if not _NUMBER.search(clause) or _OTHER.search(clause):
        return ""
    number = _number(value)
    if number is None:
        return "a single number"
    if limits := _RANGE.search(clause):
        low, high = (float(limit.replace(",", "")) for limit in limits.groups())
        if not low <= number <= high:
            return f"a number between {limits[1]} and {limits[2]}{_ORDER if high == 1 else ''}"
    return ""


def _is_among(value: str, options: tuple[str, ...] | list[str]) -> bool:
    return value.strip("\"' ").casefold() in {option.casefold() for option in options}


def _number(value: str) -> float | None:
    text = value.strip().strip("\"'").replace(",", "").rstrip("%").strip()
    try:
        return float(text)
    except ValueError:
        return None
