"""The kind of a request: an answer, a chart, a cleaned file, an explanation or a report.

The kinds end differently. A request is for an answer unless its own words clearly say otherwise,
and always if the task prescribes the form of its answer. Covered: English. Not covered: other
languages, whose requests all count as questions for an answer.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from dm_jupyter.core.task import Task

__all__ = ["RequestKind", "request_kind"]

RequestKind = Literal["answer", "plot", "clean", "explain", "report"]

_QUESTION_CHARS = 2_000
_QUOTED = re.compile(r"(?s)```.*?```|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”")
"""Code and names, whose words are not the person's."""
_SPACES = re.compile(r"\s+")
_POLITE = (
    r"(?:please|kindly|now|then|also|first|next|finally|just|and|or|hi|hello|ok|okay"
    r"|(?:can|could|would|will)\s+you|i(?:'d|\s+would)?\s+(?:like|want|need)(?:\s+you)?\s+to"
    r"|let(?:'s|\s+us)|help\s+me(?:\s+to)?)"
)
_BEGIN = (
    r"(?im)(?:^|(?<=[.!?;:,\n])|\b(?=(?:and|then|also|please)\s))\s*(?:[-*]\s+)?"
    rf"(?:{_POLITE}[\s,]+){{0,4}}"
)
"""Where a request may begin: a clause, after polite or linking words."""

_CHART = (
    r"(?:(?:bar|line|pie|area|scatter|box|violin|density|time[- ]series)[- ]?)?"
    r"(?:plots?|charts?|graphs?|histograms?|heat\s?maps?|dendrograms?)\b"
    r"|\b(?:boxplots?|scatterplots?|visuali[sz]ations?)\b"
)
_PLOT: Final = (
    re.compile(rf"{_BEGIN}(?:plot|graph|visuali[sz]e|chart)\s+(?!of\b)\w"),
    re.compile(
        rf"{_BEGIN}(?:draw|make|create|show|produce|generate|give|display|build|prepare|add|render"
        rf"|(?:i|we)\s+(?:want|need|would\s+like))\b[^.?!\n]{{0,60}}?\b(?:{_CHART})"
    ),
    re.compile(rf"{_BEGIN}draw\s+(?:me\s+)?(?:a|an|the|one|two)\s+(?:\w+\s+)?(?:figure|picture)\b"),
    re.compile(rf"(?i)\b(?:as|in|with|on|using)\s+an?\s+(?:[\w-]+\s+){{0,2}}?(?:{_CHART})"),
    re.compile(rf"(?i)^\s*(?:an?\s+)?(?:[\w-]+\s+)?(?:{_CHART})\s+(?:of|showing|that\s+shows)\b"),
)
_NO_PLOT = re.compile(
    rf"(?i)\b(?:no|not|don't|without|never)\s+(?:\w+\s+){{0,3}}?(?:{_CHART}|visuali[sz]e)"
)

_THING = (
    r"(?:file|data(?:\s?set|\s?frame)?|table|sheet|workbook|csv|columns?|rows|records|it|this|df)"
)
_CLEAN: Final = re.compile(
    rf"""{_BEGIN}(?:
      (?:clean|tidy)(?:\s+up)?\b[^.?!\n]{{0,40}}?\b{_THING}\b
    | (?:clean|tidy)\s+(?:up\s+)?[\w./-]+\.\w{{2,7}}\b
    | (?:drop|remove|delete|get\s+rid\s+of)\s+(?:all\s+|the\s+|any\s+|exact\s+)*(?:
        duplicates?(?:d|\s+\w+)?\b | (?:empty|blank|incomplete|invalid|bad|broken|missing)\s+\w+
        | rows?\s+(?:with|without|where|that)\b )
    | (?:de-?duplicate|dedupe)\b
    | fix\s+(?:up\s+)?(?:all\s+|the\s+|its\s+)*(?:[\w-]+\s+)?
        (?:dates?|types?|typos?|spellings?|encodings?|formats?|names?|headers?|values?|numbers?|columns?|whitespace|data|file)\b
    | (?:standardi[sz]e|normali[sz]e|harmoni[sz]e|unify)\s+(?:all\s+|the\s+)*(?:[\w-]+\s+)?
        (?:dates?|names?|spellings?|formats?|headers?|units?|spelling)\b
    | (?:trim|strip)\s+(?:all\s+|the\s+)*(?:white\s?space|spaces|blanks)
    | (?:fill|impute)(?:\s+in)?\s+(?:all\s+|the\s+)*(?:missing|empty|blank)
    )""",
    re.VERBOSE,
)
_ASKS = re.compile(
    r"(?i)\b(?:what|which|who|whose|when|where\s+(?:is|are|do|does)|why|how|whether|is\s+there|are\s+there"
    r"|tell|report|compute|calculate|determine|count\s+(?:the|how)|answer|compare|correlat\w+"
    r"|show|print|list|display|train|fit|predict|forecast|regress\w*|classif\w+|cluster|test\s+(?:if|whether|for))\b"
)
"""Words that also ask for a finding. Cleaning is then a step on the way to an answer."""

_SHOWN = (
    r"(?:code|cells?|scripts?|functions?|quer(?:y|ies)|errors?|exceptions?|tracebacks?|warnings?"
    r"|messages?|outputs?|results?|plots?|charts?|graphs?|figures?|tables?|answers?|numbers?|steps?"
    r"|notebooks?|analys[ie]s|formulas?|line)"
)
_THIS = r"(?:this|that|these|those|your|the\s+(?:last|previous|above|first|second))"
_EXPLAIN: Final = (
    re.compile(rf"{_BEGIN}(?:explain|interpret)\s+(?:to\s+me\s+|me\s+)?{_THIS}\b"),
    re.compile(
        rf"{_BEGIN}explain\s+(?:to\s+me\s+|me\s+)?(?:what|how|why)\s+{_THIS}\s+(?:\w+\s+)?{_SHOWN}\b"
    ),
    re.compile(
        rf"(?i)\bwhat\s+(?:does|do|is)\s+(?:{_THIS}|the)\s+(?:\w+\s+)?{_SHOWN}\s+(?:mean|do|say)\b"
    ),
    re.compile(r"(?i)\bwhat\s+(?:does|do)\s+(?:this|that|it|these)\s+mean\b"),
    re.compile(
        rf"(?i)\b(?:why|how)\s+(?:does|did|do)\s+{_THIS}\s+(?:code|cell|query|script|function)\b"
    ),
    re.compile(
        rf"{_BEGIN}(?:explain|interpret)\s+(?:to\s+me\s+|me\s+)?the\s+(?:\w+\s+)?{_SHOWN}\s+above\b"
    ),
    re.compile(
        r"(?i)^\s*(?:please\s+)?(?:explain\s+what|what\s+(?:is|does))\s+an?\s+"
        r"(?:p[- ]?value|median|standard\s+deviation|confidence\s+interval|correlation"
        r"|regression|outlier|quartile|box\s?plot|histogram|t-test)"
        r"(?:\s+(?:is|means?))?(?:\s+in\s+(?:simple|plain)\s+\w+)?\s*[?.!]*\s*$"
    ),
)
_COMPUTES = re.compile(
    r"(?i)\b(?:compute|calculate|determine|count|plot|draw|clean|save|predict|train)\b"
)
"""Words that ask for new work besides an explanation."""
_REPORT = re.compile(
    rf"{_BEGIN}(?:write|create|prepare|make|produce|generate|draft|give\s+me)\b[^.?!\n]{{0,40}}?"
    r"\breports?\b(?!\s+card)"
)


def request_kind(task: Task) -> RequestKind:
    """Return what a task asks for; `answer` if its words leave a doubt.

    Args:
        task: a task with constraints or an answer format always asks for an answer.
    """
    if task.constraints.strip() or task.answer_format.strip():
        return "answer"
    words = _QUOTED.sub(" ` ", task.question[:_QUESTION_CHARS])
    words = _SPACES.sub(lambda found: "\n" if "\n" in found[0] else " ", words).strip()
    if _REPORT.search(words):
        return "report"
    if any(form.search(words) for form in _EXPLAIN) and not _COMPUTES.search(words):
        return "explain"
    if any(form.search(words) for form in _PLOT) and not _NO_PLOT.search(words):
        return "plot"
    if _CLEAN.search(words) and not _ASKS.search(words):
        return "clean"
    return "answer"
