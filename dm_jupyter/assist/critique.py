"""Objections to a cell that worked, or to an answer that lacks its chart, file or sections.

Each is sent back once per run, with the reason. An answer may also have another type than its
format requires. A format describes the content of each bracket in words: `@p[p_value] where
"p_value" is a number between 0 and 1`. Only unambiguous requirements are checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.closed_form import find_answers, is_no_value
from dm_jupyter.core.trajectory import Trajectory

__all__ = ["PROMPTS", "Misfit", "critique_of", "has_sections", "misfits", "unfinished"]

_HEADING = re.compile(r"(?m)^(?:#{1,6}\s+\S|\*\*[^*\n]+\*\*:?\s*$)")

PROMPTS = (
    "critique_misfit",
    "critique_no_figure",
    "critique_no_file",
    "critique_no_sections",
)
"""Names of the prompts that this module uses."""
_QUOTE = "[\"“'‘]([^\"“”'‘’\n]{1,80})[\"”'’]"
_QUOTED = re.compile(_QUOTE)
_MORE_NAMES = re.compile(rf"(?:,? (?:and )?{_QUOTE})*")
"""The rest of a list: `"a", "b", and "c" are numbers`."""
_CLAUSE_END = re.compile(rf"\n|\.(?=\s|$)|;|,?(?: and)? {_QUOTE} (?:is|are|should)\b")
_LIMIT = r"(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"
_RANGE = re.compile(rf"\b(?:between|range of|from) {_LIMIT} (?:and|to) {_LIMIT}(?![\d%])")
_CHOICE = re.compile(r"\b(?:either|can be|one of|exact values?|takes the value)\b")
_NUMBER = re.compile(r"\b(?:number|float|floating[- ]point|integer|decimal)s?\b")
_OTHER = re.compile(r"\b(?:list|string|tuple|names?|dictionary|array|date|written as)s?\b")
_FLAGS = ("True", "False")
_ORDER = " (a test gives the statistic first, then the p-value)"


def critique_of(trajectory: Trajectory, answer: str | None) -> tuple[Finding, ...]:
    """Return why a cell that ran without an error should be rewritten; empty if nothing is wrong.

    Args:
        trajectory: the run before the cell.
        answer: the closed-form answer that it printed, if any.
    """
    if not trajectory.assists.answer_form:
        return ()
    return tuple(
        Finding(
            "answer_form",
            f"@{misfit.tag}[{misfit.value}]",
            "certain",
            prompts.fill("critique_misfit", **misfit._asdict()),
        )
        for misfit in misfits(trajectory.task.answer_format, dict(find_answers(answer or "")))
    )


def unfinished(
    trajectory: Trajectory, answer: str, *, has_figure: bool, has_file: bool
) -> Finding | None:
    """Return what an answer lacks of the request; `None` if nothing, or if already reported.

    Args:
        trajectory: the run before the answer.
        answer: the answer of the model.
        has_figure: whether a cell has drawn a figure.
        has_file: whether a cell has saved a file.
    """
    told = (finding.rule for step in trajectory.steps for finding in step.findings)
    match trajectory.kind:
        case "plot" if not has_figure and "ending" not in told:
            lacks, reason = "no figure was drawn", "critique_no_figure"
        case "clean" if not has_file and "ending" not in told:
            lacks, reason = "no file was saved", "critique_no_file"
        case "report" if not has_sections(answer) and "ending" not in told:
            lacks, reason = "the report has no sections", "critique_no_sections"
        case _:
            return None
    return Finding("ending", lacks, "certain", prompts.text_of(reason))


def has_sections(answer: str) -> bool:
    """Whether an answer is divided by headings, as a report is."""
    return len(_HEADING.findall(answer)) > 1


class Misfit(NamedTuple):
    """A value that is not of the requested type."""

    tag: str
    """The name of the answer."""
    wanted: str
    """The requested type, in words."""
    value: str
    """The value, cut if it is long."""


def misfits(answer_format: str, values: Mapping[str, str]) -> tuple[Misfit, ...]:
    """Return the values that are not of the requested type, each once.

    Args:
        answer_format: the format of the question.
        values: the printed values, by name.
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
    """Return the format's text about a placeholder, from its quoted name to the sentence end."""
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
    """Return what the clause requires, if the value does not meet it; else empty."""
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
