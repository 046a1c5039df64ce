"""Comparison of two result tables, such as those of a SQL query, as bags of rows.

The rules, and how they differ from others:

- Duplicate rows count. BIRD's execution accuracy compares sets of rows and accepts duplicates.
- Rows stay together. The comparison released with DataMind (arXiv 2509.25084) sorts each column
  alone and accepts scrambled rows. The order of rows matters only if requested.
- Headers are ignored. The number of columns must agree. In tables of at most 6 columns, the columns
  of the answer may be permuted, the same way in all rows. Cells then match by value alone, so that
  `max, min` for `min, max` passes; that is the price.
- Cells are read as all suites read a value (`reader`, `moments`), under the policy `TABLE_CELL`.
  Numbers match within 1e-6 relative and their last digit; whole numbers, including `5.0`, match
  exactly. `1,234` is 1234, and `007` is a code, which is text. Dates, times and missing values
  match in any notation. Text matches with its case but without outer spaces. A rounded 0.33 is not
  0.333333: nobody asked for the rounding, and a tolerance of 1 % would accept wrong sums.

`tables_identical` is the strict comparison: no columns are permuted, nothing is rounded.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from training.scoring.moments import Moment, read_moment
from training.scoring.reader import (
    MAX_EXACT,
    MAX_SCALAR_CHARS,
    TABLE_CELL,
    Figure,
    Number,
    as_written,
    numbers_equal,
    read_plain,
    read_written,
)

__all__ = ["ResultValue", "read_csv", "tables_equal", "tables_identical"]

ResultValue = object
"""A database value, or its text in a csv file."""

MAX_PERMUTED_COLUMNS = 6
MAX_PAIRED_ROWS = 500
"""Maximum number of rows to pair one by one; all of them agree except in their last digits."""

_WRITTEN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?")
"""A number as a program writes it: no plus sign, no leading zeros."""
_CODE = re.compile(r"0[0-9]+")
"""A code, which is text: `02139` is not 2139."""
_MISSING = frozenset({"", "nan", "NaN", "None", "NULL", "NaT", "<NA>"})

_Canonical = str | int | float | Moment | None
_Row = tuple[_Canonical, ...]
_Same = Callable[[Sequence[_Row], Sequence[_Row]], bool]


def read_csv(text: str, *, keep_index: bool = False) -> list[list[str]]:
    """Return the rows of a csv text, without its header line.

    A blank line is a missing value if the table has one column; otherwise it is ignored. At the end
    of the text it is always ignored.

    Args:
        text: any text.
        keep_index: whether to keep pandas' index: a first column without a name that counts the
            rows from 0.

    Raises:
        ValueError: the text has no header line or is not csv.
    """
    try:
        lines = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    except csv.Error as error:
        raise ValueError(f"not a csv table: {error}") from error
    if not lines:
        raise ValueError("not a csv table: it has no header line")
    header, *body = lines
    while body and not body[-1]:
        body.pop()
    rows = [line or [""] for line in body if line or len(header) == 1]
    has_index = len(header) > 1 and not header[0].strip() and not keep_index
    if has_index and [row[0] for row in rows] == [str(count) for count in range(len(rows))]:
        return [row[1:] for row in rows]
    return rows


def tables_equal(
    label: Sequence[Sequence[ResultValue]],
    answer: Sequence[Sequence[ResultValue]],
    *,
    order_matters: bool = False,
) -> bool:
    """Return whether two tables contain the same rows.

    Args:
        label: the expected rows.
        answer: the rows to judge.
        order_matters: whether the rows must come in the same order.
    """
    if not _have_one_shape(label, answer):
        return False
    if _same_as_written(label, answer):
        return True
    gold = [tuple(map(_canonical, row)) for row in label]
    said = [tuple(map(_canonical, row)) for row in answer]
    same = _same_sequence if order_matters else _same_bag
    return any(
        same(gold, said if index == 0 else _reordered(said, order))
        for index, order in enumerate(_column_orders(gold, said))
    )


def _have_one_shape(
    label: Sequence[Sequence[ResultValue]], answer: Sequence[Sequence[ResultValue]]
) -> bool:
    """Whether both have equally many rows, all of one width; reads no cell."""
    widths = {*map(len, label), *map(len, answer)}
    return len(label) == len(answer) and len(widths) < 2


def _same_as_written(
    label: Sequence[Sequence[ResultValue]], answer: Sequence[Sequence[ResultValue]]
) -> bool:
    """Whether the cells match one by one, which is enough for most correct tables."""
    return all(
        one == other or _fits(_canonical(one), _canonical(other))
        for row, others in zip(label, answer, strict=True)
        for one, other in zip(row, others, strict=True)
    )


def _reordered(rows: Sequence[_Row], order: Sequence[int]) -> list[_Row]:
    return [tuple([row[index] for index in order]) for row in rows]


def tables_identical(
    label: Sequence[Sequence[ResultValue]],
    answer: Sequence[Sequence[ResultValue]],
    *,
    order_matters: bool = False,
) -> bool:
    """Return whether two tables contain the same cells in the same columns, digit by digit.

    5 and `5.0` are equal, since a csv file has no types. So are a missing value and nothing between
    two commas. A code such as `007`, a space and a time of day are compared as text.

    Args:
        label: the expected rows.
        answer: the rows to judge.
        order_matters: whether the rows must come in the same order.
    """
    if len(label) != len(answer):
        return False
    gold = [tuple(map(_exactly, row)) for row in label]
    said = [tuple(map(_exactly, row)) for row in answer]
    return gold == said or (not order_matters and Counter(gold) == Counter(said))


def _exactly(cell: ResultValue) -> _Canonical:
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, int | float):
        return cell
    text = str(cell)
    if len(text) > MAX_SCALAR_CHARS or not _WRITTEN_NUMBER.fullmatch(text):
        return text
    return read_plain(text)


def _canonical(cell: ResultValue) -> _Canonical:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, int | float):
        return cell
    text = str(cell).strip()
    if text in _MISSING:
        return None
    number = read_plain(text)
    if number is not None:
        return text if _CODE.fullmatch(text) else number
    return _written(text) if len(text) <= MAX_SCALAR_CHARS else text


@lru_cache(maxsize=4096)
def _written(text: str) -> _Canonical:
    """Return the date that a text writes, or its number if it has no mark; else the text."""
    moment = read_moment(text)
    if moment is not None or text[0].isalpha():  # no number begins with a letter: a shortcut
        return moment or text
    found = read_written(text)
    if found is None or found.is_percent or found.currency or found.is_code:
        return text
    return int(found.value) if found.is_whole else Figure(str(found.value))


def _fits(one: _Canonical, other: _Canonical) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return _close(one, other)
    return one == other


def _close(one: Number, other: Number) -> bool:
    if one == other or _both_whole(one, other):
        return one == other
    return _near(one, other) and numbers_equal(as_written(one), as_written(other), TABLE_CELL)


def _near(one: Number, other: Number) -> bool:
    """Whether two numbers may be equal; a quick check before the policy is applied."""
    try:
        return math.isclose(
            one, other, rel_tol=TABLE_CELL.relative, abs_tol=TABLE_CELL.absolute
        ) and not math.isinf(one)
    except OverflowError:  # an int too large for a float
        return False


def _both_whole(one: Number, other: Number) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return True
    return all(abs(number) < MAX_EXACT and number == number // 1 for number in (one, other))


@dataclass(frozen=True, slots=True)
class _Column:
    """Cells of a column without their order."""

    others: Counter[_Canonical]
    """Cells that are not numbers."""
    numbers: list[Number]
    """Numbers, sorted."""

    @classmethod
    def of(cls, cells: Iterable[_Canonical]) -> _Column:
        kept = list(cells)
        numbers = sorted(cell for cell in kept if isinstance(cell, int | float))
        return cls(Counter(cell for cell in kept if not isinstance(cell, int | float)), numbers)

    def may_be(self, other: _Column) -> bool:
        """Whether the cells may pair off; only a comparison of entire rows decides."""
        return (
            len(self.numbers) == len(other.numbers)
            and all(
                one == said or _near(one, said)
                for one, said in zip(self.numbers, other.numbers, strict=True)
            )
            and self.others == other.others
        )


def _column_orders(gold: Sequence[_Row], said: Sequence[_Row]) -> Iterator[tuple[int, ...]]:
    """Yield the possible column orders, the written one first."""
    written = tuple(range(len(gold[0]) if gold else 0))
    yield written
    if not 1 < len(written) <= MAX_PERMUTED_COLUMNS:
        return
    wanted, found = ([_Column.of(row[i] for row in rows) for i in written] for rows in (gold, said))
    fitting = [[i for i in written if column.may_be(found[i])] for column in wanted]
    for order in _choices(fitting, ()):
        if order != written:
            yield order


def _choices(fitting: Sequence[Sequence[int]], taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(taken) == len(fitting):
        yield taken
        return
    for index in fitting[len(taken)]:
        if index not in taken:
            yield from _choices(fitting, (*taken, index))


def _rows_fit(one: _Row, other: _Row) -> bool:
    return all(_fits(a, b) for a, b in zip(one, other, strict=True))


def _same_sequence(gold: Sequence[_Row], said: Sequence[_Row]) -> bool:
    return all(_rows_fit(one, other) for one, other in zip(gold, said, strict=True))


def _same_bag(gold: Sequence[_Row], said: Sequence[_Row]) -> bool:
    """Whether the rows pair off: exact matches first, then rows with cells close to each other."""
    expected, found = Counter(gold), Counter(said)
    if expected == found:
        return True
    missing, extra = [*(expected - found).elements()], [*(found - expected).elements()]
    places = [_places(column) for column in zip(*missing, *extra, strict=True)]
    groups, others = _by_place(missing, places), _by_place(extra, places)
    if groups.keys() != others.keys():
        return False
    return all(_pair_off(rows, others[key]) for key, rows in groups.items())


def _places(column: Sequence[_Canonical]) -> dict[Number, int]:
    """Return a cluster number for each number of a column, shared by numbers that may be equal.

    A number is in the cluster of the next smaller one if that is within the tolerance. Rounding
    would instead separate close numbers on two sides of a rounding boundary.
    """
    numbers = sorted({cell for cell in column if isinstance(cell, int | float)})
    are_whole = all(_both_whole(number, number) for number in numbers)
    places: dict[Number, int] = {}
    place = 0
    for before, number in zip([None, *numbers], numbers, strict=False):
        if before is None or are_whole or not _near(before, number):
            place += 1
        places[number] = place
    return places


def _by_place(
    rows: Sequence[_Row], places: Sequence[dict[Number, int]]
) -> dict[tuple[object, ...], list[_Row]]:
    groups: dict[tuple[object, ...], list[_Row]] = defaultdict(list)
    for row in rows:
        key = [
            ("number", place[cell]) if isinstance(cell, int | float) else cell
            for cell, place in zip(row, places, strict=True)
        ]
        groups[tuple(key)].append(row)
    return groups


def _pair_off(gold: Sequence[_Row], said: Sequence[_Row]) -> bool:
    if len(gold) != len(said):
        return False
    ordered, others = sorted(gold, key=_sort_key), sorted(said, key=_sort_key)
    if _same_sequence(ordered, others):
        return True
    return len(gold) <= MAX_PAIRED_ROWS and _pair_one_by_one(ordered, others)


def _sort_key(row: _Row) -> list[float | int]:
    return [cell for cell in row if isinstance(cell, int | float)]


def _pair_one_by_one(gold: Sequence[_Row], said: Sequence[_Row]) -> bool:
    """Whether rows pair off greedily; enough, as rounding errors are far below the tolerance."""
    free = list(said)
    for row in gold:
        match = next((at for at, other in enumerate(free) if _rows_fit(row, other)), None)
        if match is None:
            return False
        free.pop(match)
    return True
