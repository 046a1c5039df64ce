"""Notices a model that says the same lines over and over, as small ones do: no need to wait."""

from __future__ import annotations

__all__ = ["is_looping"]

_TIMES = 3
_MAX_PERIOD = 16
_MIN_CHARS = 120


def is_looping(text: str) -> bool:
    """Returns whether the text ends in three copies of the same lines, 120 characters or more.

    Up to sixteen lines may recur; the last line counts once it has ended.
    """
    lines = text.split("\n")[:-1][-_TIMES * _MAX_PERIOD :]
    return any(_repeats(lines, period) for period in range(1, len(lines) // _TIMES + 1))


def _repeats(lines: list[str], period: int) -> bool:
    tail = lines[-_TIMES * period :]
    block = tail[:period]
    is_same = all(tail[i * period : (i + 1) * period] == block for i in range(1, _TIMES))
    return is_same and sum(len(line.strip()) for line in tail) >= _MIN_CHARS
