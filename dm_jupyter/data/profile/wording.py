"""Words as a question and a table spell them: without case and accents, singular, misspelt."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

__all__ = ["Word", "are_alike", "name_words", "plain_words", "singular", "words_of"]

_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPLIT = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d"})
"""Letters with a stroke or in one piece, which Unicode does not decompose."""
_ES = ("sses", "ches", "shes", "xes", "zes")
_NO_PLURAL = ("ss", "us", "is")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question."""

    plain: str
    """Without case and accents."""
    start: int
    """Place of its first character."""
    end: int
    """Place behind its last one."""


def words_of(text: str, most: int) -> tuple[Word, ...]:
    """Returns the first words of a text with their places.

    Args:
        text: as a person wrote it.
        most: words; the rest is not looked at.
    """
    found: list[Word] = []
    for match in _WORD.finditer(text):
        if len(found) == most:
            break
        # A word of marks alone has nothing left without them.
        if plain := _plain(match[0]):
            found.append(Word(plain, match.start(), match.end()))
    return tuple(found)


def plain_words(text: str) -> str:
    """Returns the words of a text without case and accents, one space between them."""
    return " ".join(filter(None, map(_plain, _WORD.findall(text))))


def name_words(name: str) -> str:
    """Returns the words of a column's name, as `plain_words`; `GrossTotal` has two."""
    return plain_words(_HUMP.sub(" ", name))


def singular(words: str) -> str:
    """Returns plain words with English plural endings taken off the last one.

    Both sides of a comparison go through it, so it need not give the true singular. Not covered:
    plurals of other languages, and irregular ones.
    """
    head, space, last = words.rpartition(" ")
    if len(last) > 4 and last.endswith("ies"):
        last = f"{last[:-3]}y"
    elif len(last) > 4 and last.endswith(_ES):
        last = last[:-2]
    elif len(last) > 3 and last.endswith("s") and not last.endswith(_NO_PLURAL):
        last = last[:-1]
    return f"{head}{space}{last}"


def are_alike(one: str, other: str) -> bool:
    """Returns whether two texts differ by a slip of the pen.

    One letter is left out, added, wrong or swapped with its neighbour; two slips in nine letters
    or more. The first letter and the number of words must be the same. Texts with digits are never
    alike: `A12` is not a misspelt `A13`.
    """
    shorter = min(len(one), len(other))
    slips = 0 if shorter < 5 else 1 if shorter < 9 else 2
    if not slips or one[0] != other[0] or abs(len(one) - len(other)) > slips:
        return False
    if one.count(" ") != other.count(" "):
        return False
    if any(letter.isdigit() for letter in one + other):
        return False
    return _slips(one, other) <= slips


def _plain(word: str) -> str:
    if word.isascii():
        return word.lower()
    split = unicodedata.normalize("NFKD", word.casefold().translate(_UNSPLIT))
    return "".join(letter for letter in split if not unicodedata.combining(letter)).casefold()


def _slips(one: str, other: str) -> int:
    """Returns the restricted Damerau-Levenshtein distance."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (left != right))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
