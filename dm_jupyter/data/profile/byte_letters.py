"""Which single-byte code page makes words of a text's bytes: Windows, Macintosh or DOS."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["OtherPage", "other_page", "unsure_words"]

_WESTERN = "cp1252"
_PAGES = (_WESTERN, "mac_roman", "cp850", "cp437")
"""Of Windows, old Macintosh programs and DOS; the first of two that read as well is named."""
_FREQUENT = {**dict.fromkeys("äöüéß", 4), **dict.fromkeys("èàçáóíñãøåæÄÖÜÉÅÆØÇ", 3)}
"""How common a letter is in western languages; another one counts 1."""
_LEAST_BAD, _MOST_BAD = 0.15, 0.05
"""Shares of signs that make no word: in the reading that is dropped, and in the one taken."""
_NAMED_WORDS = 3
_USUAL = 2
"""Mean of the frequencies above, of letters in a page that is sure."""
_FEW_BYTES = 60
_INSIDE = frozenset("’'´`-‐\u00ad·")
"""Signs that stand between the letters of a word."""
_ALONE = frozenset("іІ")
"""Rarer letters of Cyrillic that are words by themselves."""


@dataclass(frozen=True)
class OtherPage:
    """A code page, and words by which a person sees whether it is the right one."""

    codec: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class _Reading:
    """What a code page makes of bytes."""

    text: str
    bad: float = 1.0
    """Share of the signs beyond ASCII that can't stand where they do."""
    frequency: int = 0
    """Of the letters; higher is likelier."""


def other_page(sample: bytes, codec: str) -> OtherPage | None:
    """Returns the western page that makes words where another code page makes none.

    Bytes decide: in the page that is dropped they give control characters, signs in the midst of
    words, or capitals behind small letters. Not covered: DOS pages of other scripts.

    Args:
        sample: lines with bytes beyond ASCII.
        codec: the code page the bytes are taken to be in so far.
    """
    if _read(sample, codec).bad < _LEAST_BAD:
        return None
    readings = {page: _read(sample, page) for page in _PAGES}
    page = min(_PAGES, key=lambda one: (readings[one].bad, -readings[one].frequency))
    if readings[_WESTERN].bad <= _MOST_BAD:
        page = _WESTERN
    best = readings[page]
    if best.bad > _MOST_BAD or not (best.frequency or page == _WESTERN):
        return None
    return OtherPage(page, _words(best.text))


def unsure_words(sample: bytes, codec: str) -> tuple[str, ...]:
    """Returns words to check where the bytes do not tell the code page; none where they do.

    A western page is sure if most of its letters are such as its languages use all the time.

    Args:
        sample: lines with bytes beyond ASCII.
        codec: the code page the bytes are taken to be in.
    """
    reading = _read(sample, codec)
    words = _words(reading.text)
    high = sum(byte > 127 for byte in sample)
    letters = sum(sign.isalpha() for word in words for sign in word if not sign.isascii())
    if codec in {_WESTERN, "latin-1"}:
        usual = sum(_FREQUENT.get(sign, 1) for word in words for sign in word if sign > "\x7f")
        return () if usual >= _USUAL * letters else words
    return words if high < _FEW_BYTES else ()


def _words(text: str) -> tuple[str, ...]:
    """Returns the first few words with letters beyond ASCII."""
    words = "".join(sign if sign.isalpha() else " " for sign in text).split()
    return tuple(dict.fromkeys(word for word in words if not word.isascii()))[:_NAMED_WORDS]


def _read(sample: bytes, codec: str) -> _Reading:
    """Returns how well the bytes read in a code page."""
    text = sample.decode(codec, "replace")
    bad = frequency = count = 0
    framed = f" {text} "
    for (before, sign), after in zip(pairwise(framed), framed[2:], strict=False):
        if sign.isascii():
            continue
        count += 1
        if _is_bad(before, sign, after):
            bad += 1
        elif sign.isalpha():
            frequency += _FREQUENT.get(sign, 1)
    return _Reading(text, bad / count if count else 1.0, frequency)


def _is_bad(before: str, sign: str, after: str) -> bool:
    """Says whether a sign beyond ASCII can't stand between its neighbours."""
    if sign == "\ufffd" or unicodedata.category(sign) == "Cc":
        return True
    if not sign.isalpha():
        # Units and quotes stand at the ends of words, never in their midst.
        return before.isalpha() and after.isalpha() and sign not in _INSIDE
    if sign != "µ" and not unicodedata.name(sign, "").startswith("LATIN"):
        return _is_bad_foreign(before, sign, after)
    if sign.islower():
        return before.isupper() and after.isupper() and sign != "ß"
    return sign.isupper() and before.isalpha() and (before.islower() or after.islower())


def _is_bad_foreign(before: str, sign: str, after: str) -> bool:
    """Says whether a letter of another script stands in a word of plain small letters, or alone."""
    if any(near.isascii() and near.islower() for near in (before, after)):
        return True
    is_rare = "\u0400" <= sign <= "\u040f" or "\u0450" <= sign <= "\u045f"
    return is_rare and sign not in _ALONE and not (before.isalpha() or after.isalpha())
