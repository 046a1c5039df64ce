"""What was answered beside what was expected, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dm_jupyter.core.closed_form import find_answers
from training.evaluation.records import EvalRecord
from training.html.words import plain

__all__ = ["Part", "Verdict", "kind_of", "verdict_of"]

_MAX_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that the verdict is made of."""

    name: str
    expected: str | None
    """`None` where the label does not name it."""
    answered: str | None
    right: bool
    strict: bool | None
    """`None` where the suite does not tell the rules apart."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one answer."""

    kind: str
    answer: str | None
    expected: str | None
    """The whole label; `None` in a compact record, and where the parts say it all."""
    parts: tuple[Part, ...]
    grades: tuple[tuple[str, str], ...]

    @property
    def names_values(self) -> bool:
        """Whether some part has a value beside its name."""
        return any(part.expected is not None or part.answered is not None for part in self.parts)


def kind_of(record: EvalRecord) -> str:
    """Returns `right`, `wrong`, or by whose rules alone it is right: `ours`, `strict`."""
    if record.right and record.strict:
        return "right"
    if record.right or record.strict:
        return "ours" if record.right else "strict"
    return "wrong"


def verdict_of(record: EvalRecord) -> Verdict:
    """Returns the verdict of a record."""
    expected = _named_values(record.label)
    parts = tuple(_parts(record, expected))
    is_told = bool(expected) and {part.name for part in parts} >= set(expected)
    return Verdict(
        kind=kind_of(record),
        answer=None if record.answer is None else plain(record.answer, _MAX_CHARS),
        expected=None if record.label is None or is_told else _label_words(record.label),
        parts=parts,
        grades=tuple((name, f"{value:g}") for name, value in record.grades.items()),
    )


def _parts(record: EvalRecord, expected: Mapping[str, str]) -> Iterator[Part]:
    answered = dict(find_answers(record.answer or ""))
    for name, right in record.parts.items():
        said = answered.get(name)
        yield Part(
            name,
            expected.get(name),
            None if said is None else plain(said, _MAX_CHARS),
            bool(right),
            record.strict_parts.get(name),
        )


def _named_values(label: Any) -> dict[str, str]:
    """The values of a label that names each; where a name stands twice, the later is numbered."""
    if isinstance(label, Mapping):
        return {str(name): _label_words(value) for name, value in label.items()}
    values: dict[str, str] = {}
    if not isinstance(label, list) or not all(_is_pair(one) for one in label):
        return values
    names = [name for name, _ in label]
    for place, (name, value) in enumerate(label):
        before = names[:place].count(name)
        values[f"{name}#{before + 1}" if before else name] = _label_words(value)
    return values


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(x, str) for x in value)


def _label_words(label: Any) -> str:
    text = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False, indent=1)
    return plain(text, _MAX_CHARS)
