"""Detection of a model that repeats itself endlessly, as small ones do, to save the wait.

Equal rows of a table or a matrix are data. They count as a loop only after many copies.
"""

from __future__ import annotations

import re

__all__ = ["is_looping"]

_TIMES = 3
_MAX_PERIOD = 16
_MIN_CHARS = 120
_COMMENTS_CHARS = 200
"""Length of a block of comments that already counts as a loop at its second copy."""
_ALIKE = 5
_ALIKE_CHARS = 40
"""Common first characters of consecutive comments that lead to no code."""
_LINE_CHARS = 400
"""Last characters of an unfinished line that must be copies of one piece."""
_PIECE_CHARS = 130
_MOST_ROWS = 40
"""Rows of a table that count as a loop if they are equal, or equal blocks of rows."""
_FIELDS = re.compile(r"[^,;\t|(){}=]*(?:[,;\t][^,;\t|(){}=]*){2,}")
_NUMBERS = re.compile(r"(?=.*\d)[\d\s.,;:eE+\-()\[\]{}]*(?:(?:nan|NaN|None|NA)[\d\s.,;()\[\]{}]*)?")
_FIELD_WORDS = 6


def is_looping(text: str) -> bool:
    """Return whether the text ends in a loop.

    A loop is one of these:

    - three copies of the same lines, 120 characters or more
    - two copies of the same comments, 200 characters or more each
    - five consecutive comments that begin with the same 40 characters
    - 40 or more rows of a table that are copies
    - an unfinished line that keeps repeating one piece

    Up to sixteen lines may recur. Except in the last case, a line counts once it has ended.
    """
    *lines, last = text.split("\n")
    lines = lines[-_TIMES * _MAX_PERIOD :]
    return (
        any(_repeats(lines, period) for period in range(1, len(lines) // 2 + 1))
        or _begin_alike(lines[-_ALIKE:])
        or _goes_on(last[-_LINE_CHARS:])
    )


def _repeats(lines: list[str], period: int) -> bool:
    block = lines[-period:]
    if lines[-2 * period : -period] != block:
        return False
    if all(map(_is_comment, filter(str.strip, block))) and _chars(block) >= _COMMENTS_CHARS:
        return True
    if all(map(_is_row, block)):
        rows = lines[-_MOST_ROWS:]
        return len(rows) == _MOST_ROWS and rows[period:] == rows[:-period]
    tail = lines[-_TIMES * period :]
    return tail == block * _TIMES and _chars(tail) >= _MIN_CHARS


def _begin_alike(lines: list[str]) -> bool:
    starts = {line.strip()[:_ALIKE_CHARS] for line in lines}
    if len(lines) < _ALIKE or len(starts) > 1:
        return False
    (start,) = starts
    return _is_comment(start) and len(start) == _ALIKE_CHARS


def _goes_on(line: str) -> bool:
    if len(line) < _LINE_CHARS or not any(map(str.isalpha, line)):
        return False
    return any(line[piece:] == line[:-piece] for piece in range(1, _PIECE_CHARS + 1))


def _is_row(line: str) -> bool:
    """Whether a line is a row of a table, in Markdown or as separated values, or of a matrix."""
    text = line.strip()
    if text.startswith("|") and text.count("|") > 1:
        return True
    if _NUMBERS.fullmatch(text):
        return True
    if not _FIELDS.fullmatch(text) or text.startswith("#") or text[-1] in ".!?:":
        return False
    is_prose = ", " in text and not any(map(str.isdigit, text))
    fields = re.split(r"[,;\t]", text)
    return not is_prose and all(len(field.split()) <= _FIELD_WORDS for field in fields)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _chars(lines: list[str]) -> int:
    return sum(len(line.strip()) for line in lines)
