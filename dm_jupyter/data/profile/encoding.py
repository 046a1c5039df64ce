"""Detection of a text file's encoding: UTF-8 first, then what the bytes allow.

A code page is the one that Firefox's detector chooses. Pages of old Macintosh programs and of DOS,
which the detector does not know, are those that yield words.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass, field, replace
from itertools import pairwise

from chardetng_py import EncodingDetector

from dm_jupyter.data.profile.source import Source

__all__ = ["TextEncoding", "detect_encoding"]

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DETECTOR_BYTES = 64 * 1024
_LISTED_LINES = 5
_WIDER = {"shift_jis": "cp932", "euc_kr": "cp949", "gbk": "gb18030", "big5": "big5hkscs"}
"""Code pages of browsers and Windows that contain those of Python's name."""
_WESTERN = "cp1252"
_HUNGARIAN = frozenset("áéíóöúüõûÁÉÍÓÖÚÜÕÛ")
_UNITS = re.compile(r"\b[a-zA-Z]{1,2}[²³](?![^\W\d_])")
_PAGES = (_WESTERN, "mac_roman", "cp850", "cp437", "cp852", "mac_latin2")
"""Code pages of Windows, old Macintosh programs and DOS; of equally good ones the first wins."""
_FREQUENT = {
    **dict.fromkeys("äöüéß", 4),
    **dict.fromkeys("èàçáóíñãøåæÄÖÜÉÅÆØÇ", 3),
    **dict.fromkeys("êôîëú", 2),
}
"""How common a letter is in western languages; any other counts 1."""
_ALPHABETS = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "äöüßé",
        "àâæçéèêëîïôœùûüÿ",
        "áéíóúüñ",
        "áâãàçéêíóôõúü",
        "àçèéíïîìòóúùü",
        "åäöæøéü",
        "áéíóúýðþæö",
        "ëïéèöüáó",
    )
)
"""Letters of German, French, Spanish, Portuguese, Italian, Nordic, Icelandic and Dutch texts."""
_LEAST_BAD, _MOST_BAD = 0.15, 0.05
"""Shares of signs that form no word: in the rejected reading, and in the accepted one."""
_NAMED_WORDS = 3
_USUAL = 2
"""Mean of the frequencies above, for the letters in a page that is sure."""
_FEW_BYTES = 60
_INSIDE = frozenset("’'´`-‐\u00ad·")
"""Signs that occur between the letters of a word."""
_ALONE = frozenset("іІ")
"""Rarer letters of Cyrillic that are words by themselves."""


@dataclass(frozen=True)
class TextEncoding:
    """An encoding and its arguments for pandas."""

    codec: str
    """Python's name for decoding here; `utf-8-sig` for a byte order mark."""
    argument: str | None = None
    """Value of pandas' `encoding`; `None` if its default reads the file."""
    errors: str = "strict"
    """`replace` if some lines can't be decoded."""
    warnings: tuple[str, ...] = ()


@dataclass
class _Scan:
    """Findings of one pass over the bytes."""

    is_utf8: bool = True
    nul_count: int = 0
    has_c1: bool = False
    """Whether a byte between 0x80 and 0x9f occurs, where latin-1 has control characters."""
    suspects: bytes = b""
    """The first lines with a byte above 127: a detector learns nothing from the others."""
    bad_lines: list[int] = field(default_factory=list)
    bad_line_count: int = 0
    good_line_count: int = 0
    """Lines with valid multi-byte UTF-8: rare in any other encoding."""


def detect_encoding(source: Source) -> TextEncoding:
    """Return the encoding of a text file, with warnings for its reader.

    Raises:
        OSError: the file can't be read.
        DataFileError: a compressed file unpacks to more than the limit.
    """
    head = source.head(4096)
    for bom, codec in _BOMS:
        if head.startswith(bom):
            argument = None if codec == "utf-8-sig" else codec
            return _checked(source, codec, argument)
    wide = _wide_without_bom(head)
    if wide:
        return TextEncoding(wide, wide)
    scan = _scan(source)
    warnings = _nul_warning(scan.nul_count)
    if scan.is_utf8:
        return TextEncoding("utf-8", warnings=warnings)
    if scan.good_line_count and scan.bad_line_count <= scan.good_line_count:
        mixed = _mixed_warning(scan)
        return TextEncoding("utf-8", None, "replace", (mixed, *warnings))
    codec = _legacy_codec(scan)
    other = _other_page(scan.suspects, codec)
    codec = other.codec if other else codec
    if words := other.words if other else _unsure_words(scan.suspects, codec):
        shown = ", ".join(map(repr, words))
        warnings += (f"the encoding {codec} is a guess by the letters its bytes make: {shown}",)
    found = _checked(source, codec, codec)
    return replace(found, warnings=warnings + found.warnings)


def _checked(source: Source, codec: str, argument: str | None) -> TextEncoding:
    """Return an encoding; bytes that it does not have are replaced, with a warning."""
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        for block in source.chunks():
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        warning = f"some bytes are not valid {codec}; they are read as U+FFFD"
        return TextEncoding(codec, argument, "replace", (warning,))
    return TextEncoding(codec, argument)


def _wide_without_bom(head: bytes) -> str | None:
    """Return UTF-16 in the byte order that the zero bytes of plain letters show, if they do."""
    pairs = len(head) // 2
    if pairs < 4:
        return None
    zero_first = head[0 : 2 * pairs : 2].count(0) / pairs
    zero_second = head[1 : 2 * pairs : 2].count(0) / pairs
    if zero_second > 0.6 and zero_first < 0.1:
        return "utf-16-le"
    return "utf-16-be" if zero_first > 0.6 and zero_second < 0.1 else None


def _scan(source: Source) -> _Scan:
    scan = _Scan()
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in source.chunks():
            scan.nul_count += block.count(0)
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        scan.is_utf8 = False
        _scan_lines(source, scan)
    return scan


def _scan_lines(source: Source, scan: _Scan) -> None:
    """Sort the lines that are not ASCII into valid UTF-8 and the rest."""
    scan.nul_count = 0
    with source.open() as stream:
        # A limit keeps one endless line out of memory.
        for number, line in enumerate(iter(lambda: stream.readline(1 << 20), b""), start=1):
            scan.nul_count += line.count(0)
            if line.isascii():
                continue
            if len(scan.suspects) < _DETECTOR_BYTES:
                scan.suspects += line[: _DETECTOR_BYTES - len(scan.suspects)]
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                scan.bad_line_count += 1
                scan.has_c1 = scan.has_c1 or any(0x80 <= byte <= 0x9F for byte in line)
                if len(scan.bad_lines) < _LISTED_LINES:
                    scan.bad_lines.append(number)
            else:
                scan.good_line_count += 1


def _mixed_warning(scan: _Scan) -> str:
    lines = ", ".join(str(number) for number in scan.bad_lines)
    more = scan.bad_line_count - len(scan.bad_lines)
    tail = f" and {more:,} more" if more else ""
    return (
        f"mixed encodings: line {lines}{tail} is not UTF-8 while others are; "
        "its odd letters are read as U+FFFD (�)"
    )


def _nul_warning(count: int) -> tuple[str, ...]:
    return (f"the file holds {count:,} NUL bytes (\\x00) inside fields",) if count else ()


def _legacy_codec(scan: _Scan) -> str:
    """Return the code page that Firefox would choose, but for signs, œu and Hungarian.

    Western pages are told apart by their bytes.
    """
    detector = EncodingDetector()
    # Not the last bytes: the sample may end within a letter.
    detector.feed(scan.suspects, last=False)
    found = codecs.lookup(detector.guess(tld=None, allow_utf8=False)).name
    codec = _WIDER.get(found, found)
    western = scan.suspects.decode(_WESTERN, "replace")
    if codec == _WESTERN and _is_hungarian(western):
        return "cp1250"
    if codec != _WESTERN and not _are_signs(western, scan.suspects.decode(codec, "replace")):
        return codec
    return _WESTERN if scan.has_c1 and _decodes(scan.suspects, _WESTERN) else "latin-1"


def _is_hungarian(western: str) -> bool:
    """Return whether a text read as a western one has Hungarian's letters: õ and û stand for ő, ű.

    No western language has them beside á, í, ó or ú, but for the Portuguese õe.
    """
    letters = {sign for sign in western if sign > "\x7f" and sign.isalpha()}
    return (
        letters <= _HUNGARIAN
        and not letters.isdisjoint("áíóúÁÍÓÚ")
        and re.search("[õÕ](?![eE])|[ûÛ]", western) is not None
    )


def _are_signs(western: str, other: str) -> bool:
    """Return whether all letters of another page are signs in the western one, or the French œu.

    Signs are those of prices and units, as in £12 or m². They touch no word.
    """
    if len(western) != len(other) or "\ufffd" in western:
        return False
    text = _UNITS.sub(lambda unit: " " * len(unit[0]), western)
    framed = f" {text} "
    return all(
        sign == letter
        or (sign in "œŒ" and after in "uU")
        or not any(map(str.isalpha, before + sign + after))
        for before, sign, after, letter in zip(framed, text, framed[2:], other, strict=False)
    )


def _decodes(sample: bytes, codec: str) -> bool:
    try:
        sample.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class _OtherPage:
    """A code page, and words by which a person sees whether it is the correct one."""

    codec: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class _Reading:
    """Bytes as read in a code page."""

    text: str
    bad: float = 1.0
    """Share of the signs beyond ASCII in impossible positions."""
    frequency: int = 0
    """Frequency of the letters; higher is likelier."""


def _other_page(sample: bytes, codec: str) -> _OtherPage | None:
    """Return the page of Windows, Macintosh or DOS that yields words where another yields none.

    Bytes decide: in the rejected page they give control characters, signs inside words, or capitals
    after small letters. Not covered: DOS pages of other scripts.

    Args:
        sample: lines with bytes beyond ASCII.
        codec: the code page assumed so far.
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
    return _OtherPage(page, _words(best.text))


def _unsure_words(sample: bytes, codec: str) -> tuple[str, ...]:
    """Return words to check if the bytes do not determine the code page, else none.

    A western page is sure if most of its letters are common ones, and they are many or of one
    language.

    Args:
        sample: lines with bytes beyond ASCII.
        codec: the code page assumed for the bytes.
    """
    reading = _read(sample, codec)
    letters = [sign for sign in reading.text if sign.isalpha() and sign > "\x7f" and sign != "µ"]
    is_sure = sum(byte > 127 for byte in sample) >= _FEW_BYTES
    if codec in {_WESTERN, "latin-1"}:
        is_one_language = any(alphabet.issuperset(letters) for alphabet in _ALPHABETS)
        usual = sum(_FREQUENT.get(sign, 1) for sign in letters)
        is_sure = (is_sure or is_one_language) and usual >= _USUAL * len(letters)
    return () if is_sure else _words(reading.text)


def _words(text: str) -> tuple[str, ...]:
    """Return the first few words with letters beyond ASCII."""
    words = "".join(sign if sign.isalpha() else " " for sign in text).split()
    return tuple(dict.fromkeys(word for word in words if not word.isascii()))[:_NAMED_WORDS]


def _read(sample: bytes, codec: str) -> _Reading:
    """Return how well the bytes read in a code page."""
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
    """Return whether a sign beyond ASCII is impossible between its neighbours."""
    if sign == "\ufffd" or unicodedata.category(sign) == "Cc":
        return True
    if not sign.isalpha():
        # Units and quotes are at the ends of words, never inside.
        return before.isalpha() and after.isalpha() and sign not in _INSIDE
    if sign != "µ" and not unicodedata.name(sign, "").startswith("LATIN"):
        return _is_bad_foreign(before, sign, after)
    if sign.islower():
        return before.isupper() and after.isupper() and sign != "ß"
    return sign.isupper() and before.isalpha() and (before.islower() or after.islower())


def _is_bad_foreign(before: str, sign: str, after: str) -> bool:
    """Return whether a letter of another script is in a word of plain small letters, or alone."""
    if any(near.isascii() and near.islower() for near in (before, after)):
        return True
    is_rare = "\u0400" <= sign <= "\u040f" or "\u0450" <= sign <= "\u045f"
    return is_rare and sign not in _ALONE and not (before.isalpha() or after.isalpha())
