"""Claims that no single value supports: counts, ranks, quantiles, numbers of the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dm_jupyter.assist.grounding.blocks import TextBlock
from dm_jupyter.assist.grounding.numbers import numbers_in
from dm_jupyter.assist.grounding.pools import KnownPools
from dm_jupyter.assist.grounding.statements import Statement
from dm_jupyter.assist.grounding.words import content_words

__all__ = [
    "count_of",
    "is_condition",
    "quantile_share",
    "ranks",
    "restates",
    "turned_around",
]

_THINGS = frozenset(
    content_words(
        "count category group column variable feature item entry result different distinct "
        "unique class type kind field level bin segment case table line"
    )
)
"""General names for the rows of a table."""
_COLUMNS = frozenset(content_words("column variable feature field"))
_RANK = re.compile(
    r"\b(?:top|first|last|bottom|rank(?:ed|s)?|no\.|position|place|row|index)\W*\Z|#\Z", re.I
)
_THRESHOLD = re.compile(
    r"(?:\b(?:above|over|more than|at least|exceed(?:s|ing)?|below|under|less than|fewer than|than|"
    r"at most|up to|within|from|minimum of|maximum of|threshold of|cutoff of|aged|age|top|first|"
    r"last|bottom|equals?|between|and|past|next|every)|[<>≥≤=])\s*(?:the\s)?[$€£]?\**\Z",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    r"\b(?:above|over|more than|exceed(?:s|ing)?|at least|greater|higher)\b|[>≥]", re.I
)
_BELOW = re.compile(r"\b(?:below|under|less than|fewer|at most|lower|smaller)\b|[<≤]", re.I)
_OF_ALL = re.compile(
    r"\d[\d,.]*\s?(?:%|[^\W\d]+\s)?\s?(?:out\s)?of\s(?:the\s|all\s|a total of\s)*\Z"
)
_SHARE = re.compile(r"(?<!\S)(\d{1,2}(?:\.\d+)?)%(?!\S)")
_LIES = re.compile(
    r"\b(?:between|within|above|below|over|under|(?:more|less|higher|lower|fewer) than|exceed\w*|"
    r"at (?:most|least)|up to|from|range\w*)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"(?:\b(?:above|below|over|under|exceed(?:s|ing)?|at (?:lea|mo)st|\w+ than)|[<>≥≤])\s?[$€£]?\Z",
    re.IGNORECASE,
)
_ROUND_DIGITS = 2
_FROM = re.compile(r"\bfrom\s[$€£]?\Z")
_TO = re.compile(r"[\w\s%()°]{0,40}?\bto\s[$€£]?")
_RISES = re.compile(
    r"\b(?:rose|rises?|risen|grew|grows?|grown|increase[ds]?|climb(?:ed|s)?)\b", re.I
)
_FALLS = re.compile(
    r"\b(?:fell|falls?|fallen|drop(?:ped|s)?|decrease[ds]?|decline[ds]?|shrank)\b", re.I
)
_MOST_ROWS = 1_000


def count_of(statement: Statement, blocks: Sequence[TextBlock]) -> tuple[int, str] | None:
    """Return the output whose rows or names a number counts, and how; `None` if it counts none.

    Args:
        statement: the number with its words.
        blocks: the contents of the outputs.
    """
    number = statement.number
    if not number.is_whole or number.value < 0 or statement.unit:
        return None
    nouns = content_words(statement.after[:60])[:4]
    count = number.value
    if _OF_ALL.search(statement.tight):
        for block in blocks:
            if block.total_rows == count and not _is_head(block):
                return block.source, f"{block.total_rows} rows"
    for block in blocks:
        if nouns and nouns[0] in _COLUMNS:
            if block.total_columns == count:
                return block.source, "the columns of the table"
            continue
        if _rows(block) == count and _counts_rows(block, nouns):
            return block.source, f"{_rows(block)} rows"
        named = _distinct(block, nouns)
        if named == count:
            return block.source, f"{named} of them are listed"
    return _beyond(statement, blocks)


def _rows(block: TextBlock) -> int | None:
    return block.total_rows if block.is_table or block.total_rows else len(block.labels)


def _counts_rows(block: TextBlock, nouns: Sequence[str]) -> bool:
    """Whether words name the things that the rows of a table are."""
    if _is_head(block):
        return False
    heads = {word for name in (block.index_name, *block.key_names) for word in content_words(name)}
    if not block.is_table and len(block.labels) > 1 and len(block.labels) == len(block.rows):
        return bool(_THINGS & set(nouns))
    if not block.is_table and not block.rows:
        return bool({"count", *_THINGS} & set(nouns)) or bool(nouns)
    return bool((heads | _THINGS) & set(nouns)) or (not block.is_table and bool(nouns))


def _is_head(block: TextBlock) -> bool:
    """Whether it may be the start of a longer table, as shown by `head()`."""
    return block.is_ranked and block.total_rows == len(block.rows) == 5


def _distinct(block: TextBlock, nouns: Sequence[str]) -> int:
    """Return the number of distinct texts in the column that words name; 0 if they name none."""
    if not block.is_table or not block.is_complete or len(block.rows) > _MOST_ROWS:
        return 0
    if _is_head(block):
        return 0
    for at, column in enumerate(block.columns):
        words = content_words(column)
        if words and words[-1] in nouns and not any(cell.column == at for cell in block.cells[:50]):
            return len({part for parts in block.parts for part in parts})
    return 0


def _beyond(statement: Statement, blocks: Sequence[TextBlock]) -> tuple[int, str] | None:
    """Return how many values of a column are above or below a number that the clause names."""
    above, below = _ABOVE.search(statement.sentence), _BELOW.search(statement.sentence)
    limits = [number.value for number in numbers_in(statement.sentence)]
    limits = [value for value in limits if value != statement.number.value]
    if not limits or not (above or below):
        return None
    for block in blocks:
        if not block.is_table or not block.is_complete or len(block.rows) > _MOST_ROWS:
            continue
        for column in block.value_columns()[:20]:
            values = [cell.value for cell in block.column(column)]
            for limit in limits[:4]:
                counts = (
                    sum(value > limit for value in values),
                    sum(value < limit for value in values),
                )
                if statement.number.value == counts[0 if above else 1]:
                    return block.source, f"{counts[0 if above else 1]} of {len(values)} rows"
    return None


def quantile_share(statement: Statement, blocks: Sequence[TextBlock]) -> tuple[int, str] | None:
    """Return the output whose quantiles a percentage is about, and which; `None` if none.

    For example, half of the values fall between those of 25 % and 75 %, and a quarter above.

    Args:
        statement: the percentage with its words.
        blocks: the contents of the outputs.
    """
    part = statement.number.value
    if not statement.number.is_percentage or not _LIES.search(statement.sentence):
        return None
    for block in blocks:
        labels = [*block.rows, *block.columns]
        shares = {float(match[1]) for label in labels for match in _SHARE.finditer(_plain(label))}
        if part in shares or 100 - part in shares:
            return block.source, f"quantile {part:g} %"
        if {50 - part / 2, 50 + part / 2} <= shares:
            return block.source, f"quantiles {50 - part / 2:g} % and {50 + part / 2:g} %"
    return None


def _plain(label: str) -> str:
    return " ".join(content_words(label, is_label=True)).replace("median", "50%")


def ranks(statement: Statement, blocks: Sequence[TextBlock]) -> bool:
    """Return whether a number only says how many of the first are meant, or which rank."""
    if not statement.number.is_whole or not _RANK.search(statement.tight):
        return False
    most = max((block.total_rows or len(block.rows) for block in blocks), default=0)
    return statement.number.value <= most


def restates(statement: Statement, question: str) -> bool:
    """Return whether a number repeats one of the question, in the same role.

    Args:
        statement: the number with its words.
        question: the question.
    """
    number = statement.number
    for asked in numbers_in(question):
        if asked.digits != number.digits or asked.exponent != number.exponent:
            continue
        before = question[max(0, asked.start - 60) : asked.start]
        if number.is_year:
            return True
        if _THRESHOLD.search(statement.tight) and _THRESHOLD.search(before):
            return True
        if _shares_word(statement, before, question[asked.end : asked.end + 40]):
            return True
    return False


def _shares_word(statement: Statement, before: str, after: str) -> bool:
    """Whether the word next to a number is the same in answer and question."""
    mine = content_words(statement.after[:40])[:1], content_words(statement.tight)[-1:]
    theirs = content_words(after)[:1], content_words(before)[-1:]
    return any(one and one == other for one, other in zip(mine, theirs, strict=True))


def turned_around(answer: str, said: Sequence[Statement]) -> frozenset[int]:
    """Return where the numbers of `rose from 5 to 3`, or of a fall from 3 to 5, begin."""
    found: set[int] = set()
    for one, other in pairwise([each for each in said if not each.is_label]):
        if one.number.exponent != other.number.exponent:
            continue
        if not _FROM.search(one.tight) or not _TO.fullmatch(
            answer, one.number.end, other.number.start
        ):
            continue
        rises, falls = bool(_RISES.search(one.before)), bool(_FALLS.search(one.before))
        step = other.number.value - one.number.value
        if rises != falls and (step < 0 if rises else step > 0):
            found |= {one.number.start, other.number.start}
    return frozenset(found)


def is_condition(statement: Statement, known: Sequence[KnownPools]) -> bool:
    """Return whether a round number only says what was counted: `7 people are above 90`.

    Args:
        statement: the number with its words.
        known: the numbers of the answer that outputs support.
    """
    is_round = len(statement.number.digits.strip("-0").replace(".", "")) <= _ROUND_DIGITS
    return bool(is_round and _CONDITION.search(statement.tight)) and any(
        one.statement.sentence == statement.sentence and one.statement.number.is_whole
        for one in known
    )
