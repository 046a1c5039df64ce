"""Prompts of training are files beside this module, loaded by name, filled with `$name` fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from string import Template

from dm_jupyter.core import prompts

__all__ = ["Prompt", "load_prompt"]

_TAG_NAME = re.compile(r"<([a-z_]+)")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text with fields."""

    text: str
    fingerprint: str
    """Recorded with whatever came of it."""

    def fill(self, fields: Mapping[str, str]) -> str:
        """Return the text with every field replaced.

        A value is data and can't contain a tag of the prompt: there, the `<` of such a tag becomes
        `‹`. Otherwise a `</given>` in an answer would end the section of the answer.

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
    """Return the prompt `name`, without the newline at its end.

    Raises:
        FileNotFoundError: there is no such prompt.
    """
    return Prompt(prompts.text_of(name, __name__), prompts.fingerprint(name, __name__))
