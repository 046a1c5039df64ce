"""Prompts of training are files beside this module, loaded by name, filled with `$name` fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template

__all__ = ["Prompt", "load_prompt"]

_TAG_NAME = re.compile(r"<([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text with fields."""

    name: str
    text: str

    @property
    def fingerprint(self) -> str:
        """The first 12 hex digits of the text's sha256, recorded with whatever came of it."""
        return sha256(self.text.encode()).hexdigest()[:12]

    def fill(self, fields: Mapping[str, str]) -> str:
        """Returns the text with every field replaced.

        What stands in a field is material and no part of the prompt: a tag of the prompt's own,
        such as the `</given>` that would end the place of an answer, loses its bracket there.

        Raises:
            KeyError: the prompt has a field that `fields` lacks.
        """
        names = "|".join(sorted(set(_TAG_NAME.findall(self.text))))
        if not names:
            return Template(self.text).substitute(fields)
        opening = re.compile(rf"<(?=\s*/?\s*(?:{names})\b)", re.IGNORECASE)
        return Template(self.text).substitute(
            {name: opening.sub("\u2039", value) for name, value in fields.items()}
        )


@cache
def load_prompt(name: str) -> Prompt:
    """Returns the prompt `name`, without the newline at its end.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    text = files(__name__).joinpath(f"{name}.md").read_text("utf-8")
    return Prompt(name, text.rstrip("\n"))
