"""Numbers that follow from values: differences, ratios, percentages, sums, recomputed.

Only values that belong together are combined: those of one column or row, and those that the
answer itself states. Any two numbers of all outputs would give nearly every result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from dm_jupyter.agent.grounding.sizes import Window, window
from dm_jupyter.agent.grounding.statements import Statement
from dm_jupyter.agent.grounding.tables import Block, Cell

__all__ = ["Derivation", "Known", "derivation"]

_UP = (
    r"more|higher|heavier|larger|greater|longer|older|bigger|taller|wider|faster|increas\w+|ros[ei]\w*|"
    r"ris[ei]\w*|gr[eo]w\w*|gain(?:ed)?|above|up|exceed(?:s|ed)?|ahead|climb\w*|premium|"
    r"better|expensive|outperform(?:s|ed)?|over|rais\w+|markup|additional|extra|later|warmer|hotter"
)
_DOWN = (
    r"less|lower|lighter|smaller|fewer|shorter|younger|slower|decreas\w+|declin\w+|drop(?:ped|s)?|"
    r"fell|fall\w*|loss|lost|below|down|cheaper|behind|reduc(?:ed|tion)|shrank|dipped|discount|"
    r"removed|saves?|cuts?|cutting|worse|short|narrower|earlier|colder|cooler|trail(?:s)?"
)
_CHANGE = re.compile(
    rf"\b(?:{_UP}|{_DOWN}|chang(?:e|ed)|difference|differ|gap|\w+er than|jump(?:ed)?|spread"
    r"|improve(?:d|ment)?|cuts?|saves?|doubl\w*|margin|lift|removed|dropped|savings?|profit)\b"
    r"|(?:^|\s)\+",
    re.I,
)
_ONLY_UP = re.compile(rf"\b(?:{_UP})\b", re.I)
_ONLY_DOWN = re.compile(rf"\b(?:{_DOWN})\b", re.I)
_DIFFERENCE = re.compile(
    rf"\b(?:{_UP}|{_DOWN}|difference|differ|gap|by|margin|spread|range|apart|chang(?:e|ed)"
    r"|net|surplus|deficit|between|span|\w+er than|remaining|remains?|rest|others?|without"
    r"|non|profit|after|before|years|step|jump|worth|earns?|earned|removed|saves?|cuts?"
    r"|balance)\b|=",
    re.I,
)
_MOVED = re.compile(
    r"\b(?:rose|risen|fell|fallen|grew|grown|climbed|increased|decreased|declined|cuts?)\b", re.I
)
_RATIO = re.compile(r"\A\W{0,3}(?:times|x\b|×|-?fold|to one)", re.I)
_RATIO_BEFORE = re.compile(r"\b(?:ratio|factor|multiple|per|odds|relative)\b|=|/", re.I)
_POINTS = re.compile(r"\s?(?:(?:percentage|percent|%)[\s-]points?|points?|pp)\b", re.I)
_EACH = re.compile(r"\b(?:per|for each|for every|to each|apiece|each)\b", re.I)
_SHARE_BEFORE = re.compile(
    r"\b(?:share|proportion|fraction|rate|probability|chance|part|portion)\b", re.I
)
_SUM = re.compile(
    r"\b(?:total(?:s|l?ing)?|sum|combined|together|in all|altogether|overall|both|jointly"
    r"|add(?:s|ed)? up|plus|accounts?)\b|=|\+",
    re.I,
)
_MEAN = re.compile(r"\b(?:mean|averag(?:e|es|ed|ing)|midpoint|typical(?:ly)?)\b", re.I)
_REST = re.compile(
    r"\b(?:other|others|remaining|rest|not|without|non|missing|died|never|un\w+|fail(?:ed)?|other)\b",
    re.I,
)
_TOTAL = frozenset(("sum", "all", "overall", "count"))
_STATISTICS = frozenset(("count", "sum", "mean"))
"""Words of columns that are said of other columns, too."""
_MOST_PAIRS, _FEW, _MOST_ROWS = 40, 4, 400
_POOL = 12
"""Numbers of an answer that are combined with each other."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a number follows from values."""

    formula: str
    source: int
    """The output that the first of the values is of."""


@dataclass(frozen=True, slots=True)
class Known:
    """A number of the answer that an output bears out."""

    value: float
    text: str
    source: int
    statement: Statement


@dataclass(frozen=True, slots=True)
class _Value:
    value: float
    text: str
    source: int


def derivation(
    statement: Statement, blocks: Sequence[Block], stated: Sequence[Known]
) -> Derivation | None:
    """Returns how a number follows from values that belong together; `None` where it does not.

    Args:
        statement: the number with its words.
        blocks: what the outputs hold.
        stated: the other numbers of the answer that stand in outputs, nearest first.
    """
    context = _context(statement)
    roles = _roles(statement, context)
    if not roles:
        return None
    sizes = [window(statement)]
    if statement.number.exponent > 0:
        sizes.append(window(statement, scaled=False))
    for pool in [_pool(stated), *_columns(statement, blocks)]:
        for role in roles:
            for fits in sizes:
                if found := _ROLES[role](pool, fits, statement, context):
                    return found
    return None


def _context(statement: Statement) -> str:
    """The words around a number within its clause; those of the sentence follow a line break."""
    return f"{statement.since} {statement.before} \n {statement.after}"


def _roles(statement: Statement, context: str) -> list[str]:
    """What the words around a number may mean by it."""
    roles = []
    after, before = statement.after, statement.before
    if statement.number.is_percentage:
        if _CHANGE.search(context) or _CHANGE.search(statement.sentence):
            roles.append("change")
        is_moved = statement.number.text[:1] in "+-−" or _MOVED.search(context)
        if _MEAN.search(context):
            roles.append("mean")
        if not is_moved and not _CHANGE.search(after[:25]):
            roles.append("share")
        return roles
    is_each = _EACH.search(context) or _EACH.search(statement.sentence)
    if _RATIO.search(after) or _RATIO_BEFORE.search(before) or is_each:
        roles.append("ratio")
    if _SHARE_BEFORE.search(context) and abs(statement.number.value) <= 1:
        roles.append("fraction")
    is_gap = _POINTS.match(after) or _DIFFERENCE.search(context)
    if is_gap or _CHANGE.search(statement.sentence):
        roles.append("difference")
    roles.append("sum" if _SUM.search(context) or _SUM.search(statement.sentence) else "whole")
    if _MEAN.search(context):
        roles.append("mean")
    return roles


@dataclass(frozen=True, slots=True)
class _Pool:
    """Values that belong together."""

    values: tuple[_Value, ...]
    pairs: tuple[tuple[_Value, _Value], ...]
    whole: tuple[_Value, ...] = ()
    """All values of the column, where all rows are shown."""
    named: tuple[_Value, ...] = ()
    """Those of them that the sentence names."""
    totals: tuple[_Value, ...] = ()
    """What shares may be of."""
    is_column: bool = False
    """Whether they are one column of a table: shares are of their sum."""
    is_told: bool = False
    """Whether the clause names the one of the values that it is about."""
    ratios: tuple[tuple[_Value, _Value], ...] = ()
    """Twos of different kinds, of which one may be stated for each of the other."""
    is_ordered: bool = False
    """Whether the values follow each other in time."""


def _pool(stated: Sequence[Known]) -> _Pool:
    """The numbers of the answer, as they are held and as they are stated."""
    held, written = [], []
    for one in stated[:_POOL]:
        held.append(_Value(one.value, one.text, one.source))
        number = one.statement.number
        size = number.value * 10.0 ** max(0, number.exponent)
        written.append(_Value(size, number.text, one.source))
    pairs = [
        pair
        for values in (held, written)
        for pair in combinations(values, 2)
        if pair[0].text.endswith("%") == pair[1].text.endswith("%")
    ]
    return _Pool(tuple(held), tuple(pairs), named=tuple(held))


def _columns(statement: Statement, blocks: Sequence[Block]) -> Iterator[_Pool]:
    """The values of each column and row that the sentence may be about."""
    words = statement.near | statement.wide
    totals = _counts(blocks)
    for block in blocks:
        if not len(block.cells) > 1 or len(block.rows) > _MOST_ROWS:
            continue
        rows = block.rows_named(words)
        columns = _columns_meant(block, words)
        for column in columns:
            cells = block.column(column)
            yield _column_pool(block, cells, rows, totals)
        for row in rows or range(min(len(block.rows), _FEW)):
            cells = [cell for at in block.value_columns() if (cell := block.at(row, at))]
            if block.is_table and 1 < len(cells) <= 2 * _FEW:
                values = tuple(_value(block, cell) for cell in cells)
                alike = tuple(pair for pair in combinations(values, 2) if _are_alike(*pair))
                whole = values if len(alike) == len(values) * (len(values) - 1) // 2 else ()
                is_told = any(block.column_words(cell.column) & statement.near for cell in cells)
                every = tuple(combinations(values, 2))
                yield _Pool(
                    values, alike, whole, totals=values,
                    ratios=every, is_told=is_told and bool(rows),
                )  # fmt: skip
    yield _declared(blocks)
    yield _across(blocks)


def _are_alike(one: _Value, other: _Value) -> bool:
    """Whether two values of a row may be of one kind, by how they are written."""
    return ("." in one.text) == ("." in other.text)


def _across(blocks: Sequence[Block]) -> _Pool:
    """What lines of several cells have printed, in twos that their labels tie."""
    lines = [
        (block.row_words(cell.row), _value(block, cell))
        for block in blocks
        if not block.is_table and len(block.cells) <= _FEW
        for cell in block.cells
    ][:_POOL]
    pairs = [
        (one, other)
        for (words, one), (more, other) in combinations(lines, 2)
        if words & more and one.source != other.source
    ]
    return _Pool(tuple(value for _, value in lines), tuple(pairs))


def _declared(blocks: Sequence[Block]) -> _Pool:
    """How many rows and columns outputs say there are, before and after something."""
    rows, columns = [
        [
            _Value(float(total), str(total), block.source)
            for block in blocks
            if (total := getattr(block, name)) and not block.is_table and total != len(block.rows)
        ][:_POOL]
        for name in ("total_rows", "total_columns")
    ]
    return _Pool((*rows, *columns), (*combinations(rows, 2), *combinations(columns, 2)))


def _column_pool(
    block: Block, cells: list[Cell], rows: list[int], totals: tuple[_Value, ...]
) -> _Pool:
    values = tuple(_value(block, cell) for cell in cells)
    both = list(zip(cells, values, strict=True))
    named = tuple(value for cell, value in both if cell.row in rows)
    own = tuple(value for cell, value in both if block.row_words(cell.row) & _TOTAL)
    whole = values if block.is_complete or not block.is_table else ()
    pairs = list(_pairs(values, named))
    quartiles = [value for cell, value in both if block.rows[cell.row] in ("25%", "75%")]
    if len(quartiles) == 2:
        pairs.append((quartiles[0], quartiles[1]))
    is_ordered = bool(cells) and block.rows[cells[0].row][:4].isdigit()
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
        whole = whole if all(_are_alike(whole[0], other) for other in whole) else ()
    return _Pool(
        values,
        tuple(pairs),
        whole,
        named,
        (*own, *totals),
        is_column=block.is_table and bool(whole),
        is_ordered=is_ordered,
    )


def _pairs(
    values: tuple[_Value, ...], named: tuple[_Value, ...]
) -> Iterator[tuple[_Value, _Value]]:
    """Two values at a time: those named, else the extremes and neighbours."""
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


def _columns_meant(block: Block, words: frozenset[str]) -> list[int]:
    """The columns whose labels share most with the sentence; all where none does."""
    columns = block.value_columns()
    words = words - _STATISTICS
    matched = {at: len(block.column_words(at) & words) for at in columns}
    best = max(matched.values(), default=0)
    is_narrowed = any(
        word.isdigit() for at in columns if matched[at] for word in block.column_words(at)
    )
    if len(columns) <= _FEW and not is_narrowed:
        return sorted(columns, key=lambda at: -matched[at])
    return [at for at in columns if matched[at] == best or (best and matched[at])][: 3 * _FEW]


def _counts(blocks: Sequence[Block]) -> tuple[_Value, ...]:
    """How many there are of everything, as outputs tell."""
    found: dict[float, _Value] = {}
    for block in blocks:
        if block.total_rows and (not block.is_table or block.total_rows != len(block.rows)):
            text = str(block.total_rows)
            found.setdefault(float(text), _Value(float(text), text, block.source))
        for cell in block.cells[:200]:
            if (
                cell.value == int_of(cell.value)
                and cell.value > 1
                and (block.row_words(cell.row) & _TOTAL)
            ):
                found.setdefault(cell.value, _value(block, cell))
    return tuple(found.values())[:20]


def int_of(value: float) -> float:
    """Returns a number without what follows its point; itself where it has no size."""
    return float(int(value)) if abs(value) < 1e300 else value


def _value(block: Block, cell: Cell) -> _Value:
    return _Value(cell.value, cell.text, block.source)


def _change(pool: _Pool, fits: Window, statement: Statement, context: str) -> Derivation | None:
    """A percentage by which one value is above or below another."""
    words = context if _CHANGE.search(context) else statement.sentence
    ups, downs = bool(_ONLY_UP.search(words)), bool(_ONLY_DOWN.search(words))
    for one, other in pool.pairs:
        low, high = sorted((one, other), key=lambda each: abs(each.value))
        is_one_way = ups is not downs
        if pool.is_ordered and is_one_way and ups is not (high is other):
            continue
        if low.value and (ups or not downs) and fits.holds(100 * (high.value / low.value - 1)):
            return Derivation(f"{high.text} / {low.text} - 1", high.source)
        if high.value and (downs or not ups) and fits.holds(100 * (1 - low.value / high.value)):
            return Derivation(f"1 - {low.text} / {high.text}", high.source)
        if "point" in statement.after[:12] or "pp" in statement.after[:5]:
            for scale in (1.0, 100.0):
                if fits.holds(scale * (high.value - low.value)):
                    return Derivation(f"{high.text} - {low.text}", high.source)
    return None


def _share(pool: _Pool, fits: Window, _: Statement, context: str) -> Derivation | None:
    return _part(pool, fits, 100.0, bool(_REST.search(context)))


def _fraction(pool: _Pool, fits: Window, _: Statement, context: str) -> Derivation | None:
    return _part(pool, fits, 1.0, bool(_REST.search(context)))


def _part(  # noqa: PLR0911 (the ways in which a value is a part, in their order)
    pool: _Pool, fits: Window, scale: float, is_rest: bool
) -> Derivation | None:
    """A value as a part of a total: of its column, of one that is told, of another value."""
    if pool.values and all(abs(one.value) <= 1 for one in pool.values):
        several = sum(one.value for one in pool.named)
        if len(pool.named) > 1 and fits.holds(scale * several):
            return Derivation(_sum_of(pool.named), pool.named[0].source)
        return _rest(pool, fits, scale) if is_rest else None
    parts = pool.named or (pool.values if len(pool.values) <= _POOL else ())
    total = sum(one.value for one in pool.whole)
    for one in parts:
        if len(pool.whole) > 1 and total and fits.holds(scale * one.value / total):
            return Derivation(f"{one.text} / {_sum_of(pool.whole)}", one.source)
        for other in pool.totals:
            is_part = other is not one and other.value and abs(one.value) <= abs(other.value)
            if is_part and fits.holds(scale * one.value / other.value):
                return Derivation(f"{one.text} / {other.text}", one.source)
    is_column = pool.is_column
    for one, other in pool.pairs:
        low, high = sorted((one, other), key=lambda each: abs(each.value))
        is_sibling = is_column and not (one in pool.named and other in pool.named)
        if high.value and not is_sibling and fits.holds(scale * low.value / high.value):
            return Derivation(f"{low.text} / {high.text}", low.source)
    named = sum(one.value for one in pool.named)
    if len(pool.named) > 1 and total and fits.holds(scale * named / total):
        return Derivation(f"{_sum_of(pool.named)} / {_sum_of(pool.whole)}", pool.named[0].source)
    return _rest(pool, fits, scale) if is_rest else None


def _rest(pool: _Pool, fits: Window, scale: float) -> Derivation | None:
    """What a share leaves."""
    for one in pool.values[:_MOST_PAIRS]:
        if 0 <= one.value <= 1 and fits.holds(scale * (1 - one.value)):
            return Derivation(f"1 - {one.text}", one.source)
        if 1 < one.value <= 100 and scale > 1 and fits.holds(100 - one.value):
            return Derivation(f"100 - {one.text}", one.source)
    return None


def _ratio(pool: _Pool, fits: Window, *_: object) -> Derivation | None:
    for one, other in pool.ratios or pool.pairs:
        for over, under in ((one, other), (other, one)):
            if under.value and fits.holds(over.value / under.value):
                return Derivation(f"{over.text} / {under.text}", over.source)
    return None


def _difference(pool: _Pool, fits: Window, statement: Statement, context: str) -> Derivation | None:
    scales = (1.0, 100.0) if _POINTS.match(statement.after) else (1.0,)
    for one, other in pool.pairs:
        gap = one.value - other.value
        is_enough = 100.0 in scales or _adds(one, other, fits)
        if is_enough and any(fits.holds(scale * gap) for scale in scales):
            high, low = (one, other) if one.value >= other.value else (other, one)
            return Derivation(f"{high.text} - {low.text}", one.source)
    if len(pool.whole) > 2 and len(pool.named) == 1 and _REST.search(context):
        rest = sum(one.value for one in pool.whole) - pool.named[0].value
        if fits.holds(rest):
            return Derivation(f"{_sum_of(pool.whole)} - {pool.named[0].text}", pool.named[0].source)
    return None


def _adds(one: _Value, other: _Value, fits: Window) -> bool:
    """Whether each of two values is large enough to change the result."""
    return min(abs(one.value), abs(other.value)) > fits.high - fits.low


def _sum(pool: _Pool, fits: Window, *_: object) -> Derivation | None:
    pairs = (pair for pair in pool.pairs if _adds(*pair, fits))
    for values in (pool.named, pool.whole, *pairs):
        if len(values) > 1 and fits.holds(sum(one.value for one in values)):
            return Derivation(_sum_of(values), values[0].source)
    return None


def _whole(pool: _Pool, fits: Window, *_: object) -> Derivation | None:
    """What a whole column or row adds up to, which needs no word that says so."""
    total = sum(one.value for one in pool.whole)
    is_all = len(pool.named) in (0, 1, len(pool.whole))
    if len(pool.whole) > 1 and is_all and not pool.is_told and fits.holds(total):
        return Derivation(_sum_of(pool.whole), pool.whole[0].source)
    return None


def _mean(pool: _Pool, fits: Window, *_: object) -> Derivation | None:
    for values in (pool.named, pool.whole, *pool.pairs):
        if len(values) > 1 and fits.holds(sum(one.value for one in values) / len(values)):
            return Derivation(f"{_sum_of(values)} / {len(values)}", values[0].source)
    return None


def _sum_of(values: Sequence[_Value]) -> str:
    if len(values) > _FEW:
        return f"({values[0].text} + … + {values[-1].text})"
    return f"({' + '.join(one.text for one in values)})"


_ROLES: dict[str, Callable[[_Pool, Window, Statement, str], Derivation | None]] = {
    "change": _change, "share": _share, "ratio": _ratio, "fraction": _fraction,
    "difference": _difference, "sum": _sum, "whole": _whole, "mean": _mean,
}  # fmt: skip
