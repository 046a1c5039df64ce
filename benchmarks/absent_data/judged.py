"""Text rules that decide whether an answer says that the data lack what was asked for.

The rules are the benchmark's own, because the product's check could not find its own mistakes. They
are for English answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from examples.questions import PersonsQuestion

__all__ = ["Asked", "Verdict", "judged", "says_absent"]

_NOUN = (
    r"(?:rows?|records?|data|entr(?:y|ies)|observations?|values?|match(?:es)?|results?|partners?"
    r"|information|measurements?|readings?)"
)
_WHERE = (
    r"(?:data(?:set|base)?|table|file|sample|records?|columns?|years?|period|selection|quer(?:y|ies)"
    r"|range)"
)
_OUT_OF_DATA = re.compile(
    rf"""(?ix)
    \b(?:no|any|lacks?|without)\s+(?:[\w'-]+\s+){{0,2}}?data\b
    | \b{_WHERE}\s+(?:\w+\s+)?(?:only\s+)?
      (?:covers?|runs?|starts?|begins?|ends?|spans?|ranges?|goes|go|stops?)\b
    | \b{_WHERE}['’]?\s+only\s+(?:has|have|contains?|holds?|includes?)\b
    | \b(?:outside|beyond|out\s+of|before|after)\s+(?:of\s+)?(?:the\s+)?
      (?:\w+\s+){{0,2}}(?:range|period|data(?:set|base)?)\b
    | \b(?:not|never|n['’]t)\s+(?:\w+\s+){{0,3}}?in\s+(?:the|this)\s+{_WHERE}\b
    | (?:cannot|can['’]t|can\s+not|could\s+not|couldn['’]t|impossible|unable|not\s+possible)\s+
      (?:\w+\s+){{0,2}}?(?:determine|compute|calculate|answer|say|tell|find|be)
    | \b{_WHERE}\s+(?:(?:contains?|holds?|includes?|lists?)\s+(?:no|none)|(?:has|have)\s+none)\b
    | \b{_WHERE}\s+(?:do(?:es)?|did)(?:\s+not|n['’]t)\s+
      (?:contain|include|cover|have|hold|provide|list)
    """
)
"""Words that place the request outside of the data."""
_ABSENT = re.compile(
    rf"""(?ix)
    \b(?:no|zero|0|without|any|lacks?)\s+(?:(?!more\b|less\b)[\w'-]+\s+){{0,3}}?{_NOUN}\b
    | (?:\b(?:not|never)|n['’]t)\s+(?:[\w'-]+\s+){{0,3}}?
      (?:exists?|cover(?:ed)?|contain(?:ed)?|included?|present|available|appear|occur|found|recorded
      |listed|match(?:ed)?|any)\b
    | (?<!with\ )\b(?:missing|absent|unavailable|empty|non-existent|nonexistent)\b
    | \bno\s+(?:[\w'-]+\s+){{0,5}}?(?:was|were|is|are)\s+(?:\w+\s+)?
      (?:recorded|measured|observed|listed|found|reported|available|present|issued|called|named)\b
    | \b(?:no|none)\s+(?:of\s+)?(?:the\s+)?(?:[\w'-]+\s+){{1,4}}?(?:has|have|had|match\w*)\b
    | \bno\s+such\b
    """
)
"""Words that say that nothing exists; rows *with missing* values do exist."""
_NONE = re.compile(
    r"(?i)\b(?:no|none|not\s+any|nobody|nothing|never|neither)\b(?!\s+(?:more|less))"
)
"""Words of denial; about a period they say that nothing happened, not that data are missing."""
_NEEDS_DATA_WORDS = frozenset({"period", "premise"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its expected answer."""

    question: str
    kind: str
    """What is absent: a period, a category, a combination and so on."""
    is_absent: bool
    """Whether the data lack what is asked for."""
    is_zero: bool = False
    """Whether the right answer to an ordinary question is none or 0."""
    states: Sequence[float | str] = ()
    """Values that a right answer to an ordinary question states."""

    def is_stated(self, answer: str) -> bool:
        """Return whether an answer states the expected values; a word for none counts as 0.

        Args:
            answer: of the model.
        """
        if self.is_zero and _NONE.search(answer):
            return True
        return not PersonsQuestion((), self.question, tuple(self.states)).missing(answer)


class Verdict(StrEnum):
    """How an answer treats absent data."""

    SAID = "said in its own words"
    MARKED = "said by the mark alone"
    UNSAID = "not said"
    CLEAN = "no alarm"
    FALSE_WORDS = "says that data are absent"
    FALSE_MARK = "marked"


def judged(answer: str | None, marks: Sequence[str], asked: Asked) -> Verdict:
    """Return how an answer treats absent data.

    Args:
        answer: `None` if there is none, which says nothing.
        marks: the product's notes below it.
        asked: the question.
    """
    says = says_absent(answer or "", asked)
    if asked.is_absent:
        if says:
            return Verdict.SAID
        return Verdict.MARKED if marks and answer else Verdict.UNSAID
    if says:
        return Verdict.FALSE_WORDS
    return Verdict.FALSE_MARK if marks else Verdict.CLEAN


def says_absent(answer: str, asked: Asked) -> bool:
    """Return whether the words of an answer say that the data have no such rows or values.

    Words of the question do not count. If the right answer is none, or a number of missing values,
    only words that place the question outside of the data count. With a right 0 for a threshold,
    the range of the data is only the reason and does not count.

    Args:
        answer: of the model.
        asked: the question.
    """
    is_honest_none = not asked.is_absent and (asked.is_zero or asked.kind == "missing")
    if is_honest_none and asked.kind == "threshold" and asked.is_stated(answer):
        return False
    if _is_new(_OUT_OF_DATA, answer, asked.question):
        return True
    if is_honest_none:
        return False
    if _is_new(_ABSENT, answer, asked.question):
        return True
    return asked.is_absent and asked.kind not in _NEEDS_DATA_WORDS and bool(_NONE.search(answer))


def _is_new(pattern: re.Pattern[str], answer: str, question: str) -> bool:
    """Return whether an answer has words of a pattern that are not in the question."""
    known = " ".join(question.casefold().split())
    found = (" ".join(one[0].casefold().split()) for one in pattern.finditer(answer))
    return any(words not in known for words in found)
