"""What was answered beside what was expected, part by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from training.records.records import EvalRecord
from training.report.words import plain
from training.scoring import closed_form

__all__ = ["Part", "ShownVerdict", "kind_of", "verdict_of"]

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
class ShownVerdict:
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


def verdict_of(record: EvalRecord) -> ShownVerdict:
    """Returns the verdict of a record."""
    paired = _paired(record)
    parts = tuple(_parts(record, paired))
    is_told = bool(paired) and {part.name for part in parts} >= paired.keys()
    return ShownVerdict(
        kind=kind_of(record),
        answer=None if record.answer is None else plain(record.answer, _MAX_CHARS),
        expected=None if record.label is None or is_told else _label_words(record.label),
        parts=parts,
        grades=tuple((name, f"{value:g}") for name, value in record.grades.items()),
    )


def _parts(record: EvalRecord, paired: Mapping[str, closed_form.SubAnswer]) -> Iterator[Part]:
    for name, right in record.parts.items():
        part = paired.get(name) or _unlabelled(record, name)
        yield Part(
            name,
            _label_words(part.label) if name in paired else None,
            None if part.answer is None else plain(part.answer, _MAX_CHARS),
            bool(right),
            record.strict_parts.get(name),
        )


def _paired(record: EvalRecord) -> dict[str, closed_form.SubAnswer]:
    """The values of a label that names each, with the answers that the scorer held against them."""
    label = record.label
    if isinstance(label, Mapping):
        pairs = [(str(name), _as_text(value)) for name, value in label.items()]
    elif isinstance(label, list) and all(_is_pair(one) for one in label):
        pairs = [(name, value) for name, value in label]
    else:
        pairs = []
    return closed_form.score(record.answer or "", pairs).numbered


def _unlabelled(record: EvalRecord, name: str) -> closed_form.SubAnswer:
    """What was said to a name; nothing where it stands twice, as no label says which is which."""
    text = "" if f"{name}#2" in record.parts else record.answer or ""
    return closed_form.score(text, [(name, "")]).parts[0]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(x, str) for x in value)


def _label_words(label: Any) -> str:
    return plain(_as_text(label), _MAX_CHARS)


def _as_text(label: Any) -> str:
    return label if isinstance(label, str) else json.dumps(label, ensure_ascii=False, indent=1)
