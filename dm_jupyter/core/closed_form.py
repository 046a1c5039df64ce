"""Closed-form answers, `@name[value]` (InfiAgent-DABench, arXiv 2401.05507 §3): reading only."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["answer_names", "find_answers", "is_no_value", "is_undefined"]

_PRINT_OUT = re.compile(r"\n|\bdtype[:=]|\bnp\.\w+\(|<[\w.]+ object|<function|Result\(")
_START = re.compile(r"@\s*([A-Za-z_][\w .\-]*?)\s*\[")


def find_answers(text: str) -> tuple[tuple[str, str], ...]:
    """Returns every `@name[value]` of `text` in order; brackets inside a value must balance.

    A value whose bracket never closes ends at the end of its line.
    """
    return tuple(_scan(text))


def _scan(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while match := _START.search(text, position):
        end = _closing(text, match.end())
        yield match.group(1), text[match.end() : end].strip()
        position = end


def _closing(text: str, start: int) -> int:
    """The index of the bracket that closes the one before `start`, or of the end of the line."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[index], 0)
        if depth == 0:
            return index
    newline = text.find("\n", start)
    closing = text.find("]", start, newline if newline >= 0 else len(text))
    ends = [end for end in (closing, newline) if end >= 0]
    return min(ends, default=len(text))


def answer_names(answer_format: str) -> tuple[str, ...]:
    """Returns the names that a format asks for, each once, in order."""
    return tuple(dict.fromkeys(name for name, _ in find_answers(answer_format)))


def is_undefined(value: str) -> bool:
    """Whether a value is what a failed computation prints: nothing, or not-a-number."""
    return value.strip().lower() in {"", "nan", "nat", "<na>", "inf", "-inf"}


def is_no_value(value: str) -> bool:
    """Whether a printed value is undefined, or the print-out of an object instead of a value."""
    return is_undefined(value) or _PRINT_OUT.search(value) is not None
