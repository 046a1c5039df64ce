"""Counts of made and refused questions, and the rules that apply to many questions together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.suites.generated.questions.questions import Question
from training.suites.generated.questions.templates import LEVELS, categories, templates
from training.suites.generated.tables.dirt import FORMATS
from training.suites.generated.tables.domains import SPLITS

__all__ = ["AMBIGUOUS", "MAX_CONSTANT", "Made", "Tally"]

MAX_CONSTANT = 0.3
"""Largest share of a template's questions with the same answer, in each split and overall."""
AMBIGUOUS = (
    *("tie", "on the edge", "on the edge of rounding", "another reading"),
    *("a month without rows", "undefined"),
)
"""Reasons why a question has no single answer; all others mean that a table did not fit."""
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Made:
    """A question that was kept, with the split and format of its file."""

    question: Question
    split: str
    format: str
    """Format of the file."""


@dataclass(slots=True)
class Tally:
    """Counts of one generation."""

    made: list[Made] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """Number of drafts that gave no question, by reason."""
    disagreements: list[str] = field(default_factory=list)
    """Differing results of the two programs; those questions are not kept."""
    missing: int = 0
    """Number of requested questions that could not be made."""
    _answers: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def add(self, made: Made) -> None:
        """Count a question."""
        self.made.append(made)
        for split in (made.split, _ALL):
            key = (split, made.question.template.full_name)
            self._answers.setdefault(key, Counter())[made.question.answer] += 1

    def is_constant(self, question: Question, split: str) -> bool:
        """Return whether one more such answer would be too many for its template.

        An answer may always occur once, because three questions can't have shares below a third.
        """
        for scope in (split, _ALL):
            answers = self._answers.get((scope, question.template.full_name), Counter())
            times = answers[question.answer] + 1
            if times > max(1.0, MAX_CONSTANT * (answers.total() + 1)):
                return True
        return False

    def used(self, split: str) -> tuple[Counter[str], Counter[str], Counter[int]]:
        """Return how often categories, templates and levels occur in a split."""
        own = [made.question for made in self.made if made.split == split]
        return (
            Counter(one.template.category for one in own),
            Counter(one.template.full_name for one in own),
            Counter(one.level for one in own),
        )

    def report(self) -> dict[str, Any]:
        """Return the counts as plain JSON values."""
        questions = [made.question for made in self.made]
        names = [category.name for category in categories()]
        return {
            "questions": len(questions),
            "not_made": self.missing,
            "disagreements": len(self.disagreements),
            "by_split": _counts((made.split for made in self.made), SPLITS),
            "by_level": _counts((LEVELS[one.level - 1] for one in questions), LEVELS),
            "by_steps": _counts((str(one.depth) for one in questions), "12345"),
            "by_file": _counts((made.format for made in self.made), FORMATS),
            "by_answer": _counts(map(_answer_kind, questions), ("one value", "values", "table")),
            "by_category": _counts((one.template.category for one in questions), names),
            "refused_as_ambiguous": _some(self.refused, AMBIGUOUS),
            "refused_for_other_reasons": _some(
                self.refused, sorted(self.refused.keys() - {*AMBIGUOUS})
            ),
            "most_frequent_answer": dict(self._constants()),
        }

    def _constants(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield each template's most frequent answer, the largest share first."""
        found = []
        for template in templates():
            answers = self._answers.get((_ALL, template.full_name), Counter())
            if answers:
                answer, times = answers.most_common(1)[0]
                found.append((template.full_name, times, answers.total(), answer))
        for name, times, total, answer in sorted(found, key=lambda one: (-one[1] / one[2], one)):
            yield name, {"answer": answer, "times": times, "of": total}


def _counts(found: Iterator[str] | Any, names: Sequence[str]) -> dict[str, int]:
    counts = Counter(found)
    return {name: counts[name] for name in names}


def _some(counts: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    return {name: counts[name] for name in names if counts[name]}


def _answer_kind(question: Question) -> str:
    if question.table:
        return "table"
    return "one value" if len(question.label) == 1 else "values"
