"""Closed-form answers, `@name[value]` (InfiAgent-DABench, arXiv 2401.05507 §3): reading only."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = [
    "answer_names",
    "find_answers",
    "fold_name",
    "given_answers",
    "is_no_value",
    "is_undefined",
    "outside_thought",
]

_PRINT_OUT = re.compile(r"\n|\bdtype[:=]|\bnp\.\w+\(|<[\w.]+ object|<function|Result\(")
_TAG = re.compile(r"@[ \t]?(\w(?:[\w .%()/\-]|\\_){0,119}?)[ \t]*(\\?)\[")
_INTERVAL = re.compile(
    r"\([^][(),\n]{1,40},[^][(),\n]{1,40}\]|\[[^][(),\n]{1,40},[^][(),\n]{1,40}\)"
)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_ECHOES = frozenset({"value", "answer", "your answer", "...", "\u2026"})
_REST_OF_LINE = re.compile(r"[^]@\n]*(?=\])")


def find_answers(text: str) -> tuple[tuple[str, str], ...]:
    r"""Return each `@name[value]` of the text in order, brackets balanced, as written.

    Names may contain spaces, and markdown's `\_`, `\[`; both ends are stripped. A value may span
    several lines. Half-open intervals such as `(0, 5]` don't unbalance it. A tag whose bracket
    never closes ends at the first `]` of its line; without one it is not an answer.
    """
    return tuple(_scan(text))


def outside_thought(text: str) -> str:
    """Return the text without `<think>…</think>`, including one that is never closed."""
    return _THOUGHT.sub(" ", text) if "<think>" in text.lower() else text


def given_answers(text: str, answer_format: str = "") -> tuple[tuple[str, str], ...]:
    """Return the answers that count: outside the thought, and not an echo of the format.

    An echo is a value that the format itself contains, or one such as `@mean[mean_value]`. It is
    dropped only if its name has another answer.

    Args:
        text: the answer's text.
        answer_format: the requested format, if known.
    """
    pairs = find_answers(outside_thought(text))
    written = {(fold_name(name), value) for name, value in find_answers(answer_format)}
    is_echo = [
        (fold_name(name), value) in written or _is_echo(name, value) for name, value in pairs
    ]
    real = {fold_name(name) for (name, _), echo in zip(pairs, is_echo, strict=True) if not echo}
    return tuple(
        (name, value)
        for (name, value), echo in zip(pairs, is_echo, strict=True)
        if not echo or fold_name(name) not in real
    )


def fold_name(name: str) -> str:
    """Return a name folded for comparison: caseless, with spaces and dashes as underscores."""
    return re.sub(r"[\s_\-]+", "_", name.replace("\\_", "_").strip()).casefold()


def _is_echo(name: str, value: str) -> bool:
    plain, asked = value.strip(" <>{}\"'`").casefold(), name.casefold()
    return plain in _ECHOES or plain in {asked, f"{asked}_value", f"{asked} value"}


def _scan(text: str) -> Iterator[tuple[str, str]]:
    tags = list(_TAG.finditer(text))
    closing = _closing_brackets(text, {tag.end() - 1 for tag in tags})
    position = 0
    for tag in tags:
        if tag.start() < position:
            continue
        end = closing.get(tag.end() - 1)
        if end is None:
            rest = _REST_OF_LINE.match(text, tag.end())
            if rest is None:
                continue
            end = rest.end()
        value = text[tag.end() : end].removesuffix(tag[2])  # the backslash of `\]`, if any
        yield tag[1].replace("\\_", "_").strip(), value.strip()
        position = end + 1


def _closing_brackets(text: str, openings: set[int]) -> dict[int, int]:
    """Return the index of each square bracket's partner, in one pass; intervals are skipped."""
    neutral = {
        place
        for found in _INTERVAL.finditer(text)
        if found.start() not in openings
        for place in (found.start(), found.end() - 1)
    }
    partners: dict[int, int] = {}
    waiting: list[int] = []
    for place, char in enumerate(text):
        if place in neutral:
            continue
        if char == "[":
            waiting.append(place)
        elif char == "]" and waiting:
            partners[waiting.pop()] = place
    return partners


def answer_names(answer_format: str) -> tuple[str, ...]:
    """Return the names that a format asks for, each once, in order.

    A format may lack its last bracket, as two of DABench's do; an answer without it is invalid.
    """
    return tuple(dict.fromkeys(name for name, _ in find_answers(f"{answer_format}]")))


def is_undefined(value: str) -> bool:
    """Whether a value is what a failed computation prints: nothing, or not-a-number."""
    return value.strip().lower() in {"", "nan", "nat", "<na>", "inf", "-inf"}


def is_no_value(value: str) -> bool:
    """Whether a printed value is undefined, or the repr of an object instead of a value."""
    return is_undefined(value) or _PRINT_OUT.search(value) is not None
