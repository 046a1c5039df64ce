"""What the agent is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dm_jupyter.core.closed_form import answer_names
from dm_jupyter.core.codec import decode_value, encode_value

__all__ = ["Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """A question about data files. The expected answer is no part of it."""

    id: str
    question: str
    files: tuple[Path, ...] = ()
    """The data files, as they lie on this machine."""
    constraints: str = ""
    """How to compute the answer, where the task prescribes that."""
    answer_format: str = ""
    """The form of the answer, such as `@mean_fare[value]`; empty for a free question."""
    level: str = ""
    concepts: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_closed_form(self) -> bool:
        """Whether the answer is named values; a format in other words is for a free answer."""
        return bool(answer_names(self.answer_format))

    def to_json(self) -> dict[str, Any]:
        """The task as plain JSON values; of each file its name alone, never its place."""
        named = replace(self, files=tuple(Path(file.name) for file in self.files))
        plain: dict[str, Any] = encode_value(named)
        return plain

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Task:
        """The inverse of `to_json`; files come back as bare names.

        Raises:
            ValueError: a field is missing or of another type.
        """
        return decode_value(cls, raw, "task")
