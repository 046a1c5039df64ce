"""The reading of written lists, dicts and ranges, shared by all suites.

- *Lists* are written in brackets or bare. Their items are separated by commas, on lines of their
  own, or after bullets (`- `, `* `, `•`, `1.`, `2)`). Semicolons separate words; numbers separated
  by semicolons equal only another list with semicolons, because no format asks for such a list. A
  final `and` separates items only in a list of three or more: `Trinidad and Tobago` is one country.
- *Dicts* are lists of pairs, `key: value` or `key=value`. Without braces every key needs a letter,
  so that `10:30, 11:30` remains a list of times.
- *Half-open intervals*, `(0, 5]`, keep their brackets.
- *Ranges*: `10-20`, `10 – 20`, `10 to 20`, the smaller number first. `2011-12` is not one.

Everything is one pass over the text; `values` reads the items of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from training.scoring.reader import (
    MAX_SCALAR_CHARS,
    exact_number,
    plain_text,
    read_written,
    straight,
)

__all__ = ["Group", "folded_text", "pairs_of", "parse_group", "read_range", "readings"]

_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_AFTER_QUOTE = re.compile(r"\s*(?:[,;:\])}]|\Z)")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_OPENERS = frozenset(_BRACKETS)
_CLOSERS = frozenset(_BRACKETS.values())
_BULLET = re.compile(r"\s*(?:[-*\u2022\u2013]\s+|\u2022|(\d{1,4})[.)]\s+)")
_LAST_AND = re.compile(r"\s+(?:and|und|&)\s+")
_AND_FIRST = re.compile(r"\s*(?:and|und|&)\s+")
_RANGE = re.compile(r"([+-]?[\d.,]+ ?%?) ?(?:-|to|bis) ?([+-]?[\d.,]+ ?%?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Group:
    """A list, tuple, set or half-open interval as written."""

    items: tuple[str, ...]
    kind: str
    """`list` for a bare list or matching brackets, else both brackets, as in `(]`."""
    bracketed: bool
    braced: bool = False
    """Whether the brackets are those of a dict."""
    is_strange: bool = False
    """Whether semicolons separate numbers; such a list equals only another one."""

    @property
    def is_plain(self) -> bool:
        """Whether this is one bare value, written without brackets and commas."""
        return not self.bracketed and len(self.items) == 1


def folded_text(text: str) -> str:
    """Return the text for comparison, ignoring case, outer quotes, extra spaces and escapes.

    Letters keep their accents: `naive` is not `naïve`.
    """
    plain = straight(text).replace("\\_", "_").strip()
    if len(plain) >= 2 and plain[0] == plain[-1] and plain[0] in "\"'`":
        plain = plain[1:-1]
    return " ".join(plain.split()).casefold()


def parse_group(text: str) -> Group:
    """Return the items of a comma list, in order; a bare value is a group of one item."""
    plain = text.strip()
    kind, bracketed, braced = "list", False, False
    if len(plain) >= 2 and plain[0] in _OPENERS and plain[-1] in _CLOSERS and _is_enclosed(plain):
        bracketed, braced = True, plain[0] == "{"
        if _BRACKETS[plain[0]] != plain[-1]:
            kind = plain[0] + plain[-1]
        plain = plain[1:-1].strip()
    items = tuple(_split(plain, ",")) if plain else ()
    if len(items) > 1 and not items[-1].strip():
        items = items[:-1]  # the comma of a one-element tuple, `(3,)`
    return Group(items, kind, bracketed, braced)


def readings(text: str) -> Iterator[Group]:
    """Yield the possible lists of a text, the comma list first, which may be a bare value."""
    group = parse_group(text)
    yield group
    if group.bracketed:
        return
    bare = [group] if len(group.items) > 1 else []
    plain = text.strip()
    if ";" in plain:
        bare.append(_parted(plain))
    if "\n" in plain:
        bare.append(Group(tuple(_lines(plain)), "list", bracketed=False))
    for one in bare:
        if one is not group:
            yield one
        yield from (replace(one, items=items) for items in _without_and(one.items))


def _parted(text: str) -> Group:
    items = _split(text, ";")
    if len(items) > 1 and not items[-1].strip():
        items.pop()
    is_strange = len(items) > 1 and any(read_written(item) is not None for item in items)
    return Group(tuple(items), "list", bracketed=False, is_strange=is_strange)


def _lines(text: str) -> list[str]:
    """Return the non-empty lines, without their bullets if all have one."""
    lines = [line for line in text.splitlines() if line.strip()]
    marks = [_BULLET.match(line) for line in lines]
    found = [mark for mark in marks if mark]
    numbers = [mark[1] for mark in found]
    counted = [str(count) for count in range(1, len(found) + 1)]
    if len(found) == len(lines) and (numbers == counted or not any(numbers)):
        lines = [line[mark.end() :] for line, mark in zip(lines, found, strict=True)]
    return [line.strip().rstrip(",;") for line in lines]


def _without_and(items: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the items with a final `and` removed, or with the last item split at it."""
    if len(items) < 2:
        return
    *first, last = items
    if mark := _AND_FIRST.match(last):
        yield (*first, last[mark.end() :])
    elif len(parts := _LAST_AND.split(last, maxsplit=1)) == 2:
        yield (*first, *parts)


def pairs_of(group: Group) -> dict[str, str] | None:
    """Return the entries of `key: value` pairs by folded key, or `None` for other items."""
    if group.kind != "list":
        return None
    entries: dict[str, str] = {}
    for item in group.items:
        key, *rest = _split(item, ":")
        if not rest:
            key, *rest = _split(item, "=")
        name = _key(key)
        if not rest or name in entries or not (group.braced or any(map(str.isalpha, key))):
            return None
        entries[name] = ":".join(rest)
    return entries or None


def _key(text: str) -> str:
    """Return a key for comparison; `1` and `1.0` are the same key."""
    name = folded_text(text)
    found = read_written(name)
    if found is None or found.is_code or found.is_percent or found.currency:
        return name
    return str(exact_number(name) if found.is_whole else float(found.value)).removesuffix(".0")


def read_range(text: str) -> tuple[str, str] | None:
    """Return both ends of a range of numbers as written, the smaller first, or `None`."""
    if len(text) > MAX_SCALAR_CHARS:
        return None
    found = _RANGE.fullmatch(plain_text(text))
    if found is None:
        return None
    low, high = read_written(found[1]), read_written(found[2])
    if low is None or high is None or low.is_code or high.is_code or low.value >= high.value:
        return None
    return found[1].strip(), found[2].strip()


def _is_enclosed(text: str) -> bool:
    """Whether the last bracket closes the first."""
    depth = 0
    for position, char in enumerate(text):
        depth += (char in _OPENERS) - (char in _CLOSERS)
        if depth == 0:
            return position == len(text) - 1
    return False


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside brackets and outside quoted items."""
    parts, start, depth, quote, previous = [], 0, 0, "", separator
    for position, char in enumerate(text):
        if quote:
            if char == quote and _AFTER_QUOTE.match(text, position + 1):
                quote = ""
        elif char in _QUOTES and (previous in ",;:=" or previous in _OPENERS):
            quote = _QUOTES[char]
        elif char == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
        else:
            depth = max(0, depth + (char in _OPENERS) - (char in _CLOSERS))
        if not char.isspace():
            previous = char
    return [*parts, text[start:]]
