"""Faults of a single value: its sign, what it counts, a superlative next to it, unshown names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from dm_jupyter.assist.grounding.blocks import NumberCell, TextBlock
from dm_jupyter.assist.grounding.rivals import shown_label
from dm_jupyter.assist.grounding.sizes import FittingValue
from dm_jupyter.assist.grounding.statements import Statement
from dm_jupyter.assist.grounding.words import HIGHEST, LOWEST, content_words

__all__ = [
    "NO_EXTREME",
    "UnshownValues",
    "is_other_count",
    "points_fault",
    "sign_fault",
    "superlative_fault",
    "unshown_fault",
    "unshown_values",
    "unused_names",
]

UnshownValues = Mapping[str, frozenset[str]]
"""Values of the data that no cell uses or shows, with the words of each."""

_FALLING = re.compile(
    r"\b(?:fell|fall\w*|sav(?:ed?|es|ings?)|cut|drop\w*|declin\w*|decreas\w*|loss\w*|lost|down|lower\w*|less|negativ\w*|minus|"
    r"below|invers\w*|reduc\w*|shrank|deficit|cool\w*|cold\w*|behind|fewer|under|short\w*|"
    r"off|takes?|opposite|contract\w*|worse|lag\w*|trail\w*|slower|net outflow|outflow)\b|[-−]",
    re.IGNORECASE,
)
_AS_WRITTEN = frozenset(("plain", "unscaled", "fraction"))
_FELL = re.compile(
    r"\b(?:fell|saved|dropped|declined|decreased|lost|shrank|reduced)\sby\s|\b(?:saved|lost)\b",
    re.I,
)
_RISING = re.compile(
    r"\b(?:rose|ris\w+|grew|grow\w*|increas\w*|climb\w*|gain\w*|up|higher|jump\w*|improv\w*)\b",
    re.I,
)
_QUALIFIED = re.compile(
    r"\b(?:second|third|fourth|fifth|next|among|one of|except|after|other than|besides|nearly|"
    r"almost|not|2nd|3rd|followed|both|within|excluding)\b|n't",
    re.IGNORECASE,
)
_MEASURED = re.compile(
    rf"(?:{HIGHEST.pattern}|{LOWEST.pattern})\s(?P<measure>[^.,;:()]{{1,40}}?)"
    r"(?:\s(?:with|at|of|is|was)|:|,|\s\()\s?(?:about\s|only\s|just\s)?[$€£]?\**\Z",
    re.IGNORECASE,
)
"""A superlative with its measure, directly before the number."""
_ENDS = re.compile(r"\**\s?(?:[.,;)]|\Z|and\b)")
_POINTS = re.compile(r"\s?(?:%|percentage|percent)[ -]points?\b")
_RELATIVE = frozenset(content_words("lift growth relative uplift change increase decrease"))
_BY = re.compile(r"(?:[x×,]|\bby)\s?\Z")
"""Text between the number of rows and the number of columns."""
_COLUMNS = frozenset(content_words("column variable feature field"))
_DERIVED = frozenset(content_words("share rate ratio proportion percentage growth margin change"))
"""Measures other than counts that a superlative may be about."""
NO_EXTREME = "the "
"""Beginning of the reason of a superlative's fault."""
_TOTALS = frozenset(("sum", "all", "overall"))
_MOST_ROWS = 1_000
_VALUE = re.compile(r"(?<![\w'])'([A-Z][^'\n]{2,40})'(?!:|\w)")
"""A name among the values of a profile; the name of a column precedes a colon."""
_MOST_VALUES, _MOST_SPELT = 500, 10_000
_NAME = re.compile(r"(?<=[a-z0-9,;:] )[A-Z][a-z][\w'’-]+(?: [A-Z][a-z][\w'’-]+)*(?<!['’]s)")
_YEAR = re.compile(r"(?<![\w.,-])(?:19|20)\d\d(?![\w,-]|\.\d)")
_ENGLISH = re.compile(r"(?i)\b(?:the|of|what|how|which|who|when|did|does|are|were)\b")
_NO_NAME = re.compile("(?:Celsius|Fahrenheit|Kelvin|Euros?|Dollars?|Pounds?|Excel|Python|Markdown)")
_OF_TIME = re.compile(
    "(?:Jan|Febr)uary|March|April|May|June|July|August|(?:Septem|Octo|Novem|Decem)ber"
    "|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|Spring|Summer|Autumn|Winter|Easter|Christmas"
)
_BY_TIME = re.compile(
    r"month|week|quarter|season|strftime|day_name|day_?of_?year|resample|grouper|period|\b\d{4}-\d\d"
)
_TOKEN = re.compile(r"([^\W_]+)(\(?)")
"""A word of a cell or an output, and the bracket of a function's call."""
_INNER = re.compile(r"(?<=[a-z])(?=[A-Z])|\d+")
"""Text within a word between the words that it consists of."""
_STEM_CHARS = 5
"""Letters by which a longer word is known: `german` and `germany`."""
_ENDINGS = ("", "s", "es", "e", "i", "y", "d", "ed", "ing", "n", "an", "ian", "ish", "ese", "er",
            "ern", "ans", "ians", "ers")  # fmt: skip
"""Endings of a name's other forms; Nigeria is none of Niger."""
_ENUMERATES = re.compile(r"[^.;]{0,40}?(?::|\bnamely\b|\bsuch as\b|\bincluding\b|[(])")
"""Text after a number that counts names: `3 species: Adelie, ...`."""


def sign_fault(held: FittingValue, statement: Statement) -> str:
    """Return the fault if a number has another sign than its value and no word says so; else ""."""
    stated, value = statement.number, held.cell.value
    is_minus = stated.digits.startswith("-")
    if held.reading.way == "fraction" and not _RISING.search(statement.sentence):
        return ""
    if value > 0 and not is_minus and _has_fallen(held, statement):
        return f"it is {held.cell.text} there, and others are negative"
    if is_minus == (value < 0) or value == 0 or held.reading.way not in _AS_WRITTEN:
        return ""
    if is_minus or _FALLING.search(statement.sentence):
        return "" if _FALLING.search(statement.sentence.replace(stated.text, "")) else (
            f"it is {held.cell.text} there")  # fmt: skip
    return f"it is {held.cell.text} there"


def _has_fallen(held: FittingValue, statement: Statement) -> bool:
    """Whether words say that something fell, and its column of changes has negative values."""
    if held.block is None or not held.block.is_table:
        return False
    clause = f"{statement.before} {statement.after}"
    is_signed = any(cell.value < 0 for cell in held.block.column(held.cell.column))
    return is_signed and bool(_FELL.search(clause)) and not _RISING.search(clause)


def points_fault(held: FittingValue, statement: Statement) -> str:
    """Return why a value is not a difference in percentage points; else "".

    Args:
        held: the value that the number is.
        statement: the number with its words.
    """
    block, cell = held.block, held.cell
    if block is None or not _POINTS.match(statement.after) or not cell.text.endswith("%"):
        return ""
    is_relative = block.words(cell) & _RELATIVE
    return f"{cell.text} is a relative change there" if is_relative else ""


def is_other_count(held: FittingValue, statement: Statement, blocks: Sequence[TextBlock]) -> bool:
    """Return whether a number counts columns and a value does not, or vice versa.

    Args:
        held: the value that the number is.
        statement: the number with its words.
        blocks: the contents of the outputs.
    """
    block = held.block
    noun = content_words(statement.after[:40])[:1]
    is_columns = block is not None and block.rows == ["rows", "columns"] and held.cell.row == 1
    if noun and noun[0] in _COLUMNS:
        is_labelled = block is not None and block.words(held.cell) & _COLUMNS
        is_declared = any(each.total_columns for each in blocks)
        return not is_columns and not is_labelled and is_declared
    return is_columns and bool(noun) and not _BY.search(statement.tight)


def superlative_fault(held: FittingValue, statement: Statement, blocks: Sequence[TextBlock]) -> str:
    """Return why a row is not the largest or smallest, as a clause calls it; else "".

    Args:
        held: the value that the number is.
        statement: the number with its words.
        blocks: the contents of the outputs.
    """
    block, cell = held.block, held.cell
    words = f"{statement.before} {statement.after}"
    is_high, is_low = bool(HIGHEST.search(words)), bool(LOWEST.search(words))
    if block is None or is_high == is_low or _QUALIFIED.search(words):
        return ""
    labels = block.row_words(cell.row) - block.common_words()
    derived = frozenset(content_words(words)) & _DERIVED - block.column_words(cell.column)
    if not _can_tell(block, cell, statement) or (derived and statement.number.is_whole):
        return ""
    meant = _measure_of(statement)
    if _is_extreme_anywhere(labels, blocks, meant, is_high=is_high):
        return ""
    cells = [one for one in block.column(cell.column) if not _is_total(block, one.row)]
    best = (max if is_high else min)(cells or [cell], key=lambda one: one.value)
    if held.reading.window.holds(best.value):
        return ""
    what = "largest" if is_high else "smallest"
    return f"{NO_EXTREME}{what} there is {best.text} for {shown_label(block.rows[best.row])}"


def _can_tell(block: TextBlock, cell: NumberCell, statement: Statement) -> bool:
    """Whether a superlative next to a value is about the rows of its table."""
    is_dated = all(1000 <= one.value <= 2100 for one in block.column(cell.column))
    is_listed = block.is_table or len(block.labels) == len(block.cells)
    if is_dated or not is_listed or block.levels > 1 or not block.is_complete:
        return False
    labels = block.row_words(cell.row) - block.common_words()
    statistics = labels | (block.column_words(cell.column) & statement.wide)
    is_named = bool(labels & statement.near)
    return is_named and not {"max", "min"} & statistics and 1 < len(block.rows) <= _MOST_ROWS


def _measure_of(statement: Statement) -> frozenset[str] | None:
    """Return the measure of a superlative if the number must be of that measure; else `None`.

    `the highest revenue with 12` says that 12 is the revenue; `the largest one with 3 rooms` does
    not say what 3 is.
    """
    match = _MEASURED.search(statement.before)
    if not match or not _ENDS.match(statement.after):
        return None
    return frozenset(content_words(match["measure"]))


def _is_total(block: TextBlock, row: int) -> bool:
    """Whether a row contains the total of the others."""
    return bool(block.row_words(row) & _TOTALS)


def _is_extreme_anywhere(
    labels: frozenset[str],
    blocks: Sequence[TextBlock],
    meant: frozenset[str] | None,
    *,
    is_high: bool,
) -> bool:
    """Whether a row with these labels is first or last by some column, or by one that is meant."""
    for block in blocks:
        if not 1 < len(block.rows) <= _MOST_ROWS:
            continue
        for column in block.value_columns()[:20]:
            if meant is not None and not block.column_words(column) & meant:
                continue
            cells = [one for one in block.column(column) if not _is_total(block, one.row)]
            best = max(cells, key=lambda one: one.value if is_high else -one.value, default=None)
            if best is not None and len(cells) > 1 and labels & block.row_words(best.row):
                return True
    return False


def unshown_values(profile: str, question: str, told: Iterable[str]) -> UnshownValues:
    """Return names of the data and of the question that no cell uses or shows.

    A model may give a number for a name that it has only read in the profile. It may also omit the
    name that the question asks for from its code. A name of a question is a year, or a word with a
    capital letter inside an English sentence. A name that a cell spells differently does not count
    as unshown.

    Args:
        profile: the description of the data that the model was shown.
        question: the question.
        told: the names of the files, the cells, and their outputs.
    """
    words = _words_of(told)
    names = dict.fromkeys(match[1] for match in _VALUE.finditer(_composed(profile)))
    asked = [name for name in _asked_names(question) if not _is_met(name, words)]
    unknown = [name for name in names if not any(words.has(part) for part in _parts(name))]
    found = {name: frozenset(content_words(name)) for name in [*asked, *unknown][:_MOST_VALUES]}
    return {name: own for name, own in found.items() if own}


def unused_names(question: str, told: Iterable[str]) -> list[str]:
    """Return the names of a question whose first word no cell uses or shows, in any spelling.

    Years, months, weekdays and tests such as Welch's are left out.

    Args:
        question: the question.
        told: the names of the files, the cells, and their outputs.
    """
    words = _words_of(told)
    firsts = {name: name.split()[0] for name in _asked_names(question) if name[-1] not in "'’"}
    timeless = {
        name: first
        for name, first in firsts.items()
        if not (_YEAR.fullmatch(first) or _OF_TIME.fullmatch(first))
    }
    return [name for name, first in timeless.items() if not _is_met(first, words)]


def _asked_names(question: str) -> Sequence[str]:
    question = _composed(question)
    words, years = re.findall(r"\w+", question), _YEAR.findall(question)
    with_capital = sum(word[0].isupper() for word in words)
    if not _ENGLISH.search(question) or 2 * with_capital > len(words):
        return years
    named = [found[0] for found in _NAME.finditer(question) if not _NO_NAME.fullmatch(found[0])]
    return [*years, *named]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of cells and outputs, case-folded."""

    text: str
    every: Mapping[str, None]
    """Each word once, in order."""
    stems: frozenset[str]
    """The first letters of each."""
    called: frozenset[str]
    """The names of functions."""

    def has(self, part: str) -> bool:
        """Whether a part of a name is one of them, in any form of it."""
        return any(part + ending in self.every for ending in _ENDINGS)

    def includes(self, part: str) -> bool:
        """Whether one of them begins as a part of a name does, or ends with it: `petallength`."""
        if any(word.endswith(part) for word in self.every):
            return True
        if len(part) > _STEM_CHARS:
            return part[:_STEM_CHARS] in self.stems
        return self.has(part) or any(name.startswith(part) for name in self.called)


def _words_of(told: Iterable[str]) -> _Words:
    text = _composed("\n".join(told))
    tokens = dict.fromkeys(_TOKEN.findall(text))
    every = {
        word.casefold(): None
        for token, _ in tokens
        for word in (token, *_INNER.split(token))
        if word
    }
    called = frozenset(token.casefold() for token, bracket in tokens if bracket)
    return _Words(text.casefold(), every, frozenset(word[:_STEM_CHARS] for word in every), called)


def _is_met(name: str, words: _Words) -> bool:
    """Whether a cell contains a part of the name, another spelling of it, or a number for it."""
    if _OF_TIME.fullmatch(name):
        return bool(_BY_TIME.search(words.text))
    if name.isdecimal():
        return name in words.text
    parts = _parts(name)
    return any(map(words.includes, [*parts, "".join(parts)])) or any(
        get_close_matches(part, _as_long(part, words.every), 1, 0.8) for part in parts
    )


def _as_long(part: str, words: Iterable[str]) -> list[str]:
    """Return the words that may be a part of a name with a letter more or less, or as many."""
    sizes = range(max(3, len(part) - 1), len(part) + 2)
    return [word for word in islice(words, _MOST_SPELT) if len(word) in sizes]


def _parts(name: str) -> list[str]:
    return [part.casefold() for part in re.findall(r"[^\W_]{3,}", name)]


def _composed(text: str) -> str:
    """Return a text with each accented letter as one character."""
    return unicodedata.normalize("NFC", text)


def unshown_fault(statement: Statement, unshown: UnshownValues) -> str:
    """Return why a number can't be that of a name, if no cell has selected or shown it; else ""."""
    if not unshown or _ENUMERATES.match(statement.after) or _ENUMERATES.match(statement.behind):
        return ""
    for name, words in unshown.items():
        if words <= statement.near and name in _composed(statement.sentence):
            return f"no cell selects or shows {name}"
    return ""
