"""Values that belong together, from which a number of an answer may be derived.

They are those of one column or row, those of lines that their labels link, and those that the
answer itself states. Any two numbers of all outputs would yield nearly every result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from dm_jupyter.assist.grounding.blocks import NumberCell, TextBlock
from dm_jupyter.assist.grounding.spans import columns_spanned, rows_spanned
from dm_jupyter.assist.grounding.statements import Statement
from dm_jupyter.assist.grounding.words import DAYS, MONTH_NAMES, content_words

__all__ = [
    "KnownPools",
    "NumberPool",
    "OutputValue",
    "is_average",
    "kin_pools",
    "pools_of",
    "stated_pool",
    "totals_of",
]

_TOTAL = frozenset(("sum", "all", "overall", "count"))
_STATISTICS = frozenset(("count", "sum", "mean"))
"""Words of columns that also describe other columns."""
_FIGURES = frozenset(("mean", "median", "std", "max", "min"))
"""Words of columns that are figures of one distribution."""
_AVERAGES = frozenset(content_words("mean median rate share percentage"))
"""Words of figures whose mean over several groups is not that of all."""
_CALENDAR = frozenset((*MONTH_NAMES, *DAYS, "q1", "q2", "q3", "q4"))
_MOST_PAIRS, _FEW, _MOST_ROWS = 40, 4, 400
_YEAR = re.compile(r"(?:19|20)\d\d")
_POOL = 12
"""Numbers of an answer that are combined with each other."""


@dataclass(frozen=True, slots=True)
class OutputValue:
    """A value of an output, or of the answer."""

    value: float
    text: str
    source: int


@dataclass(frozen=True, slots=True)
class KnownPools:
    """A number of the answer that an output supports."""

    value: float
    text: str
    source: int
    statement: Statement
    is_average: bool = False
    """Whether its labels call it a mean, a rate or the like of a group."""


@dataclass(frozen=True, slots=True)
class NumberPool:
    """Values that belong together."""

    values: tuple[OutputValue, ...]
    pairs: tuple[tuple[OutputValue, OutputValue], ...]
    whole: tuple[OutputValue, ...] = ()
    """All values of the column, if all rows are shown."""
    named: tuple[OutputValue, ...] = ()
    """Values that the sentence names."""
    totals: tuple[OutputValue, ...] = ()
    """Totals that shares may refer to."""
    is_column: bool = False
    """Whether they are one column of a table: shares are of their sum."""
    is_mixed: bool = False
    """Whether they are figures of one distribution, which nobody adds up."""
    are_averages: bool = False
    """Whether they are means, rates or the like of groups, which nobody averages."""
    is_told: bool = False
    """Whether the clause names the value that it is about."""
    ratios: tuple[tuple[OutputValue, OutputValue], ...] = ()
    """Pairs of different kinds, of which one may be stated per unit of the other."""
    is_ordered: bool = False
    """Whether the values follow each other in time."""
    is_stated: bool = False
    """Whether they are numbers of the answer."""
    told: tuple[OutputValue, ...] = ()
    """Values of a row whose columns the clause names."""
    is_row: bool = False
    """Whether they are one row of a table, which the sentence names."""


def stated_pool(stated: Sequence[KnownPools]) -> NumberPool:
    """Return the pool of the answer's numbers, as output values and as stated."""
    held, written = [], []
    for one in stated[:_POOL]:
        held.append(OutputValue(one.value, one.text, one.source))
        number = one.statement.number
        size = number.value * 10.0 ** max(0, number.exponent)
        written.append(OutputValue(size, number.text, one.source))
    pairs = [
        pair
        for values in (held, written)
        for pair in combinations(values, 2)
        if pair[0].text.endswith("%") == pair[1].text.endswith("%")
    ]
    return NumberPool(
        tuple(held),
        tuple(pairs),
        named=tuple(held),
        is_stated=True,
        are_averages=any(one.is_average for one in stated[:_POOL]),
    )


def is_average(block: TextBlock, cell: NumberCell) -> bool:
    """Return whether a value's labels call it a mean, a median, a rate or a share of a group.

    Months and days are no groups, since they are about as long as each other.
    """
    is_dated = block.rows[cell.row][:4].isdecimal() or block.row_words(cell.row) & _CALENDAR
    return bool(block.words(cell) & _AVERAGES) and not is_dated


def kin_pools(statement: Statement, blocks: Sequence[TextBlock]) -> Iterator[NumberPool]:
    """Yield the values of lines that both name what the number counts: votes, invalid votes."""
    nouns = set(content_words(statement.after[:40])[:2])
    for block in blocks:
        if block.is_table or not 1 < len(block.cells) <= _POOL:
            continue
        kin = [_value(block, cell) for cell in block.cells if block.row_words(cell.row) & nouns]
        yield NumberPool(tuple(kin), tuple(combinations(kin, 2)))


def pools_of(
    statement: Statement, blocks: Sequence[TextBlock], totals: tuple[OutputValue, ...]
) -> Iterator[NumberPool]:
    """Yield the values of each column and row that the sentence may be about."""
    words = statement.near | statement.wide
    for block in blocks:
        if not len(block.cells) > 1 or len(block.rows) > _MOST_ROWS:
            continue
        rows = block.rows_named(words) or _hinted(block, statement)
        columns = _columns_meant(block, words)
        for column in columns:
            cells = block.column(column)
            yield _column_pool(block, cells, rows, totals)
            yield from _span_pools(block, cells, statement)
        yield from _period_pools(block, rows, statement)
        is_start = statement.tight.endswith("from ")  # of a row before the named one
        for row in (not is_start and rows) or range(min(len(block.rows), _FEW)):
            cells = [cell for at in block.value_columns() if (cell := block.at(row, at))]
            if block.is_table and 1 < len(cells) <= 2 * _FEW:
                yield from _row_pools(block, cells, statement, is_named=bool(rows))
        is_of_all = len(rows) in (0, len(block.rows))
        if is_of_all and block.is_table and block.is_complete and 1 < len(columns) <= _FEW:
            yield _sums_pool(block, block.value_columns())
    yield _declared(blocks)
    yield _across(blocks, words)


def _hinted(block: TextBlock, statement: Statement) -> list[int]:
    """Return the only line with a word of the clause, if no line is named in full."""
    if block.is_table:
        return []
    labels = [block.row_words(row) & statement.near for row in range(len(block.rows))]
    shared = [words for words in labels if words]
    alone = [
        row
        for row, words in enumerate(labels)
        if any(sum(word in other for other in shared) == 1 for word in words)
    ]
    return alone if len(alone) == 1 else []


def _span_pools(
    block: TextBlock, cells: list[NumberCell], statement: Statement
) -> Iterator[NumberPool]:
    """Yield the values of rows that the sentence names together, and their sums."""
    sums = []
    for rows in rows_spanned(block, statement):
        values = [_value(block, cell) for cell in cells if cell.row in rows]
        if len(values) == len(rows):
            sums.append(_sum_value(values))
            are_averages = all(is_average(block, cell) for cell in cells)
            yield NumberPool(
                tuple(values), (), tuple(values), tuple(values), are_averages=are_averages
            )
    if sums:
        total = _sum_value([_value(block, cell) for cell in cells])
        pairs = tuple(combinations(sums, 2))
        yield NumberPool(tuple(sums), pairs, named=tuple(sums), totals=(total,), is_ordered=True)


def _sum_value(values: Sequence[OutputValue]) -> OutputValue:
    text = f"({values[0].text} + … + {values[-1].text})"
    return OutputValue(sum(value.value for value in values), text, values[0].source)


def _period_pools(block: TextBlock, rows: list[int], statement: Statement) -> Iterator[NumberPool]:
    """Yield the values of rows within a period that the sentence names, if columns are months."""
    for columns in columns_spanned(block, statement.sentence):
        for row in rows[:_FEW]:
            values = tuple(_value(block, cell) for at in columns if (cell := block.at(row, at)))
            yield NumberPool(values, (), values, named=values)


def _row_pools(
    block: TextBlock, cells: list[NumberCell], statement: Statement, *, is_named: bool
) -> Iterator[NumberPool]:
    """Yield the values of a row; those of years separately, because they have an order."""
    values = tuple(_value(block, cell) for cell in cells)
    columns = [block.column_words(cell.column) for cell in cells]
    dated = {id(value) for value, words in zip(values, columns, strict=True) if _year_in(words)}
    every = tuple(combinations(values, 2))
    alike = tuple(pair for pair in every if _are_alike(*pair))
    if len(dated) > 1 and _are_years([words for words in columns if _year_in(words)]):
        ordered = tuple(pair for pair in alike if {id(one) for one in pair} <= dated)
        alike = tuple(pair for pair in alike if pair not in ordered)
        yield NumberPool(values, ordered, totals=values, is_ordered=True, is_row=is_named)
    yield NumberPool(
        values,
        alike,
        values if alike == every else (),
        totals=values,
        is_mixed=_are_figures(columns),
        told=tuple(
            value for value, words in zip(values, columns, strict=True) if words & statement.near
        ),
        is_told=is_named and any(words & statement.near for words in columns),
        ratios=every,
        is_row=is_named,
    )


def _are_figures(columns: Sequence[frozenset[str]]) -> bool:
    """Whether two columns are figures of one thing: its mean, its median."""
    things = [words - _FIGURES for words in columns if words & _FIGURES]
    return len(set(things)) < len(things) or (len(things) == 1 and not things[0])


def _are_years(columns: Sequence[frozenset[str]]) -> bool:
    """Whether each column is of a later year than the one before it."""
    years = [_year_in(words) for words in columns]
    return all(years) and years == sorted(set(years))


def _year_in(words: frozenset[str]) -> str:
    """Return the year that a label names; empty if it names none, or several."""
    years = [word for word in words if _YEAR.fullmatch(word)]
    return years[0] if len(years) == 1 else ""


def _sums_pool(block: TextBlock, columns: list[int]) -> NumberPool:
    """Return the sum of each column of counts, and of all of them together."""
    sums = []
    for column in columns[:_FEW]:
        values = [_value(block, cell) for cell in block.column(column)]
        if len(values) > 1 and all(value.text.isdecimal() for value in values):
            sums.append(_sum_value(values))
    return NumberPool(
        tuple(sums), tuple(combinations(sums, 2)), tuple(sums) if len(sums) > 1 else ()
    )


def _across(blocks: Sequence[TextBlock], said: frozenset[str]) -> NumberPool:
    """Return the values of printed lines of several cells, in pairs that their labels link."""
    lines = [
        (block.row_words(cell.row), _value(block, cell), block)
        for block in blocks
        if not block.is_table and len(block.places()) <= _FEW
        for row, column in block.places()
        if (cell := block.at(row, column))
    ][:_POOL]
    lines += _named_cells(blocks, said)
    is_all = sum(len(block.places()) for block in blocks) <= _FEW
    pairs = [
        (one, other)
        for (words, one, block), (more, other, another) in combinations(lines, 2)
        if block is not another
        and one.text.endswith("%") == other.text.endswith("%")
        and (
            words & more
            or words | more <= said
            or (block.is_single and another.is_single)
            or (len(lines) <= _FEW and (words <= said or more <= said or is_all))
        )
    ]
    return NumberPool(tuple(value for _, value, _ in lines), tuple(pairs))


def _named_cells(
    blocks: Sequence[TextBlock], said: frozenset[str]
) -> list[tuple[frozenset[str], OutputValue, TextBlock]]:
    """Return named values of one-column tables, to compare with lines."""
    return [
        (block.row_words(row), _value(block, cell), block)
        for block in blocks
        if block.is_table and len(block.value_columns()) == 1
        for row in block.rows_named(said)[:_FEW]
        if (cell := block.at(row, block.value_columns()[0]))
    ][:_POOL]


def _declared(blocks: Sequence[TextBlock]) -> NumberPool:
    """Return the numbers of rows and columns that outputs report, before and after a step."""
    rows, columns = [
        [
            OutputValue(float(total), str(total), block.source)
            for block in blocks
            if (total := getattr(block, name)) and not block.is_table and total != len(block.rows)
        ][:_POOL]
        for name in ("total_rows", "total_columns")
    ]
    return NumberPool((*rows, *columns), (*combinations(rows, 2), *combinations(columns, 2)))


def _column_pool(
    block: TextBlock, cells: list[NumberCell], rows: list[int], totals: tuple[OutputValue, ...]
) -> NumberPool:
    values = tuple(_value(block, cell) for cell in cells)
    both = list(zip(cells, values, strict=True))
    named = tuple(value for cell, value in both if cell.row in rows)
    own = tuple(value for cell, value in both if block.row_words(cell.row) & _TOTAL)
    whole = values if block.is_complete or not block.is_table else ()
    is_mixed = {"mean", "std"} <= set(block.rows)
    pairs = list(_pairs(values, named))
    quartiles = [value for cell, value in both if block.rows[cell.row] in ("25%", "75%")]
    if len(quartiles) == 2:
        pairs.append((quartiles[0], quartiles[1]))
    is_ordered = bool(cells) and block.rows[cells[0].row][:4].isdecimal()
    if is_ordered and len(named) > 1 and len(cells) <= _MOST_PAIRS:
        pairs += [pair for pair in pairwise(values) if pair[0] in named or pair[1] in named]
    if is_ordered:
        place = {id(value): at for at, value in enumerate(values)}
        pairs = [(one, other) if place[id(one)] < place[id(other)] else (other, one)
                 for one, other in pairs]  # fmt: skip
    if not block.is_table:
        labels = {id(value): block.row_words(cell.row) for cell, value in both}
        pairs = [
            (one, other)
            for one, other in pairs
            if _are_alike(one, other) or labels[id(one)] & labels[id(other)]
        ]
        first = named[0] if named else whole[0]
        whole = tuple(value for value in whole if _are_alike(first, value)) if whole else ()
    return NumberPool(
        values,
        tuple(pairs),
        whole,
        named,
        (*own, *totals),
        is_mixed=is_mixed,
        is_column=block.is_table and bool(whole),
        is_ordered=is_ordered,
        are_averages=all(is_average(block, cell) for cell in cells),
    )


def _pairs(
    values: tuple[OutputValue, ...], named: tuple[OutputValue, ...]
) -> Iterator[tuple[OutputValue, OutputValue]]:
    """Yield pairs of values: the named ones, else the extremes and neighbours."""
    if len(named) >= 2:
        yield from list(combinations(named, 2))[:_MOST_PAIRS]
    elif len(values) <= _FEW and not named:
        yield from combinations(values, 2)
    elif len(named) == 1 and len(values) <= _MOST_PAIRS:
        yield from ((named[0], other) for other in values if other is not named[0])
    elif len(values) > 1 and not named:
        ordered = sorted(values, key=lambda one: one.value)
        yield ordered[-1], ordered[0]
        yield ordered[-1], ordered[-2]
        yield values[-1], values[0]
        if len(values) <= _POOL:
            yield from pairwise(values)


def _columns_meant(block: TextBlock, words: frozenset[str]) -> list[int]:
    """Return the columns whose labels share most words with the sentence; all if none does."""
    columns = block.value_columns()
    words = words - _STATISTICS
    matched = {at: len(block.column_words(at) & words) for at in columns}
    best = max(matched.values(), default=0)
    is_narrowed = any(
        word.isdecimal() for at in columns if matched[at] for word in block.column_words(at)
    )
    if len(columns) <= _FEW and not is_narrowed:
        return sorted(columns, key=lambda at: -matched[at])
    return [at for at in columns if matched[at] == best or (best and matched[at])][: 3 * _FEW]


def totals_of(blocks: Sequence[TextBlock]) -> tuple[OutputValue, ...]:
    """Return the total counts that outputs show.

    Args:
        blocks: the contents of the outputs.
    """
    found: dict[float, OutputValue] = {}
    for block in blocks:
        if not block.is_table and len(block.cells) == 1 and block.cells[0].text.isdecimal():
            lone = block.cells[0]
            if not block.row_words(lone.row) and lone.value > 1:
                found.setdefault(lone.value, _value(block, lone))
        if block.total_rows and (not block.is_table or block.total_rows != len(block.rows)):
            text = str(block.total_rows)
            found.setdefault(float(text), OutputValue(float(text), text, block.source))
        for cell in block.cells[:200]:
            if (
                cell.value == _whole_part(cell.value)
                and cell.value > 1
                and (block.row_words(cell.row) & _TOTAL)
            ):
                found.setdefault(cell.value, _value(block, cell))
        if block.is_table and block.is_complete and len(block.value_columns()) == 1:
            values = [_value(block, cell) for cell in block.cells]
            if len(values) > 1 and all(value.text.isdecimal() for value in values):
                found.setdefault(sum(value.value for value in values), _sum_value(values))
    return tuple(found.values())[:20]


def _are_alike(one: OutputValue, other: OutputValue) -> bool:
    """Whether two values may be of one kind, by how they are written."""
    return ("." in one.text) == ("." in other.text)


def _whole_part(value: float) -> float:
    """Return the integer part of a number; the number itself if it is huge or not finite."""
    return float(int(value)) if abs(value) < 1e300 else value


def _value(block: TextBlock, cell: NumberCell) -> OutputValue:
    return OutputValue(cell.value, cell.text, block.source)
