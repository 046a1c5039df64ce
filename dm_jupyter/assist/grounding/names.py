"""Numbers of an answer that are labels: years, classes, quantiles, parts of longer labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dm_jupyter.assist.grounding.numbers import StatedNumber, numbers_in
from dm_jupyter.assist.grounding.words import content_words

__all__ = ["Vocabulary", "label_numbers"]

_WITHIN = re.compile(
    r"[^.;,]{0,40}?\b(?:within|below|above|under|over|less|more|at most|faster|"
    r"(?:quart|percent|quant)ile)\b"
)
_LISTED = re.compile(r"\s*(?:,|or|and|to|-|–|, and|, or)\s*")
"""Text between labels that are numbers, as in `4 or 5 stars`."""
_ORDINALS = {word: at for at, word in enumerate(["first", "second", "third", "fourth", "fifth"], 1)}
_ORDINAL = re.compile(
    r"\b(?:(\d{1,2})(?:st|nd|rd|th)|(first|second|third|fourth|fifth))[ -](\w+)", re.I
)
_ORDINAL_ALONE = re.compile(
    r"\b(first|second|third|fourth|fifth)(?=\s?(?:[(,;.]|and\b|or\b|with\b))"
)
_NUMBERED = re.compile(r"\b([A-Za-z]{3,12})\s(\d{1,3})\b(?![.,]\d)")
"""A name that a label may shorten: `week 1` for `W01`."""
_CLOCK = re.compile(
    r"(?:\s?(?:o['’]clock|uhr|h\b|(?P<am>a\.?m\b)|(?P<pm>p\.?m\b))|:00\b)", re.IGNORECASE
)
"""Text after an hour of the day."""
_RAISED = str.maketrans("²³", "23")
_EDGE = re.compile(
    r"(?:\b(?:between|from|aged?|over|under|above|below|(?:up )?to|than|until|and)|[-–<>≥≤])\s*\Z",
    re.IGNORECASE,
)
_YEAR_BEFORE = re.compile(
    r"(?:\b(?:in|of|since|from|to|until|till|by|during|between|and|year|years|for|through|after|"
    r"before|over|vs|versus|than|early|late|mid|end|fiscal|fy|season|q[1-4]|h[12]|half|quarter|"
    r"en|im|jahr|seit|von|bis|de|desde|año|depuis|année|"
    r"jan\w*|feb\w*|mar(?:ch)?|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*|dec\w*)|[-–(/,])\s*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The labels of all outputs, for finding names in an answer."""

    phrases: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    """Labels as words, by their first word."""
    words: frozenset[str] = frozenset()
    key_names: frozenset[str] = frozenset()
    """Things that numeric labels number: `class`, `cluster`."""
    key_columns: frozenset[str] = frozenset()
    """The names of their columns as written, lower case."""
    keys: frozenset[str] = frozenset()
    short: frozenset[str] = frozenset()
    """Words of columns that may be the first letters of longer ones: `acc`, `pop`."""
    edges: frozenset[str] = frozenset()
    """Numbers at which intervals begin or end."""
    quantiles: frozenset[str] = frozenset()
    """Numbers of labels such as `25%` and `p95`."""
    numbered: dict[str, str] = field(default_factory=dict)
    """Labels such as `W01` as words, by letter and number."""
    with_digits: tuple[str, ...] = ()
    """Labels such as `18-25` or `Model 3`, lower case."""

    def labels_in(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the labels among words, in order; the longest if several fit."""
        found, at = [], 0
        while at < len(words):
            fitting = [
                phrase
                for phrase in self.phrases.get(words[at], ())
                if tuple(words[at : at + len(phrase)]) == phrase
            ]
            longest = max(fitting, key=len, default=())
            if not longest and (words[at][0] == "#" or words[at] in self.keys):
                longest = (words[at],)
            if longest:
                found.append(longest)
            at += len(longest) or 1
        return found

    def names_key(self, word: str) -> bool:
        """Whether a word names the things that numeric labels number."""
        return bool(word) and any(
            word == name or (len(word) > 3 and name.endswith(word)) for name in self.key_names
        )


def label_numbers(answer: str, vocabulary: Vocabulary) -> dict[int, str]:
    """Return the start of each number that is a label, with its name; "" if other words have it.

    Args:
        answer: the answer of the model.
        vocabulary: the labels of the outputs that it is about.
    """
    found: dict[int, str] = {}
    for number in numbers_in(answer):
        name = _name_of(number, answer, vocabulary)
        if name is not None:
            found[number.start] = name
    _add_listed(found, answer, vocabulary)
    _add_ordinals(found, answer, vocabulary)
    for match in _NUMBERED.finditer(answer):
        short = f"{match[1][0].lower()}{int(match[2])}"
        if label := vocabulary.numbered.get(short):
            found.setdefault(match.start(2), label)
    lower = answer.lower().translate(_RAISED)
    for label in vocabulary.with_digits:
        for match in re.finditer(rf"(?<!\w){re.escape(label)}(?!\w)", lower):
            for number in numbers_in(label):
                found.setdefault(match.start() + number.start, "")
    return found


def _add_ordinals(found: dict[int, str], answer: str, vocabulary: Vocabulary) -> None:
    """Add `third class` as a label, and then `the first (72)` as well."""
    for match in _ORDINAL.finditer(answer):
        named = next(iter(content_words(match[3])), "")
        if named and vocabulary.names_key(named):
            found[match.start()] = f"#{match[1] or _ORDINALS[match[2].lower()]}"
    if any(name[:1] == "#" for name in found.values()):
        for match in _ORDINAL_ALONE.finditer(answer):
            found.setdefault(match.start(), f"#{_ORDINALS[match[1]]}")


def _name_of(number: StatedNumber, answer: str, vocabulary: Vocabulary) -> str | None:
    """Return the name of a number that is a year, a quantile, `class 3`; `None` for others."""
    before = answer[max(0, number.start - 30) : number.start]
    if number.is_year:
        is_dated = _YEAR_BEFORE.search(before) or not before.strip(" \n*#-")
        is_dated = is_dated or answer[number.end : number.end + 1] in (":", "-", "–")
        return "" if is_dated or number.text in vocabulary.keys else None
    if number.is_percentage:
        is_quantile = number.digits in vocabulary.quantiles and _WITHIN.match(answer, number.end)
        return "" if is_quantile else None
    if number.text in vocabulary.edges and _EDGE.search(before):
        return ""
    if "hour" in vocabulary.key_names and (hour := _hour_of(number, answer)) is not None:
        return f"#{hour}" if str(hour) in vocabulary.keys else None
    is_named = number.is_whole and number.text in vocabulary.keys
    return f"#{number.text}" if is_named and _is_called(number, answer, vocabulary) else None


def _hour_of(number: StatedNumber, answer: str) -> int | None:
    """Return the hour of the day that a number is: 14 for `2 pm`; `None` if it is not one."""
    clock = _CLOCK.match(answer, number.end)
    if not clock:
        is_at = number.is_whole and answer[max(0, number.start - 4) : number.start] == " at "
        return int(number.value) if is_at else None
    if not (clock["am"] or clock["pm"]):
        return int(number.value)
    return int(number.value) % 12 + (12 if clock["pm"] else 0)


def _is_called(number: StatedNumber, answer: str, vocabulary: Vocabulary) -> bool:
    """Whether the word before or after a number says what it is a label of."""
    word = re.search(r"(\w+)[\s=:#]+\**\Z", answer[max(0, number.start - 30) : number.start])
    after = re.match(r"[- ](\w+)", answer[number.end : number.end + 30])
    name = next(iter(content_words(word[1], is_label=True)), "") if word else ""
    return vocabulary.names_key(name) or bool(after and _names_one(after[1].lower(), vocabulary))


def _names_one(word: str, vocabulary: Vocabulary) -> bool:
    """Whether a word after a number makes it a label: `5 stars` of a column `stars`."""
    return any(
        name.endswith("s") and not name.endswith("ss") and word in (name, name[:-1])
        for name in vocabulary.key_columns
    )


def _add_listed(found: dict[int, str], answer: str, vocabulary: Vocabulary) -> None:
    """Add the numbers that share a list with a label, as in `4 or 5 stars`."""
    numbers = list(numbers_in(answer))
    for ordered in (list(reversed(numbers)), numbers):
        for one, other in pairwise(ordered):
            first, last = sorted((one, other), key=lambda number: number.start)
            is_list = _LISTED.fullmatch(answer, first.end, last.start)
            if is_list and found.get(one.start, "")[:1] == "#" and other.text in vocabulary.keys:
                found.setdefault(other.start, f"#{other.text}")
