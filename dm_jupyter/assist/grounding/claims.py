"""Claims that no single value makes: counts, ranks, superlatives, what the question says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dm_jupyter.assist.grounding.blocks import Cell, TextBlock
from dm_jupyter.assist.grounding.numbers import numbers_in
from dm_jupyter.assist.grounding.outputs import Outputs
from dm_jupyter.assist.grounding.pools import KnownPools
from dm_jupyter.assist.grounding.sizes import Held
from dm_jupyter.assist.grounding.statements import Statement
from dm_jupyter.assist.grounding.words import HIGHEST, LOWEST, content_words

__all__ = [
    "NO_EXTREME",
    "count_of",
    "is_condition",
    "is_other_count",
    "points_fault",
    "quantile_share",
    "ranks",
    "restates",
    "shown",
    "superlative_fault",
    "turned_around",
    "wider_row",
    "year_fault",
]

_THINGS = frozenset(
    content_words(
        "count category group column variable feature item entry result different distinct "
        "unique class type kind field level bin segment case table line"
    )
)
"""What a table's rows may be called, whatever they are."""
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
_QUALIFIED = re.compile(
    r"\b(?:second|third|fourth|fifth|next|among|one of|except|after|other than|besides|nearly|"
    r"almost|not|2nd|3rd|followed|both|within|excluding)\b|n't",
    re.IGNORECASE,
)
_OF_ALL = re.compile(
    r"\d[\d,.]*\s?(?:%|[^\W\d]+\s)?\s?(?:out\s)?of\s(?:the\s|all\s|a total of\s)*\Z"
)
_SHARE = re.compile(r"(?<!\S)(\d{1,2}(?:\.\d+)?)%(?!\S)")
_LIES = re.compile(
    r"\b(?:between|within|above|below|over|under|(?:more|less|higher|lower|fewer) than|exceed\w*|"
    r"at (?:most|least)|up to|from|range\w*)\b",
    re.IGNORECASE,
)
_MEASURED = re.compile(
    rf"(?:{HIGHEST.pattern}|{LOWEST.pattern})\s(?P<measure>[^.,;:()]{{1,40}}?)"
    r"(?:\s(?:with|at|of|is|was)|:|,|\s\()\s?(?:about\s|only\s|just\s)?[$€£]?\**\Z",
    re.IGNORECASE,
)
"""A superlative with what it is said of, right before the number."""
_ENDS = re.compile(r"\**\s?(?:[.,;)]|\Z|and\b)")
_POINTS = re.compile(r"\s?(?:%|percentage|percent)[ -]points?\b")
_RELATIVE = frozenset(content_words("lift growth relative uplift change increase decrease"))
_BY = re.compile(r"(?:[x×,]|\bby)\s?\Z")
"""Between how many rows and how many columns there are."""
_DERIVED = frozenset(content_words("share rate ratio proportion percentage growth margin change"))
"""What is no count, which a superlative may be about."""
NO_EXTREME = "the "
"""How the reason of a superlative's fault begins."""
_CONDITION = re.compile(
    r"(?:\b(?:above|below|over|under|exceed(?:s|ing)?|at least|at most|\w+ than)|[<>≥≤])\s?[$€£]?\Z",
    re.IGNORECASE,
)
_ROUND_DIGITS = 2
_TOTALS = frozenset(("sum", "all", "overall"))
_FROM = re.compile(r"\bfrom\s[$€£]?\Z")
_TO = re.compile(r"[\w\s%()°]{0,40}?\bto\s[$€£]?")
_RISES = re.compile(
    r"\b(?:rose|rises?|risen|grew|grows?|grown|increase[ds]?|climb(?:ed|s)?)\b", re.I
)
_FALLS = re.compile(
    r"\b(?:fell|falls?|fallen|drop(?:ped|s)?|decrease[ds]?|decline[ds]?|shrank)\b", re.I
)
_MOST_ROWS = 1_000
_LABEL_CHARS = 60


def count_of(statement: Statement, blocks: Sequence[TextBlock]) -> tuple[int, str] | None:
    """Returns the output whose rows or names a number counts, and how; `None` for no count.

    Args:
        statement: the number with its words.
        blocks: what the outputs hold.
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
    """Whether words name what the rows of a table are."""
    if _is_head(block):
        return False
    heads = {word for name in (block.index_name, *block.key_names) for word in content_words(name)}
    if not block.is_table and len(block.labels) > 1 and len(block.labels) == len(block.rows):
        return bool(_THINGS & set(nouns))
    if not block.is_table and not block.rows:
        return bool({"count", *_THINGS} & set(nouns)) or bool(nouns)
    return bool((heads | _THINGS) & set(nouns)) or (not block.is_table and bool(nouns))


def _is_head(block: TextBlock) -> bool:
    """Whether it may be the start of a longer table, as `head()` shows it."""
    return block.is_ranked and block.total_rows == len(block.rows) == 5


def _distinct(block: TextBlock, nouns: Sequence[str]) -> int:
    """How many texts stand in the column that words name; 0 where they name none."""
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
    """How many values of a column lie above or below a number that the clause names."""
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
    """Returns the output whose quantiles a percentage is about, and which; `None` for none.

    With those of 25 % and 75 %, half of the values lie between them and a quarter above.

    Args:
        statement: the percentage with its words.
        blocks: what the outputs hold.
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
    """Returns whether a number only says how many of the first are meant, or which place."""
    if not statement.number.is_whole or not _RANK.search(statement.tight):
        return False
    most = max((block.total_rows or len(block.rows) for block in blocks), default=0)
    return statement.number.value <= most


def restates(statement: Statement, question: str) -> bool:
    """Returns whether a number repeats one of the question, in the same role.

    Args:
        statement: the number with its words.
        question: what was asked.
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
    """Whether the word beside a number is the same in answer and question."""
    mine = content_words(statement.after[:40])[:1], content_words(statement.tight)[-1:]
    theirs = content_words(after)[:1], content_words(before)[-1:]
    return any(one and one == other for one, other in zip(mine, theirs, strict=True))


def turned_around(answer: str, said: Sequence[Statement]) -> frozenset[int]:
    """Returns where numbers begin of `rose from 5 to 3`, and of a fall from 3 to 5."""
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


def is_other_count(held: Held, statement: Statement, blocks: Sequence[TextBlock]) -> bool:
    """Returns whether a number counts columns and a value does not, or the other way round.

    Args:
        held: the value that the number is.
        statement: the number with its words.
        blocks: what the outputs hold.
    """
    block = held.block
    noun = content_words(statement.after[:40])[:1]
    is_columns = block is not None and block.rows == ["rows", "columns"] and held.cell.row == 1
    if noun and noun[0] in _COLUMNS:
        is_labelled = block is not None and block.words(held.cell) & _COLUMNS
        is_declared = any(each.total_columns for each in blocks)
        return not is_columns and not is_labelled and is_declared
    return is_columns and bool(noun) and not _BY.search(statement.tight)


def is_condition(statement: Statement, known: Sequence[KnownPools]) -> bool:
    """Returns whether a round number only says what was counted: `7 people are above 90`.

    Args:
        statement: the number with its words.
        known: the numbers of the answer that outputs bear out.
    """
    is_round = len(statement.number.digits.strip("-0").replace(".", "")) <= _ROUND_DIGITS
    return bool(is_round and _CONDITION.search(statement.tight)) and any(
        one.statement.sentence == statement.sentence and one.statement.number.is_whole
        for one in known
    )


def points_fault(held: Held, statement: Statement) -> str:
    """Returns why a value is no difference in percentage points; else nothing.

    Args:
        held: the value that the number is.
        statement: the number with its words.
    """
    block, cell = held.block, held.cell
    if block is None or not _POINTS.match(statement.after) or not cell.text.endswith("%"):
        return ""
    is_relative = block.words(cell) & _RELATIVE
    return f"{cell.text} is a relative change there" if is_relative else ""


def superlative_fault(held: Held, statement: Statement, blocks: Sequence[TextBlock]) -> str:
    """Returns why a row is not the largest or smallest that a clause calls it; else nothing.

    Args:
        held: the value that the number is.
        statement: the number with its words.
        blocks: what the outputs hold.
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
    return f"{NO_EXTREME}{what} there is {best.text} for {shown(block.rows[best.row])}"


def shown(label: str) -> str:
    """Returns the label of a row as a person is told of it."""
    return label.replace("#", "").strip(" :=@[-'\">")[:_LABEL_CHARS] or "another row"


def wider_row(held: Held, statement: Statement, blocks: Sequence[TextBlock]) -> str:
    """Returns what is the value of all that a clause names, where this one is of a part; else "".

    Args:
        held: the value that the number is.
        statement: the number with its words.
        blocks: what the outputs hold.
    """
    block, cell = held.block, held.cell
    if block is None or block.levels < 2 or HIGHEST.search(statement.sentence):
        return ""
    parts = block.part_words(cell.row)
    named = frozenset().union(*(part for part in parts if part and part <= statement.near))
    if not named or all(part & statement.wide for part in parts):
        return ""
    column = block.column_words(cell.column)
    for other in blocks:
        if other is block or not other.is_table:
            continue
        for row in other.rows_named(named):
            for at in other.value_columns():
                whole = other.at(row, at)
                is_akin = other.row_words(row) <= named and column & other.column_words(at)
                if whole and is_akin and not held.reading.window.holds(whole.value):
                    return f"{cell.text} is for {shown(block.rows[cell.row])}; in all {whole.text}"
    return ""


def year_fault(statement: Statement, outputs: Outputs, question: str) -> str:
    """Returns whose year it is, where the sentence names another row of its table; else "".

    Args:
        statement: the year with the words of its sentence.
        outputs: what the cells have shown.
        question: what was asked.
    """
    year = statement.number.text
    if not statement.number.is_year or year in question:
        return ""
    seen = sum(text.count(year) for text in outputs.texts)
    for block in outputs.blocks:
        if not block.is_table or year not in block.keys:
            continue
        owners = [row for row, parts in enumerate(block.parts) if year in parts]
        others = [
            row
            for row, parts in enumerate(block.parts)
            for part, words in zip(parts, block.part_words(row), strict=True)
            if words and not part.isdigit() and words <= statement.wide
        ]
        if len(owners) == seen and others and not set(owners) & set(others):
            return f"{year} is for {shown(block.rows[owners[0]])}"
    return ""


def _can_tell(block: TextBlock, cell: Cell, statement: Statement) -> bool:
    """Whether a superlative beside a value is about the rows of its table."""
    is_dated = all(1000 <= one.value <= 2100 for one in block.column(cell.column))
    is_listed = block.is_table or len(block.labels) == len(block.cells)
    if is_dated or not is_listed or block.levels > 1 or not block.is_complete:
        return False
    labels = block.row_words(cell.row) - block.common_words()
    statistics = labels | (block.column_words(cell.column) & statement.wide)
    is_named = bool(labels & statement.near)
    return is_named and not {"max", "min"} & statistics and 1 < len(block.rows) <= _MOST_ROWS


def _measure_of(statement: Statement) -> frozenset[str] | None:
    """What a row is called the largest by, where the number is that; `None` where it need not be.

    `the highest revenue with 12` says of 12 that it is the revenue, `the largest one with 3 rooms`
    does not.
    """
    match = _MEASURED.search(statement.before)
    if not match or not _ENDS.match(statement.after):
        return None
    return frozenset(content_words(match["measure"]))


def _is_total(block: TextBlock, row: int) -> bool:
    """Whether a row holds what the others add up to."""
    return bool(block.row_words(row) & _TOTALS)


def _is_extreme_anywhere(
    labels: frozenset[str],
    blocks: Sequence[TextBlock],
    meant: frozenset[str] | None,
    *,
    is_high: bool,
) -> bool:
    """Whether what a row names is the first or last by some column, or by one that is meant."""
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
