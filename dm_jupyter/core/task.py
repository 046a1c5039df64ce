"""The `Task` that the agent is asked to solve."""

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
    """A question about data files, without the expected answer."""

    id: str
    question: str
    files: tuple[Path, ...] = ()
    """The paths of the data files on this machine."""
    constraints: str = ""
    """How to compute the answer, if the task prescribes it."""
    answer_format: str = ""
    """The form of the answer, such as `@mean_fare[value]`; empty for a free question."""
    level: str = ""
    concepts: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_closed_form(self) -> bool:
        """Whether the answer is named values; a format without names asks for a free answer."""
        return bool(answer_names(self.answer_format))

    def to_json(self) -> dict[str, Any]:
        """Return the task as plain JSON values, with file names but never their folders."""
        named = replace(self, files=tuple(Path(file.name) for file in self.files))
        plain: dict[str, Any] = encode_value(named)
        return plain

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Task:
        """Return the task from the output of `to_json`; files are bare names.

        Raises:
            ValueError: a field is missing or of another type.
        """
        return decode_value(cls, raw, "task")
