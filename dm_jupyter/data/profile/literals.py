"""Values as Python source: names and file names come from data, and must stay data in code."""

from __future__ import annotations

import json

__all__ = ["literal", "text_literal"]


def text_literal(text: str) -> str:
    """Return a Python literal for the text, in double quotes if possible."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # A file name that is not valid UTF-8 has lone surrogates; only repr escapes them correctly.
        return repr(text)
    return json.dumps(text, ensure_ascii=False)


def literal(value: object) -> str:
    """Return Python source for a text, number, `str` itself, or list or dictionary of them."""
    if value is str:
        return "str"
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(value[key])}" for key in value) + "}"
    return repr(value)
